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
    let tls = crate::load::tls::config(&crate::load::tls::Trust::anyone()).unwrap();
    let parts =
        RouteParts { address: &address, path: "/v1/chat/completions".to_owned(), headers: Vec::new(), tls };
    let options = plan.workload.body_options();
    let template = crate::api::request::Template::new(plan.target.dialect, "m", plan.target.stream, &options);
    let target = Target {
        routes: vec![Route::new(parts).unwrap()],
        templates: vec![template],
        mix: Mix::equal(1),
        routing: crate::workload::Routing::in_turn(1),
        content: Content::new(&plan),
    };
    Arc::new(Leg {
        connections: crate::load::leg::Kept::default(),
        target: Arc::new(target),
        ask: Default::default(),
        phase: Phase::Measured,
        seed: plan.level_seed(0),
        limits: Spans::from(&Limits::default()),
        permits: None,
        outstanding: None,
        replicas: None,
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
    let body = b"{\"model\":\"m\",\"prompt\":\"x\",\"max_tokens\":16,\"stream\":false,\"temperature\":0.0}";
    let base = hashed(3, body);
    for place in 0..body.len() {
        let mut other = body.to_vec();
        other[place] ^= 1;
        assert_ne!(hashed(3, &other), base, "byte {place}");
        assert_ne!(hashed(3, &body[..place]), base, "{place} bytes");
    }
    assert_ne!(hashed(4, body), base);
    assert_ne!(hashed(0, &[0; 3]), hashed(0, &[0; 4]));
    let (front, back) = ([[1; 8], [2; 8]].concat(), [[2; 8], [1; 8]].concat());
    assert_ne!(hashed(0, &front), hashed(0, &back), "eight bytes have their place");
    // Stored runs are compared with those of later versions.
    assert_eq!(hashed(3, body), 12_596_483_215_955_562_935);
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
    while !requests.is_long(agenda.upcoming_after(requests.ahead.back().map(|(index, _)| *index)).unwrap()) {
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

/// The bodies that so many users send, all that are planned, by their index.
fn bodies_of_users(leg: &Arc<Leg>, (users, units): (u32, u64), shards: u32) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    for shard in 0..shards {
        let users = ClosedLoop {
            users,
            shards,
            shard,
            units,
            think: Duration::ZERO,
            spread: Duration::ZERO,
            pace: None,
            ramp: None,
            duration: Duration::MAX,
        };
        drain(Agenda::closed(&users), leg, &mut all);
    }
    let mut bodies: Vec<_> = all.into_iter().map(|(index, _, body)| (index, body)).collect();
    bodies.sort();
    bodies
}

#[test]
fn long_requests_of_users_are_the_same_on_any_number_of_shards() {
    let leg = long_leg();
    let of = |shards: u32| bodies_of_users(&leg, (3, 12), shards);
    let one = of(1);
    assert_eq!(one.len(), 12);
    assert_eq!(of(2), one);
}

#[test]
fn users_send_the_same_bodies_on_any_number_of_shards() {
    let leg = leg();
    let of = |shards: u32| bodies_of_users(&leg, (7, 40), shards);
    let one = of(1);
    assert_eq!(one.len(), 40);
    assert!(one.windows(2).all(|pair| pair[0].1 != pair[1].1), "two requests with one body");
    assert_eq!(of(2), one);
    assert_eq!(of(7), one);
}
