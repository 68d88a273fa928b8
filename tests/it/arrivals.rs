//! Arrivals that vary: what the options mean, what is refused, and that the load which is offered is the one asked for.

use std::process::Command as Program;
use std::time::Duration;

use tokload::cli::aliases::Tool;
use tokload::cli::args::{Asked, Command, parse};
use tokload::cli::plan_from_args::{Order, Surroundings, order};
use tokload::model::{self, Fixed, Serving};
use tokload::plan::{Arrivals, Error, Gaps, Level, Load, Piece, Plan, Rate, Series, Shape, Stop, Varying};
use tokload::summary;
use tokload::workload::Schedule;

use crate::{rig, simulate};

fn ordered(line: &str) -> Result<(Order, Vec<String>), Error> {
    let words = line.split_whitespace().map(Into::into);
    let Asked::Command { command: Command::Run(args), tool, notes } = parse(words)? else {
        panic!("not a run: {line}");
    };
    let order = order(
        &args,
        &Surroundings {
            tool,
            fresh_seed: 99,
            config: None,
            env: &|_| None,
            read: &|_| Err(std::io::ErrorKind::NotFound.into()),
        },
    )?;
    // Whatever is ordered can be stored and ordered again.
    assert_eq!(Plan::from_toml(&order.plan.to_toml(), 0), Ok(order.plan.clone()));
    let json = serde_json::to_string(&order.plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), order.plan);
    Ok((order, notes))
}

fn levels(options: &str) -> Vec<Level> {
    let line = format!("run --base-url h:1 {options}");
    ordered(&line).unwrap_or_else(|error| panic!("{line}: {error}")).0.plan.levels
}

fn level(options: &str) -> Level {
    let mut levels = levels(options);
    assert_eq!(levels.len(), 1, "{options}");
    levels.remove(0)
}

fn arrivals(options: &str) -> Arrivals {
    level(options).load.arrivals
}

fn series(gaps: Gaps, pieces: &[Piece], repeat: bool) -> Arrivals {
    let rate = Rate::Series(Series { pieces: pieces.to_vec(), repeat });
    Arrivals::Varying(Varying { gaps, rate, exact_count: false })
}

fn exact(gaps: Gaps, rate: f64) -> Arrivals {
    Arrivals::Varying(Varying { gaps, rate: Rate::Steady(rate), exact_count: true })
}

fn open(arrivals: Arrivals) -> Load {
    Load { arrivals, cap: None, users: None, think_s: 0.0 }
}

const UP: Piece = Piece::ramp(0.0, 50.0, 60.0, Shape::Linear);

#[test]
fn a_series_is_a_load_with_an_end_of_its_own() {
    let level = level("--request-rate-series 0..50@60,50@5m,50..5@30:exp");
    let pieces = [UP, Piece::steady(50.0, 300.0), Piece::ramp(50.0, 5.0, 30.0, Shape::Exponential)];
    assert_eq!(level.load, open(series(Gaps::Poisson, &pieces, false)));
    assert_eq!((level.stop.units, level.stop.duration_s), (None, Some(390.0)));
    assert_eq!(level.label(), "0 to 50 req/s");
    assert_eq!(self::level("--request-rate-series 5@60 -c 8").load.cap, Some(8));
    assert_eq!(self::level("--request-rate-series 5@60 --num-prompts 9").stop.units, Some(9));
    assert_eq!(self::level("--request-rate-series 5@60 --duration 600").stop.duration_s, Some(600.0));
    let five = [Piece::steady(5.0, 60.0)];
    let of = |options: &str| arrivals(&format!("--request-rate-series 5@60 {options}"));
    assert_eq!(of("--request-rate-series-repeat"), series(Gaps::Poisson, &five, true));
    assert_eq!(of("--request-rate inf --arrival-pattern constant"), series(Gaps::Constant, &five, false));
    let gamma = Gaps::Gamma { burstiness: 0.5 };
    assert_eq!(of("--burstiness 0.5"), series(gamma, &five, false));
    // As in aiperf, the ramp comes first.
    let risen = [Piece::ramp(0.0, 5.0, 10.0, Shape::Linear), five[0]];
    assert_eq!(of("--request-rate-ramp-duration 10"), series(Gaps::Poisson, &risen, false));
}

