//! Users who go away, who read slowly, and who ask for several models: exact in virtual time, and accounted for over
//! sockets.

use std::time::Duration;

use tokload::metrics::{Class, Flags, Metric, Record};
use tokload::mock::{Ending, Mock, Settings, Truth};
use tokload::model::{self, Batching, Serving};
use tokload::plan::{Aborts, Load, ModelChoice, Plan, Slo, SlowReaders};
use tokload::summary::{self, GroupKey, Input, LevelSummary};
use tokload::workload::{Conduct, Item, Mix};

use crate::rig::{Run, level, open, plan_for, quick, run, simulate};

const MS: u64 = 1_000_000;

/// Answers of 20 tokens: the first after 50 ms, then one every 10 ms, 240 ms in all.
fn plan() -> Plan {
    let mut plan = plan_for(1);
    plan.workload.output_tokens = 20.into();
    plan
}

fn with_aborts(aborts: Aborts) -> Plan {
    let mut plan = plan();
    plan.workload.aborts = Some(aborts);
    plan
}

fn with_slow_readers(share: f64, bytes_per_s: u64) -> Plan {
    let mut plan = plan();
    plan.workload.slow_readers = Some(SlowReaders { share, bytes_per_s });
    plan
}

fn simulated(plan: &Plan, load: Load, units: u64) -> Run {
    simulate(plan, model::Settings::fixed(50.0, 10.0), &level(load, units))
}

fn summarised(run: &Run) -> LevelSummary {
    summary::level(&Input::new(&run.result, Some(&run.records), Slo::usual()))
}

fn item(plan: &Plan, record: &Record) -> Item {
    Item { seed: plan.level_seed(0), phase: record.phase, index: record.index }
}

/// Those of the run's requests that the plan gives up, by index.
fn planned_aborts(plan: &Plan, run: &Run) -> Vec<u64> {
    let conduct = Conduct::new(&plan.workload);
    let aborted =
        run.measured().into_iter().filter(|record| conduct.abort(item(plan, record), record.turn).is_some());
    sorted(aborted.map(|record| record.index))
}

fn indices(run: &Run, class: Class) -> Vec<u64> {
    sorted(run.measured().into_iter().filter(|r| r.outcome.class == class).map(|r| r.index))
}

fn sorted(indices: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut indices: Vec<u64> = indices.collect();
    indices.sort_unstable();
    indices
}

#[test]
fn users_go_away_at_their_time_to_the_nanosecond() {
    let plan = with_aborts(Aborts { share: 0.3, after_s: Some(0.1), after_tokens: None });
    for load in [Load::closed(4), open(100.0, None), open(100.0, Some(3))] {
        let run = simulated(&plan, load, 200);
        let aborted = planned_aborts(&plan, &run);
        assert!((30..90).contains(&aborted.len()));
        assert_eq!(indices(&run, Class::Cancelled), aborted);
        assert_eq!(run.count(Class::Ok), 200 - aborted.len());
        for record in run.measured() {
            if record.outcome.class == Class::Cancelled {
                assert_eq!(record.end.nanos_since(record.sent.unwrap()), 100 * MS);
                // Tokens at 50, 60, 70, 80, 90 ms and a nanosecond; that of 100 ms would come a nanosecond late.
                assert_eq!((record.events, record.output_tokens), (5, Some(5)));
                assert!(record.first.is_some() && record.last.unwrap() < record.end);
            } else {
                assert_eq!(record.events, 20);
            }
        }
        let counts = summarised(&run).counts;
        let n = aborted.len() as u64;
        assert_eq!((counts.cancelled, counts.cancelled_after_first, counts.cancelled_tokens), (n, n, 5 * n));
        assert_eq!((counts.failed, counts.ok), (0, 200 - n));
    }
}

#[test]
fn a_user_of_a_closed_loop_comes_back_after_going_away() {
    let plan = with_aborts(Aborts { share: 1.0, after_s: Some(0.02), after_tokens: None });
    let run = simulated(&plan, Load::closed(1), 50);
    let mut records = run.measured();
    records.sort_by_key(|record| record.index);
    assert!(records.windows(2).all(|pair| pair[1].start == pair[0].end));
    assert!(records.iter().all(|record| record.first.is_none() && record.outcome.class == Class::Cancelled));
    let counts = summarised(&run).counts;
    assert_eq!((counts.cancelled, counts.cancelled_after_first, counts.cancelled_tokens), (50, 0, 0));
}

