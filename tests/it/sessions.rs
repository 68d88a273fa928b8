//! Sessions of several turns, exact and in virtual time: when turns are planned, what they repeat, how sessions end.

use std::collections::BTreeMap;
use std::time::Duration;

use tokload::metrics::{Class, Flags, Record};
use tokload::mock::Faults;
use tokload::model::{self, Batching, PrefixCache, Serving};
use tokload::plan::{
    Aborts, Arrivals, Conversation, Distribution, Lengths, Level, Load, Plan, Slo, Stop, TurnShares,
};
use tokload::run::Sessions;
use tokload::summary::{self, Input};

use crate::rig::{self, Run};

/// First turns of 40 words, later ones of 20, answers of 10 tokens, half a second between.
fn plan(turns: u32) -> Plan {
    let mut plan = rig::plan_for(1);
    plan.workload.input_words = 40.into();
    plan.workload.output_tokens = 10.into();
    plan.workload.conversation = Some(Conversation {
        turns: turns.into(),
        delay_ms: 500.into(),
        later_words: Some(20.into()),
        ..Conversation::default()
    });
    plan.client.start_spread_us = 0.0;
    plan
}

fn serving() -> model::Settings {
    let cache = PrefixCache { block_tokens: 16, ..PrefixCache::default() };
    model::Settings::serving(Serving::Batching(Batching {
        slots: 64,
        prefix_cache: Some(cache),
        ..Batching::default()
    }))
}

fn level(load: Load, units: Option<u64>, duration_s: Option<f64>) -> Level {
    Level { load, stop: Stop { units, duration_s, grace_s: 30.0 }, warmups: 0, ..Level::default() }
}

fn constant(rate: f64) -> Load {
    Load { arrivals: Arrivals::Constant { rate }, cap: None, users: None, think_s: 0.0 }
}

/// The measured records of each session, by turn.
fn by_session(run: &Run) -> BTreeMap<u64, Vec<Record>> {
    let mut sessions: BTreeMap<u64, Vec<Record>> = BTreeMap::new();
    for record in run.measured() {
        assert_eq!(record.session, record.index);
        sessions.entry(record.session).or_default().push(*record);
    }
    for turns in sessions.values_mut() {
        turns.sort_by_key(|record| record.turn);
        assert!(turns.iter().enumerate().all(|(place, record)| usize::from(record.turn) == place));
    }
    sessions
}

const PAUSE: Duration = Duration::from_millis(500);

#[test]
fn a_later_turn_is_planned_for_the_end_of_the_answer_plus_the_pause() {
    for load in [Load::closed(3), constant(2.0)] {
        let run = rig::simulate(&plan(4), serving(), &level(load.clone(), Some(9), None));
        let sessions = by_session(&run);
        assert_eq!(sessions.len(), 9);
        for turns in sessions.values() {
            assert_eq!(turns.len(), 4);
            for pair in turns.windows(2) {
                assert_eq!(pair[1].plan, pair[0].end + PAUSE, "to the nanosecond");
                assert_eq!(pair[1].start, pair[1].plan);
                assert_eq!(pair[1].flags.contains(Flags::FROM_PLAN), load.users.is_none());
            }
        }
        let whole = Sessions { begun: 9, finished: 9, ..Sessions::default() };
        assert_eq!(run.result.sessions(), Some(whole));
        assert_eq!(run.result.tally.whole().counts.ok, 36);
    }
}

#[test]
fn a_user_runs_a_session_to_its_end_and_thinks_before_the_next() {
    let load = Load { think_s: 2.0, ..Load::closed(2) };
    let run = rig::simulate(&plan(3), serving(), &level(load, Some(6), None));
    let sessions = by_session(&run);
    for index in 0..4 {
        let (last, next) = (sessions[&index][2], sessions[&(index + 2)][0]);
        assert_eq!(next.plan, last.end + Duration::from_secs(2), "user {} takes the next one", index % 2);
    }
    assert_eq!(run.most_in_flight(), 2);
}