#[test]
fn a_rate_may_rise_to_where_it_stays() {
    let ramp = |rate| series(Gaps::Poisson, &[Piece::ramp(0.0, rate, 30.0, Shape::Linear)], false);
    let both = levels("--request-rate 10,20 --request-rate-ramp-duration 30 --duration 2m");
    assert_eq!([both[0].load.clone(), both[1].load.clone()], [open(ramp(10.0)), open(ramp(20.0))]);
    assert_eq!(both[0].stop.duration_s, Some(120.0));
    // Without an end as many requests as usual, after those of the ramp.
    let level = level("--request-rate 10 --request-rate-ramp-duration 30");
    assert_eq!((level.stop.units, level.stop.duration_s), (Some(150 + 64), None));
}

#[test]
fn a_ramp_over_requests_is_that_of_vllm() {
    let options = "--ramp-up-start-rps 1 --ramp-up-end-rps 10 --num-prompts 500";
    let piece = |strategy: &str| {
        let level = level(&format!("--ramp-up-strategy {strategy} {options}"));
        assert_eq!(level.stop.units, Some(500));
        level.load.arrivals.series().unwrap().pieces.clone()
    };
    assert_eq!(piece("linear"), [Piece::ramp_over_requests(1.0, 10.0, 500.0, false)]);
    assert_eq!(piece("exponential"), [Piece::ramp_over_requests(1.0, 10.0, 500.0, true)]);
    // With equal gaps, request i comes as vLLM's sums of gaps say, each 1 / the rate at its request, but for where in
    // its gap a request looks at the rate.
    for exponential in [false, true] {
        let strategy = if exponential { "exponential" } else { "linear" };
        let level = level(&format!("--ramp-up-strategy {strategy} {options} --arrival-pattern constant"));
        let ours: Vec<f64> = Schedule::new(&level.load.arrivals, 0, &level.stop)
            .map(|due| due.offset_ns as f64 / 1e9)
            .collect();
        let rate = |i: f64| {
            let progress = i / 499.0;
            if exponential { 10f64.powf(progress) } else { 1.0 + 9.0 * progress }
        };
        let mut at = 0.0;
        for (i, ours) in ours.iter().enumerate() {
            assert!((ours - at).abs() <= 1.0, "request {i} of {strategy} at {ours}: {at}");
            at += 1.0 / rate(i as f64);
        }
        assert_eq!(ours.len(), 500);
    }
    // In vLLM's own command line, too, and no gap is stretched: vLLM does not either where the rate rises.
    let line = "bench serve --model m --ramp-up-strategy linear --ramp-up-start-rps 2 --ramp-up-end-rps 4";
    let plan = ordered(line).unwrap().0.plan;
    let pieces = &plan.levels[0].load.arrivals.series().unwrap().pieces;
    assert_eq!(pieces, &[Piece::ramp_over_requests(2.0, 4.0, 1000.0, false)]);
    assert!(!plan.levels[0].load.arrivals.is_exact_count());
}

#[test]
fn bursts_and_users_who_come_in() {
    let bursts = level("--bursts 32@2.5 --duration 60 -c 100");
    assert_eq!(bursts.load, Load { cap: Some(100), ..open(Arrivals::Bursts { size: 32, every_s: 2.5 }) });
    assert_eq!((bursts.load.rate(), bursts.label().as_str()), (Some(12.8), "32 every 2.5 s, cap 100"));
    assert_eq!(
        arrivals("--bursts 3@1m --arrival-pattern burst"),
        Arrivals::Bursts { size: 3, every_s: 60.0 }
    );
    let ramped = levels("-c 4,8 --concurrency-ramp-duration 30 --duration 2m --think-time 1");
    let joining = Load { arrivals: Arrivals::Joining { ramp_s: 30.0 }, think_s: 1.0, ..Load::closed(8) };
    assert_eq!(ramped[1].load, joining);
    assert_eq!(ramped[1].label(), "8 users, in 30 s");
    assert!(
        !joining.judged_from_plan() && open(Arrivals::Bursts { size: 1, every_s: 1.0 }).judged_from_plan()
    );
}

