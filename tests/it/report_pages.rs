//! The report as a page, as Markdown, as CSV, as pictures and as a card: the numbers of the table in each, nothing that
//! asks a network, nothing that a stranger's text could break.

use tokload::metrics::{Class, Kind, Metric, Outcome};
use tokload::model::{self, Batching, Serving};
use tokload::plan::{Load, Plan, Slo};
use tokload::report::chart::draw::{self, Palette, Size};
use tokload::report::chart::{self, Chart, Named, Series};
use tokload::report::view::{Cell, Row, Table};
use tokload::report::{Style, View, card, csv, html, markdown, picture, terminal};
use tokload::run_file::RunFile;
use tokload::run_file::schema::{
    ClockOffset, EnvironmentBlock, ExampleBlock, LevelBlock, LevelShareBlock, MergedBlock, MergedShareBlock,
    ShareNumbers, Unit, Verbatim,
};
use tokload::stats::Quantile;
use tokload::verdict::Verdict;

use crate::check::builds;
use crate::run_file::sample;

const SIZE: Size = Size { width: 600, height: 300 };

/// The course model with 16 slots under `users`.
fn sweep(users: &[u32], requests: u64) -> RunFile {
    let loads: Vec<Load> = users.iter().map(|users| Load::closed(*users)).collect();
    let mut plan: Plan = builds::plan(7, &loads, &vec![requests; users.len()]);
    plan.slo = Slo { ttft_ms: Some(500.0), ..Slo::default() };
    let server = model::Settings::serving(Serving::Batching(Batching::default()));
    let mut run = builds::run_file(&plan, server).0;
    run.judge();
    run
}

/// Runs of every kind that a report has to cope with.
fn kinds() -> Vec<(&'static str, RunFile)> {
    let mut judged = sample().run;
    judged.judge();
    let mut failed = judged.clone();
    for level in &mut failed.levels {
        level.counts.failed += level.counts.ok;
        level.counts.ok = 0;
        level.distributions.clear();
        level.statistics = None;
        level.goodput = None;
        level.series = None;
    }
    let mut nothing = judged.clone();
    nothing.levels.clear();
    let mut interrupted = sweep(&[1, 4], 12);
    interrupted.interrupted = true;
    interrupted.levels[1].interrupted = true;
    let many: Vec<u32> = (1..=64).collect();
    vec![
        ("stored", judged),
        ("failures only", failed),
        ("no level", nothing),
        ("interrupted", interrupted),
        ("one request", sweep(&[1], 1)),
        ("64 levels", sweep(&many, 3)),
        ("merged", merged(2)),
    ]
}

/// A run that is said to be of `of` shares: each a host of its own, and the later the slower. The last has only failures.
fn merged(of: u32) -> RunFile {
    let mut run = sample().run;
    run.judge();
    let of_run = |share: u32| MergedShareBlock {
        share,
        file: format!("run.share-{share}-of-{of}.json"),
        created: run.created.clone(),
        label: None,
        interrupted: false,
        environment: EnvironmentBlock {
            host: Some(format!("n{share}")),
            clock_offset: (share > 1)
                .then(|| ClockOffset { offset_ns: -40_000_000 * i64::from(share), bound_ns: 1_250_000 }),
            ..EnvironmentBlock::default()
        },
    };
    let shares = (1..=of).map(of_run).collect();
    run.merged = Some(MergedBlock { of, missing: Vec::new(), shares, notes: Vec::new() });
    for level in &mut run.levels {
        let numbers = ShareNumbers::of(level);
        let of_level = |share: u32| {
            let ttft_ms_p99 = Some(f64::from(share) * 100.0);
            let own = match share {
                _ if share == of => ShareNumbers {
                    ok: 0,
                    failed: 7,
                    ttft_ms_p50: None,
                    ttft_ms_p99: None,
                    itl_ms_p99: None,
                    verdict: Some(Verdict::Invalid),
                    ..numbers
                },
                _ => ShareNumbers { ttft_ms_p99, ..numbers },
            };
            LevelShareBlock {
                share,
                of,
                planned: 7,
                began_s: Some(0.0),
                placed_s: 0.0,
                interrupted: false,
                host: None,
                own: Some(own),
            }
        };
        level.shares = Some((1..=of).map(of_level).collect());
    }
    run
}

