//! Sessions of agents that start others, exact and in virtual time: who waits for whom, by which times, and how it ends.
//!
//! What `agents.json` asks of a replay was worked out by hand. Session `a` numbers its requests so: 0 and 1 of the agent,
//! 2 and 3 of sub-agent `x`, 4 of `y`, 5 of the agent again, 6 and 7 of `z`, which nobody waits for, and 8.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokload::metrics::{Class, Record};
use tokload::mock::Faults;
use tokload::model::{self, Batching, PrefixCache, Serving};
use tokload::plan::{Arrivals, Conversation, DataSet, Filter, Level, Load, Plan, Stop, Timing, Trace};
use tokload::run::Sessions;
use tokload::workload::recording::Refusal;
use tokload::workload::{Deck, Preview};

use crate::rig::{self, Run};

fn file() -> String {
    format!("{}/tests/traces/agents.json", env!("CARGO_MANIFEST_DIR"))
}

/// The sessions as a data set, in the order of the file.
fn data() -> Plan {
    let mut plan = rig::plan_for(1);
    plan.workload.data = Some(DataSet { shuffle: false, ..DataSet::of(&file()) });
    plan.workload.conversation = Some(Conversation::default());
    plan.client.start_spread_us = 0.0;
    plan
}

/// The same as a trace.
fn trace(change: impl FnOnce(&mut Trace)) -> Plan {
    let mut plan = rig::plan_for(1);
    let mut trace = Trace::of(&file());
    change(&mut trace);
    plan.workload.trace = Some(trace);
    plan
}

fn conversation(plan: &mut Plan) -> &mut Conversation {
    plan.workload.conversation.as_mut().unwrap()
}

fn serving() -> model::Settings {
    let cache = PrefixCache { block_tokens: 64, ..PrefixCache::default() };
    model::Settings::serving(Serving::Batching(Batching {
        slots: 64,
        prefix_cache: Some(cache),
        ..Batching::default()
    }))
}

fn level(load: Load, units: Option<u64>) -> Level {
    Level { load, stop: Stop { units, duration_s: None, grace_s: 30.0 }, warmups: 0, ..Level::default() }
}

fn replayed(speedup: f64) -> Level {
    let load = Load { arrivals: Arrivals::Trace { speedup }, cap: None, users: None, think_s: 0.0 };
    level(load, None)
}

fn simulate(plan: &Plan, level: &Level) -> Run {
    rig::simulate(plan, serving(), level)
}

/// The measured records of each session, by number.
fn by_session(run: &Run) -> BTreeMap<u64, Vec<Record>> {
    let mut sessions: BTreeMap<u64, Vec<Record>> = BTreeMap::new();
    for record in run.measured() {
        sessions.entry(record.session).or_default().push(*record);
    }
    for requests in sessions.values_mut() {
        requests.sort_by_key(|record| record.turn);
    }
    sessions
}

fn seconds(s: f64) -> Duration {
    Duration::from_secs_f64(s)
}

/// Whom each request of session `a` waits for, and how long after the last of them, s.
const WAITS: [(&[usize], f64); 9] = [
    (&[], 0.0),
    (&[0], 2.0),
    // Recorded at 5.0 s, where the answer before had ended at 4.0.
    (&[1], 1.0),
    (&[2], 1.0),
    (&[1], 1.25),
    // The think time is that since its own answer; the last sub-agent had ended at 8.0 s.
    (&[1, 3, 4], 1.0),
    (&[5], 0.75),
    (&[6], 4.5),
    (&[5], 0.5),
];

/// When each request of session `a` was sent.
const SENT: [f64; 9] = [0.0, 3.0, 5.0, 6.5, 5.25, 9.0, 10.0, 15.0, 11.0];

