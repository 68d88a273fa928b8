//! Levels in slices of time, and what drifts over them, in virtual time.

use tokload::metrics::{Metric, Record, Slices};
use tokload::model::{self, Batching, Fixed, Serving};
use tokload::plan::{Arrivals, Level, Load, Plan, Rule, Slo};
use tokload::run::LevelResult;
use tokload::run_file::RunFile;
use tokload::stats::{Quantile, Sparse};
use tokload::summary::{self, DriftFigure, Input};

use crate::rig;

/// Some tokens in, five out, seen in slices of so long.
fn plan(seed: u64, slice_s: f64) -> Plan {
    let mut plan = rig::plan_for(1);
    (plan.seed, plan.slice_s) = (seed, Some(slice_s));
    plan
}

fn open(rate: f64) -> Load {
    Load { arrivals: Arrivals::Poisson { rate }, cap: None, users: None, think_s: 0.0 }
}

/// A server whose times vary, and become longer by this share a minute.
fn fixed(seed: u64, slowing: f64) -> model::Settings {
    let fixed = Fixed { ttft_jitter_ms: 100.0, itl_jitter_ms: 10.0, ..Fixed::default() };
    model::Settings { seed, slowing_per_minute: slowing, ..model::Settings::serving(Serving::Fixed(fixed)) }
}

/// A server with a queue.
fn queueing(seed: u64, slowing: f64) -> model::Settings {
    let batching = Batching { slots: 4, noise: 0.2, ..Batching::default() };
    model::Settings {
        seed,
        slowing_per_minute: slowing,
        ..model::Settings::serving(Serving::Batching(batching))
    }
}

struct Ran {
    plan: Plan,
    result: LevelResult,
    records: Vec<Record>,
}

impl Ran {
    fn of(plan: &Plan, server: model::Settings, level: &Level) -> Ran {
        let run = rig::simulate(plan, server, level);
        let records = run.measured().into_iter().copied().collect();
        Ran { plan: plan.clone(), result: run.result, records }
    }

    fn slices(&self) -> &Slices {
        self.result.slices.as_ref().unwrap()
    }

    fn file(&self) -> RunFile {
        let mut run = crate::run_file::empty(&self.plan);
        let numbers = summary::level(&Input::new(&self.result, Some(&self.records), Slo::default()));
        run.push(&self.result, &numbers);
        run.judge();
        run
    }

    fn drift(&self) -> Vec<DriftFigure> {
        let window = summary::level(&Input::new(&self.result, Some(&self.records), Slo::default())).window;
        summary::slices::drift(&self.result, &window)
    }

    fn drifting(&self) -> Vec<String> {
        self.drift().into_iter().filter(|one| one.drifts).map(|one| one.figure).collect()
    }
}

#[test]
fn slices_hold_every_request_once_in_the_one_in_which_it_ended() {
    let ran = Ran::of(&plan(3, 2.5), queueing(3, 0.0), &rig::timed(open(20.0), 30.0));
    let slices = ran.slices();
    let t0 = ran.result.span.t0;
    for (place, row) in slices.rows().iter().enumerate() {
        let within = |record: &&Record| {
            let at = record.end.nanos_since(t0);
            (2_500_000_000 * place as u64..2_500_000_000 * (place as u64 + 1)).contains(&at)
        };
        let own: Vec<&Record> = ran.records.iter().filter(within).collect();
        assert_eq!((row.ok, row.failed), (own.len() as u64, 0), "slice {place}");
        let mut ttft: Vec<u64> = own.iter().filter_map(|record| record.ttft_ns()).collect();
        ttft.sort_unstable();
        let exact = tokload::stats::quantile::nearest_rank(&ttft, Quantile::P90).unwrap();
        let shown = row.ttft.quantile(Quantile::P90).unwrap();
        assert!(exact <= shown && shown as f64 <= exact as f64 * 1.001, "{exact} {shown}");
    }
    // Together they are the level.
    let mut itl = Sparse::default();
    slices.rows().iter().for_each(|row| itl.merge(&row.itl));
    assert_eq!(itl, Sparse::of(ran.result.tally.histogram(Metric::Itl)));
    assert_eq!(slices.rows().iter().map(|row| row.ok).sum::<u64>(), ran.records.len() as u64);
}