#[test]
fn users_go_away_with_a_token() {
    for continuous_usage in [false, true] {
        let mut plan = with_aborts(Aborts { share: 0.5, after_s: None, after_tokens: Some(7) });
        plan.workload.options.continuous_usage = continuous_usage;
        let run = simulated(&plan, Load::closed(3), 100);
        assert_eq!(indices(&run, Class::Cancelled), planned_aborts(&plan, &run));
        for record in run.measured().iter().filter(|record| record.outcome.class == Class::Cancelled) {
            assert_eq!((record.events, record.output_tokens), (7, Some(7)));
            assert_eq!(record.end, record.last.unwrap());
            assert_eq!(record.end.nanos_since(record.start), 110 * MS + 1);
        }
    }
}

#[test]
fn whichever_comes_first_counts_and_what_is_complete_before_is_an_answer() {
    let cancelled = |after_s, after_tokens| {
        let run = simulated(&with_aborts(Aborts { share: 1.0, after_s, after_tokens }), Load::closed(2), 10);
        let records = run.measured();
        let events = records[0].events;
        assert!(records.iter().all(|record| record.events == events));
        (run.count(Class::Cancelled), run.count(Class::Ok), events)
    };
    assert_eq!(cancelled(Some(0.1), Some(3)), (10, 0, 3));
    assert_eq!(cancelled(Some(0.06), Some(9)), (10, 0, 1));
    assert_eq!(cancelled(Some(0.3), None), (0, 10, 20));
    assert_eq!(cancelled(None, Some(21)), (0, 10, 20));
    assert_eq!(cancelled(Some(0.3), Some(21)), (0, 10, 20));
    // Without a time or a number they leave as soon as all is sent.
    assert_eq!(cancelled(None, None), (10, 0, 0));
}

#[test]
fn a_server_has_its_slots_back_from_those_who_went_away() {
    let mut plan = with_aborts(Aborts { share: 1.0, after_s: None, after_tokens: Some(1) });
    plan.workload.output_tokens = 1000.into();
    let one_slot = Batching { slots: 1, ..Batching::default() };
    let run =
        simulate(&plan, model::Settings::serving(Serving::Batching(one_slot)), &level(Load::closed(4), 100));
    assert_eq!(run.count(Class::Cancelled), 100);
    // A step of 10.5 ms and the prefill are what one of them costs; 1000 steps are what it would have been.
    let span = run.result.span.t2.nanos_since(run.result.span.t0);
    assert!(span < 100 * 3 * 11 * MS, "{} ms", span / MS);
}

#[test]
fn latencies_of_those_who_went_away_are_in_no_distribution() {
    let aborts = Aborts { share: 0.5, after_s: Some(0.1), after_tokens: None };
    let run = simulated(&with_aborts(aborts), Load::closed(4), 100);
    let summary = summarised(&run);
    let ttft = summary.distribution(Metric::Ttft).unwrap();
    assert_eq!(ttft.n, summary.counts.ok);
    // Nor is a percentile one of theirs where failures count as infinitely slow.
    assert!(ttft.with_failures.iter().all(|quantile| quantile.value.is_some()));
    assert!(summary.groups.is_empty());
}