#[test]
fn the_hosts_of_a_merged_run_stand_beside_each_other() {
    let view = View::new(&merged(2), &[], None);
    let shown = |row: &Row| {
        (row.label.clone(), row.cells.iter().map(|cell| cell.text().to_owned()).collect::<Vec<_>>())
    };
    let rows: Vec<_> = view.shares.rows.iter().map(shown).collect();
    assert_eq!(rows.len(), 2 * sample().run.levels.len());
    let (label, cells) = &rows[1];
    assert_eq!(label, "share 2 on n2, 4 users");
    // Nothing went well there: no rate, no latency, and a clock that is far ahead of that of share 1.
    assert_eq!(cells[..7], ["0", "7", "–", "–", "failed", "failed", "–"]);
    assert_eq!(cells[8..], ["-80.0 ±1.2", "invalid"]);
    assert_eq!((rows[0].1[5].as_str(), rows[0].1[8].as_str()), ("100.0", "–"));
    // Of many the slowest, those with failures before all.
    let many = View::new(&merged(100), &[], None);
    let labels: Vec<&str> = many.shares.rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(labels.len(), 2 * 32);
    assert!(
        labels[0].starts_with("share 69 on n69,") && labels[31].starts_with("share 100 on n100,"),
        "{labels:?}"
    );
    assert!(many.notes.iter().any(|note| note.text.contains("of 100 the 32 with the highest TTFT p99")));
    assert_eq!(View::new(&sample().run, &[], None).shares.rows, []);
}

fn alone(run: &RunFile) -> Vec<Chart> {
    chart::all(&[Named { name: "", run }])
}