#[test]
fn requests_go_their_think_time_after_all_the_answers_that_they_wait_for() {
    let constant = Load { arrivals: Arrivals::Constant { rate: 1.0 }, cap: None, users: None, think_s: 0.0 };
    for load in [Load::closed(2), constant] {
        let run = simulate(&data(), &level(load, Some(3)));
        let sessions = by_session(&run);
        let a = &sessions[&0];
        assert_eq!(a.len(), 9);
        for (record, (after, pause)) in a.iter().zip(WAITS) {
            let Some(end) = after.iter().map(|one| a[*one].end).max() else { continue };
            assert_eq!(record.plan, end + seconds(pause), "request {}", record.turn);
            assert_eq!(record.start, record.plan);
        }
        // Two of the sub-agents work at the same time.
        assert!(a[4].start < a[3].start);
        let b = &sessions[&1];
        assert_eq!(b[1].plan, b[0].end + seconds(0.25));
        let whole = Sessions { begun: 3, finished: 3, ..Sessions::default() };
        assert_eq!(run.result.sessions(), Some(whole));
    }
}

#[test]
fn a_user_takes_the_next_session_when_all_of_one_has_ended() {
    let run = simulate(&data(), &level(Load { think_s: 2.0, ..Load::closed(1) }, Some(3)));
    let sessions = by_session(&run);
    // The sub-agent that nobody waits for ends last.
    let last = sessions[&0].iter().max_by_key(|record| record.end).unwrap();
    assert_eq!(last.turn, 7);
    assert_eq!(sessions[&1][0].plan, last.end + seconds(2.0));
    assert_eq!(sessions[&2][0].plan, sessions[&1][1].end + seconds(2.0));
}

#[test]
fn a_trace_of_agents_is_sent_at_the_times_of_its_sessions_but_after_the_answers() {
    let run = simulate(&trace(|_| {}), &replayed(1.0));
    let start = run.result.span.t0;
    let sessions = by_session(&run);
    for (record, sent) in sessions[&0].iter().zip(SENT) {
        assert_eq!(record.plan, start + seconds(sent), "request {}", record.turn);
        assert_eq!(record.start, record.plan, "all answers had ended by then");
    }
    // Its clock begins with its first request.
    assert_eq!(
        sessions[&1].iter().map(|one| one.plan - start).collect::<Vec<_>>(),
        [seconds(0.0), seconds(1.5)]
    );
    // Ten times as fast, the sub-agents are not through at the time of who waits for them.
    let run = simulate(&trace(|_| {}), &replayed(40.0));
    let a = &by_session(&run)[&0];
    for (record, ((after, _), sent)) in a.iter().zip(WAITS.into_iter().zip(SENT)) {
        let end = after.iter().map(|one| a[*one].end).max();
        assert_eq!(record.plan, run.result.span.t0 + seconds(sent / 40.0));
        assert_eq!(record.start, end.map_or(record.plan, |end| end.max(record.plan)), "{}", record.turn);
    }
    assert!(a[5].start > a[5].plan);
    assert!(a[4].start < a[2].end, "two sub-agents wait for answers at once");
}

#[test]
fn either_file_goes_by_either_timing() {
    let mut plan = data();
    plan.workload.timing = Some(Timing::Original);
    conversation(&mut plan).delay_ratio = 2.0;
    let run = simulate(&plan, &level(Load::closed(1), Some(1)));
    let a = &by_session(&run)[&0];
    for (record, sent) in a.iter().zip(SENT) {
        assert_eq!(record.plan, a[0].plan + seconds(2.0 * sent), "{}", record.turn);
    }
    let mut plan = trace(|_| {});
    plan.workload.timing = Some(Timing::ThinkOnly);
    let run = simulate(&plan, &replayed(2.0));
    let a = &by_session(&run)[&0];
    for (record, (after, pause)) in a.iter().zip(WAITS).skip(1) {
        let end = after.iter().map(|one| a[*one].end).max().unwrap();
        assert_eq!(record.plan, end + seconds(pause / 2.0), "{}", record.turn);
    }
}

#[test]
fn pauses_are_stretched_and_cut() {
    let mut plan = data();
    conversation(&mut plan).delay_ratio = 0.5;
    conversation(&mut plan).delay_max_s = Some(0.6);
    let run = simulate(&plan, &level(Load::closed(1), Some(1)));
    let a = &by_session(&run)[&0];
    for (record, (after, pause)) in a.iter().zip(WAITS).skip(1) {
        let end = after.iter().map(|one| a[*one].end).max().unwrap();
        assert_eq!(record.plan, end + seconds(f64::min(pause / 2.0, 0.6)), "{}", record.turn);
    }
}

