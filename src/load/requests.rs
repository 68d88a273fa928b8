//! Requests written ahead, so that none is serialised between its start and its first byte.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::load::agenda::{Agenda, Due};
use crate::load::leg::Leg;
use crate::load::target::Desk;

/// How many bytes of an open loop's requests are written ahead, about.
const AHEAD_BYTES: usize = 4 << 20;

/// The written requests of one shard in one leg.
#[derive(Debug)]
pub(crate) struct Requests {
    leg: Arc<Leg>,
    desk: Desk,
    /// Open loop: written requests, in the order of the schedule.
    ahead: VecDeque<(u64, Vec<u8>)>,
    ahead_bytes: usize,
    /// Closed loop: by user, its next request with its index, once written.
    by_user: Vec<Option<(u64, Vec<u8>)>>,
    /// Users whose next request is still to be written.
    unwritten: VecDeque<u32>,
    /// Buffers to write into.
    spare: Vec<Vec<u8>>,
}

impl Requests {
    /// The requests of `agenda`, of which none is written yet.
    pub(crate) fn new(leg: Arc<Leg>, agenda: &Agenda) -> Requests {
        Requests {
            leg,
            desk: Desk::default(),
            ahead: VecDeque::new(),
            ahead_bytes: 0,
            by_user: (0..agenda.users()).map(|_| None).collect(),
            unwritten: (0..agenda.users()).collect(),
            spare: Vec::new(),
        }
    }

    /// Writes one request that will be needed; `false` if there is nothing to write now.
    pub(crate) fn prepare_one(&mut self, agenda: &mut Agenda) -> bool {
        while let Some(user) = self.unwritten.pop_front() {
            let Some(index) = agenda.next_of_user(user) else { continue };
            if self.by_user[user as usize].as_ref().is_some_and(|(written, _)| *written == index) {
                continue;
            }
            let request = self.write(index);
            self.by_user[user as usize] = Some((index, request));
            return true;
        }
        if self.ahead_bytes >= AHEAD_BYTES {
            return false;
        }
        let after = self.ahead.back().map(|(index, _)| *index);
        let Some(index) = agenda.upcoming_after(after) else { return false };
        let request = self.write(index);
        self.ahead_bytes += request.len();
        self.ahead.push_back((index, request));
        true
    }

    /// The request of `due`: the one written ahead, or written now if there was no time.
    pub(crate) fn take(&mut self, due: &Due) -> Vec<u8> {
        if let Some(user) = due.user {
            return match self.by_user.get_mut(user as usize).and_then(Option::take) {
                Some((index, request)) if index == due.index => request,
                _ => self.write(due.index),
            };
        }
        // Sends are taken in the order of the schedule: what is written for earlier ones will not be needed.
        while self.ahead.front().is_some_and(|(index, _)| *index <= due.index) {
            let Some((index, request)) = self.ahead.pop_front() else { break };
            self.ahead_bytes -= request.len();
            if index == due.index {
                return request;
            }
            self.spare.push(request);
        }
        self.write(due.index)
    }

    /// Takes back the buffer of a request that the kernel has in full.
    pub(crate) fn give_back(&mut self, user: Option<u32>, buffer: Vec<u8>) {
        self.spare.push(buffer);
        if let Some(user) = user {
            self.unwritten.push_back(user);
        }
    }

    /// Writes request `index` into a spare buffer.
    pub(crate) fn write(&mut self, index: u64) -> Vec<u8> {
        let mut out = self.spare.pop().unwrap_or_default();
        let leg = &self.leg;
        leg.target.write_request(leg.item(index), &mut self.desk, &mut out);
        out
    }
}

#[cfg(test)]
pub(in crate::load) mod tests {
    use super::*;
    use crate::load::agenda::{ClosedLoop, Schedule};
    use crate::load::leg::{Signal, Spans};
    use crate::load::target::{Route, RouteParts, Target};
    use crate::metrics::Phase;
    use crate::plan::{Arrivals, Distribution, Endpoint, Lengths, Limits, Plan, Prefix, Stop};
    use crate::time::Stamp;
    use crate::workload::{Content, arrival};
    use std::time::Duration;

