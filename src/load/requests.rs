//! Requests written ahead, so that none is serialised between its start and its first byte.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::api::talk::Reply;
use crate::load::agenda::{Agenda, Due};
use crate::load::leg::Leg;
use crate::load::talks::Talks;
use crate::load::target::Desk;
use crate::load::teams::Teams;
use crate::metrics::{Phase, Record};
use crate::rng;
use crate::run::Sessions;
use crate::time::Stamp;
use crate::workload::deck::{Deck, Hand};
use crate::workload::recording::{Sends, Sent};
use crate::workload::trace::Entry;

/// How many bytes of an open loop's requests are written ahead, about.
pub(in crate::load) const AHEAD_BYTES: usize = 4 << 20;
/// Prompts of more words are written in steps; shorter ones take less than a tenth of a millisecond.
const LONG_WORDS: u32 = 4096;
/// A step of a prompt of 128 000 words takes less.
const STEP_MAX: Duration = Duration::from_millis(1);

/// The written requests of one shard in one leg.
#[derive(Debug)]
pub(crate) struct Requests {
    leg: Arc<Leg>,
    desk: Desk,
    /// That of the next draft.
    long_desk: Desk,
    /// The requests of a trace, in the order in which they are sent.
    recorded: Option<Sends>,
    /// The data set that prompts are taken from.
    data: Option<Hand>,
    /// Open loop: written requests, in the order of the schedule.
    ahead: VecDeque<(u64, Written)>,
    ahead_bytes: usize,
    /// The sessions that go on, where sessions have several turns.
    sessions: Running,
    /// Closed loop: by user, the first request of its next session with its index, once written.
    by_user: Vec<Option<(u64, Written)>>,
    /// Users whose next request is still to be written.
    unwritten: VecDeque<u32>,
    /// A long request that is half written.
    draft: Option<Draft>,
    /// Buffers to write into.
    spare: Vec<Vec<u8>>,
}

/// The sessions that are under way.
#[derive(Debug)]
enum Running {
    /// Each request is one of its own.
    Single,
    /// Turns that follow each other.
    Talks(Box<Talks>),
    /// Requests of agents, several of which may be under way at once.
    Teams(Box<Teams>),
}

/// What follows a request of a session that has ended.
#[derive(Debug, Default)]
pub(crate) struct Follow {
    /// Turns of the session, and when they are planned.
    pub(crate) next: Vec<(u16, Next)>,
    /// Nothing of the session is planned or under way any more.
    pub(crate) is_over: bool,
    /// What is planned of the session and not yet due is not sent ([`Requests::on_withdrawn`]).
    pub(crate) withdraws: bool,
}

/// When a session goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// So long after the end of the answer.
    After(Duration),
    /// So many nanoseconds after the start of the level, as it was recorded, or when the answer has ended.
    At(u64),
    /// Planned for the first of these times, and ready to be sent at the second.
    On(Stamp, Stamp),
}

/// A request that is written ahead in steps, so that none of them keeps the shard from its sockets for long.
#[derive(Debug)]
struct Draft {
    index: u64,
    user: Option<u32>,
    /// Its own: another request may have to be written at once.
    desk: Desk,
    done: Step,
}

/// The last step that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    None,
    Prompt,
    Body,
}

/// A request as it is sent.
#[derive(Debug)]
pub(crate) struct Written {
    /// Head and body.
    pub(crate) bytes: Vec<u8>,
    /// The longest answer that it asks for, by which its answer is judged, tokens.
    pub(crate) max_tokens: u32,
    /// A hash of its index and its body.
    pub(crate) hash: u64,
    /// What it was written from, if that was read from a file: to write it again.
    pub(crate) entry: Option<Box<Entry>>,
}