#[test]
fn an_exact_count_is_asked_for_or_that_of_vllm() {
    assert_eq!(arrivals("--request-rate 5 --exact-count"), exact(Gaps::Poisson, 5.0));
    assert_eq!(
        arrivals("--request-rate 5 --burstiness 2 --exact-count"),
        exact(Gaps::Gamma { burstiness: 2.0 }, 5.0)
    );
    assert_eq!(
        arrivals("--request-rate 5 --arrival-pattern constant --exact-count"),
        Arrivals::Constant { rate: 5.0 }
    );
    assert!(arrivals("--request-rate-series 5@60 --num-prompts 9 --exact-count").is_exact_count());
    let vllm = |options: &str| {
        let line = format!("bench serve --model m {options}");
        let order = ordered(&line).unwrap_or_else(|error| panic!("{line}: {error}")).0;
        let noted = order.notes.iter().any(|note| note.contains("n / rate, as in vLLM"));
        (order.plan.levels[0].load.arrivals.clone(), noted)
    };
    assert_eq!(vllm("--request-rate 4"), (exact(Gaps::Poisson, 4.0), true));
    assert_eq!(vllm("--request-rate 4 --exact-count"), (exact(Gaps::Poisson, 4.0), false));
    let plain = (Arrivals::Poisson { rate: 4.0 }, false);
    for options in ["--no-exact-count", "--duration 60", "--until-ci ttft_p50:5%"] {
        assert_eq!(vllm(&format!("--request-rate 4 {options}")), plain, "{options}");
    }
    assert_eq!(vllm(""), (Arrivals::Burst, false));
    assert_eq!(arrivals("--request-rate 4"), plain.0, "only vLLM's command line is vLLM's");
}

#[test]
fn users_of_aiperf_are_paced_users() {
    let line = "profile --model m --user-centric-rate 2 --num-users 15 --benchmark-duration 300";
    let (order, notes) = ordered(line).unwrap();
    assert_eq!(order.plan.levels[0].load, Load::paced(15, 7.5));
    assert!(notes.iter().any(|note| note.contains("keeps to its schedule here")), "{notes:?}");
    let line =
        "profile --model m --request-rate 8 --request-rate-ramp-duration 10 --request-rate-mode constant";
    let load = &ordered(line).unwrap().0.plan.levels[0].load;
    let ramp = [Piece::ramp(0.0, 8.0, 10.0, Shape::Linear)];
    assert_eq!(*load, open(series(Gaps::Constant, &ramp, false)));
    let line = "profile --model m --concurrency 8 --concurrency-ramp-duration 10 --benchmark-duration 60";
    assert_eq!(ordered(line).unwrap().0.plan.levels[0].load.ramp_s(), Some(10.0));
    let (order, _) = ordered("profile --model m --request-rate-series 5@60").unwrap();
    assert_eq!((order.plan.levels[0].load.users, order.plan.levels[0].stop.duration_s), (None, Some(60.0)));
    assert!(tokload::cli::aliases::verdict(Tool::Aiperf, "--request-rate-series").is_some());
}

