//! The views of a run: the same numbers in each, readable at any width, silent about nothing.

use serde_json::Value;
use tokload::metrics::{Class, Kind, Metric, Outcome, TokenSource};
use tokload::report::{Style, View, json, terminal};
use tokload::run_file::RunFile;
use tokload::run_file::schema::{CutBlock, ExampleBlock};
use tokload::run_file::write::to_json;
use tokload::summary::statistics::TrendStatistics;
use tokload::summary::{Counts, OutcomeCount};

use crate::run_file::sample;

fn text(view: &View, style: Style) -> String {
    let mut out = Vec::new();
    terminal::write(view, style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The text of `run` as it would be judged.
fn shown(run: &RunFile, width: usize) -> String {
    let mut run = run.clone();
    run.judge();
    text(&View::new(&run, &[], None), Style { width, color: false })
}

/// The text with runs of spaces and line breaks as one space, to look for sentences that may be wrapped anywhere.
fn flowing(run: &RunFile) -> String {
    shown(run, 80).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A run of one level in which every request was refused.
fn all_failed() -> RunFile {
    let mut run = sample().run;
    run.levels.truncate(1);
    let level = &mut run.levels[0];
    let outcome = Outcome::new(Class::Http, Kind::HttpStatus, 401);
    level.counts = Counts {
        planned: 40,
        failed: 40,
        outcomes: vec![OutcomeCount { outcome, count: 40 }],
        ..Counts::default()
    };
    level.distributions.clear();
    level.rates = tokload::run_file::schema::RatesBlock {
        window: tokload::summary::Rates::default(),
        level: tokload::summary::Rates::default(),
    };
    level.examples =
        vec![ExampleBlock { outcome, label: outcome.label(), message: "no\x1b[2Jkey".to_owned() }];
    run
}

#[test]
fn a_wide_terminal_has_one_table_and_every_number_of_the_level() {
    let table = shown(&sample().run, 200);
    let lines: Vec<&str> = table.lines().skip(2).take(5).collect();
    let expected = [
        "                                         output         TTFT ms        TPOT ms        ITL ms          E2E ms               goodput  delay ms",
        "load                  ok  failed  req/s   tok/s     p50     p99    p50     p99    p50    p99     p50     p99  req/s              %       p99",
        "4 users               36       4   2.86   25.71  435.5?  failed  55.25  failed  24.00  249.0  877.5?  failed   2.86   90.0 (76-99)     0.042",
        "  ok only                                                460.1?         55.25?                        902.1?",
        "poisson 12.5/s cap 4  24       0   3.03   27.26  425.6?  440.4?  55.25  55.25?  24.00  249.0  867.6?  882.4?   2.15  70.8 (11-100)     0.026",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn eighty_columns_are_enough() {
    for width in [80, 100, 120, 200] {
        for line in shown(&sample().run, width).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
    let blocks = shown(&sample().run, 80).lines().filter(|line| line.starts_with("load")).count();
    assert_eq!(blocks, 3);
}

#[test]
fn every_width_shows_the_same_numbers() {
    let numbers = |width| {
        let text = shown(&sample().run, width);
        let rows = text.lines().filter(|line| line.starts_with("4 users"));
        rows.flat_map(|row| row["4 users".len()..].split_whitespace()).map(str::to_owned).collect::<Vec<_>>()
    };
    // The interval of attainment stands beside it; servers and GPUs have tables of their own.
    assert_eq!(numbers(200).len(), 15 + 1 + 10 + 11);
    assert!([30, 60, 80, 100].into_iter().all(|width| numbers(width) == numbers(200)));
}

#[test]
fn json_has_the_stored_numbers_without_the_bulk() {
    let run = sample().run;
    let mut out = Vec::new();
    json::write(&run, &mut out).unwrap();
    let shown: Value = serde_json::from_slice(&out).unwrap();
    let mut stored: Value = serde_json::from_str(&to_json(&run)).unwrap();
    for level in stored["levels"].as_array_mut().unwrap() {
        level["series"] = Value::Null;
        for distribution in level["distributions"].as_object_mut().unwrap().values_mut() {
            distribution["histogram"] = Value::Null;
        }
    }
    assert_eq!(shown, stored);
}

#[test]
fn a_run_without_successes_is_no_table_of_zeros() {
    let run = all_failed();
    let table = shown(&run, 200);
    let row = table.lines().find(|line| line.starts_with("4 users")).unwrap();
    let cells: Vec<&str> = row["4 users".len()..].split_whitespace().collect();
    let latencies = ["failed", "failed", "failed", "failed", "–", "–", "failed", "failed"];
    assert_eq!(cells[..4], ["0", "40", "–", "–"]);
    assert_eq!(cells[4..12], latencies);
    assert!(!table.contains("ok only"));
    assert!(flowing(&run).contains("! no request ended well: there is nothing to measure"));
}

#[test]
fn failures_come_with_what_was_said_and_cannot_steer_the_terminal() {
    let table = shown(&all_failed(), 80);
    assert!(table.contains("\nfailures\n  http_401  40\n      no [2Jkey\n"), "{table}");
    let table = shown(&sample().run, 80);
    assert!(table.contains("  http_429  4  (4 users)\n      slow down, http://<removed>@b/ is busy\n"));
}

#[test]
fn remarks_say_how_it_was_measured() {
    let text = flowing(&sample().run);
    for remark in [
        "window: whole level, with ramp and drain",
        "goodput (4 users): TTFT <= 550 ms, TPOT <= 60 ms, judged from the start (closed loop)",
        "goodput (poisson 12.5/s cap 4): TTFT <= 550 ms, TPOT <= 60 ms, judged from the planned send (open loop)",
        "poisson 12.5/s cap 4: asked 12.5 req/s, planned 3.48",
        "verdict: invalid (failures, few_requests, cache_hits_unwanted, realised_rate_off, cap_reached, rate_limited)",
        "! failures: 4 users: 4 of 40 requests failed (10.0 %); find their cause",
        "! few_requests: 24 requests in a level: a single one of them makes its p99; give --num-prompts 200",
        "! cap_reached: poisson 12.5/s cap 4: 24 of 24 requests (100.0 %) waited for the cap of 4, up to 123 ms; TTFT from the planned send is 537 ms p50, 563 ms p99; E2E from the planned send is 979 ms p50, 1005 ms p99; judge",
        " noted: closed_loop_without_queue_time, server_reused_across_configs, not_production_platform, prompt_tokens_off,",
        "tokload report FILE --findings says why",
        "prompt tokens: asked 128, reported 131.0 per request, 12.2 % of them from the cache",
        "output tokens: from the server's usage",
        "! the server refused these fields, which were left out: min_tokens",
        "seed 42",
    ] {
        assert!(text.contains(remark), "{remark}\n{text}");
    }
}

#[test]
fn a_run_that_ended_early_says_what_of_it_is_missing_in_every_format() {
    let mut run = sample().run;
    run.interrupted = true;
    let note = |run: &RunFile| View::new(run, &[], None).notes[0].text.clone();
    assert_eq!(note(&run), "interrupted: every level had been run");
    run.levels[1].interrupted = true;
    let span = &mut run.levels[1].span;
    span.t1_ns = span.t0_ns + 3_440_000_000;
    assert_eq!(note(&run), "interrupted: poisson 12.5/s cap 4 was cut short after 3.4 s");
    run.levels.truncate(1);
    run.levels[0].interrupted = true;
    let span = &mut run.levels[0].span;
    span.t1_ns = span.t0_ns + 12_000_000_000;
    let cut = "4 users was cut short after 12.0 s, and 1 of 2 levels was not run";
    assert_eq!(note(&run), format!("interrupted: {cut}"));
    let card = |run: &RunFile| tokload::report::card::Card::of(run).verdict;
    assert!(card(&run).starts_with("interrupted, "), "{}", card(&run));
    // A process that was killed, and one that goes on.
    let of_process = |running| CutBlock {
        process: 7,
        running,
        until_s: Some(12.0),
        others: 0,
        lost: 0,
        uncounted: 0,
        unrecorded: 0,
    };
    run.cut = Some(of_process(false));
    let said = note(&run);
    assert!(said.starts_with("the run was cut: process 7 ended without saving it"), "{said}");
    assert!(said.contains(&format!("may be missing. {cut}. ITL is of histograms")), "{said}");
    assert_eq!(flowing(&run).matches("cut short").count(), 1, "{}", flowing(&run));
    assert!(card(&run).starts_with("cut with its process, "), "{}", card(&run));
    run.cut = Some(CutBlock { uncounted: 5, unrecorded: 6, ..of_process(true) });
    let said = note(&run);
    assert!(said.starts_with("the run goes on (process 7)") && !said.contains("not run"), "{said}");
    assert!(
        said.contains("ITL and slices lack 5 requests") && said.contains("records of 6 requests"),
        "{said}"
    );
    assert!(card(&run).starts_with("still running, "), "{}", card(&run));
}

#[test]
fn where_nothing_ended_well_no_latencies_are_explained() {
    let text = flowing(&all_failed());
    assert!(text.contains("no request ended well") && !text.contains("latencies are those of"), "{text}");
}

#[test]
fn remarks_warn_of_what_the_numbers_cannot_carry() {
    let mut run = sample().run;
    let level = &mut run.levels[0];
    level.tokens.sources = [0, 0, 36, 0];
    level.tokens.single_chunk = 3;
    level.tokens.length_off = 5;
    level.self_check.cpu_share_max = Some(0.83);
    (level.self_check.events, level.self_check.coalesced) = (100, 25);
    level.self_check.resent = 2;
    level.window.whole_level = false;
    level.window.start_ns = level.span.t0_ns + 10_000_000_000;
    level.window.end_ns = level.span.t0_ns + 70_000_000_000;
    run.levels.truncate(1);
    run.interrupted = true;
    run.records_absent = Some("--no-records".to_owned());
    let text = flowing(&run);
    for remark in [
        "! interrupted: 1 of 2 levels was not run",
        "! tokens_counted_as_chunks: the server reported no usage, so content events are counted as tokens",
        "! client_cpu: the busiest thread used 83.0 % of a core, more than 70 %; give it more cores",
        ", coalesced",
        "4 users: keep-alive races: 2 requests met a connection that the server was closing, and went once more on a fresh one",
        "4 users: window of 60.0 s, from 10.0 s after the first planned send",
        "no records were kept: --no-records",
    ] {
        assert!(text.contains(remark), "{remark}\n{text}");
    }
    let tokens = &mut run.levels[0].tokens;
    (tokens.sources, tokens.mixed_sources) = ([30, 0, 6, 0], true);
    assert!(flowing(&run).contains("! mixed_token_source: output tokens of 30 requests are from usage"));
    let tokens = &mut run.levels[0].tokens;
    (tokens.sources, tokens.mixed_sources) = ([36, 0, 0, 0], false);
    let text = flowing(&run);
    assert!(
        text.contains("! early_stop: 5 of 36 answers are of another length than asked (13.9 %)"),
        "{text}"
    );
    assert!(text.contains("! bundled: 3 of 36 answers came as one event of several tokens"), "{text}");
    assert_eq!(TokenSource::Usage as usize, 1, "sources start with usage, which is not the code 0");
}

#[test]
fn a_percentile_says_when_it_rests_on_too_few() {
    let text = flowing(&sample().run);
    let mark = "`?`: not known well: too few independent requests (n_eff) behind it; p50 takes 6, p99 368";
    assert!(text.contains(mark), "{text}");
    // Files from before it was looked at have no marks.
    let mut old = sample().run;
    old.levels.iter_mut().for_each(|level| level.statistics = None);
    assert!(!flowing(&old).contains('?') && flowing(&old).contains(" 90.0 "));
}

#[test]
fn latencies_that_grow_are_not_shown_as_if_steady() {
    let mut run = sample().run;
    let trend = TrendStatistics { z: 5.6, first_quarter: 12.125, last_quarter: 95.3, growing: true };
    for level in &mut run.levels {
        let open = level.label.starts_with("poisson");
        let steady = &mut level.statistics.as_mut().unwrap().steady;
        steady.trend = Some(trend);
        if open {
            (steady.saturated, steady.latency_grows) = (Some(true), true);
            (steady.completed, steady.planned) = (912, 1000);
        }
    }
    let table = shown(&run, 200);
    let row = table.lines().find(|line| line.starts_with("poisson")).unwrap();
    assert_eq!(row.matches('↑').count(), 8, "{row}");
    let text = flowing(&run);
    assert!(text.contains("`↑`: a latency that grows with run length"), "{text}");
    assert!(text.contains("`?`: not known well"), "those of 4 users are not said to grow");
    run.levels.remove(0);
    assert!(!flowing(&run).contains("`?`"), "what grows is not judged by its numbers");
}

#[test]
fn a_cut_that_was_found_is_said() {
    let mut run = sample().run;
    let level = &mut run.levels[0];
    level.window.whole_level = false;
    level.window.start_ns = level.span.t0_ns + 3_500_000_000;
    level.window.end_ns = level.span.t0_ns + 13_500_000_000;
    let steady = &mut level.statistics.as_mut().unwrap().steady;
    (steady.found, steady.fixed_start_ns) = (Some(true), level.span.t0_ns + 1_000_000_000);
    let found = flowing(&run);
    assert!(found.contains(
        "4 users: window of 10.0 s, from 3.5 s after the first planned send (MSER-5; ITL is of requests planned from \
         1.0 s on, as it is pooled meanwhile)"
    ));
    run.levels[0].statistics.as_mut().unwrap().steady.found = Some(false);
    assert!(flowing(&run).contains("after the first planned send, as MSER-5 found no steady state"));
}

#[test]
fn what_is_undefined_is_a_dash() {
    let mut run = sample().run;
    for level in &mut run.levels {
        for metric in [Metric::Tpot, Metric::Itl, Metric::ScheduleDelay] {
            level.distributions.remove(&metric);
        }
        level.goodput = None;
    }
    let table = shown(&run, 200);
    let row = table.lines().find(|line| line.starts_with("poisson")).unwrap();
    let cells: Vec<&str> = row["poisson 12.5/s cap 4".len()..].split_whitespace().collect();
    assert_eq!(
        cells,
        [
            "24", "0", "3.03", "27.26", "425.6?", "440.4?", "–", "–", "–", "–", "867.6?", "882.4?", "–", "–",
            "–"
        ]
    );
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let plain = Style::of(None, None);
    assert_eq!(plain, Style::PLAIN);
    assert!(Style::of(Some(100), None).color);
    assert!(!Style::of(Some(100), Some("1".as_ref())).color);
    assert!(Style::of(Some(100), Some("".as_ref())).color, "an empty NO_COLOR is as none");
    let view = View::new(&sample().run, &[], None);
    let painted = text(&view, Style { width: 80, color: true });
    assert!(painted.contains("\x1b[31m  failed\x1b[0m"));
    let mut bare = String::new();
    let mut rest = painted.as_str();
    while let Some((before, after)) = rest.split_once('\x1b') {
        bare += before;
        rest = after.split_once('m').unwrap().1;
    }
    bare += rest;
    let trimmed = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    assert_eq!(trimmed(&bare), trimmed(&text(&view, Style::PLAIN)), "colour changes no character");
}

#[test]
fn the_last_line_names_the_file() {
    let next = ["tokload report x.json --goodput ttft:300".to_owned(), "tokload run -c 8".to_owned()];
    let view = View::new(&sample().run, &next, Some("x.json"));
    let text = text(&view, Style::PLAIN);
    let tail = "\nnext:\n  tokload report x.json --goodput ttft:300\n  tokload run -c 8\n\nsaved x.json\n";
    assert!(text.ends_with(tail), "{text}");
}

#[test]
fn percentiles_from_the_plan_count_failed_requests_too() {
    let mut run = sample().run;
    let of_rate = |run: &RunFile| {
        let text = flowing(run);
        text[text.find("from the planned send TTFT p50").unwrap()..].chars().take(60).collect::<String>()
    };
    assert_eq!(of_rate(&run), "from the planned send TTFT p50 / p99 is 536.6 / 563.4 ms, E2");
    let ttft = run.levels[1].distributions.get_mut(&Metric::TtftPlan).unwrap();
    ttft.with_failures.iter_mut().filter(|q| q.parts >= 99_000).for_each(|q| q.value = None);
    assert_eq!(of_rate(&run), "from the planned send TTFT p50 / p99 is 536.6 / failed ms, E");
}

#[test]
fn what_is_only_noted_can_be_asked_for() {
    let noted: Vec<String> =
        tokload::report::view::noted(&sample().run).into_iter().map(|note| note.text).collect();
    assert!(noted[0].starts_with(
        "closed_loop_without_queue_time: 1 of 2 levels: users wait, so a slow server is asked less"
    ));
    let of = |rule: &str| noted.iter().find(|text| text.starts_with(rule)).unwrap();
    assert_eq!(
        of("prompt_tokens_off"),
        "prompt_tokens_off: 4 users: prompts have 131.0 tokens, 2.3 % more than the 128 asked for (also poisson 12.5/s \
         cap 4)"
    );
}