fn page(run: &RunFile) -> String {
    let view = View::new(run, &["tokload report x.json".to_owned()], Some("x.json"));
    let charts = alone(run);
    let mut out = Vec::new();
    let page = html::Page { view: &view, verdict: run.verdict, overlays: &[], charts: &charts };
    html::write(&page, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn written(view: &View, write: fn(&View, &mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(view, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn series<'a>(charts: &'a [Chart], id: &str, name: &str) -> &'a Series {
    let chart = charts.iter().find(|chart| chart.id == id).unwrap();
    chart.series.iter().find(|series| series.name == name).unwrap_or_else(|| panic!("{chart:?}"))
}

fn tables(view: &View) -> Vec<&Table> {
    let all = [
        &view.table,
        &view.trials,
        &view.groups,
        &view.shares,
        &view.repeats,
        &view.turns,
        &view.servers,
        &view.gpus,
        &view.connections,
        &view.budget,
    ];
    all.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

#[test]
fn every_form_shows_every_number_of_the_view() {
    for (kind, run) in kinds() {
        let view = View::new(&run, &[], None);
        let texts = [
            written(&view, |view, out| terminal::write(view, Style { width: 400, color: false }, out)),
            written(&view, markdown::write).replace('\\', ""),
            page(&run).replace("&lt;", "<").replace("&gt;", ">").replace("&#39;", "'"),
        ];
        for table in tables(&view) {
            for row in &table.rows {
                let shown: Vec<&str> =
                    row.cells.iter().map(Cell::text).filter(|text| !text.is_empty()).collect();
                // In each form the cells of a row follow each other, with marks of that form between them.
                for (form, text) in texts.iter().enumerate() {
                    let holds = |line: &str| {
                        let mut rest = line;
                        shown.iter().all(|cell| {
                            let found = rest.find(cell);
                            found.is_some_and(|at| {
                                rest = &rest[at + cell.len()..];
                                true
                            })
                        })
                    };
                    let is_row = |line: &&str| line.contains(row.label.trim()) && holds(line);
                    assert!(text.lines().any(|line| is_row(&line)), "{kind}, form {form}: {row:?}");
                }
            }
        }
        let mut csv_ = Vec::new();
        csv::write(&run, &mut csv_).unwrap();
        csv_holds_the_levels(kind, &run, &String::from_utf8(csv_).unwrap());
    }
}

/// Each level is a line with its own numbers, and a second one where failures reach a percentile.
fn csv_holds_the_levels(kind: &str, run: &RunFile, csv: &str) {
    let lines: Vec<Vec<&str>> =
        csv.split("\r\n").filter(|line| !line.is_empty()).map(|line| line.split(',').collect()).collect();
    let column = |name: &str| lines[0].iter().position(|head| *head == name).unwrap();
    let mut rest = lines[1..].iter();
    for level in &run.levels {
        let line = rest.next().unwrap_or_else(|| panic!("{kind}: a level without a line"));
        assert_eq!((line.len(), line[column("requests")]), (lines[0].len(), "all"), "{kind}: {line:?}");
        assert_eq!(line[column("ok")], level.counts.ok.to_string(), "{kind}");
        let reaches =
            level.distributions.values().any(|block| Quantile::REPORTED.iter().any(|q| block.fails(*q)));
        let ok_only = if reaches && level.counts.ok > 0 { rest.next() } else { None };
        assert!(ok_only.is_none_or(|line| line[column("requests")] == "ok"), "{kind}");
        for (metric, block) in &level.distributions {
            if Unit::of(*metric) == Unit::TokensPerSecond {
                continue;
            }
            for quantile in Quantile::REPORTED {
                let place = column(&format!("{}_p{quantile}_ms", metric.name()));
                let expected = block.quantile(quantile).map_or_else(String::new, |ns| (ns / 1e6).to_string());
                let all = if block.fails(quantile) { "inf" } else { &expected };
                assert_eq!(line[place], all, "{kind}, {metric:?} p{quantile}");
                assert!(ok_only.is_none_or(|line| line[place] == expected), "{kind}, {metric:?} p{quantile}");
            }
        }
        if level.counts.ok == 0 && level.counts.failed > 0 && lines[0].contains(&"ttft_p50_ms") {
            assert_eq!(line[column("ttft_p50_ms")], "inf", "{kind}");
        }
    }
    assert_eq!(rest.next(), None, "{kind}");
}

#[test]
fn no_kind_of_run_leaves_a_chart_empty_without_a_sentence_or_a_number_that_is_none() {
    for (kind, run) in kinds() {
        let charts = alone(&run);
        assert!(charts.len() >= 15, "{kind}: {}", charts.len());
        for chart in &charts {
            let svg = draw::whole(chart, SIZE, Palette::PRINT, "#ffffff").unwrap();
            for wrong in ["NaN", "inf", "-2147483648", "2147483647"] {
                assert!(!svg.contains(wrong), "{kind}, {}: {wrong}", chart.id);
            }
            let has_points = chart.series.iter().any(|series| !series.points.is_empty())
                || chart.heat.as_ref().is_some_and(|heat| !heat.fields.is_empty());
            assert_eq!(chart.empty.is_none(), has_points, "{kind}, {}", chart.id);
            if let Some(why) = &chart.empty {
                assert!(svg.contains(why.split(' ').next().unwrap()), "{kind}, {}: {svg}", chart.id);
            }
            // It is a picture that others can read.
            picture::png(&svg, 0.1).unwrap();
        }
        let page = page(&run);
        // The page's own script knows the word.
        let (content, _) = page.split_once("<script>\n\"use strict\"").unwrap();
        assert!(!content.contains("NaN") && !content.contains("null"), "{kind}");
        picture::png(&card::svg(&run).unwrap(), 0.1).unwrap();
        let mut block = Vec::new();
        card::write_markdown(&run, &mut block).unwrap();
        assert!(!String::from_utf8(block).unwrap().contains("NaN"), "{kind}");
    }
}

#[test]
fn a_page_asks_no_network_and_holds_what_it_needs() {
    let page = page(&sweep(&[1, 4], 12));
    for asks in [" src=", "href=\"http", "url(", "@import", "fetch(", "XMLHttp"] {
        assert!(!page.contains(asks), "{asks}");
    }
    for needed in
        ["<meta name=\"viewport\"", "prefers-color-scheme: dark", "@media print", "default-src 'none'"]
    {
        assert!(page.contains(needed), "{needed}");
    }
    // Elements that are opened are closed.
    for element in
        ["figure", "svg", "table", "div", "g", "script", "style", "p", "ul", "li", "tr", "td", "th"]
    {
        let opened =
            page.matches(&format!("<{element}>")).count() + page.matches(&format!("<{element} ")).count();
        let closed = page.matches(&format!("</{element}>")).count();
        assert_eq!(opened, closed, "{element}");
    }
}

#[test]
fn text_of_a_stranger_stays_text() {
    let hostile = "</script><img src=x onerror=alert(1)>&\"'`|*_";
    let mut run = sample().run;
    run.judge();
    run.label = Some(hostile.to_owned());
    run.levels[0].label = hostile.to_owned();
    let outcome = Outcome::new(Class::Http, Kind::HttpStatus, 500);
    run.levels[0].examples =
        vec![ExampleBlock { outcome, label: outcome.label(), message: hostile.to_owned() }];
    let page = page(&run);
    assert!(!page.contains("<img"), "no element of his");
    assert!(page.contains("&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&amp;&quot;&#39;`|*_"));
    // One script per chart and one of the page, no more.
    let charts = alone(&run).iter().filter(|chart| chart.empty.is_none()).count();
    assert_eq!(page.matches("</script>").count(), charts + 1);
    let card = card::svg(&run).unwrap();
    assert!(!card.contains("<img") && picture::png(&card, 0.1).is_ok());
    let view = View::new(&run, &[], None);
    let text = written(&view, markdown::write);
    let row = text.lines().find(|line| line.starts_with("| \\<")).unwrap();
    assert_eq!(row.replace("\\|", "").matches('|').count(), view.table.columns.len() + 2, "{row}");
    let mut lines = Vec::new();
    csv::write(&run, &mut lines).unwrap();
    let csv = String::from_utf8(lines).unwrap();
    assert!(csv.contains("\"</script><img src=x onerror=alert(1)>&\"\"'`|*_\""), "{csv}");
}

#[test]
fn points_against_load_are_the_numbers_of_the_levels() {
    let run = sweep(&[1, 2, 8, 16, 32], 60);
    let charts = alone(&run);
    for (id, metric) in [("ttft-load", Metric::Ttft), ("tpot-load", Metric::Tpot), ("e2e-load", Metric::E2e)]
    {
        for (name, quantile) in [("p50", Quantile::P50), ("p99", Quantile::P99)] {
            let points = &series(&charts, id, name).points;
            let xs: Vec<f64> = points.iter().map(|point| point.x).collect();
            assert_eq!(xs, [1.0, 2.0, 8.0, 16.0, 32.0]);
            for (point, level) in points.iter().zip(&run.levels) {
                let ns = level.distributions[&metric].quantile(quantile).unwrap();
                assert_eq!(point.y, Some(ns * 1e-6), "{id} {name} {}", level.label);
                if let Some((low, high)) = point.band {
                    assert!(low <= ns * 1e-6 && ns * 1e-6 <= high, "{id} {name}: {point:?}");
                }
            }
        }
    }
    let throughput = series(&charts, "throughput-load", "all users together");
    let good = series(&charts, "requests-load", "good");
    for ((point, good), level) in throughput.points.iter().zip(&good.points).zip(&run.levels) {
        assert_eq!(point.y, Some(level.rates.window.out_tok_s));
        assert_eq!(good.y, Some(level.goodput.unwrap().good_s));
    }
    assert!(throughput.points.iter().any(|point| point.band.is_some()), "{throughput:?}");
    let trade = series(&charts, "pareto", "levels");
    assert_eq!(trade.points.len(), 5);
    assert!(trade.points.windows(2).all(|two| two[0].x <= two[1].x), "{trade:?}");
}

#[test]
fn repeats_of_a_load_are_one_point_with_the_interval_of_their_mean() {
    let mut plan = builds::plan(7, &[Load::closed(2), Load::closed(4)], &[20, 20]);
    plan.runs = 3;
    let mut run = builds::run_file(&plan, builds::build(1.0)).0;
    run.compare_repeats();
    let repeats = run.repeats.as_ref().expect("three rounds");
    let charts = alone(&run);
    let points = &series(&charts, "ttft-load", "p50").points;
    assert_eq!(points.len(), 2);
    for (point, block) in points.iter().zip(repeats) {
        let figure = &block.figures["ttft_p50"];
        assert_eq!(point.y, figure.mean.map(|ns| ns * 1e-6));
        assert_eq!(point.band, figure.low.zip(figure.high).map(|(low, high)| (low * 1e-6, high * 1e-6)));
    }
    // The 90th percentile is no figure of the repeats: the mean, without an interval.
    let p90 = &series(&charts, "ttft-load", "p90").points[0];
    let of_runs = run.levels.iter().filter(|level| level.load_label() == "2 users");
    let values: Vec<f64> =
        of_runs.map(|level| level.distributions[&Metric::Ttft].quantile(Quantile::P90).unwrap()).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64 * 1e-6;
    assert_eq!((values.len(), p90.band), (3, None));
    assert!((p90.y.unwrap() - mean).abs() < 1e-9 * mean, "{p90:?}, {mean}");
}

#[test]
fn loads_without_a_common_number_are_names() {
    let mut run = sample().run;
    run.judge();
    let charts = alone(&run);
    let chart = &charts[0];
    let chart::Scale::Names(names) = &chart.x.scale else { panic!("{chart:?}") };
    assert_eq!(names, &["4 users", "poisson 12.5/s cap 4"]);
    let places: Vec<f64> = chart.series[0].points.iter().map(|point| point.x).collect();
    assert_eq!(places, [0.0, 1.0]);
}

#[test]
fn percentiles_end_at_the_slowest_and_pass_through_the_stored_ones() {
    let run = sweep(&[16], 400);
    let charts = alone(&run);
    let line = series(&charts, "ttft-nines", "16 users");
    let distribution = &run.levels[0].distributions[&Metric::Ttft];
    let last = line.points.last().unwrap();
    // The slowest of n requests is the one beyond the share of all but one.
    assert!((last.x - 399.0 / 400.0).abs() < 1e-12, "{last:?}");
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 2e-3;
    assert!(near(last.y.unwrap(), distribution.max.unwrap() / 1e6), "{last:?}");
    for (share, quantile) in [(0.5, Quantile::P50), (0.9, Quantile::P90)] {
        let at = line.points.iter().find(|point| point.x >= share).unwrap();
        assert!(near(at.y.unwrap(), distribution.quantile(quantile).unwrap() / 1e6), "{quantile}: {at:?}");
    }
    assert!(line.points.windows(2).all(|two| two[0].x <= two[1].x && two[0].y <= two[1].y), "{line:?}");
}

#[test]
fn what_came_over_time_is_all_that_came() {
    let run = sweep(&[4, 16], 60);
    let charts = alone(&run);
    let first_ns = run.levels[0].span.t0_ns;
    // How long levels ran in the second around `x`: bins begin with each level.
    let seen = |x: f64| -> f64 {
        let of = |level: &LevelBlock| {
            let (from, to) = (level.span.t0_ns - first_ns, level.span.t2_ns - first_ns);
            let (from, to) = (from as f64 / 1e9, to as f64 / 1e9);
            let bins = (0..).map(|bin| from + f64::from(bin)).take_while(|start| *start < to);
            bins.filter(|start| ((start + 0.5) - x).abs() < 0.5)
                .map(|start| (to - start).min(1.0))
                .sum::<f64>()
        };
        run.levels.iter().map(of).sum()
    };
    // Each point is a rate over what levels ran of its bin: together they are the counts of the levels.
    let sum = |id: &str, name: &str| -> f64 {
        let points = &series(&charts, id, name).points;
        assert!((points[1].x - points[0].x - 1.0).abs() < 1e-9);
        points.iter().filter_map(|point| Some(point.y? * seen(point.x))).sum()
    };
    assert!((sum("requests-time", "ok") - 120.0).abs() < 1e-6);
    assert!((sum("tokens-time", "") - 120.0 * 16.0).abs() < 1e-6, "{}", sum("tokens-time", ""));
    let heat = charts.iter().find(|chart| chart.id == "e2e-heat").unwrap().heat.as_ref().unwrap();
    assert_eq!(heat.fields.iter().map(|field| field.count).sum::<u64>(), 120);
    assert_eq!(heat.fields.iter().map(|field| field.count).max(), Some(heat.most));
    let in_flight = &series(&charts, "in-flight-time", "").points;
    let most = in_flight.iter().filter_map(|point| point.y).fold(0.0, f64::max);
    assert!((4.0..=16.0).contains(&most), "{most}");
}

#[test]
fn runs_overlay_under_their_names() {
    let (a, b) = (sweep(&[1, 4], 12), sweep(&[1, 4, 8], 12));
    let charts = chart::all(&[Named { name: "A", run: &a }, Named { name: "B", run: &b }]);
    assert_eq!(series(&charts, "ttft-load", "A: p50").points.len(), 2);
    assert_eq!(series(&charts, "ttft-load", "B: p50").points.len(), 3);
    let names: Vec<&str> = charts[4].series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["A: all users together", "B: all users together"]);
    // No more lines of percentiles than eyes can part.
    let many: Vec<u32> = (1..=20).collect();
    let nines = alone(&sweep(&many, 2));
    let chart = nines.iter().find(|chart| chart.id == "ttft-nines").unwrap();
    assert_eq!(chart.series.len(), 8);
    assert!(chart.reading.contains("8 of 20 levels"), "{}", chart.reading);
}

#[test]
fn colors_are_those_of_the_page_or_of_paper() {
    let run = sweep(&[1, 4], 12);
    let page = page(&run);
    assert!(
        page.contains("stroke=\"var(--s0)\"") && page.contains("fill=\"var(--ink)\""),
        "colours of the page"
    );
    let svg = draw::whole(&alone(&run)[0], SIZE, Palette::PRINT, "#ffffff").unwrap();
    assert!(svg.contains("#0072b2") && !svg.contains("#101010") && !svg.contains("#010101"), "{svg}");
}

#[test]
fn a_run_without_its_course_or_histograms_says_so() {
    let mut run = sweep(&[1, 4], 12);
    for level in &mut run.levels {
        level.series = None;
        for distribution in level.distributions.values_mut() {
            distribution.histogram = None;
        }
    }
    let charts = alone(&run);
    let why =
        |id: &str| charts.iter().find(|chart| chart.id == id).unwrap().empty.clone().unwrap_or_default();
    assert!(why("ttft-nines").contains("no histograms"), "{}", why("ttft-nines"));
    assert!(why("requests-time").contains("no course"), "{}", why("requests-time"));
    assert!(why("ttft-heat").contains("no course"), "{}", why("ttft-heat"));
    assert!(charts[0].empty.is_none());
}

#[test]
fn a_level_of_a_later_tokload_does_not_stop_the_report() {
    let mut run = sweep(&[1, 4], 12);
    run.levels[1].setting = Verbatim::partial(serde_json::json!({ "new": 1 }));
    assert!(alone(&run)[0].empty.is_none());
    assert!(page(&run).contains("</html>"));
}