#[test]
fn what_cannot_be_run_is_refused_by_name() {
    for (options, subject, word) in [
        ("--request-rate-series 5", "--request-rate-series", "for how long"),
        ("--request-rate-series 5@0", "--request-rate-series", "no time for a rate"),
        ("--request-rate-series -5@60", "--request-rate-series", "-5.0 is not a rate"),
        ("--request-rate-series 2e6@60", "--request-rate-series", "not a rate"),
        ("--request-rate-series 0@60", "--request-rate-series", "0 all the time"),
        ("--request-rate-series 0..5@60:exp", "--request-rate-series", "takes for ever from or to 0"),
        ("--request-rate-series 5..0@60:hyp", "--request-rate-series", "takes for ever from or to 0"),
        ("--request-rate-series 5@9000h", "--request-rate-series", "more than a year"),
        ("--request-rate-series 0.001@60", "--request-rate-series", "less than one request"),
        ("--request-rate-series 5@60,0@1 --num-prompts 400", "--request-rate-series", "never come"),
        ("--request-rate-series 1e-6@60 --num-prompts 400", "--request-rate-series", "more than a year"),
        ("--request-rate-series 5@60 --request-rate 5", "--request-rate-series", "both say"),
        ("--request-rate-series 5@60 --bursts 5@6", "--bursts", "both say"),
        ("--request-rate-series 5@60 --pace 5", "--pace", "closed loop"),
        ("--request-rate-series 5@60 -c 4 --think-time 1", "--think-time", "closed loop think"),
        ("--request-rate-series 5@60 --arrival-pattern burst", "--arrival-pattern", "no rate"),
        ("--request-rate-series-repeat", "--request-rate-series-repeat", "without --request-rate-series"),
        ("--request-rate-series 5@60 --until-ci ttft_p50:5%", "--until-ci", "nothing to go on with"),
        ("--request-rate-ramp-duration 5 -c 4", "--request-rate-ramp-duration", "no rate that could rise"),
        ("--request-rate-ramp-duration 5 --bursts 4@3", "--request-rate-ramp-duration", "leads to no rate"),
        ("--request-rate-ramp-duration x --request-rate 3", "--request-rate-ramp-duration", "not a time"),
        (
            "--request-rate-ramp-duration 0 --request-rate 3 --duration 9",
            "--request-rate-ramp-duration",
            "no ramp",
        ),
        (
            "--request-rate-ramp-duration 0s --request-rate-series 5@6",
            "--request-rate-ramp-duration",
            "no ramp",
        ),
        (
            "--request-rate-ramp-duration 60 --request-rate 3 --duration 4",
            "--request-rate-ramp-duration",
            "less than one",
        ),
        (
            "--request-rate-ramp-duration 9000h --request-rate 3",
            "--request-rate-ramp-duration",
            "more than a year",
        ),
        (
            "--request-rate-ramp-duration 9 --request-rate-series 5..0@1 --num-prompts 400",
            "--request-rate-series",
            "never come",
        ),
        (
            "--ramp-up-strategy linear --ramp-up-start-rps 1e-6 --ramp-up-end-rps 2e-6 --num-prompts 400",
            "--ramp-up-strategy",
            "more than a year",
        ),
        (
            "--request-rate-series 5@6 --request-rate-series-repeat --request-rate-ramp-duration 5",
            "--request-rate-ramp-duration",
            "come again",
        ),
        ("--ramp-up-strategy linear", "--ramp-up-start-rps", "missing"),
        ("--ramp-up-strategy linear --ramp-up-start-rps 1", "--ramp-up-end-rps", "missing"),
        ("--ramp-up-strategy up --ramp-up-start-rps 1 --ramp-up-end-rps 2", "--ramp-up-strategy", "no way"),
        (
            "--ramp-up-strategy linear --ramp-up-start-rps 0 --ramp-up-end-rps 2",
            "--ramp-up-start-rps",
            "0 is",
        ),
        ("--ramp-up-start-rps 1", "--ramp-up-start-rps", "without --ramp-up-strategy"),
        (
            "--ramp-up-strategy linear --ramp-up-start-rps 1 --ramp-up-end-rps 2 --request-rate 2",
            "--ramp-up-strategy",
            "both say",
        ),
        (
            "--ramp-up-strategy linear --ramp-up-start-rps 1 --ramp-up-end-rps 2 --duration 60",
            "--ramp-up-strategy",
            "over a number of requests",
        ),
        ("--bursts 32", "--bursts", "how often"),
        ("--bursts x@3", "--bursts", "whole number"),
        ("--bursts 0@3", "--bursts", "no burst"),
        ("--bursts 3@0", "--bursts", "no time between"),
        ("--bursts 2000000@1", "--bursts", "too many"),
        ("--bursts 3@3 --burstiness 2", "--burstiness", "gaps of a rate"),
        ("--bursts 3@3 --arrival-pattern poisson", "--arrival-pattern", "gaps of a rate"),
        ("--concurrency-ramp-duration 5", "--concurrency-ramp-duration", "no users"),
        (
            "--concurrency-ramp-duration 5 -c 4 --request-rate 3",
            "--concurrency-ramp-duration",
            "not of a cap",
        ),
        ("--concurrency-ramp-duration 5 -c 4 --pace 3", "--concurrency-ramp-duration", "schedule"),
        ("--concurrency-ramp-duration 0 -c 4", "--concurrency-ramp-duration", "no ramp"),
        ("--concurrency-ramp-duration 60 -c 4 --duration 60", "--concurrency-ramp-duration", "last user"),
        ("--exact-count -c 4", "--exact-count", "of a rate"),
        ("--exact-count --no-exact-count --request-rate 4", "--exact-count", "contradicts"),
        ("--exact-count --request-rate 4 --duration 60", "--exact-count", "number of requests"),
        ("--exact-count --request-rate 4 --until-ci ttft_p50:5%", "--until-ci", "not known beforehand"),
        ("--exact-count --request-rate 4 --num-prompts 20000000", "--exact-count", "drawn twice"),
    ] {
        let error = ordered(&format!("run --base-url h:1 {options}")).expect_err(options);
        assert_eq!(error.subject, subject, "{options}: {error}");
        assert!(error.wrong.contains(word), "{options}: {error}");
        assert!(!error.remedy.is_empty());
    }
}