#[test]
fn slow_readers_read_at_their_rate_and_the_others_are_as_before() {
    let rate = 2000;
    let plan = with_slow_readers(0.5, rate);
    let run = simulated(&plan, open(50.0, None), 100);
    let usual = simulated(&self::plan(), open(50.0, None), 100);
    assert_eq!(run.count(Class::Ok), 100);
    let conduct = Conduct::new(&plan.workload);
    let (mut slow, mut last_usual) = (0, 0);
    for record in run.measured() {
        let is_slow = conduct.read_rate(item(&plan, record)).is_some();
        assert_eq!(record.flags.contains(Flags::SLOW_READER), is_slow);
        let same = usual.measured().into_iter().find(|other| other.index == record.index).unwrap();
        if is_slow {
            slow += 1;
            assert_eq!(record.events, same.events);
            assert!(record.e2e_ns() > same.e2e_ns());
        } else {
            assert_eq!((record.ttft_ns(), record.e2e_ns()), (same.ttft_ns(), same.e2e_ns()));
            last_usual = last_usual.max(record.e2e_ns().unwrap());
        }
    }
    let summary = summarised(&run);
    assert_eq!((summary.counts.ok, summary.counts.slow_ok, summary.counts.slow_failed), (100, slow, 0));
    let e2e = summary.distribution(Metric::E2e).unwrap();
    assert_eq!((e2e.n, e2e.max as u64), (100 - slow, last_usual));
    assert_eq!(summary.statistics.as_ref().unwrap().attainment.unwrap().n, 100 - slow);
    assert_eq!(summary.goodput.unwrap().attainment, 1.0, "TTFT and TPOT of the others are good");
    let [group] = summary.groups.as_slice() else { panic!("{:?}", summary.groups) };
    assert_eq!((group.of, group.counts.ok), (GroupKey::SlowReaders, slow));
    let slow_e2e = group.distributions.iter().find(|d| d.metric == Metric::E2e).unwrap();
    assert!(slow_e2e.n == slow && slow_e2e.min as u64 > last_usual);
    // The tally, which has no records to look at, leaves them out as well.
    let tallied = summary::level(&Input::new(&run.result, None, Slo::usual()));
    assert_eq!(tallied.distribution(Metric::E2e).unwrap().n, 100 - slow);
    assert_eq!(tallied.distribution(Metric::Itl).unwrap().n, 19 * (100 - slow));
}

#[test]
fn a_slow_reader_is_never_quicker_than_its_rate_and_no_slower_than_its_portions() {
    for rate in [100, 1000, 4000] {
        let run = simulated(&with_slow_readers(1.0, rate), Load::closed(1), 6);
        let bytes: u64 = run.result.shards.iter().map(|shard| shard.read_bytes).sum();
        let reading: u64 = run.measured().iter().map(|record| record.end.nanos_since(record.start)).sum();
        let read = (reading as u128 * u128::from(rate) / 1_000_000_000) as u64;
        let portion = (rate / 20).max(1);
        // What ends the framing is read behind the end of the answer.
        let tail = "\r\n0\r\n\r\n".len() as u64;
        assert!(
            bytes <= read + 6 * (portion + tail),
            "{bytes} bytes in the time of {read}, at {rate} a second"
        );
        // It had to wait for the server too, 240 ms of each request, and at the end for a last portion.
        assert!(bytes + 6 * (portion + rate * 240 / 1000) >= read, "{bytes} bytes in the time of {read}");
    }
}