#[test]
fn prompts_have_their_lengths_and_share_what_their_blocks_share() {
    let run = simulate(&data(), &level(Load::closed(1), Some(3)));
    let sessions = by_session(&run);
    let prompts: Vec<u32> = sessions[&0].iter().map(|record| record.prompt_tokens.unwrap()).collect();
    assert_eq!(prompts, [200, 330, 130, 200, 130, 400, 70, 90, 470]);
    let cached: Vec<u32> =
        sessions[&0].iter().map(|record| record.cached_tokens.get().unwrap_or(0)).collect();
    assert_eq!(cached, [0, 192, 0, 128, 64, 320, 0, 64, 384]);
    // Ids are those of one session.
    assert_eq!(sessions[&1][0].cached_tokens.get().unwrap_or(0), 0);
    assert_eq!(sessions[&2][0].cached_tokens.get().unwrap_or(0), 0);
    let deck = rig::deck(&data()).unwrap();
    let found = deck.contents().agents.unwrap();
    assert_eq!((found.prompt_tokens, found.found_tokens), (2292, 1152 + 64));
    let said = deck.contents().to_string();
    assert!(said.contains("3 sessions of 12 turns, 2292 prompt tokens"), "{said}");
}

#[test]
fn a_session_that_comes_again_has_other_words() {
    let run = simulate(&data(), &level(Load::closed(1), Some(6)));
    let sessions = by_session(&run);
    for index in 0..3 {
        let of = |index: u64| -> Vec<_> {
            sessions[&index].iter().map(|one| (one.prompt_tokens, one.cached_tokens.get())).collect()
        };
        assert_eq!(of(index), of(index + 3));
    }
}

#[test]
fn bodies_are_the_same_whatever_sends_them() {
    let mock = rig::mock(Faults::default());
    let mut plan = data();
    plan.target.endpoints = rig::plan_for(mock.address().port()).target.endpoints;
    conversation(&mut plan).delay_ratio = 0.0;
    let level = level(Load::closed(3), Some(6));
    let bodies = |run: &Run| run.result.shards.iter().fold(0_u64, |sum, one| sum.wrapping_add(one.bodies));
    let simulated = bodies(&simulate(&plan, &level));
    for shards in [1, 2, 3] {
        let run = rig::run(&plan, shards, &level);
        assert_eq!(run.count(Class::Ok), 24);
        assert_eq!(bodies(&run), simulated, "{shards} shards");
        let whole = Sessions { begun: 6, finished: 6, ..Sessions::default() };
        assert_eq!(run.result.sessions(), Some(whole));
    }
    drop(mock);
}

#[test]
fn a_request_that_fails_ends_its_session_and_takes_back_what_is_planned() {
    // The longest prompt is too long for the server: `z` has not begun by then, and is planned.
    let run = rig::simulate_with(&data(), &level(Load::closed(1), Some(3)), |settings| {
        settings.serving = serving();
        settings.max_model_len = 450;
    });
    let sessions = by_session(&run);
    let classes: Vec<(u16, Class)> = sessions[&0].iter().map(|one| (one.turn, one.outcome.class)).collect();
    let ok = |turn| (turn, Class::Ok);
    assert_eq!(classes, [ok(0), ok(1), ok(2), ok(3), ok(4), ok(5), (8, Class::Http)]);
    assert_eq!(sessions.len(), 3, "the user goes on");
    let broken = Sessions { begun: 3, finished: 2, broken: 1, turns_broken: 2, ..Sessions::default() };
    assert_eq!(run.result.sessions(), Some(broken));
}

#[test]
fn what_the_end_of_a_level_cuts_off_is_counted() {
    let mut level = level(Load::closed(1), None);
    level.stop = Stop { units: None, duration_s: Some(4.0), grace_s: 0.0 };
    let run = simulate(&data(), &level);
    let sent = run.measured().len() as u64;
    let cut = Sessions { begun: 1, cut: 1, turns_cut: 9 - sent, ..Sessions::default() };
    assert_eq!(run.result.sessions(), Some(cut));
}