#[test]
fn a_plan_file_says_the_same_and_is_held_to_the_same_rules() {
    let read = |arrivals: &str, stop: &str| {
        let text = format!(
            "[target]\nendpoints = [{{ url = \"http://h:1\" }}]\n[[levels]]\nload = {{ arrivals = {arrivals} }}\nstop = {stop}\n"
        );
        let mut plan = Plan::from_toml(&text, 0)?;
        plan.complete();
        plan.validate().map(|()| plan)
    };
    let piece = "{ rate = 0, to_rate = 50, length_s = 60 }";
    let of = |piece: &str| format!("{{ process = \"constant\", rate = {{ pieces = [{piece}] }} }}");
    let plan = read(&of(piece), "{}").unwrap();
    assert_eq!(plan.levels[0].load, open(series(Gaps::Constant, &[UP], false)));
    assert_eq!(plan.levels[0].stop.duration_s, Some(60.0));
    for (arrivals, stop, subject) in [
        (of(""), "{}", "--request-rate-series"),
        (of(&format!("{piece},").repeat(10_001)), "{}", "--request-rate-series"),
        ("{ process = \"joining\", ramp_s = -1 }".to_owned(), "{ units = 5 }", "--max-concurrency"),
        (
            "{ process = \"poisson\", rate = 3, exact_count = true }".to_owned(),
            "{ duration_s = 5 }",
            "--exact-count",
        ),
        (
            "{ process = \"gamma\", rate = { pieces = [{ rate = 1, length_s = 9 }] }, burstiness = 0 }"
                .to_owned(),
            "{}",
            "--burstiness",
        ),
    ] {
        assert_eq!(read(&arrivals, stop).expect_err(&arrivals).subject, subject);
    }
    for arrivals in [
        of("{ rate = nan, length_s = 1 }"),
        of("{ rate = 1, to_rate = inf, length_s = 1 }"),
        "{ process = \"bursts\", size = 3, every_s = inf }".to_owned(),
    ] {
        let error = read(&arrivals, "{}").unwrap_err();
        assert!(error.subject.starts_with("line 4, `levels.load.arrivals"), "{error}");
        assert_eq!(error.wrong, "number out of range");
    }
    assert!(read("{ process = \"bursts\", size = -3, every_s = 1 }", "{}").is_err());
    assert!(read("{ process = \"burst\", rate = 1 }", "{}").unwrap_err().wrong.contains("rate"));
}

#[test]
fn room_is_made_for_the_largest_rate_and_the_largest_burst() {
    let needed = |options: &str| {
        let line = format!("run --base-url h:1 --random-output-len 64 {options}");
        ordered(&line).unwrap().0.plan.descriptors_needed()
    };
    // 3.7 s a request, twice 50 of them a second.
    let series = needed("--request-rate-series 0..50@60,1@600");
    assert_eq!((series.connections, series.estimated), (370, true));
    assert_eq!(needed("--bursts 500@100 --duration 600").connections, 500);
    let level = level("--request-rate-series 0..50@60,1@600");
    assert_eq!(level.requests_expected(), Some(2100));
}

/// Answers at once: what is in flight is what has just been sent.
fn quick() -> model::Settings {
    model::Settings::serving(Serving::Fixed(Fixed { ttft_ms: 20.0, itl_ms: 1.0, ..Fixed::default() }))
}

/// Answers in 1.2 s.
fn patient() -> model::Settings {
    model::Settings::serving(Serving::Fixed(Fixed { ttft_ms: 220.0, itl_ms: 20.0, ..Fixed::default() }))
}

