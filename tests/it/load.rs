//! The real engine against the mock server: every request is accounted for, whatever the server does.
//!
//! Counts are exact; of times only their order is asserted.

use std::time::Duration;

use tokload::load::tls;
use tokload::metrics::{Class, Flags, Kind, Metric};
use tokload::mock::{Break, Cut, Farewell, Fault, Faults, Identity, Mock, Settings};
use tokload::model;
use tokload::plan::{Arrivals, Burn, Driver, Level, Load, Stop, Timestamps, Until};
use tokload::run::{ShardCheck, Stamps};
use tokload::sys::signals::Interrupts;

use crate::rig::{Run, level, mock, open, plan_for, quick, run, run_through, run_with};

fn indices(run: &Run) -> Vec<u64> {
    let mut indices: Vec<u64> = run.measured().iter().map(|record| record.index).collect();
    indices.sort_unstable();
    indices
}

#[test]
fn a_closed_loop_sends_every_request_once_on_any_number_of_shards() {
    let mock = mock(Faults::default());
    let plan = plan_for(mock.address().port());
    for shards in [1, 2, 3] {
        let run = run(&plan, shards, &level(Load::closed(4), 30));
        assert_eq!(indices(&run), (0..30).collect::<Vec<_>>());
        assert_eq!(run.count(Class::Ok), 30);
        assert_eq!(run.records.len(), 32, "two warm-ups are recorded too");
        assert!(run.most_in_flight() <= 4);
        for record in run.measured() {
            assert_eq!((record.output_tokens, record.events), (Some(5), 5));
            assert!(record.plan <= record.start && record.start <= record.sent.unwrap());
            assert!(record.sent <= record.byte && record.byte <= record.first);
            assert!(record.first <= record.last && record.last.unwrap() <= record.end);
            assert!(!record.flags.contains(Flags::FROM_PLAN));
        }
        assert!(
            run.result.shards.iter().map(|shard| shard.connects).sum::<u64>() <= 4,
            "connections are reused"
        );
    }
}

#[test]
fn both_drivers_give_the_same_reading() {
    let mock = mock(Faults::default());
    let mut plan = plan_for(mock.address().port());
    for driver in drivers() {
        plan.client.driver = driver;
        let run = run(&plan, 2, &level(Load::closed(3), 12));
        assert_eq!(run.count(Class::Ok), 12);
    }
}

#[test]
fn an_open_loop_keeps_its_schedule_on_any_number_of_shards() {
    let mock = mock(Faults::default());
    let plan = plan_for(mock.address().port());
    let mut plans: Vec<Vec<u64>> = Vec::new();
    for shards in [1, 2, 7] {
        let run = run(&plan, shards, &level(open(400.0, None), 60));
        assert_eq!(indices(&run), (0..60).collect::<Vec<_>>());
        let mut measured = run.measured();
        measured.sort_by_key(|record| record.index);
        plans.push(measured.iter().map(|record| record.plan.nanos_since(run.result.span.t0)).collect());
        assert!(measured.iter().all(|record| record.start >= record.plan));
    }
    assert!(plans.windows(2).all(|pair| pair[0] == pair[1]), "the schedule depends on the number of shards");
}

#[test]
fn a_cap_over_shards_is_exact() {
    let mock = mock(Faults::default());
    let plan = plan_for(mock.address().port());
    let shards = 3;
    for cap in [1, 3, shards - 1, shards + 1] {
        let run = run(&plan, shards as usize, &level(open(1000.0, Some(cap)), 40));
        assert_eq!(run.count(Class::Ok), 40, "cap {cap}");
        assert!(run.most_in_flight() <= i64::from(cap), "cap {cap}: {} in flight", run.most_in_flight());
        assert!(run.measured().iter().any(|record| record.cap_wait_ns() > 0), "cap {cap} was never reached");
    }
}

#[test]
fn a_burst_is_planned_all_at_once() {
    let mock = mock(Faults::default());
    let plan = plan_for(mock.address().port());
    let burst = Load { arrivals: Arrivals::Burst, cap: None, users: None, think_s: 0.0 };
    let run = run(&plan, 2, &level(burst, 50));
    assert_eq!(run.count(Class::Ok), 50);
    assert!(run.measured().iter().all(|record| record.plan == run.result.span.t0));
}