#[test]
fn slice_cap_and_filters_leave_the_order_of_the_rest() {
    let level = replayed(1.0);
    let planned = |change: fn(&mut Trace)| {
        let run = simulate(&trace(change), &level);
        let start = run.result.span.t0;
        let all = by_session(&run);
        let of = |one: &Record| ((one.plan - start).as_millis(), one.prompt_tokens.unwrap());
        all.values().map(|session| session.iter().map(of).collect::<Vec<_>>()).collect::<Vec<_>>()
    };
    let sliced = planned(|trace| (trace.from_s, trace.until_s) = (5.0, Some(10.0)));
    assert_eq!(sliced, [vec![(0, 130), (1500, 200), (250, 130), (4000, 400)]]);
    let of_one = planned(|trace| trace.models = vec!["small".to_owned()]);
    assert_eq!(of_one, [vec![(5000, 130), (6500, 200), (5250, 130), (10_000, 70), (15_000, 90)]]);
    let cut = planned(|trace| trace.prompt_tokens_max = Some(100));
    assert!(cut[0].iter().all(|(_, tokens)| *tokens <= 100));
    let mut short = level.clone();
    short.stop.units = Some(1);
    assert_eq!(by_session(&simulate(&trace(|_| {}), &short)).len(), 1);
    // Of a data set too long prompts are left out; those who had waited for them wait for what these had waited for.
    let mut plan = data();
    plan.workload.data.as_mut().unwrap().filter = Filter { prompt_max: Some(300), ..Filter::default() };
    let run = simulate(&plan, &self::level(Load::closed(1), Some(1)));
    let a = &by_session(&run)[&0];
    assert_eq!(
        a.iter().map(|one| one.prompt_tokens.unwrap()).collect::<Vec<_>>(),
        [200, 130, 200, 130, 70, 90]
    );
    assert_eq!(a[1].plan, a[0].end + seconds(1.0));
    assert_eq!(a[4].plan, a[2].end.max(a[3].end) + seconds(0.75));
}

#[test]
fn a_cap_holds_back_requests_of_agents_too() {
    let mut level = replayed(40.0);
    level.load.cap = Some(1);
    let run = simulate(&trace(|_| {}), &level);
    assert_eq!(run.most_in_flight(), 1);
    assert_eq!(run.count(Class::Ok), 12);
}

#[test]
fn a_preview_shows_who_waits_for_whom() {
    let mut plan = data();
    plan.levels = vec![level(Load::closed(2), Some(3))];
    let deck = rig::deck(&plan).unwrap();
    let shown = Preview::of_data(&plan, 0, &deck, 3).unwrap();
    let turns = &shown[0].later;
    assert_eq!((turns.len(), shown[0].more), (4, 4));
    assert_eq!(turns[0].pause, Some(seconds(2.0)));
    let after: Vec<_> = turns.iter().map(|turn| turn.after.clone()).collect();
    assert_eq!(after, [None, None, None, Some(vec![1])]);
    let words: Vec<u32> = turns.iter().map(|turn| turn.words).collect();
    assert_eq!(words, [330, 130, 200, 130]);
    let mut plan = trace(|_| {});
    plan.levels = vec![replayed(2.0)];
    let recording = rig::recording(&plan).unwrap();
    let shown = Preview::of_trace(&plan, 0, &recording, 9).unwrap();
    assert_eq!(shown.len(), 3);
    assert_eq!(shown[0].later[0].offset_ns, Some(1_500_000_000));
    let said = recording.overview().to_string();
    assert!(said.starts_with("weka trace: 3 sessions of agents with 12 requests over 15.000 s"), "{said}");
    assert_eq!(Arc::strong_count(&recording), 1);
}

#[test]
fn single_requests_of_agents_are_refused_with_a_way_out() {
    let data = DataSet::of(&file());
    let bytes = std::fs::read(file()).unwrap();
    let open = Box::new(move || Ok(Box::new(std::io::Cursor::new(bytes.clone())) as _));
    let refused = Deck::look(&data, "/v1/chat/completions", open).unwrap_err();
    assert!(matches!(refused, Refusal::OfSessions) && refused.to_string().contains("--multi-turn"));
}