#[test]
fn the_load_that_is_offered_is_the_series() {
    let pieces = [
        Piece::ramp(0.0, 40.0, 20.0, Shape::Linear),
        Piece::steady(0.0, 10.0),
        Piece::steady(25.0, 20.0),
        Piece::ramp(25.0, 5.0, 20.0, Shape::Exponential),
    ];
    for gaps in [Gaps::Constant, Gaps::Poisson] {
        let level = rig::timed(open(series(gaps, &pieces, true)), 140.0);
        let plan = simulate::plan();
        let (result, records) = simulate::run(&plan, quick(), &level);
        // Every planned time is the schedule's, and nothing is late.
        let schedule: Vec<_> = Schedule::new(&level.load.arrivals, plan.level_seed(0), &level.stop).collect();
        assert_eq!(records.len(), schedule.len());
        for (record, due) in records.iter().zip(&schedule) {
            assert_eq!(
                (record.index, record.plan),
                (due.index, result.span.t0 + Duration::from_nanos(due.offset_ns))
            );
            assert_eq!(record.start, record.plan);
        }
        assert!(result.window.whole_level, "a load of its own shape has no ramp to cut off");
        assert_eq!(result.span.t1, result.span.t0 + Duration::from_secs(140));
        // What the series over time says of each second is what was asked for then.
        let course = level.load.course().unwrap();
        let mut swings = 0.0;
        for slice in result.tally.series().slices().filter(|slice| slice.start_s < 140.0) {
            assert_eq!(slice.width_s, 1.0);
            let asked = course.count_by(slice.start_s + 1.0) - course.count_by(slice.start_s);
            let sent = slice.sent as f64;
            match gaps {
                Gaps::Constant => {
                    assert!((sent - asked).abs() <= 1.0, "{sent} of {asked} at {}", slice.start_s)
                }
                _ if asked == 0.0 => assert_eq!(sent, 0.0, "at {}", slice.start_s),
                // Six standard deviations of a Poisson number, and one for the small ones.
                _ => assert!((sent - asked).abs() <= 6.0 * asked.sqrt() + 1.0, "{sent} of {asked}"),
            }
            swings += (sent - asked).powi(2);
        }
        let expected = course.count_by(140.0);
        assert_eq!(level.requests_expected(), Some(expected.round() as u64));
        match gaps {
            Gaps::Constant => assert!(swings <= 140.0),
            // A Poisson number has a variance as large as its mean.
            _ => assert!((swings / expected - 1.0).abs() < 0.5, "{swings} of {expected}"),
        }
        // A load that grows as planned is no queue that does.
        let summary = summary::level(&summary::Input::new(&result, Some(&records), plan.slo));
        let steady = summary.statistics.unwrap().steady;
        assert_eq!((steady.trend, steady.latency_grows), (None, false));
    }
}

#[test]
fn a_rate_that_has_risen_is_measured_from_there_on() {
    let ramp = [Piece::ramp(0.0, 20.0, 30.0, Shape::Linear)];
    let window = |length_s| {
        let level = rig::timed(open(series(Gaps::Constant, &ramp, false)), length_s);
        let (result, records) = simulate::run(&simulate::plan(), quick(), &level);
        let from = result.window.start.nanos_since(result.span.t0) as f64 / 1e9;
        let planned = records.iter().filter(|record| result.window.contains(record.plan)).count();
        (from, result.window.whole_level, planned)
    };
    assert_eq!(window(120.0), (30.0, false, 90 * 20));
    // Most of it is the ramp: then that is what was asked for.
    let (from, whole_level, _) = window(59.0);
    assert_eq!((from, whole_level), (0.0, true));
}

#[test]
fn users_come_in_evenly_and_the_window_begins_when_all_are_in() {
    let load = Load { arrivals: Arrivals::Joining { ramp_s: 45.0 }, ..Load::closed(10) };
    let level = rig::timed(load, 100.0);
    let (result, records) = simulate::run(&simulate::plan(), patient(), &level);
    let t0 = result.span.t0;
    for (user, record) in records.iter().take(10).enumerate() {
        // Requests are counted by users: the first ten are the first of each.
        assert_eq!((record.index, record.plan), (user as u64, t0 + Duration::from_secs(5 * user as u64)));
    }
    assert_eq!(result.window.start, t0 + Duration::from_secs(45));
    // Nobody pauses: so many are in flight as have come in.
    for slice in result.tally.series().slices().filter(|slice| slice.start_s < 99.0) {
        let users = ((slice.start_s / 5.0).floor() + 1.0).min(10.0);
        assert!((slice.in_flight - users).abs() < 0.1, "{} of {users} at {}", slice.in_flight, slice.start_s);
    }
    let summary =
        summary::level(&summary::Input::new(&result, Some(&records), tokload::plan::Slo::default()));
    let turnaround_s = summary.statistics.unwrap().little.unwrap().turnaround_s.unwrap();
    // As exact as a window of 46 lives can be; if users were still missing, it would look like seconds.
    assert!(turnaround_s.abs() < 0.012, "all ten are there in the window: {turnaround_s}");
    // Shorter than a minute the ramp is part of it, and no growth of the queue.
    let short = Level { stop: Stop { duration_s: Some(55.0), ..level.stop.clone() }, ..level };
    let (result, records) = simulate::run(&simulate::plan(), patient(), &short);
    assert!(result.window.whole_level);
    let summary =
        summary::level(&summary::Input::new(&result, Some(&records), tokload::plan::Slo::default()));
    let steady = summary.statistics.unwrap().steady;
    assert!(!steady.trend.is_some_and(|trend| trend.growing), "{steady:?}");
}