#[test]
fn a_server_that_closes_after_each_answer_costs_connections_only() {
    let mock = mock(Faults::always(Fault::Farewell(Farewell::Announced)));
    let run = run(&plan_for(mock.address().port()), 2, &level(Load::closed(3), 20));
    assert_eq!(run.count(Class::Ok), 20);
}

#[test]
fn a_refused_connection_is_an_outcome_and_the_run_ends() {
    let port = {
        let mock = mock(Faults::default());
        mock.address().port()
    };
    let mut level = level(Load::closed(2), 6);
    level.warmups = 0;
    let run = run(&plan_for(port), 1, &level);
    assert_eq!(run.count(Class::Connect), 6);
}

#[test]
fn a_level_of_a_set_length_stops_sending_and_follows_what_is_open() {
    let mock = mock(Faults::default());
    let level = Level {
        load: Load::closed(3),
        stop: Stop { units: None, duration_s: Some(0.3), grace_s: 5.0 },
        warmups: 0,
        ..Level::default()
    };
    let run = run(&plan_for(mock.address().port()), 2, &level);
    let end = run.result.span.t0 + Duration::from_millis(300);
    assert!(run.measured().iter().all(|record| record.plan < end));
    assert_eq!(run.count(Class::Ok), run.measured().len());
    assert_eq!(run.result.span.t1, end);
}

#[test]
fn paced_users_keep_their_schedule_on_any_number_of_shards() {
    let mock = mock(Faults::default());
    let mut level = level(Load::paced(3, 0.06), 18);
    level.warmups = 0;
    for shards in [1, 2] {
        let run = run(&plan_for(mock.address().port()), shards, &level);
        assert_eq!(run.count(Class::Ok), 18);
        for record in run.measured() {
            let plan = run.result.span.t0 + Duration::from_millis(20) * record.index as u32;
            assert_eq!(record.plan, plan, "request {} of {shards} shards", record.index);
            assert!(record.start >= plan && record.flags.contains(Flags::FROM_PLAN));
        }
    }
}

/// A quick mock's TTFT is far from known to a millionth: the level is doubled to its longest, on every shard.
#[test]
fn a_level_that_is_lengthened_goes_on_on_all_shards() {
    let mock = mock(Faults::default());
    let mut plan = plan_for(mock.address().port());
    plan.until = Some(Until { figure: "e2e_p99".parse().unwrap(), half_width: 1e-6, times_max: 4 });
    let by = |units, duration_s| Stop { units, duration_s, grace_s: 5.0 };
    for (load, stop) in [
        (Load::closed(3), by(Some(30), None)),
        (Load::closed(3), by(None, Some(0.4))),
        (open(200.0, None), by(Some(60), None)),
        (open(200.0, Some(2)), by(None, Some(0.4))),
        (Load::paced(3, 0.02), by(None, Some(0.4))),
        // Fewer requests than users, at first.
        (Load::closed(6), by(Some(4), None)),
    ] {
        let level = Level { load, stop, warmups: 2, ..Level::default() };
        let run = run(&plan, 2, &level);
        let lengthened = run.result.lengthened.unwrap();
        assert_eq!((lengthened.times, lengthened.reached), (4, false), "{level:?}");
        let mut indices: Vec<u64> = run.measured().iter().map(|record| record.index).collect();
        indices.sort_unstable();
        match level.stop.units {
            Some(units) => assert_eq!(indices, (0..4 * units).collect::<Vec<_>>(), "{level:?}"),
            None => {
                assert_eq!(run.result.span.t1, run.result.span.t0 + Duration::from_millis(1600), "{level:?}");
                let last = run.measured().iter().map(|record| record.plan).max().unwrap();
                assert!(last > run.result.span.t0 + Duration::from_millis(1500), "{level:?}");
            }
        }
        assert_eq!(run.count(Class::Ok), run.measured().len(), "{level:?}");
    }
}

#[test]
fn a_level_that_knows_its_figure_is_not_lengthened() {
    let mock = mock(Faults::default());
    let mut plan = plan_for(mock.address().port());
    plan.until = Some(Until { figure: "e2e_p50".parse().unwrap(), half_width: 0.9, times_max: 16 });
    let run = run(&plan, 2, &level(Load::closed(2), 200));
    assert_eq!((run.measured().len(), run.result.lengthened.unwrap().times), (200, 1));
    assert!(run.result.lengthened.unwrap().reached);
}