#[test]
fn sessions_arrive_by_the_schedule_whatever_their_turns_do() {
    let run = rig::simulate(&plan(5), serving(), &level(constant(4.0), Some(12), None));
    let start = run.result.span.t0;
    for (index, turns) in by_session(&run) {
        assert_eq!(turns[0].plan, start + Duration::from_millis(250) * index as u32);
    }
}

#[test]
fn prompts_grow_by_what_was_said_and_caches_find_it_again() {
    let run = rig::simulate(&plan(4), serving(), &level(Load::closed(2), Some(6), None));
    for turns in by_session(&run).values() {
        let prompt: Vec<u32> = turns.iter().map(|record| record.prompt_tokens.unwrap()).collect();
        // 40 words; then each turn the answer of 10 tokens and 20 words more.
        assert_eq!(prompt, [40, 70, 100, 130]);
        let cached: Vec<u32> = turns.iter().map(|record| record.cached_tokens.get().unwrap_or(0)).collect();
        // Whole blocks of 16 of the prompt before.
        assert_eq!(cached, [0, 32, 64, 96]);
    }
}

#[test]
fn numbers_of_turns_are_drawn_and_all_of_them_are_sent() {
    let mut plan = plan(1);
    let turns = Lengths::Drawn(Distribution::Uniform { min: 1, max: 5 });
    plan.workload.conversation.as_mut().unwrap().turns = turns;
    let run = rig::simulate(&plan, serving(), &level(Load::closed(4), Some(40), None));
    let lengths: Vec<usize> = by_session(&run).values().map(Vec::len).collect();
    assert!((1..=5).all(|n| lengths.contains(&n)), "{lengths:?}");
    assert_eq!(run.result.sessions().unwrap().finished, 40);
    let again = rig::simulate(&plan, serving(), &level(Load::closed(4), Some(40), None));
    assert_eq!(run.records, again.records);
}

#[test]
fn turns_are_told_apart_and_pauses_are_no_turnaround_of_the_client() {
    let load = Load { think_s: 1.0, ..Load::closed(3) };
    let run = rig::simulate(&plan(4), serving(), &level(load, None, Some(100.0)));
    let summary = summary::level(&Input::new(&run.result, Some(&run.records), Slo::default()));
    let rows: Vec<_> = summary
        .turns
        .iter()
        .map(|row| {
            (row.turn, row.tokens.prompt / row.counts.ok, row.tokens.cached.unwrap_or(0) / row.counts.ok)
        })
        .collect();
    assert_eq!(rows, [(1, 40, 0), (2, 70, 32), (3, 100, 64), (4, 130, 96)]);
    let ok: u64 = summary.turns.iter().map(|row| row.counts.ok).sum();
    assert_eq!(ok, summary.counts.ok, "every request is in one row");
    let ttft = |row: usize| summary.turns[row].distributions[0].sum / summary.turns[row].counts.ok as f64;
    // 6 or 38 tokens to compute after the first turn's 40: a cache spares nearly all of what was said.
    assert!(ttft(1) < ttft(0));
    let little = summary.statistics.unwrap().little.unwrap();
    // Three pauses of half a second and one of a second for every four requests.
    assert!((little.pause_s.unwrap() - 0.625).abs() < 0.01, "{little:?}");
    assert!(little.turnaround_s.unwrap().abs() < 0.01, "{little:?}");
}

/// The third turn is too long for the server, which refuses it: the session ends there.
#[test]
fn a_turn_that_fails_ends_its_session_and_what_it_leaves_unsent_is_counted() {
    let run = rig::simulate_with(&plan(5), &level(Load::closed(2), Some(4), None), |settings| {
        settings.serving = serving();
        settings.max_model_len = 99;
    });
    for turns in by_session(&run).values() {
        let classes: Vec<Class> = turns.iter().map(|record| record.outcome.class).collect();
        assert_eq!(classes, [Class::Ok, Class::Ok, Class::Http]);
    }
    let expected = Sessions { begun: 4, broken: 4, turns_broken: 8, ..Sessions::default() };
    assert_eq!(run.result.sessions(), Some(expected));
}

