//! The client's own `/metrics`: what it has sent and measured so far, for a Prometheus that looks while it runs.
//!
//! Counters and histograms run on over all levels of the run, and hold what the results hold: the sum over its levels is
//! that of [`LevelResult`](crate::run::LevelResult), histograms at the bounds that are given. `part` is `window` for
//! requests that belong to the result of their level and `ramp` for those before its window.

use super::progress::Course;
use crate::metrics::live::{BOUNDS_NS, Count, Part, Sums, Timing};
use crate::wire::exposition::{Buckets, Page};

/// Every so many bounds of [`BOUNDS_NS`] one is given: five to a decade, so that a histogram has 41 lines.
const STEP: usize = 4;

/// The page: what the shards have counted, and where the run is.
#[must_use]
pub fn page(sums: &Sums, course: &Course) -> String {
    let mut page = Page::new("tokload_", &[]);
    info(&mut page, course);
    page.one("requests_in_flight", "gauge", "Requests in flight, warm-up included.", sums.in_flight() as f64);
    for (name, help, count) in [
        ("requests_sent_total", "Requests sent, without those of warm-ups.", Count::Sent),
        ("warmup_requests_sent_total", "Requests of warm-ups sent; they count nowhere else.", Count::WarmUps),
        ("received_bytes_total", "Bytes of answers read from connections.", Count::ReadBytes),
        ("content_events_total", "Events with content, as they came.", Count::Events),
    ] {
        page.one(name, "counter", help, sums.count(count) as f64);
    }
    let name = "requests_total";
    page.head(
        name,
        "counter",
        "Requests that are over, by how they ended: ok, cancelled, or why they failed.",
    );
    for part in Part::ALL {
        for (outcome, count) in sums.outcomes(part) {
            page.line(name, &[("outcome", &outcome.label()), ("part", part_name(part))], count as f64);
        }
    }
    for (name, help, of) in [
        (
            "output_tokens_total",
            "Output tokens of requests that ended well.",
            Sums::output_tokens as fn(&Sums, Part) -> u64,
        ),
        (
            "prompt_tokens_total",
            "Prompt tokens of requests that ended well, where known.",
            Sums::prompt_tokens,
        ),
    ] {
        page.head(name, "counter", help);
        for part in parts(sums) {
            page.line(name, &[("part", part_name(part))], of(sums, part) as f64);
        }
    }
    latencies(&mut page, sums);
    for (name, help, timing) in [
        ("schedule_delay_seconds", "The client's own lateness in starting a request.", Timing::ScheduleDelay),
        ("loop_lag_seconds", "How late the client's loops saw a tick of 10 ms.", Timing::LoopLag),
    ] {
        page.head(name, "histogram", help);
        histogram(&mut page, name, &[], sums, timing);
    }
    page.into_text()
}