#[test]
fn a_level_that_goes_on_is_stopped_by_its_user() {
    let stall = Cut { after_events: 1, how: Break::Stall };
    let mock = mock(Faults::always(Fault::Cut(stall)));
    let mut plan = plan_for(mock.address().port());
    plan.until = Some(Until { figure: "ttft_p50".parse().unwrap(), half_width: 0.01, times_max: 1000 });
    let interrupts = Interrupts::default();
    let user = interrupts.clone();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        user.raise();
        user.raise();
    });
    let run = run_with(&plan, 2, &Level { warmups: 0, ..level(Load::closed(3), 3) }, interrupts);
    stopper.join().unwrap();
    assert!(run.result.interrupted);
    assert_eq!(run.measured().len(), 3, "users whose answers stand still send nothing more");
}

#[test]
fn what_is_open_after_the_grace_period_is_unfinished() {
    let mock = mock(Faults::always(Fault::Cut(Cut { after_events: 1, how: Break::Stall })));
    let level = Level {
        load: Load::closed(4),
        stop: Stop { units: None, duration_s: Some(0.1), grace_s: 0.2 },
        warmups: 0,
        ..Level::default()
    };
    let run = run(&plan_for(mock.address().port()), 2, &level);
    assert_eq!(run.count(Class::Unfinished), 4);
}

fn identity() -> (Identity, String) {
    let identity = Identity::self_signed(&["localhost".to_owned()]).unwrap();
    let pem = String::from_utf8(identity.certificate_pem.clone()).unwrap();
    (identity, pem)
}

/// Runs six requests over TLS against a server with its own certificate.
fn run_over_tls(insecure: bool, trusts_it: bool) -> Run {
    let (identity, pem) = identity();
    let mock = Mock::start(Settings { tls: Some(identity), ..quick() }).unwrap();
    let mut plan = plan_for(mock.address().port());
    plan.target.endpoints[0].url = format!("https://localhost:{}", mock.address().port());
    let roots = if trusts_it { Some(pem) } else { None };
    let config = match roots {
        Some(pem) => {
            tls::config(&tls::Trust { insecure, cacert: Some(pem.as_bytes()), ..tls::Trust::default() })
                .unwrap()
        }
        None => {
            // Any other certificate as the only root.
            let (_, other) = self::identity();
            tls::config(&tls::Trust { insecure, cacert: Some(other.as_bytes()), ..tls::Trust::default() })
                .unwrap()
        }
    };
    let mut level = level(Load::closed(2), 6);
    level.warmups = 0;
    run_through(&plan, 2, &level, Interrupts::default(), config)
}

#[test]
fn tls_gives_the_same_reading_as_plain_http() {
    for insecure in [false, true] {
        let run = run_over_tls(insecure, true);
        assert_eq!(run.count(Class::Ok), 6);
        for record in run.measured() {
            assert_eq!((record.output_tokens, record.events), (Some(5), 5));
            assert!(record.conn <= record.sent && record.sent <= record.byte);
        }
    }
}

#[test]
fn an_unknown_certificate_is_refused_unless_told_otherwise() {
    let run = run_over_tls(false, false);
    assert_eq!(run.count(Class::Connect), 6);
    assert!(run.measured().iter().all(|record| record.outcome.kind == Kind::Tls));
    assert_eq!(run_over_tls(true, false).count(Class::Ok), 6);
}

#[test]
fn every_address_of_a_name_is_tried() {
    let mock = mock(Faults::default());
    let mut plan = plan_for(mock.address().port());
    // The server listens on 127.0.0.1 only; where the name has ::1 as well, that one is refused first.
    plan.target.endpoints[0].url = format!("http://localhost:{}", mock.address().port());
    assert_eq!(run(&plan, 1, &level(Load::closed(2), 8)).count(Class::Ok), 8);
}

#[test]
fn a_connection_closed_while_idle_costs_a_counted_resend_at_most() {
    let settings = Settings {
        serving: model::Settings::fixed(2.0, 1.0),
        keep_alive: Some(Duration::from_millis(20)),
        ..Settings::default()
    };
    let mock = Mock::start(settings).unwrap();
    let mut load = Load::closed(2);
    // Each user thinks for as long as the server keeps an idle connection: some requests meet the close.
    load.think_s = 0.02;
    let run = run(&plan_for(mock.address().port()), 2, &level(load, 40));
    assert_eq!(run.count(Class::Ok), 40);
    let resent = run.measured().iter().filter(|record| record.flags.contains(Flags::RESENT)).count() as u64;
    assert_eq!(run.result.shards.iter().map(|shard| shard.resent).sum::<u64>(), resent);
}