#[test]
fn the_last_slice_is_divided_by_what_the_level_ran_of_it_in_every_form() {
    // 20 requests a second of which each takes 0.28 s, for 34 s: the last slice of 10 s has 4.28 s.
    let plan = plan(3, 10.0);
    let load = Load { arrivals: Arrivals::Constant { rate: 20.0 }, cap: None, users: None, think_s: 0.0 };
    let file = Ran::of(&plan, model::Settings::fixed(200.0, 20.0), &rig::timed(load, 34.0)).file();
    let level = &file.levels[0];
    let rows = &level.slices.as_ref().unwrap().rows;
    let last = rows.last().unwrap();
    let ran_s = (level.span.t2_ns - level.span.t0_ns) as f64 / 1e9;
    assert_eq!((rows.len(), last.start_s), (4, 30.0));
    assert!((last.width_s - (ran_s - 30.0)).abs() < 1e-9 && (4.2..4.4).contains(&last.width_s), "{last:?}");
    assert!((last.req_s - 20.0).abs() < 0.5, "{last:?}");
    assert_eq!(last.req_s, last.ok as f64 / last.width_s);

    let table = tokload::report::View::new(&file, &[], None).slices;
    let place = table.columns.iter().position(|column| column.name == "req/s").unwrap();
    let shown = format!("{:?}", table.rows.last().unwrap().cells[place]);
    assert_eq!(shown, format!("Number({:?})", tokload::report::format::rate(last.req_s)));
    let named = tokload::report::chart::Named { name: "", run: &file };
    let charts = tokload::report::chart::all(&[named]);
    let chart = charts.iter().find(|chart| chart.id == "requests-slices").unwrap();
    let points: Vec<_> = chart.series[0].points.iter().filter(|point| point.y.is_some()).collect();
    let point = points.last().unwrap();
    assert_eq!((points.len(), point.y), (4, Some(last.req_s)));
    assert!((point.x - (30.0 + last.width_s / 2.0)).abs() < 1e-9, "{point:?}");
}

#[test]
fn a_server_that_slows_down_by_a_percent_a_minute_is_found_with_its_rate() {
    // 200 ms grow by 2 ms a minute, 120 ms an hour; gaps of 20 ms by 12.
    let users = Load::closed(4);
    let ran = Ran::of(&plan(5, 10.0), fixed(5, 0.01), &rig::timed(users, 600.0));
    let drift = ran.drift();
    let of = |name: &str| drift.iter().find(|one| one.figure == name).unwrap();
    let close = |name: &str, ns_per_hour: f64| {
        let one = of(name);
        assert!(one.drifts && one.low < ns_per_hour && ns_per_hour < one.high, "{one:?}");
        assert!((one.per_hour / ns_per_hour - 1.0).abs() < 0.35, "{one:?}");
    };
    close("ttft_p50", 120e6);
    close("itl_p50", 12e6);
    close("e2e_p50", 168e6);
    assert!(of("req_s").drifts && of("req_s").per_hour < 0.0);
    assert!(!drift.iter().any(|one| one.figure == "failed_share"), "all shares are equal");
    let run = ran.file();
    let found = run.levels[0].findings.as_ref().unwrap();
    let finding = found.iter().find(|finding| finding.rule == Rule::Drift.name()).unwrap();
    assert!(finding.evidence.starts_with("TTFT p50 grows by "), "{}", finding.evidence);
    assert!(finding.evidence.contains("per hour (") && finding.evidence.contains("slices of 10.0 s"));
}

#[test]
fn a_queue_that_becomes_slower_is_found_as_well() {
    let ran = Ran::of(&plan(7, 5.0), queueing(7, 0.08), &rig::timed(open(12.0), 300.0));
    assert!(ran.drifting().contains(&"e2e_p50".to_owned()), "{:?}", ran.drift());
}

#[test]
fn equal_servers_do_not_drift() {
    let mut found = Vec::new();
    for seed in 0..10 {
        let mut plan = plan(seed, 2.5);
        plan.workload.output_tokens = 2.into();
        found.push(Ran::of(&plan, fixed(seed, 0.0), &rig::timed(Load::closed(2), 100.0)).drifting());
        found.push(Ran::of(&plan, queueing(seed, 0.0), &rig::timed(open(15.0), 100.0)).drifting());
    }
    let alarms = found.iter().filter(|figures| !figures.is_empty()).count();
    assert!(alarms <= 2, "{alarms} of {}: {found:?}", found.len());
}

#[test]
fn a_load_that_is_planned_to_change_has_slices_and_no_drift() {
    use tokload::plan::{Gaps, Piece, Rate, Series, Shape, Varying};
    let pieces = vec![Piece::ramp(1.0, 20.0, 100.0, Shape::Linear)];
    let rate = Rate::Series(Series { pieces, repeat: false });
    let arrivals = Arrivals::with(Varying { gaps: Gaps::Poisson, rate, exact_count: false });
    let load = Load { arrivals, cap: None, users: None, think_s: 0.0 };
    let ran = Ran::of(&plan(1, 5.0), fixed(1, 0.0), &rig::timed(load, 100.0));
    assert!(ran.slices().rows().len() >= 20);
    assert_eq!(ran.drift(), []);
}

#[test]
fn a_run_file_with_slices_conforms_to_the_published_schema() {
    let ran = Ran::of(&plan(5, 10.0), fixed(5, 0.02), &rig::timed(Load::closed(2), 200.0));
    let file = serde_json::to_value(ran.file()).unwrap();
    assert!(file["levels"][0]["slices"]["drift"].as_array().is_some_and(|drift| !drift.is_empty()));
    assert_eq!(crate::run_file::against_the_schema(&file), Ok(()));
}
