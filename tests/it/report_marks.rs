//! What the charts mark: the knee, capacity and the limits over loads, levels over time; and that it is drawn.

use tokload::plan::{Arrivals, Axis, Load, Plan, Search, Sizes, Slo};
use tokload::report::card::Card;
use tokload::report::chart::draw::{self, Palette, Size};
use tokload::report::chart::{self, Chart, Mark, Named, Place};
use tokload::run_file::RunFile;
use tokload::run_file::schema::{KneeBlock, LoadPoint, Served};
use tokload::strategy::{Answer, Binding, Cause, Ending, Found, LimitHeld, Medians};

use crate::check::builds;

const SIZE: Size = Size { width: 600, height: 300 };

fn run_of(plan: &Plan) -> RunFile {
    builds::run_file(plan, builds::build(1.0)).0
}

/// Two levels of users behind each other.
fn users() -> Plan {
    builds::plan(7, &[Load::closed(4), Load::closed(16)], &[20, 20])
}

fn rates(rates: &[f64]) -> Plan {
    let open = |rate: &f64| Load {
        arrivals: Arrivals::Poisson { rate: *rate },
        cap: None,
        users: None,
        think_s: 0.0,
    };
    let loads: Vec<Load> = rates.iter().map(open).collect();
    builds::plan(7, &loads, &vec![10; rates.len()])
}

fn alone(run: &RunFile) -> Vec<Chart> {
    chart::all(&[Named { name: "", run }])
}

fn of<'a>(charts: &'a [Chart], id: &str) -> &'a Chart {
    charts.iter().find(|chart| chart.id == id).unwrap()
}

fn mark(at: Place, name: &str) -> Mark {
    Mark { at, name: name.to_owned() }
}

fn point(load: f64) -> LoadPoint {
    LoadPoint { load, per_s: 1.0, e2e_ns: 1e9 }
}

fn knee(vary: Axis, below: Option<f64>, at: Option<f64>) -> KneeBlock {
    let (at, below) = (at.map(point), below.map(point));
    KneeBlock { vary, loads: 3, throughput: Served::OutputTokens, at, below, last: point(32.0), waits: true }
}

fn found(low: Option<f64>, high: Option<f64>) -> Found {
    let limit = LimitHeld { name: "ttft".to_owned(), limit_ms: 60.0, missed: 9, kept_ms: Some(70.0) };
    Found {
        answer: Answer {
            low,
            high,
            ending: Ending::Found,
            confidence: 0.99,
            decided: true,
            undecided: Vec::new(),
            recovered: None,
            non_monotone: Vec::new(),
            requests: 100,
        },
        binding: high.map(|_| Binding {
            limit: Some(limit),
            cause: Cause::Queueing,
            below: None,
            above: Medians::default(),
        }),
        slots: None,
        earlier: 0,
        judged_again: false,
        trials: Vec::new(),
    }
}

const OVER_LOADS: [&str; 6] =
    ["ttft-load", "tpot-load", "itl-load", "e2e-load", "throughput-load", "requests-load"];

#[test]
fn the_knee_is_marked_in_every_chart_over_loads_and_drawn() {
    let mut run = run_of(&users());
    run.knee = Some(knee(Axis::Concurrency, Some(4.0), Some(16.0)));
    let charts = alone(&run);
    for id in OVER_LOADS {
        assert_eq!(of(&charts, id).marks, [mark(Place::At(16.0), "knee 16")], "{id}");
        let svg = draw::whole(of(&charts, id), SIZE, Palette::PRINT, "#ffffff").unwrap();
        assert!(svg.contains("knee 16") && svg.contains(Palette::PRINT.mark), "{id}");
        assert!(!svg.contains("#040404") && !svg.contains("#050505"), "{id}: a colour that is still a mark");
    }
    assert!(of(&charts, "pareto").marks.is_empty(), "no load lies from left to right there");
}

#[test]
fn the_knee_of_rates_is_a_span_and_one_at_the_lowest_load_says_so() {
    let mut run = run_of(&rates(&[4.0, 8.0]));
    run.knee = Some(knee(Axis::Rate, Some(4.0), Some(8.0)));
    assert_eq!(of(&alone(&run), "e2e-load").marks, [mark(Place::Between(4.0, 8.0), "knee 4 to 8")]);
    run.knee = Some(knee(Axis::Rate, None, Some(4.0)));
    assert_eq!(of(&alone(&run), "e2e-load").marks, [mark(Place::At(4.0), "knee 4 or lower")]);
    // Another unit than that of the axis has no place on it.
    run.knee = Some(knee(Axis::Concurrency, Some(4.0), Some(16.0)));
    assert!(of(&alone(&run), "e2e-load").marks.is_empty());
}