#[test]
fn a_halted_run_reports_what_there_is() {
    let mock = mock(Faults::always(Fault::Cut(Cut { after_events: 1, how: Break::Stall })));
    let interrupts = Interrupts::default();
    interrupts.raise();
    interrupts.raise();
    let run = run_with(&plan_for(mock.address().port()), 2, &level(Load::closed(3), 30), interrupts);
    assert!(run.result.interrupted);
    assert!(run.measured().len() <= 3, "nothing is sent after the user has said stop twice");
}

#[test]
fn a_stop_in_the_drain_sends_nothing_of_what_waits_for_the_cap() {
    let stall = Cut { after_events: 1, how: Break::Stall };
    let mock = mock(Faults::always(Fault::Cut(stall)));
    let mut plan = plan_for(mock.address().port());
    // Each of the two holders of the cap gives way after a while: without the stop all would be sent in turn.
    plan.limits.gap_s = 0.5;
    let level = Level {
        load: Load { arrivals: Arrivals::Constant { rate: 200.0 }, ..open(1.0, Some(2)) },
        stop: Stop { units: None, duration_s: Some(0.1), grace_s: 30.0 },
        warmups: 0,
        ..Level::default()
    };
    let interrupts = Interrupts::default();
    let user = interrupts.clone();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        user.raise();
    });
    let run = run_with(&plan, 2, &level, interrupts);
    stopper.join().unwrap();
    assert!(run.result.interrupted);
    assert_eq!((run.count(Class::TimeoutGap), run.count(Class::Cancelled)), (2, 18));
}

#[test]
fn a_stop_before_a_level_sends_nothing_of_it() {
    let mock = mock(Faults::default());
    for _ in 0..10 {
        let interrupts = Interrupts::default();
        interrupts.raise();
        let plan = plan_for(mock.address().port());
        let run = run_with(&plan, 4, &level(Load::closed(8), 30), interrupts);
        assert!(run.result.interrupted);
        assert_eq!(run.records, [], "neither warm-up nor level");
    }
}

#[test]
fn a_request_larger_than_the_socket_takes_at_once_is_sent_whole() {
    let mock = mock(Faults::default());
    let mut plan = plan_for(mock.address().port());
    plan.workload.input_words = 120_000.into();
    let mut level = level(Load::closed(2), 4);
    level.warmups = 0;
    let run = run(&plan, 2, &level);
    assert_eq!(run.count(Class::Ok), 4);
    assert!(run.measured().iter().all(|record| record.prompt_tokens == Some(120_000)));
}

#[test]
fn whole_answers_have_an_end_and_no_first_token() {
    let mock = mock(Faults::default());
    let mut plan = plan_for(mock.address().port());
    plan.target.stream = false;
    let run = run(&plan, 2, &level(Load::closed(2), 8));
    assert_eq!(run.count(Class::Ok), 8);
    for record in run.measured() {
        assert_eq!((record.ttft_ns(), record.tpot_ns()), (None, None));
        assert_eq!(record.e2e_ns(), Some(record.stream_ns()));
        assert_eq!(record.output_tokens, Some(5));
    }
}

#[test]
fn several_choices_count_the_tokens_of_all() {
    let mock = mock(Faults::default());
    let mut plan = plan_for(mock.address().port());
    plan.workload.choices = 3;
    let run = run(&plan, 2, &level(Load::closed(2), 6));
    assert_eq!(run.count(Class::Ok), 6);
    for record in run.measured() {
        assert_eq!((record.output_tokens, record.tpot_ns()), (Some(15), None));
    }
}

#[test]
fn running_usage_tells_the_tokens_of_each_event() {
    let serving = model::Settings { tokens_per_step: 2, ..quick().serving };
    let mock = Mock::start(Settings { serving, ..quick() }).unwrap();
    let mut plan = plan_for(mock.address().port());
    plan.workload.output_tokens = 6.into();
    plan.workload.options.continuous_usage = true;
    let run = run(&plan, 1, &level(Load::closed(1), 4));
    assert_eq!(run.count(Class::Ok), 4);
    for record in run.measured() {
        assert_eq!(
            (record.events, record.output_tokens, record.tokens_after_first.get()),
            (3, Some(6), Some(4))
        );
    }
    assert_eq!(run.result.tally.histogram(tokload::metrics::metric::Metric::ItlToken).n(), 16);
}