    /// A leg of prompts and answers of all lengths, after one of three beginnings.
    pub(in crate::load) fn leg() -> Arc<Leg> {
        let mut plan = Plan::new(11);
        plan.workload.input_words = Lengths::Drawn(Distribution::Uniform { min: 3, max: 40 });
        plan.workload.output_tokens = Lengths::Drawn(Distribution::Uniform { min: 1, max: 9 });
        plan.workload.prefix = Some(Prefix { words: 5, pool: 3 });
        let address = Endpoint::parse("http://127.0.0.1:1").unwrap();
        let tls = crate::load::tls::config(true, None).unwrap();
        let parts = RouteParts {
            address: &address,
            path: "/v1/chat/completions".to_owned(),
            headers: Vec::new(),
            tls,
        };
        let options = plan.workload.body_options();
        let template =
            crate::api::request::Template::new(plan.target.dialect, "m", plan.target.stream, &options);
        let target = Target {
            routes: vec![Route::new(parts).unwrap()],
            templates: vec![template],
            content: Content::new(&plan.workload),
        };
        Arc::new(Leg {
            target: Arc::new(target),
            ask: Default::default(),
            phase: Phase::Measured,
            seed: plan.level_seed(0),
            limits: Spans::from(&Limits::default()),
            permits: None,
            from_plan: true,
            timestamps: plan.client.timestamps,
            burn: None,
            keep_chunks: false,
            cut: Duration::ZERO,
            grace: Duration::ZERO,
            observed: None,
            signal: Signal::default(),
        })
    }

    /// Takes everything that is due and collects it by index, writing ahead now and then.
    fn drain(mut agenda: Agenda, leg: &Arc<Leg>, all: &mut Vec<(u64, Stamp, Vec<u8>)>) {
        let mut requests = Requests::new(Arc::clone(leg), &agenda);
        let mut ahead = true;
        while let Some(at) = agenda.next() {
            while ahead && requests.prepare_one(&mut agenda) {}
            ahead = !ahead;
            let due = agenda.pop(at).unwrap();
            let request = requests.take(&due);
            all.push((due.index, due.plan, request.clone()));
            requests.give_back(due.user, request);
            agenda.on_done(due.user, at, Duration::ZERO);
        }
    }

    #[test]
    fn bodies_and_times_depend_on_the_index_and_not_on_the_shards() {
        let leg = leg();
        let stop = Stop { units: Some(50), duration_s: None, grace_s: 0.0 };
        let of = |shards: u32| {
            let mut all = Vec::new();
            for shard in 0..shards {
                let schedule = arrival::Schedule::new(Arrivals::Poisson { rate: 100.0 }, leg.seed, &stop);
                let dealt = arrival::Dealt::new(schedule, shard, shards);
                let part: Schedule = Box::new(dealt.map(|due| (due.index, due.offset_ns)));
                drain(Agenda::open(part), &leg, &mut all);
            }
            all.sort();
            all
        };
        let one = of(1);
        assert_eq!(one.len(), 50);
        assert_eq!(of(2), one);
        assert_eq!(of(7), one);
    }

    #[test]
    fn an_answer_is_read_as_of_the_length_that_its_request_asks_for() {
        let leg = leg();
        let mut requests = Requests::new(Arc::clone(&leg), &Agenda::open(Box::new(std::iter::empty())));
        let asked: Vec<u32> = (0..50).map(|index| leg.ask_of(index).max_tokens).collect();
        for (index, tokens) in asked.iter().enumerate() {
            let request = String::from_utf8(requests.write(index as u64)).unwrap();
            assert!(request.contains(&format!(r#""max_tokens":{tokens},"#)), "{request}");
        }
        assert!(asked.iter().any(|tokens| *tokens != asked[0]));
    }

    #[test]
    fn users_send_the_same_bodies_on_any_number_of_shards() {
        let leg = leg();
        let of = |shards: u32| {
            let mut all = Vec::new();
            for shard in 0..shards {
                let users = ClosedLoop {
                    users: 7,
                    shards,
                    shard,
                    units: 40,
                    think: Duration::ZERO,
                    spread: Duration::ZERO,
                    pace: None,
                    duration: Duration::MAX,
                };
                drain(Agenda::closed(&users), &leg, &mut all);
            }
            let mut bodies: Vec<_> = all.into_iter().map(|(index, _, body)| (index, body)).collect();
            bodies.sort();
            bodies
        };
        let one = of(1);
        assert_eq!(one.len(), 40);
        assert!(one.windows(2).all(|pair| pair[0].1 != pair[1].1), "two requests with one body");
        assert_eq!(of(2), one);
        assert_eq!(of(7), one);
    }
}