/// The version, the level and its target.
fn info(page: &mut Page, course: &Course) {
    page.head("build_info", "gauge", "The version of the client.");
    page.line("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    let Some(ordinal) = course.ordinal else { return };
    let number = (ordinal + 1).to_string();
    page.head("level_info", "gauge", "The level that is run, its load in words.");
    page.line("level_info", &[("level", &number), ("load", &course.label)], 1.0);
    page.one("level", "gauge", "Number of the level that is run, from 1.", (ordinal + 1) as f64);
    if let Some(levels) = course.levels {
        page.one("levels", "gauge", "Number of levels of the run.", levels as f64);
    }
    page.one("level_progress_ratio", "gauge", "Share of the level that is done.", course.done());
    if let Some(users) = course.users {
        page.one(
            "target_concurrency",
            "gauge",
            "Most requests that the level has in flight.",
            f64::from(users),
        );
    }
    if let Some(rate) = course.rate {
        page.one("target_requests_per_second", "gauge", "The rate that the level asks for.", rate);
    }
}

fn latencies(page: &mut Page, sums: &Sums) {
    for (name, help, timing) in [
        (
            "time_to_first_token_seconds",
            "TTFT of requests that ended well.",
            Timing::Ttft as fn(Part) -> Timing,
        ),
        ("time_per_output_token_seconds", "TPOT of requests that ended well.", Timing::Tpot),
        (
            "inter_token_latency_seconds",
            "Gaps between content events of requests that ended well.",
            Timing::Itl,
        ),
        ("e2e_request_latency_seconds", "E2E of requests that ended well.", Timing::E2e),
    ] {
        page.head(name, "histogram", help);
        for part in parts(sums) {
            histogram(page, name, &[("part", part_name(part))], sums, timing(part));
        }
    }
}

fn histogram(page: &mut Page, name: &str, labels: &[(&str, &str)], sums: &Sums, timing: Timing) {
    let times = sums.times(timing);
    // The first bound stands alone, behind it four buckets each make one.
    let (first, rest) = times.counts.split_at(1);
    let groups = rest.chunks_exact(STEP).map(|group| group.iter().sum());
    let counts: Vec<u64> = first.iter().copied().chain(groups).collect();
    let bounds: Vec<f64> = BOUNDS_NS.iter().step_by(STEP).map(|ns| *ns as f64 / 1e9).collect();
    let of = Buckets { bounds: &bounds, counts: &counts, count: times.n(), sum: times.sum_ns as f64 / 1e9 };
    page.buckets(name, labels, of);
}

/// Those that have requests; the window always.
fn parts(sums: &Sums) -> impl Iterator<Item = Part> {
    Part::ALL.into_iter().filter(|part| *part == Part::Window || sums.outcomes(*part).next().is_some())
}

/// The name of a part in labels.
fn part_name(part: Part) -> &'static str {
    match part {
        Part::Ramp => "ramp",
        Part::Window => "window",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Gaps, Kind, Live, Outcome, Record};
    use crate::plan::{Level, Load};
    use crate::run::Event;
    use crate::time::Stamp;

    #[test]
    fn the_page_says_what_was_counted() {
        let live = Live::new(2);
        let mut record = Record::planned(0, Stamp::from_millis(5));
        record.outcome = Outcome::ok(200);
        (record.first, record.last) = (Some(Stamp::from_millis(25)), Some(Stamp::from_millis(45)));
        record.end = Stamp::from_millis(45);
        (record.events, record.output_tokens, record.prompt_tokens) = (2, Some(2), Some(7));
        let mut gaps = Gaps::default();
        gaps.record(20_000_000);
        let failed =
            Record { outcome: Outcome::new(crate::metrics::Class::Http, Kind::HttpStatus, 429), ..record };
        for (place, one) in [&record, &record, &failed].into_iter().enumerate() {
            let shard = live.shard(place % 2).unwrap();
            shard.count(Count::Started, 1);
            shard.count(Count::Sent, 1);
            shard.on_done(one, &gaps, Stamp::from_millis(5 * place as u64));
        }
        live.shard(0).unwrap().count(Count::Ended, 2);
        live.shard(1).unwrap().time(Timing::LoopLag, 2_000_000_000_000);
        let mut course = Course::default();
        let level = Level { load: Load::closed(4), ..Level::default() };
        course.on_event(&Event::LevelStarted { ordinal: 1, levels: Some(3), level: &level });
        let text = page(&live.read(), &course);
        let has = |line: &str| assert!(text.lines().any(|there| there == line), "{line}\n{text}");
        has("tokload_level_info{level=\"2\",load=\"4 users\"} 1.0");
        has("tokload_levels 3.0");
        has("tokload_target_concurrency 4.0");
        has("tokload_requests_in_flight 1.0");
        has("tokload_requests_sent_total 3.0");
        has("tokload_requests_total{outcome=\"ok\",part=\"window\"} 2.0");
        has("tokload_requests_total{outcome=\"http_429\",part=\"ramp\"} 1.0");
        has("tokload_output_tokens_total{part=\"window\"} 4.0");
        has("tokload_prompt_tokens_total{part=\"window\"} 14.0");
        let ttft = "tokload_time_to_first_token_seconds";
        has(&format!("{ttft}_bucket{{part=\"window\",le=\"0.016\"}} 0.0"));
        has(&format!("{ttft}_bucket{{part=\"window\",le=\"0.025\"}} 2.0"));
        has(&format!("{ttft}_bucket{{part=\"ramp\",le=\"+Inf\"}} 0.0"));
        has(&format!("{ttft}_sum{{part=\"window\"}} 0.04"));
        has("tokload_inter_token_latency_seconds_count{part=\"window\"} 2.0");
        has("tokload_e2e_request_latency_seconds_bucket{part=\"window\",le=\"0.04\"} 2.0");
        has("tokload_loop_lag_seconds_bucket{le=\"1000.0\"} 0.0");
        has("tokload_loop_lag_seconds_bucket{le=\"+Inf\"} 1.0");
        assert_eq!(text.matches("le=").count(), 10 * 42, "{text}");
    }
}