/// Every answer's content events have the kernel's stamps, none after the user's; and what the shards say of it adds up.
fn assert_stamped(run: &Run) {
    assert_eq!(run.result.stamps, Stamps { in_use: Timestamps::Both, why_not: None });
    for record in run.measured() {
        let by_kernel = record.by_kernel().expect("every content event is stamped");
        assert!(by_kernel.first <= record.first && by_kernel.last <= record.last);
        assert!(by_kernel.first.unwrap() > record.start, "bytes came before the request was sent");
    }
    let sum = |of: fn(&ShardCheck) -> u64| run.result.shards.iter().map(of).sum::<u64>();
    assert_eq!(sum(|check| check.receive_lag.n()) + sum(|check| check.unstamped), sum(|check| check.reads));
    // The kernel is asked at the first end of a request on each connection, and seldom after that.
    let asked = sum(|check| check.rtt.n());
    let connects = sum(|check| check.connects);
    assert!(connects > 0 && (connects..=run.measured().len() as u64).contains(&asked), "{connects} {asked}");
    assert_eq!(sum(|check| check.schedule_delay.n()), sum(|check| check.sent));
    assert!(run.result.tally.histogram(Metric::ItlKernel).n() > 0);
    assert_eq!(
        run.result.tally.histogram(Metric::ItlKernel).n(),
        run.result.tally.histogram(Metric::Itl).n()
    );
}

/// Both; a kernel or a container may refuse io_uring, and then there is nothing to test of it.
fn drivers() -> Vec<Driver> {
    let ring = tokload::pace::block_on(Driver::IoUring, |_| async {}).is_ok();
    [Driver::Epoll].into_iter().chain(ring.then_some(Driver::IoUring)).collect()
}

/// Where the machine refuses stamps there is nothing to test but that it says so.
fn machine_stamps() -> bool {
    tokload::sys::receive::Stamping::enable().is_ok()
}

#[test]
fn the_kernel_stamps_what_both_drivers_read_with_and_without_tls() {
    if !machine_stamps() {
        return;
    }
    let mock = mock(Faults::default());
    let mut plan = plan_for(mock.address().port());
    for driver in drivers() {
        plan.client.driver = driver;
        assert_stamped(&run(&plan, 2, &level(Load::closed(3), 12)));
    }
    assert_stamped(&run_over_tls(false, true));
}

#[test]
fn without_the_wish_the_kernel_stamps_nothing() {
    let mock = mock(Faults::default());
    let mut plan = plan_for(mock.address().port());
    plan.client.timestamps = Timestamps::User;
    let run = run(&plan, 1, &level(Load::closed(2), 6));
    assert_eq!(run.result.stamps.in_use, Timestamps::User);
    assert!(run.measured().iter().all(|record| record.kernel_first.is_none() && record.outcome.is_ok()));
    assert_eq!(run.result.shards[0].receive_lag.n(), 0);
    assert_eq!(run.result.tally.histogram(Metric::TtftKernel).n(), 0);
}

#[test]
fn by_kernel_stamps_a_wasteful_client_measures_the_same_latencies() {
    if !machine_stamps() {
        return;
    }
    let mock = mock(Faults::default());
    let mut plan = plan_for(mock.address().port());
    plan.client.timestamps = Timestamps::Kernel;
    // Each turn of the loop is longer than a whole answer takes.
    plan.client.burn = Some(Burn { ms: 60.0, every_s: 0.0 });
    let run = run(&plan, 1, &level(Load::closed(1), 3));
    assert_eq!(run.result.stamps.in_use, Timestamps::Kernel);
    for record in run.measured() {
        // Between the send and the first read lies a turn, by whatever else the machine does.
        let by_user = record.ttft_ns().unwrap();
        assert!(by_user >= 60_000_000, "the client was not slowed: {by_user} ns");
        assert!(record.kernel_ttft_ns().unwrap() < by_user);
    }
    let longest = |metric| run.result.tally.histogram(metric).totals().max();
    assert_eq!(longest(Metric::Ttft), longest(Metric::TtftKernel));
    assert!(run.result.shards[0].loop_lag.totals().max() >= Some(40_000_000));
}