impl Requests {
    /// The requests of `agenda`, of which none is written yet; those of a trace where there are such.
    pub(crate) fn new(leg: Arc<Leg>, agenda: &Agenda, recorded: Option<Sends>) -> Requests {
        // Warm-up prompts are synthetic in any case.
        let data = leg.target.content.deck().filter(|_| leg.phase == Phase::Measured).map(Deck::hand);
        let sessions = match leg.target.content.agents() {
            _ if !leg.has_sessions() => Running::Single,
            None => Running::Talks(Box::new(Talks::new(Arc::clone(&leg), recorded.as_ref()))),
            Some(_) => Running::Teams(Box::new(Teams::new(Arc::clone(&leg), recorded.as_ref()))),
        };
        Requests {
            leg,
            desk: Desk::default(),
            long_desk: Desk::default(),
            recorded,
            data,
            sessions,
            ahead: VecDeque::new(),
            ahead_bytes: 0,
            by_user: (0..agenda.users()).map(|_| None).collect(),
            unwritten: (0..agenda.users()).collect(),
            draft: None,
            spare: Vec::new(),
        }
    }

    /// Writes one request that will be needed, or of a long one a part; `false` if there is nothing to write now, or if
    /// that might take longer than `room`.
    pub(crate) fn prepare_one(&mut self, agenda: &mut Agenda, room: Duration) -> bool {
        let has_written = match &mut self.sessions {
            Running::Single => false,
            Running::Talks(talks) => talks.prepare_one(&mut self.desk, &mut self.spare),
            Running::Teams(teams) => teams.prepare_one(&mut self.desk, &mut self.spare, room),
        };
        if has_written {
            return true;
        }
        if self.draft.is_some() {
            return self.go_on(room);
        }
        while let Some(user) = self.unwritten.pop_front() {
            let Some(index) = agenda.next_of_user(user) else { continue };
            if self.by_user[user as usize].as_ref().is_some_and(|(written, _)| *written == index) {
                continue;
            }
            if self.is_long(index) {
                return self.begin(index, Some(user), room);
            }
            let Some(request) = self.write(index) else { return false };
            self.by_user[user as usize] = Some((index, request));
            return true;
        }
        if self.ahead_bytes >= AHEAD_BYTES {
            return false;
        }
        let next = if self.recorded.is_some() {
            self.write_recorded()
        } else {
            let after = self.ahead.back().map(|(index, _)| *index);
            let upcoming = agenda.upcoming_after(after);
            if let Some(index) = upcoming.filter(|index| self.is_long(*index)) {
                return self.begin(index, None, room);
            }
            upcoming.and_then(|index| Some((index, self.write(index)?)))
        };
        let Some((index, request)) = next else { return false };
        self.ahead_bytes += request.bytes.len();
        self.ahead.push_back((index, request));
        true
    }

    /// Whether request `index` is written in steps: a synthetic one of many words.
    fn is_long(&self, index: u64) -> bool {
        let content = &self.leg.target.content;
        self.data.is_none() && content.prompt_words(self.leg.item(index)) > LONG_WORDS
    }

    fn begin(&mut self, index: u64, user: Option<u32>, room: Duration) -> bool {
        self.draft = Some(Draft { index, user, desk: std::mem::take(&mut self.long_desk), done: Step::None });
        self.go_on(room)
    }

    /// Takes the next step of the draft, if there is room for it.
    fn go_on(&mut self, room: Duration) -> bool {
        if room < STEP_MAX {
            return false;
        }
        let Some(mut draft) = self.draft.take() else { return false };
        let (item, target) = (self.leg.item(draft.index), &self.leg.target);
        match draft.done {
            Step::None => {
                target.write_prompt(item, &mut draft.desk);
                draft.done = Step::Prompt;
            }
            Step::Prompt => {
                target.write_body(item, &mut draft.desk);
                draft.done = Step::Body;
            }
            Step::Body => {
                let Draft { index, user, .. } = draft;
                let request = self.finished(draft);
                match user {
                    Some(user) => self.by_user[user as usize] = Some((index, request)),
                    None => {
                        self.ahead_bytes += request.bytes.len();
                        self.ahead.push_back((index, request));
                    }
                }
                return true;
            }
        }
        self.draft = Some(draft);
        true
    }