#[test]
fn bursts_are_sent_at_once_each() {
    let level = rig::timed(open(Arrivals::Bursts { size: 8, every_s: 2.0 }), 10.0);
    let (result, records) = simulate::run(&simulate::plan(), quick(), &level);
    let at: Vec<u64> = records.iter().map(|r| r.start.nanos_since(result.span.t0) / 1_000_000).collect();
    let expected: Vec<u64> = (0..40).map(|index| index / 8 * 2000).collect();
    assert_eq!(at, expected);
}

#[test]
fn shards_send_a_series_and_let_users_in_as_planned() {
    let mock = rig::mock(tokload::mock::Faults::default());
    let plan = rig::plan_for(mock.address().port());
    let pieces = [Piece::ramp(0.0, 200.0, 0.5, Shape::Linear), Piece::steady(50.0, 0.3)];
    let series = rig::timed(open(series(Gaps::Poisson, &pieces, true)), 0.9);
    let joining = Load { arrivals: Arrivals::Joining { ramp_s: 0.3 }, ..Load::closed(7) };
    for level in [series, rig::timed(joining, 0.6)] {
        for shards in [1, 2] {
            let run = rig::run(&plan, shards, &level);
            let t0 = run.result.span.t0;
            let mut planned: Vec<(u64, u64)> =
                run.measured().iter().map(|record| (record.index, record.plan.nanos_since(t0))).collect();
            planned.sort_unstable();
            let expected: Vec<(u64, u64)> = match level.load.users {
                None => Schedule::new(&level.load.arrivals, plan.level_seed(0), &level.stop)
                    .map(|due| (due.index, due.offset_ns))
                    .collect(),
                Some(users) => (0..u64::from(users)).map(|user| (user, user * 50_000_000)).collect(),
            };
            assert_eq!(&planned[..expected.len()], expected, "{shards} shards");
        }
    }
}

#[test]
fn a_dry_run_shows_the_rate_and_the_first_times() {
    let say = |line: &str| {
        let output =
            Program::new(env!("CARGO_BIN_EXE_tokload")).args(line.split_whitespace()).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    std::fs::write(file.path(), "time,rate\n0,2\n10,2\n20,6\n").unwrap();
    let path = file.path().to_str().unwrap();
    let options =
        format!("--request-rate-series {path} --request-rate-series-repeat --arrival-pattern constant");
    for command in ["simulate", "run --base-url http://127.0.0.1:1 --model m"] {
        let shown = say(&format!("{command} {options} --dry-run"));
        let expected = "# level 1: 2 to 6 req/s\n# rate 2 for 10 s\n# rate 2 to 6 in 10 s\n# after 20 s all of it comes again\n\
                        # request 0 at 0.000000 s";
        assert!(shown.contains(expected), "{shown}");
        assert!(shown.contains("# request 4 at 2.000000 s"), "{shown}");
        // The plan has all of it, and the file may go.
        assert!(!shown.contains(path) && shown.contains("to_rate = 6.0"), "{shown}");
    }
    let shown = say("simulate -c 3 --concurrency-ramp-duration 10 --duration 60 --dry-run");
    assert!(shown.contains("# users come in one after another, the last after 10 s"), "{shown}");
    assert!(
        shown.contains("# request 1 at 5.000000 s") && shown.contains("# request 2 at 10.000000 s"),
        "{shown}"
    );
    let shown = say("simulate --request-rate 5 --num-prompts 9 --exact-count --dry-run");
    assert!(shown.contains("# the last request comes when the rate has made as many"), "{shown}");
    let missing = Program::new(env!("CARGO_BIN_EXE_tokload"))
        .args(["simulate", "--request-rate-series", "nowhere.csv"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("--request-rate-series nowhere.csv: "));
}