#[test]
fn what_the_end_of_a_level_leaves_unsent_is_counted() {
    for load in [Load::closed(3), constant(2.0)] {
        let run = rig::simulate(&plan(20), serving(), &level(load, None, Some(6.0)));
        let end = run.result.span.t0 + Duration::from_secs(6);
        let sessions = by_session(&run);
        assert!(run.measured().iter().all(|record| record.plan < end && record.outcome.is_ok()));
        let sent: u64 = sessions.values().map(|turns| turns.len() as u64).sum();
        let counts = run.result.sessions().unwrap();
        assert_eq!((counts.begun, counts.cut), (sessions.len() as u64, sessions.len() as u64));
        assert_eq!(counts.turns_cut + sent, 20 * counts.begun, "nothing is lost");
        assert_eq!((counts.finished, counts.broken, counts.turns_broken), (0, 0, 0));
    }
}

/// A level that is given up while turns are under way, and behind a cap.
#[test]
fn turns_that_are_given_up_are_records_and_the_rest_is_counted() {
    let mut slow = serving();
    if let Serving::Batching(batching) = &mut slow.serving {
        batching.slots = 1;
        batching.cost.base_ms = 200.0;
    }
    let load = Load { cap: Some(1), ..constant(2.0) };
    let level = Level {
        load,
        stop: Stop { units: None, duration_s: Some(8.0), grace_s: 1.0 },
        warmups: 0,
        ..Level::default()
    };
    let run = rig::simulate(&plan(4), slow, &level);
    let unfinished = run.count(Class::Unfinished) as u64;
    assert!(unfinished > 8, "{unfinished}");
    let counts = run.result.sessions().unwrap();
    let begun: Vec<Vec<Record>> =
        by_session(&run).into_values().filter(|turns| turns[0].conn.is_some()).collect();
    assert_eq!(counts.begun, begun.len() as u64);
    assert_eq!(counts.finished + counts.broken + counts.cut, counts.begun);
    let records: u64 = begun.iter().map(|turns| turns.len() as u64).sum();
    assert_eq!(records + counts.turns_cut + counts.turns_broken, 4 * counts.begun);
}

/// Fixed lengths that share a beginning with all turns, and then with those of their session; the blocks of the cache are 16.
#[test]
fn turns_that_stand_alone_share_what_they_are_told_to() {
    let mut plan = plan(3);
    plan.workload.input_words = 160.into();
    let talk = plan.workload.conversation.as_mut().unwrap();
    (talk.later_words, talk.shares) = (None, Some(TurnShares { all: 0.2, session: 0.5 }));
    let run = rig::simulate(&plan, serving(), &level(Load::closed(1), Some(3), None));
    for (index, turns) in by_session(&run) {
        assert!(turns.iter().all(|record| record.prompt_tokens == Some(160)), "nothing is repeated");
        let cached: Vec<u32> = turns.iter().map(|record| record.cached_tokens.get().unwrap_or(0)).collect();
        // 32 words are those of all turns, 80 more those of a session.
        assert_eq!(cached, [if index == 0 { 0 } else { 32 }, 112, 112]);
    }
}

#[test]
fn a_session_has_words_of_its_own_in_its_first_turn() {
    let mut plan = plan(3);
    plan.workload.context_words = Some(100);
    plan.workload.conversation.as_mut().unwrap().later_words = None;
    let run = rig::simulate(&plan, serving(), &level(Load::closed(1), Some(2), None));
    for turns in by_session(&run).values() {
        let prompt: Vec<u32> = turns.iter().map(|record| record.prompt_tokens.unwrap()).collect();
        // Later turns add an answer of 10 tokens and the 40 words of a turn.
        assert_eq!(prompt, [140, 190, 240]);
        assert_eq!(turns[0].cached_tokens.get().unwrap_or(0), 0, "no other session has them");
    }
}

