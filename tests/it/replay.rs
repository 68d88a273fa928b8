//! Traces replayed at their times: what is planned of each sample, and what arrives.
//!
//! The samples and what they mean are those of `tests/traces`; offsets and lengths were worked out by hand.

use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokload::engine::Engine;
use tokload::load::probe;
use tokload::metrics::{Class, Record};
use tokload::mock::{Faults, Paper, Settings};
use tokload::model::{self, Batching, PrefixCache, Serving};
use tokload::plan::{Arrivals, Level, Load, Plan, RecordErrors, Stop, Trace};
use tokload::sim::{self, SimEngine};
use tokload::sys::signals::Interrupts;
use tokload::time::Stamp;
use tokload::workload::recording::{Open, Refusal};
use tokload::workload::{Preview, Recording, Script};

use crate::rig;

fn sample(name: &str) -> String {
    format!("{}/tests/traces/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn plan_of(trace: Trace, speedup: f64) -> Plan {
    let mut plan = rig::plan_for(1);
    plan.workload.trace = Some(trace);
    plan.levels = vec![level(speedup, None)];
    plan
}

fn level(speedup: f64, cap: Option<u32>) -> Level {
    let load = Load { arrivals: Arrivals::Trace { speedup }, cap, users: None, think_s: 0.0 };
    Level { load, stop: Stop { grace_s: 5.0, ..Stop::default() }, warmups: 2, ..Level::default() }
}

fn skipping(name: &str) -> Trace {
    Trace { errors: RecordErrors::Skip, ..Trace::of(&sample(name)) }
}

/// Offset in microseconds, words, tokens of the answer.
type Row = (u64, u32, u32);

fn planned(plan: &Plan) -> Vec<Row> {
    let recording = rig::recording(plan).unwrap();
    let shown = Preview::of_trace(plan, 0, &recording, 100).unwrap();
    assert!(shown.iter().enumerate().all(|(place, request)| request.index == place as u64));
    shown.iter().map(|p| (p.offset_ns.unwrap() / 1000, p.words, p.max_tokens)).collect()
}

/// The offsets, and the lengths where the trace has them, of each sample that has times.
#[test]
fn each_sample_is_planned_at_its_times() {
    let of = |trace: Trace| planned(&plan_of(trace, 1.0));
    let all = |name: &str| of(Trace::of(&sample(name)));
    let ms = 1000;
    assert_eq!(
        all("azure_llm_2023.csv"),
        [
            (0, 377, 45),
            (250_610, 1213, 10),
            (319_410, 99, 129),
            (1_726_533, 4036, 13),
            (1_726_533, 4036, 16),
            (3_319_409, 515, 65)
        ]
    );
    assert_eq!(
        all("azure_llm_2024.csv"),
        [(0, 620, 31), (248_800, 1480, 210), (998_800, 77, 5), (1_731_904, 2900, 88), (3_099_300, 45, 400)]
    );
    assert_eq!(all("azure_lmm_2025.csv"), [(0, 350, 60), (800 * ms, 1800, 45), (2300 * ms, 900, 120)]);
    assert_eq!(
        all("burstgpt_v1.csv"),
        [(0, 410, 22), (0, 1500, 310), (13_000 * ms, 220, 95), (13_000 * ms, 900, 140)]
    );
    assert_eq!(all("burstgpt_v2.csv"), [(0, 300, 80), (12_500 * ms, 40, 25), (31_000 * ms, 460, 150)]);
    assert_eq!(
        all("mooncake.jsonl"),
        [(0, 1300, 60), (0, 700, 12), (250 * ms, 1536, 200), (3000 * ms, 90, 1), (3000 * ms, 1100, 33)]
    );
    assert_eq!(all("bailian.jsonl"), [(0, 40, 20), (150 * ms, 16, 8), (14_300 * ms, 90, 35)]);

    let extended: Vec<(u64, u32)> =
        of(skipping("mooncake_extended.jsonl")).iter().map(|(at, _, tokens)| (*at, *tokens)).collect();
    assert_eq!(extended, [(0, 40), (400 * ms, 24), (800 * ms, 32), (1200 * ms, 16)]);
    // Of the requests of these files only one has a time: it is the beginning, then.
    assert_eq!(of(skipping("aiperf_single_turn.jsonl")), [(0, 5, 5)]);
    assert_eq!(of(skipping("aiperf_multi_turn.jsonl")).len(), 1);
}

#[test]
fn failed_calls_are_sent_on_wish_and_move_no_other() {
    let rows = planned(&plan_of(Trace { failed_too: true, ..Trace::of(&sample("burstgpt_v1.csv")) }, 1.0));
    let offsets: Vec<u64> = rows.iter().map(|(at, ..)| *at / 1_000_000).collect();
    assert_eq!(offsets, [0, 0, 1, 13, 13]);
    // A recorded answer of 0 tokens is asked for with one: no server takes less.
    assert_eq!(rows[2], (1_000_000, 64, 1));
}

#[test]
fn speed_slice_and_cuts_change_what_is_planned() {
    let mooncake = || Trace::of(&sample("mooncake.jsonl"));
    let of = |trace, speedup| planned(&plan_of(trace, speedup));
    assert_eq!(
        of(mooncake(), 2.0).iter().map(|(at, ..)| *at).collect::<Vec<_>>(),
        [0, 0, 125_000, 1_500_000, 1_500_000]
    );
    let slice = Trace { from_s: 0.2, until_s: Some(3.0), ..mooncake() };
    assert_eq!(of(slice, 0.5), [(100_000, 1536, 200)]);
    let cut = Trace { prompt_tokens_max: Some(700), output_tokens_max: Some(33), ..mooncake() };
    assert_eq!(of(cut, 1.0)[0], (0, 700, 33));
    let mut plan = plan_of(mooncake(), 1.0);
    plan.levels[0].stop.units = Some(4);
    assert_eq!(planned(&plan).len(), 4);
    plan.levels[0].stop.duration_s = Some(0.25);
    assert_eq!(planned(&plan).len(), 2, "every send is planned before the end");
}

#[test]
fn what_cannot_be_replayed_is_refused_with_its_place() {
    let look = |trace: Trace| {
        let file = trace.file.clone();
        let open: Open = Box::new(move || Ok(Box::new(std::io::BufReader::new(std::fs::File::open(&file)?))));
        Recording::look(&trace, open)
    };
    for (name, reason) in [
        ("aiperf_single_turn.jsonl", "the request of line 1 has no time of its own"),
        ("sharegpt.json", "none of its requests has a time"),
        ("vllm_custom.jsonl", "none of its requests has a time"),
        ("no_such_file", "No such file"),
    ] {
        let error = look(Trace::of(&sample(name))).unwrap_err().to_string();
        assert!(error.starts_with(reason), "{name}: {error}");
    }
    let empty = Trace { from_s: 60.0, ..Trace::of(&sample("mooncake.jsonl")) };
    assert!(matches!(look(empty), Err(Refusal::Nothing)));
    let unknown = Trace { format: Some("parquet".to_owned()), ..Trace::of(&sample("mooncake.jsonl")) };
    assert!(look(unknown).unwrap_err().to_string().contains("burstgpt"));
}

#[test]
fn malformed_lines_fail_with_file_line_and_reason_or_are_counted() {
    let text = "{\"timestamp\": 5, \"input_length\": 9, \"output_length\": 2}\n\
                {\"timestamp\": 6, \"input_length\": -9, \"output_length\": 2}\n\
                {\"timestamp\": 7, \"input_length\": 9, \"output_length\": 2}\n";
    let look = |errors| {
        let trace = Trace { errors, ..Trace::of("t.jsonl") };
        Recording::look(&trace, Box::new(move || Ok(Box::new(Cursor::new(text)))))
    };
    let error = look(RecordErrors::Fail).unwrap_err().to_string();
    assert!(error.starts_with("t.jsonl:2: input_length: below zero"), "{error}");
    let recording = look(RecordErrors::Skip).unwrap();
    let overview = recording.overview();
    assert_eq!((overview.counts.malformed, overview.requests), (1, 2));
    assert_eq!(
        overview.to_string(),
        "mooncake trace: 2 requests over 0.002 s, 18 prompt tokens; left out: 1 malformed record"
    );
}

/// A server with one slot and an unlimited cache of the trace's own blocks, in virtual time.
fn caching() -> model::Settings {
    let cache = PrefixCache { block_tokens: 512, ..PrefixCache::default() };
    let batching = Batching { slots: 1, prefix_cache: Some(cache), ..Batching::default() };
    model::Settings::serving(Serving::Batching(batching))
}

#[test]
fn equal_block_ids_hit_a_prefix_cache_as_often_as_the_trace_says() {
    let plan = plan_of(Trace::of(&sample("mooncake.jsonl")), 1.0);
    let run = rig::simulate(&plan, caching(), &plan.levels[0]);
    let mut records: Vec<&Record> = run.measured();
    records.sort_by_key(|record| record.index);
    assert!(records.iter().all(|record| record.outcome.class == Class::Ok));
    let prompt: Vec<u32> = records.iter().map(|record| record.prompt_tokens.unwrap()).collect();
    assert_eq!(prompt, [1300, 700, 1536, 90, 1100]);
    let cached: Vec<u32> = records.iter().map(|record| record.cached_tokens.get().unwrap_or(0)).collect();
    assert_eq!(cached, [0, 512, 1024, 0, 1024], "2560 of 4726");
    let asked: Vec<u32> = records.iter().map(|record| record.output_tokens.unwrap()).collect();
    assert_eq!(asked, [60, 12, 200, 1, 33]);
    let start = run.result.span.t0;
    let offsets_ms: Vec<u64> = records.iter().map(|r| r.plan.nanos_since(start) / 1_000_000).collect();
    assert_eq!(offsets_ms, [0, 0, 250, 3000, 3000]);
    // The level ends with the trace, and its latencies count from the plan.
    assert_eq!((run.result.span.t1 - start).as_millis(), 3000);
    assert!(plan.levels[0].load.judged_from_plan());
}

/// The second turn of session s1 waits 1.5 s after the answer to the first, and is sent as recorded otherwise.
#[test]
fn a_turn_without_a_time_waits_for_the_answer_before_it() {
    for speedup in [1.0, 3.0] {
        let plan = plan_of(Trace::of(&sample("mooncake_extended.jsonl")), speedup);
        let overview = rig::recording(&plan).unwrap().overview().clone();
        assert_eq!((overview.requests, overview.later, overview.turns), (4, 1, 0));
        let run = rig::simulate(&plan, caching(), &plan.levels[0]);
        let of = |index: u64, turn: u16| {
            **run.measured().iter().find(|r| (r.index, r.turn) == (index, turn)).expect("a record")
        };
        let (first, second) = (of(0, 0), of(0, 1));
        let wait_ns = second.plan.nanos_since(first.end);
        assert_eq!(wait_ns, (1.5e9 / speedup) as u64);
        assert_eq!((second.prompt_tokens, second.output_tokens), (Some(700), Some(50)));
        // One whole block of 512 tokens is that of the first turn.
        assert_eq!(second.cached_tokens.get(), Some(512));
        let start = run.result.span.t0;
        let offsets: Vec<u64> = (1..4).map(|index| of(index, 0).plan.nanos_since(start)).collect();
        assert_eq!(offsets, [400e6, 800e6, 1200e6].map(|ns: f64| (ns / speedup).round() as u64));
        assert_eq!(run.result.sessions().unwrap().begun, 4);
    }
}

/// Turns with times of their own, in a session of which one turn waits: at their times, but not before the answer.
#[test]
fn a_turn_with_a_time_goes_at_it_unless_the_answer_is_late() {
    let text = "{\"session_id\":\"a\",\"timestamp\":0,\"text_input\":\"one\",\"output_length\":5}\n\
                {\"session_id\":\"b\",\"timestamp\":100,\"text_input\":\"other\",\"output_length\":5}\n\
                {\"session_id\":\"a\",\"delay\":10,\"text_input\":\"two\",\"output_length\":5}\n\
                {\"session_id\":\"a\",\"timestamp\":40,\"text_input\":\"three\",\"output_length\":5}\n\
                {\"session_id\":\"a\",\"timestamp\":9000,\"text_input\":\"four\",\"output_length\":5}\n";
    let trace = Trace::of("t.jsonl");
    let open: Open = Box::new(move || Ok(Box::new(Cursor::new(text))));
    let recording = Arc::new(Recording::look(&trace, open).unwrap());
    let plan = plan_of(trace, 1.0);
    let run = rig::simulate_script(&plan, caching(), &plan.levels[0], Some(Script::Trace(recording)));
    let mut records: Vec<Record> = run.measured().into_iter().filter(|r| r.index == 0).copied().collect();
    records.sort_by_key(|record| record.turn);
    let start = run.result.span.t0;
    let plans: Vec<u64> = records.iter().map(|record| record.plan.nanos_since(start) / 1_000_000).collect();
    assert_eq!((plans[0], plans[2], plans[3]), (0, 40, 9000));
    assert_eq!(records[1].plan.nanos_since(records[0].end), 10_000_000);
    assert!(records[1].end > records[2].plan && records[2].start == records[1].end, "late: {records:?}");
    assert_eq!(records[3].start, records[3].plan);
    // What was said before is repeated: a word a token, and a word asked each time.
    let prompt: Vec<u32> = records.iter().map(|record| record.prompt_tokens.unwrap()).collect();
    assert_eq!(prompt, [1, 7, 13, 19]);
}

#[test]
fn a_trace_that_is_shorter_than_the_level_ends_it() {
    let mut plan = plan_of(Trace::of(&sample("mooncake.jsonl")), 1.0);
    plan.levels[0].stop.duration_s = Some(3600.0);
    let run = rig::simulate(&plan, caching(), &plan.levels[0]);
    let span = run.result.span;
    assert_eq!((span.t1 - span.t0).as_millis(), 3000);
    assert!(run.result.window.whole_level && run.result.window.start == span.t0);
    assert_eq!(run.count(Class::Ok), 5);
}

#[test]
fn a_trace_reaches_a_server_at_its_times_from_any_number_of_shards() {
    let mock = rig::mock(Faults::default());
    let mut plan = plan_of(skipping("mooncake_extended.jsonl"), 10.0);
    plan.target.endpoints = rig::plan_for(mock.address().port()).target.endpoints;
    let mut hashes = Vec::new();
    for shards in [1, 3] {
        let run = rig::run(&plan, shards, &level(10.0, Some(2)));
        hashes.push(run.result.shards.iter().fold(0_u64, |sum, shard| sum.wrapping_add(shard.bodies)));
        let start = run.result.span.t0;
        let mut rows: Vec<(u64, u64, u32)> = run
            .measured()
            .iter()
            .filter(|r| r.turn == 0)
            .map(|r| (r.index, r.plan.nanos_since(start) / 1_000_000, r.output_tokens.unwrap_or(0)))
            .collect();
        rows.sort_unstable();
        // The ready body of the last one asks for a completion, which a chat's path refuses.
        assert_eq!(rows, [(0, 0, 40), (1, 40, 24), (2, 80, 32), (3, 120, 0)], "{shards} shards");
        // And the turn of the first session that waits.
        assert_eq!(run.count(Class::Ok), 4);
    }
    assert_eq!(hashes[0], hashes[1]);
    plan.seed += 1;
    let other = rig::run(&plan, 1, &level(10.0, Some(2))).result.shards[0].bodies;
    assert_ne!(other, hashes[0], "blocks have other words");
}

#[test]
fn a_file_that_changes_under_a_run_fails_it_instead_of_sending_less() {
    let good = "{\"timestamp\": 0, \"input_length\": 9, \"output_length\": 2}\n".repeat(20);
    let cut = "{\"timestamp\": 0, \"input_length\": 9, \"output_length\": 2}\n".repeat(9) + "broken\n";
    let opened = AtomicUsize::new(0);
    let trace = Trace::of("t.jsonl");
    let open: Open = Box::new(move || {
        let text = if opened.fetch_add(1, Ordering::Relaxed) == 0 { &good } else { &cut };
        Ok(Box::new(Cursor::new(text.clone())))
    });
    let recording = Arc::new(Recording::look(&trace, open).unwrap());
    let plan = plan_of(trace, 1.0);
    let mut engine = SimEngine::new(sim::Setup {
        target: rig::target_with(&plan, Some(Script::Trace(recording))),
        ask: probe::ask_of(&plan),
        plan: Arc::new(plan.clone()),
        servers: vec![Paper::new(Settings::default(), Stamp::ZERO).unwrap()],
        spool: None,
        live: None,
        interrupts: Interrupts::default(),
    });
    let error = engine.run_level(0, &plan.levels[0], &mut |_| {}).unwrap_err().to_string();
    assert!(error.starts_with("t.jsonl:10: ") && error.contains("could not be sent to the end"), "{error}");
}