    /// The request of a draft, whatever is still to be done.
    fn finished(&mut self, mut draft: Draft) -> Written {
        let (item, target) = (self.leg.item(draft.index), &self.leg.target);
        if draft.done == Step::None {
            target.write_prompt(item, &mut draft.desk);
        }
        if draft.done != Step::Body {
            target.write_body(item, &mut draft.desk);
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        target.write_post(item, &draft.desk, &mut bytes);
        let max_tokens = target.content.output_tokens(item);
        let hash = hashed(draft.index, draft.desk.body());
        self.long_desk = draft.desk;
        Written { bytes, max_tokens, hash, entry: None }
    }

    /// The request of `due` out of the draft, if it is that one; a draft of an earlier one will not be needed.
    fn take_draft(&mut self, due: &Due) -> Option<Written> {
        let is_useless = |draft: &Draft| draft.user == due.user && draft.index <= due.index;
        let draft = self.draft.take_if(|draft| is_useless(draft))?;
        if draft.index == due.index {
            return Some(self.finished(draft));
        }
        self.long_desk = draft.desk;
        None
    }

    /// The request of `due`: the one written ahead, or written now if there was no time. `None` where the file that it is
    /// in broke off.
    pub(crate) fn take(&mut self, due: &Due) -> Option<Written> {
        if due.turn > 0 {
            return match &mut self.sessions {
                Running::Single => None,
                Running::Talks(talks) => talks.take(due.index, &mut self.desk, &mut self.spare),
                Running::Teams(teams) => teams.take(due, &mut self.desk, &mut self.spare),
            };
        }
        let first = self.take_first(due);
        if let Some(first) = &first {
            match &mut self.sessions {
                Running::Single => {}
                Running::Talks(talks) => talks.on_begin(due.index, first.entry.as_deref()),
                Running::Teams(teams) => teams.on_begin(due, first.entry.as_deref()),
            }
        }
        first
    }

    /// Turns that go with the first request of a session, which `due` is and which was taken: those that wait for no answer.
    pub(crate) fn beside(&mut self, due: &Due) -> Vec<(u16, Next)> {
        match &mut self.sessions {
            Running::Teams(teams) if due.turn == 0 => teams.beside(due.index),
            _ => Vec::new(),
        }
    }

    /// The first request of a session.
    fn take_first(&mut self, due: &Due) -> Option<Written> {
        if let Some(user) = due.user {
            return match self.by_user.get_mut(user as usize).and_then(Option::take) {
                Some((index, request)) if index == due.index => Some(request),
                _ => self.take_draft(due).or_else(|| self.write(due.index)),
            };
        }
        // Sends are taken in the order of the schedule: what is written for earlier ones will not be needed.
        while self.ahead.front().is_some_and(|(index, _)| *index <= due.index) {
            let Some((index, request)) = self.ahead.pop_front() else { break };
            self.ahead_bytes -= request.bytes.len();
            if index == due.index {
                return Some(request);
            }
            self.spare.push(request.bytes);
        }
        if self.recorded.is_none() {
            return self.take_draft(due).or_else(|| self.write(due.index));
        }
        loop {
            let (index, request) = self.write_recorded()?;
            if index >= due.index {
                return Some(request).filter(|_| index == due.index);
            }
            self.spare.push(request.bytes);
        }
    }

    /// The request of `due` has ended, with this record. `reply` is what was answered, where the leg gathers it.
    pub(crate) fn on_end(&mut self, due: &Due, record: &Record, reply: &Reply) -> Follow {
        match &mut self.sessions {
            Running::Single => Follow { is_over: true, ..Follow::default() },
            Running::Talks(talks) => talks.on_end(due.index, due.turn, record.outcome, reply),
            Running::Teams(teams) => teams.on_end(due, record),
        }
    }

    /// So many planned requests of session `index` were taken back; whether it is over.
    pub(crate) fn on_withdrawn(&mut self, index: u64, requests: usize) -> bool {
        match &mut self.sessions {
            Running::Teams(teams) => teams.on_withdrawn(index, requests),
            _ => true,
        }
    }

    /// The request of `due` will never be sent.
    pub(crate) fn on_unsent(&mut self, due: &Due) {
        match &mut self.sessions {
            Running::Single => {}
            Running::Talks(talks) => talks.on_unsent(due.index, due.turn),
            Running::Teams(teams) => teams.on_unsent(due),
        }
    }

    /// What became of the sessions, where they have several turns.
    pub(crate) fn into_sessions(self) -> Option<Sessions> {
        match self.sessions {
            Running::Single => None,
            Running::Talks(talks) => Some(talks.into_counts()),
            Running::Teams(teams) => Some(teams.into_counts()),
        }
    }

    /// Takes back the buffer of a request that the kernel has in full.
    pub(crate) fn give_back(&mut self, user: Option<u32>, buffer: Vec<u8>) {
        self.spare.push(buffer);
        if let Some(user) = user {
            self.unwritten.push_back(user);
        }
    }

    /// Writes request `index`, which is not one of a trace, into a spare buffer.
    pub(crate) fn write(&mut self, index: u64) -> Option<Written> {
        let item = self.leg.item(index);
        if let Some(data) = &mut self.data {
            let entry = data.entry(self.leg.target.content.place(item)?)?;
            return Some(self.write_entry(index, entry));
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        self.leg.target.write_request(item, &mut self.desk, &mut bytes);
        let max_tokens = self.leg.target.content.output_tokens(item);
        Some(Written { bytes, max_tokens, hash: hashed(index, self.desk.body()), entry: None })
    }

    /// The bytes of the request of `due`, which was sent before, once more; of a file if it was `entry` of one.
    pub(crate) fn write_again(&mut self, due: &Due, entry: Option<&Entry>) -> Vec<u8> {
        let index = due.index;
        if due.turn > 0
            && let Running::Talks(talks) = &self.sessions
            && let Some(written) = talks.write(index, &mut self.desk, &mut self.spare)
        {
            return written.bytes;
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        let (item, target) = (self.leg.item(index), &self.leg.target);
        match entry {
            Some(entry) => {
                target.write_recorded((item, entry), &mut self.desk, &mut bytes);
            }
            None => target.write_request(item, &mut self.desk, &mut bytes),
        }
        bytes
    }

    /// Writes the next request of the trace.
    fn write_recorded(&mut self) -> Option<(u64, Written)> {
        let Sent { index, entry, .. } = self.recorded.as_mut()?.next()?;
        Some((index, self.write_entry(index, entry)))
    }

    fn write_entry(&mut self, index: u64, entry: Entry) -> Written {
        let mut bytes = self.spare.pop().unwrap_or_default();
        let item = self.leg.item(index);
        let max_tokens = self.leg.target.write_recorded((item, &entry), &mut self.desk, &mut bytes);
        Written { bytes, max_tokens, hash: hashed(index, self.desk.body()), entry: Some(Box::new(entry)) }
    }
}

/// A hash of a body and its place, eight bytes at a time: a quarter of a millisecond for a body of 120 000 tokens. The
/// length is in it, so that bytes of zero at the end count.
pub(in crate::load) fn hashed(index: u64, body: &[u8]) -> u64 {
    let (words, rest) = body.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let start = rng::mixed(index) ^ body.len() as u64;
    let fold = |hash, word: &[u8; 8]| rng::mixed(hash ^ u64::from_le_bytes(*word));
    words.iter().chain([&last]).fold(start, fold)
}

/// One number for a turn: sessions have 48 bits, turns 16.
pub(in crate::load) fn place_of(index: u64, turn: u16) -> u64 {
    index & (u64::MAX >> 16) | u64::from(turn) << 48
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
    use crate::workload::{Content, Mix, Recording, arrival};

    /// A leg of prompts and answers of all lengths, after one of three beginnings.
    pub(in crate::load) fn leg() -> Arc<Leg> {
        let mut plan = Plan::new(11);
        plan.workload.input_words = Lengths::Drawn(Distribution::Uniform { min: 3, max: 40 });
        plan.workload.output_tokens = Lengths::Drawn(Distribution::Uniform { min: 1, max: 9 });
        plan.workload.prefix = Some(Prefix::new(5, 3));
        plan.workload.extra_body.insert("user".to_owned(), "{{uuid}}-{{random:1:9}}".into());
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
            mix: Mix::equal(1),
            content: Content::new(&plan),
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
        let mut requests = Requests::new(Arc::clone(leg), &agenda, None);
        let mut ahead = true;
        while let Some(at) = agenda.next() {
            while ahead && requests.prepare_one(&mut agenda, Duration::MAX) {}
            ahead = !ahead;
            let due = agenda.pop(at).unwrap();
            let request = requests.take(&due).unwrap().bytes;
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
                let schedule = arrival::Schedule::new(&Arrivals::Poisson { rate: 100.0 }, leg.seed, &stop);
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

    /// All requests of a trace by index, as `shards` shards write them; every third send is skipped on the way.
    fn replayed(recording: &Arc<Recording>, shards: u32) -> Vec<(u64, Stamp, Vec<u8>)> {
        let leg = leg();
        let mut all = Vec::new();
        for shard in 0..shards {
            let sends = || recording.sends(2.0, (shard, shards)).unwrap();
            let mut agenda = Agenda::open(Box::new(sends().map(|sent| (sent.index, sent.offset_ns))));
            let mut requests = Requests::new(Arc::clone(&leg), &agenda, Some(sends()));
            let mut ahead = true;
            while let Some(at) = agenda.next() {
                while ahead && requests.prepare_one(&mut agenda, Duration::MAX) {}
                ahead = !ahead;
                let due = agenda.pop(at).unwrap();
                if due.index % 3 == 1 {
                    continue;
                }
                let request = requests.take(&due).unwrap();
                let again = requests.write_again(&due, request.entry.as_deref());
                assert_eq!(again, request.bytes);
                all.push((due.index, due.plan, request.bytes.clone()));
                requests.give_back(due.user, request.bytes);
            }
        }
        all.sort();
        all
    }

    #[test]
    fn a_hash_knows_each_byte_the_length_and_the_place() {
        let body = b"{\"model\":\"m\",\"prompt\":\"x\"}";
        let base = hashed(3, body);
        for place in 0..body.len() {
            let mut other = body.to_vec();
            other[place] ^= 1;
            assert_ne!(hashed(3, &other), base, "byte {place}");
            assert_ne!(hashed(3, &body[..place]), base, "{place} bytes");
        }
        assert_ne!(hashed(4, body), base);
        assert_ne!(hashed(0, &[0; 3]), hashed(0, &[0; 4]));
        // Stored runs are compared with those of later versions.
        assert_eq!(hashed(3, body), 11_470_041_306_023_243_631);
    }

    #[test]
    fn requests_of_a_trace_depend_on_the_index_and_not_on_the_shards() {
        // Not in order of time, with equal times, and of all kinds.
        let line = |place: u64| {
            let at = place * 7919 % 13 * 100;
            match place % 3 {
                0 => format!(
                    "{{\"timestamp\":{at},\"input_length\":{place},\"output_length\":9,\"hash_ids\":[1]}}\n"
                ),
                1 => format!("{{\"timestamp\":{at},\"text_input\":\"text {place}\",\"output_length\":9}}\n"),
                _ => format!("{{\"timestamp\":{at},\"payload\":{{\"messages\":[{place}]}}}}\n"),
            }
        };
        let text: String = (0..60).map(line).collect();
        let open = Box::new(move || Ok(Box::new(std::io::Cursor::new(text.clone())) as _));
        let recording = Arc::new(Recording::look(&crate::plan::Trace::of("t"), open).unwrap());
        let one = replayed(&recording, 1);
        assert_eq!(one.len(), 40);
        assert!(one.is_sorted_by_key(|(_, plan, _)| *plan));
        assert_eq!(replayed(&recording, 2), one);
        assert_eq!(replayed(&recording, 7), one);
    }

    #[test]
    fn an_answer_is_read_as_of_the_length_that_its_request_asks_for() {
        let leg = leg();
        let mut requests = Requests::new(Arc::clone(&leg), &Agenda::open(Box::new(std::iter::empty())), None);
        let written: Vec<Written> = (0..50).map(|index| requests.write(index).unwrap()).collect();
        let asked: Vec<u32> = written.iter().map(|request| request.max_tokens).collect();
        for (request, tokens) in written.into_iter().zip(&asked) {
            let request = String::from_utf8(request.bytes).unwrap();
            assert!(request.contains(&format!(r#""max_tokens":{tokens},"#)), "{request}");
        }
        assert!(asked.iter().any(|tokens| *tokens != asked[0]));
    }

    /// A leg of prompts around the length from which on they are written in steps.
    fn long_leg() -> Arc<Leg> {
        let lengths = Lengths::Drawn(Distribution::Uniform { min: LONG_WORDS - 2, max: LONG_WORDS + 4 });
        let mut plan = crate::plan::Plan::new(7);
        plan.workload.input_words = lengths;
        let leg = Arc::into_inner(leg()).unwrap();
        let target = Arc::into_inner(leg.target).unwrap();
        let target = Target { content: Content::new(&plan), ..target };
        Arc::new(Leg { target: Arc::new(target), ..leg })
    }

    #[test]
    fn a_request_written_in_steps_is_the_same_wherever_it_is_taken_out_of_them() {
        let leg = long_leg();
        let whole = |index| Requests::new(Arc::clone(&leg), &none(), None).write(index).unwrap();
        for steps in 0..30 {
            let mut agenda = Agenda::open(Box::new((0..8).map(|place| (place * 3, place * 1000))));
            let mut requests = Requests::new(Arc::clone(&leg), &agenda, None);
            let mut left = steps;
            while let Some(at) = agenda.next() {
                while left > 0 && requests.prepare_one(&mut agenda, Duration::MAX) {
                    left -= 1;
                }
                // Every third send is skipped.
                let due = agenda.pop(at).unwrap();
                if due.index % 9 == 3 {
                    left += 2;
                    continue;
                }
                let (taken, whole) = (requests.take(&due).unwrap(), whole(due.index));
                assert_eq!(
                    (taken.bytes, taken.hash, taken.max_tokens),
                    (whole.bytes, whole.hash, whole.max_tokens)
                );
                left += 2;
            }
        }
        let long = (0..24).filter(|index| requests_of(&leg).is_long(*index)).count();
        assert!((1..24).contains(&long), "both kinds are there: {long}");
    }

    #[test]
    fn a_step_is_not_begun_where_it_might_make_a_send_late() {
        let leg = long_leg();
        let mut agenda = Agenda::open(Box::new((0..24).map(|index| (index, index * 1000))));
        let mut requests = requests_of(&leg);
        while !requests
            .is_long(agenda.upcoming_after(requests.ahead.back().map(|(index, _)| *index)).unwrap())
        {
            assert!(requests.prepare_one(&mut agenda, Duration::ZERO), "short ones are written at any time");
        }
        let short = STEP_MAX - Duration::from_nanos(1);
        assert!(!requests.prepare_one(&mut agenda, short) && requests.prepare_one(&mut agenda, STEP_MAX));
        assert!(!requests.prepare_one(&mut agenda, short), "nor is it continued");
    }

    fn none() -> Agenda {
        Agenda::open(Box::new(std::iter::empty()))
    }

    fn requests_of(leg: &Arc<Leg>) -> Requests {
        Requests::new(Arc::clone(leg), &none(), None)
    }

    #[test]
    fn long_requests_of_users_are_the_same_on_any_number_of_shards() {
        let leg = long_leg();
        let of = |shards: u32| {
            let mut all = Vec::new();
            for shard in 0..shards {
                let users = ClosedLoop {
                    users: 3,
                    shards,
                    shard,
                    units: 12,
                    think: Duration::ZERO,
                    spread: Duration::ZERO,
                    pace: None,
                    ramp: None,
                    duration: Duration::MAX,
                };
                drain(Agenda::closed(&users), &leg, &mut all);
            }
            let mut bodies: Vec<_> = all.into_iter().map(|(index, _, body)| (index, body)).collect();
            bodies.sort();
            bodies
        };
        let one = of(1);
        assert_eq!(one.len(), 12);
        assert_eq!(of(2), one);
    }

    #[test]
    fn users_send_the_same_bodies_on_any_number_of_shards() {
        let leg = leg();
        let of = |shards: u32| {
            let mut all = Vec::new();
            for shard in 0..shards {
                let users = ClosedLoop {
                    ramp: None,
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