/// A wish to stop is seen at a look of the engine, in the midst of sessions: what is under way ends, nothing follows.
#[test]
fn a_stop_by_the_user_cuts_sessions_where_they_are() {
    let run = rig::simulate_interrupted(&plan(50), serving(), &level(Load::closed(20), Some(10_000), None));
    assert!(run.result.interrupted);
    let sessions = by_session(&run);
    let counts = run.result.sessions().unwrap();
    assert_eq!((counts.begun, counts.cut, counts.broken), (sessions.len() as u64, 20, 0));
    let sent: u64 = sessions.values().map(|turns| turns.len() as u64).sum();
    assert_eq!(sent + counts.turns_cut, 50 * counts.begun);
    assert!(run.measured().iter().all(|record| record.outcome.is_ok()), "what was under way was followed");
}

#[test]
fn a_session_that_goes_on_through_an_extension_is_that_of_a_longer_level() {
    use tokload::plan::Until;
    let until = Until { figure: "ttft_p99".parse().unwrap(), half_width: 0.001, times_max: 4 };
    for load in [Load::closed(3), constant(2.0)] {
        let short = level(load.clone(), None, Some(3.0));
        let long = level(load, None, Some(12.0));
        let lengthened = rig::simulate(&Plan { until: Some(until), ..plan(6) }, serving(), &short);
        assert_eq!(lengthened.result.lengthened.unwrap().times, 4);
        let planned = rig::simulate(&plan(6), serving(), &long);
        assert_eq!(by_session(&lengthened), by_session(&planned));
        assert_eq!(lengthened.result.sessions(), planned.result.sessions());
    }
}

/// On real sockets, with live answers: the same turns from any number of shards, and prompts that hold what was said.
#[test]
fn a_server_is_told_what_it_said_whatever_the_number_of_shards() {
    let mock = rig::mock(Faults::default());
    let mut plan = plan(3);
    plan.target.endpoints = rig::plan_for(mock.address().port()).target.endpoints;
    plan.workload.conversation.as_mut().unwrap().delay_ms = 3.into();
    plan.workload.session_header = Some("X-Session-ID".to_owned());
    let mut hashes = Vec::new();
    for load in [Load::closed(7), constant(400.0)] {
        for shards in [1, 2, 7] {
            let run = rig::run(&plan, shards, &rig::level(load.clone(), 20));
            let sessions = by_session(&run);
            assert_eq!(sessions.len(), 20, "{shards} shards");
            for turns in sessions.values() {
                let prompt: Vec<u32> = turns.iter().map(|record| record.prompt_tokens.unwrap()).collect();
                assert_eq!(prompt, [40, 70, 100]);
                for pair in turns.windows(2) {
                    assert_eq!(pair[1].plan, pair[0].end + Duration::from_millis(3));
                }
            }
            assert_eq!(run.result.sessions().unwrap().finished, 20);
            hashes.push(run.result.shards.iter().fold(0_u64, |sum, shard| sum.wrapping_add(shard.bodies)));
        }
    }
    assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:?}");
}

#[test]
fn users_give_up_any_turn_of_a_session_and_as_many_as_they_are_to() {
    let mut plan = plan(3);
    plan.workload.aborts = Some(Aborts { share: 0.3, after_s: None, after_tokens: Some(2) });
    let run = rig::simulate(&plan, serving(), &level(constant(10.0), Some(1000), None));
    let of = |turn: u16, class| {
        let records = run.measured().into_iter();
        records.filter(|record| record.turn == turn && record.outcome.class == class).count()
    };
    // Of 1000 first, 700 second and 490 third turns 300, 210 and 147; five standard deviations are 73, 74 and 67.
    for (turn, expected, deviation) in [(0, 300, 73), (1, 210, 74), (2, 147, 67)] {
        let left = of(turn, Class::Cancelled);
        assert!(left.abs_diff(expected) <= deviation, "turn {turn}: {left}");
        let went_on = of(turn, Class::Ok);
        assert_eq!(went_on + left, if turn == 0 { 1000 } else { of(turn - 1, Class::Ok) });
    }
}