#[test]
fn a_slow_reader_who_reads_faster_than_the_server_writes_sees_what_all_see() {
    let run = simulated(&with_slow_readers(1.0, 1 << 20), open(20.0, None), 30);
    let usual = simulated(&plan(), open(20.0, None), 30);
    let times = |run: &Run| {
        let mut all: Vec<_> = run.measured().iter().map(|r| (r.index, r.ttft_ns(), r.e2e_ns())).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(times(&run), times(&usual));
}

/// What the mock has counted once it has noticed that everybody is gone.
fn truth_at_rest(mock: &Mock) -> Truth {
    for _ in 0..1000 {
        let truth = mock.truth(false);
        if truth.in_flight == 0 {
            return truth;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("requests are in flight at the mock after 5 s: {:?}", mock.truth(false));
}

#[test]
fn a_real_server_sees_each_user_go_and_stops() {
    for after_tokens in [None, Some(4)] {
        let after_s = after_tokens.is_none().then_some(0.02);
        let mock = Mock::start(quick()).unwrap();
        let mut plan = with_aborts(Aborts { share: 0.4, after_s, after_tokens });
        plan.target.endpoints = plan_for(mock.address().port()).target.endpoints;
        plan.workload.output_tokens = 300.into();
        let mut given_up = 0;
        for shards in [1, 3] {
            let mut level = level(Load::closed(6), 40);
            level.warmups = 0;
            let run = run(&plan, shards, &level);
            let aborted = planned_aborts(&plan, &run);
            given_up += aborted.len() as u64;
            assert_eq!(indices(&run, Class::Cancelled), aborted);
            assert_eq!(run.count(Class::Ok), 40 - aborted.len());
            for record in run.measured().iter().filter(|record| record.outcome.class == Class::Cancelled) {
                match after_tokens {
                    None => assert!(record.end.nanos_since(record.sent.unwrap()) >= 20 * MS),
                    Some(tokens) => assert_eq!(record.events, tokens),
                }
                assert!(record.events < 300);
            }
        }
        let truth = truth_at_rest(&mock);
        assert_eq!(truth.ended(Ending::ClientLeft), given_up);
        assert_eq!(truth.ended(Ending::Complete), 80 - given_up);
        assert!(truth.tokens < 300 * 80 - 100 * given_up, "{} tokens were made", truth.tokens);
    }
}

#[test]
fn a_slow_reader_stops_the_sending_of_a_real_server_and_does_not_spin() {
    // 2000 events of some 250 bytes as fast as they can be written, more than fits the buffers in between.
    let settings = Settings { serving: model::Settings::fixed(1.0, 0.0), ..Settings::default() };
    let mock = Mock::start(settings).unwrap();
    let rate = 400_000;
    let mut plan = with_slow_readers(0.5, rate);
    plan.target.endpoints = plan_for(mock.address().port()).target.endpoints;
    plan.workload.output_tokens = 2000.into();
    let run = run(&plan, 1, &level(Load::closed(3), 8));
    assert_eq!(run.count(Class::Ok), 8);
    let slow: Vec<_> = run.measured().into_iter().filter(|r| r.flags.contains(Flags::SLOW_READER)).collect();
    assert!(!slow.is_empty() && slow.len() < 8);
    for record in &slow {
        // At least 60 bytes of each event are in the framing and around the text.
        let bytes = 2000 * 60;
        let taken = record.end.nanos_since(record.byte.unwrap());
        assert!(taken as f64 / 1e9 >= (bytes as f64 - rate as f64 / 20.0) / rate as f64, "{taken} ns");
        assert_eq!(record.events, 2000);
        assert_eq!((record.kernel_first, record.kernel_last), (None, None));
    }
    let truth = truth_at_rest(&mock);
    assert!(truth.partial_sends > 0, "the server never had to wait for its readers");
    let [shard] = run.result.shards.as_slice() else { panic!() };
    assert!(shard.cpu_ns * 2 < shard.wall_ns, "{} of {} ns were busy", shard.cpu_ns, shard.wall_ns);
}

#[test]
fn requests_are_dealt_to_models_by_their_weights_on_any_number_of_shards() {
    let adapters = vec!["org/a:b=1".to_owned(), "c".to_owned()];
    let mock = Mock::start(Settings { adapters: adapters.clone(), ..quick() }).unwrap();
    let mut plan = plan_for(mock.address().port());
    plan.target.models.extend(adapters);
    plan.target.model_weights = vec![3, 2, 1];
    for choice in [ModelChoice::InTurn, ModelChoice::Drawn] {
        plan.target.model_choice = choice;
        let mix = Mix::new(&plan.target);
        let mut bodies = Vec::new();
        for shards in [1, 3] {
            let run = run(&plan, shards, &level(Load::closed(6), 60));
            assert_eq!(run.count(Class::Ok), 60);
            for record in run.measured() {
                assert_eq!(usize::from(record.model), mix.model(plan.level_seed(0), record.index));
            }
            bodies.push(run.result.shards.iter().fold(0u64, |sum, shard| sum.wrapping_add(shard.bodies)));
            let summary = summarised(&run);
            let counts: Vec<_> = summary.groups.iter().map(|group| (group.of, group.counts.ok)).collect();
            if choice == ModelChoice::InTurn {
                let model = GroupKey::Model;
                assert_eq!(counts, [(model(0), 30), (model(1), 20), (model(2), 10)]);
            }
            assert_eq!(counts.iter().map(|(_, ok)| ok).sum::<u64>(), 60);
            let merged: u64 = summary
                .groups
                .iter()
                .flat_map(|g| g.distributions.iter().find(|d| d.metric == Metric::Ttft))
                .map(|d| d.n)
                .sum();
            assert_eq!(merged, 60);
        }
        assert_eq!(bodies[0], bodies[1]);
    }
}