#[test]
fn what_is_no_knee_is_said_and_not_marked() {
    let mut run = run_of(&users());
    run.knee = Some(knee(Axis::Concurrency, Some(4.0), None));
    let charts = alone(&run);
    assert!(of(&charts, "throughput-load").reading.ends_with("No knee is seen up to the highest load."));
    assert!(of(&charts, "throughput-load").marks.is_empty());
    run.knee = Some(KneeBlock { waits: false, ..knee(Axis::Concurrency, Some(4.0), Some(16.0)) });
    let charts = alone(&run);
    assert!(of(&charts, "throughput-load").reading.contains("something else than a full server"));
    assert!(of(&charts, "throughput-load").marks.is_empty());
}

#[test]
fn capacity_is_a_span_with_the_limit_that_binds() {
    let mut plan = users();
    plan.search = Some(Search::along(Axis::Concurrency));
    plan.slo = Slo { ttft_ms: Some(60.0), e2e_ms: Some(1e6), ..Slo::default() };
    let mut run = run_of(&plan);
    run.capacity = Some(found(Some(14.0), Some(16.0)));
    let charts = alone(&run);
    let span = mark(Place::Between(14.0, 16.0), "capacity 14 to 15");
    let limit = mark(Place::Limit(60.0), "SLO 60 ms, binding");
    assert_eq!(of(&charts, "ttft-load").marks, [limit.clone(), span.clone()]);
    assert_eq!(of(&charts, "throughput-load").marks, std::slice::from_ref(&span));
    // A limit that nothing comes near would press the lines flat.
    assert_eq!(of(&charts, "e2e-load").marks, [span]);
    let reading = &of(&charts, "e2e-load").reading;
    assert!(reading.ends_with(" The SLO of 1000000 ms lies above what is drawn."), "{reading}");
    let svg = draw::whole(of(&charts, "ttft-load"), SIZE, Palette::PRINT, "#ffffff").unwrap();
    for drawn in ["capacity 14 to 15", "SLO 60 ms, binding", Palette::PRINT.limit] {
        assert!(svg.contains(drawn), "{drawn}: {svg}");
    }
    for (low, high, at, name) in [
        (Some(14.0), Some(15.0), Place::Between(14.0, 15.0), "capacity 14"),
        (Some(16.0), None, Place::At(16.0), "capacity 16 or more"),
        (None, Some(4.0), Place::At(4.0), "capacity below 4"),
    ] {
        run.capacity = Some(found(low, high));
        assert_eq!(of(&alone(&run), "throughput-load").marks, [mark(at, name)]);
    }
    run.capacity = Some(found(None, None));
    assert!(of(&alone(&run), "throughput-load").marks.is_empty());
}

#[test]
fn a_search_over_lengths_lies_along_lengths() {
    let mut plan = builds::plan(7, &[Load::closed(2), Load::closed(2)], &[5, 5]);
    plan.workload.input_words = 100.into();
    plan.search = Some(Search::along(Axis::InputLen));
    for (level, words) in plan.levels.iter_mut().zip([100, 400]) {
        level.sizes = Sizes { input_words: Some(words), output_tokens: None };
    }
    let mut run = run_of(&plan);
    run.capacity = Some(found(Some(100.0), Some(400.0)));
    let charts = alone(&run);
    let ttft = of(&charts, "ttft-load");
    assert_eq!(ttft.x.title, "prompt length, words or tokens");
    let xs: Vec<f64> = ttft.series[0].points.iter().map(|point| point.x).collect();
    assert_eq!(xs, [100.0, 400.0]);
    assert_eq!(of(&charts, "throughput-load").marks[0].at, Place::Between(100.0, 400.0));
}

#[test]
fn levels_begin_where_they_began() {
    let run = run_of(&users());
    let charts = alone(&run);
    let second_s = (run.levels[1].span.t0_ns - run.levels[0].span.t0_ns) as f64 / 1e9;
    for id in
        ["in-flight-time", "requests-time", "tokens-time", "ttft-time", "itl-time", "ttft-heat", "e2e-heat"]
    {
        let chart = of(&charts, id);
        assert_eq!(chart.marks, [mark(Place::Begins(0.0), "4"), mark(Place::Begins(second_s), "16")], "{id}");
        assert!(chart.reading.ends_with("a level begins, with the users above it."), "{}", chart.reading);
    }
    let failures = of(&charts, "failures-time");
    assert_eq!(failures.empty.as_deref(), Some("no request failed"));
    // A level alone has no boundary, and several runs would mix theirs.
    let one = run_of(&builds::plan(7, &[Load::closed(4)], &[20]));
    assert!(of(&alone(&one), "ttft-time").marks.is_empty());
    let both = chart::all(&[Named { name: "A", run: &run }, Named { name: "B", run: &one }]);
    assert!(of(&both, "ttft-time").marks.is_empty());
}

