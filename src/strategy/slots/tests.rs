use super::*;
use crate::metrics::Outcome;
use crate::time::Stamp;

/// A server whose answers take `answer_ms` in one of `slots` places, `prompt_ms` of it before the first token.
fn flow(slots: u32, users: u32, answer_ms: f64, prompt_ms: f64) -> (u32, Flow) {
    let served = users.min(slots);
    let wait_ms = answer_ms * f64::from(users - served) / f64::from(served);
    let flow =
        Flow { requests: 40, ttft_ms: wait_ms + prompt_ms, e2e_ms: wait_ms + answer_ms, under_way: served };
    (users, flow)
}

fn found(loads: &[(u32, Flow)]) -> Option<u32> {
    infer(loads).map(|slots| slots.slots)
}

#[test]
fn any_slots_are_found_from_loads_on_both_sides_of_them() {
    for slots in 1..=64 {
        let loads: Vec<_> = [1, 4, 8, 16, 32, 64, 128].map(|users| flow(slots, users, 500.0, 20.0)).to_vec();
        assert_eq!(found(&loads), Some(slots));
        let fits: Vec<_> = loads.iter().copied().filter(|(users, _)| *users <= slots).collect();
        assert_eq!(found(&fits), None, "no load waits");
        let waits: Vec<_> = loads.iter().copied().filter(|(users, _)| *users > slots).collect();
        assert_eq!(found(&waits), None, "nobody was alone");
    }
    assert_eq!(found(&[]), None);
}

#[test]
fn a_load_that_hardly_waits_is_not_enough() {
    let of = |slots| found(&[1, 4, 8].map(|users| flow(slots, users, 500.0, 20.0)));
    assert_eq!((of(7), of(6)), (None, Some(6)));
}

/// The same throughput from every load, as behind slots, but all answers go on at once.
#[test]
fn a_shared_machine_has_no_slots() {
    let shared = |users: u32| {
        let e2e_ms = 500.0 * f64::from(users);
        (users, Flow { requests: 40, ttft_ms: 0.2 * e2e_ms, e2e_ms, under_way: users })
    };
    assert_eq!(found(&[1, 2, 4, 8, 16].map(shared)), None);
    // Nor where TTFT happens to be that of a queue of four.
    let queue = |users: u32| (users, Flow { under_way: users, ..flow(4, users, 500.0, 20.0).1 });
    assert_eq!(found(&[1, 4, 8, 16].map(queue)), None);
}

/// TTFT is 80 ms for each request in flight: at times all answers are under way, and at times fewer.
#[test]
fn a_load_that_waits_much_has_no_place_for_all() {
    let growing = |users: u32, under_way: u32| {
        let ttft_ms = 80.0 * f64::from(users);
        (users, Flow { requests: 40, ttft_ms, e2e_ms: ttft_ms + 410.0, under_way })
    };
    assert_eq!(found(&[growing(1, 1), growing(4, 4), growing(5, 5), growing(8, 5)]), None);
}

/// As many under way as with slots, but waits that are not those of Little's law.
#[test]
fn loads_that_disagree_by_more_than_a_tenth_name_nothing() {
    let off = |by: f64| {
        let mut loads = [1, 4, 8, 16].map(|users| flow(4, users, 500.0, 20.0));
        for (users, flow) in &mut loads[2..] {
            let served = 4.0 * (1.0 + by);
            flow.ttft_ms = 20.0 + flow.e2e_ms * (1.0 - served / f64::from(*users));
        }
        found(&loads)
    };
    // Of TTFT 20 ms may be no wait, which is a twenty-fifth of the places.
    assert_eq!([-0.11, -0.09, 0.0, 0.13, 0.15].map(off), [None, Some(4), Some(4), Some(4), None]);
}

/// Prompts that are computed one by one, and tokens that take no time: few answers are under way, however many slots.
#[test]
fn where_prompts_take_the_time_nothing_is_named() {
    let loads = [1, 4, 8, 16].map(|users| {
        let (users, flow) = flow(4, users, 500.0, 450.0);
        (users, Flow { under_way: 1, ..flow })
    });
    assert_eq!(found(&loads), None);
}

/// Times of a file that somebody has changed.
#[test]
fn what_is_no_time_names_nothing() {
    for e2e_ms in [0.0, f64::NAN, f64::INFINITY] {
        let loads = [1, 4, 8].map(|users| (users, Flow { e2e_ms, ..flow(4, users, 500.0, 20.0).1 }));
        assert_eq!(found(&loads), None, "{e2e_ms}");
    }
}

fn record(index: u64, start_ms: u64, first_ms: u64, last_ms: u64) -> Record {
    let mut record = Record::planned(index, Stamp::from_millis(start_ms));
    record.outcome = Outcome::ok(200);
    record.start = Stamp::from_millis(start_ms);
    (record.first, record.last) = (Some(Stamp::from_millis(first_ms)), Some(Stamp::from_millis(last_ms)));
    record
}

/// Two slots, four users, answers of 100 ms of which 10 go before the first token.
#[test]
fn where_the_time_goes_is_told_behind_the_first_requests() {
    let mut records = Vec::new();
    for round in 0..5u64 {
        for user in 0..4u64 {
            let begins = 100 * (user / 2) + 200 * round;
            let comes = if round == 0 { 0 } else { begins - 100 };
            records.push(record(user + 4 * round, comes, begins + 10, begins + 100));
        }
    }
    let flow = Flow::of(&records, 4).unwrap();
    assert_eq!(flow, Flow { requests: 16, ttft_ms: 110.0, e2e_ms: 200.0, under_way: 2 });
    assert_eq!(Flow::of(&records[..7], 4), None, "three came again");
    assert_eq!(Flow::of(&records, 40), None);
    for record in &mut records[4..] {
        record.phase = Phase::Warmup;
    }
    assert_eq!(Flow::of(&records, 4), None);
}

#[test]
fn what_is_under_way_for_a_moment_is_not_counted() {
    let times = |starts: &[(u64, u64)]| {
        let all: Vec<Times> = starts
            .iter()
            .map(|(first, last)| Times { index: 0, start: *first, first: *first, last: *last })
            .collect();
        under_way(&all)
    };
    assert_eq!(times(&[]), 0);
    // One after the other, each a moment before the last has ended.
    assert_eq!(times(&[(0, 101), (100, 201), (200, 301), (300, 401)]), 1);
    assert_eq!(times(&[(0, 110), (100, 210), (200, 310), (300, 410)]), 2);
    // At the same stamp.
    assert_eq!(times(&[(0, 100), (100, 200), (200, 300)]), 1);
}