#[test]
fn marks_of_several_runs_bear_their_names_in_lines_of_their_own() {
    let (mut a, mut b) = (run_of(&users()), run_of(&users()));
    a.knee = Some(knee(Axis::Concurrency, Some(4.0), Some(16.0)));
    b.knee = Some(knee(Axis::Concurrency, None, Some(4.0)));
    let charts = chart::all(&[Named { name: "A", run: &a }, Named { name: "B", run: &b }]);
    let chart = of(&charts, "e2e-load");
    let names: Vec<&str> = chart.marks.iter().map(|mark| mark.name.as_str()).collect();
    assert_eq!(names, ["A: knee 16", "B: knee 4 or lower"]);
    // In a picture too narrow for both beside each other, and for any picture, they are there.
    for width in [120, 340, 800] {
        let drawing = draw::parts(chart, Size { width, height: 260 }).unwrap();
        for name in &names {
            assert!(drawing.base.contains(name), "{width}: {name}");
        }
    }
}

#[test]
fn many_levels_name_as_many_as_there_is_room_for() {
    let loads: Vec<Load> = (1..=40).map(Load::closed).collect();
    let run = run_of(&builds::plan(7, &loads, &[2; 40]));
    let charts = alone(&run);
    let chart = of(&charts, "in-flight-time");
    assert_eq!(chart.marks.len(), 40);
    let drawing = draw::parts(chart, Size { width: 340, height: 260 }).unwrap();
    let named = drawing.base.matches("<text").count();
    let plain = Chart { marks: Vec::new(), ..chart.clone() };
    let without =
        draw::parts(&plain, Size { width: 340, height: 260 }).unwrap().base.matches("<text").count();
    assert!((2..25).contains(&(named - without)), "{named} of which {without} are of the axes");
}

#[test]
fn a_card_names_the_whole_range_the_failures_and_that_a_run_was_broken_off() {
    // A search ends at a load between those that it began with.
    let mut run = run_of(&builds::plan(7, &[Load::closed(4), Load::closed(16), Load::closed(8)], &[10; 3]));
    let card = Card::of(&run);
    assert!(card.what[1].starts_with("4 users to 16 users, "), "{:?}", card.what);
    assert!(card.figures.iter().all(|figure| figure.of != "requests failed"));
    run.interrupted = true;
    run.levels[0].counts.failed = 3;
    let card = Card::of(&run);
    assert!(card.verdict.starts_with("simulated, interrupted, ") && card.is_doubtful, "{}", card.verdict);
    assert_eq!((card.figures[0].value.as_str(), card.figures[0].of.as_str()), ("3 of 33", "requests failed"));
}

#[test]
fn a_card_has_the_mean_of_repeats_and_not_the_best() {
    let mut plan = users();
    plan.runs = 2;
    let run = run_of(&plan);
    let repeats = run.repeats.as_ref().expect("two rounds");
    let mean = |level: usize| repeats[level].figures["out_tok_s"].mean.unwrap();
    let best = if mean(1) > mean(0) { 1 } else { 0 };
    let headline = Card::of(&run).headline;
    let expected = format!(
        "{} output tok/s at {}, 100 % of the requests within the SLO, mean of 2 runs",
        tokload::report::format::rate(mean(best)),
        repeats[best].label
    );
    assert_eq!(headline, expected);
}

#[test]
fn a_card_boasts_no_load_that_breaks_its_slo_or_was_cut_off() {
    let mut plan = users();
    plan.levels.truncate(1);
    plan.levels = vec![plan.levels[0].clone(); 3];
    for (level, users) in plan.levels.iter_mut().zip([1, 2, 16]) {
        level.load.users = Some(users);
    }
    let mut run = run_of(&plan);
    for (level, attainment) in run.levels.iter_mut().zip([1.0, 0.9, 0.89]) {
        level.goodput.as_mut().unwrap().attainment = attainment;
    }
    assert!(Card::of(&run).headline.ends_with(" at 2 users, 90.0 % of the requests within the SLO"));
    run.levels[1].interrupted = true;
    assert!(Card::of(&run).headline.contains(" at 1 user, "), "{}", Card::of(&run).headline);
    run.levels.iter_mut().for_each(|level| level.goodput = None);
    assert!(Card::of(&run).headline.ends_with(" at 16 users"), "{}", Card::of(&run).headline);
}

#[test]
fn a_limit_that_is_judged_from_before_the_wait_for_a_cap_says_so() {
    let mut plan = rates(&[4.0, 8.0]);
    plan.slo = Slo { ttft_ms: Some(40.0), ..Slo::default() };
    let said = |run: &RunFile| of(&alone(run), "ttft-load").reading.contains("judged from the planned send");
    assert!(!said(&run_of(&plan)), "without a cap nobody waits");
    plan.levels.iter_mut().for_each(|level| level.load.cap = Some(2));
    assert!(said(&run_of(&plan)));
}
