//! How often our intervals hold the truth: `cargo bench --bench coverage`.
//!
//! At each load the truth comes from one run of two million requests of the 16-slot server in virtual time, the
//! objective being its p90 of TTFT. Then 400 levels of 1000 requests each give an interval, by every method. A nominal
//! 95 % interval should hold the truth in 380 of them; how many it does hold is the coverage. Fails if what we show
//! covers less than METRICS.md measured for batch means, less two standard errors.

#[path = "../tests/it/coverage/queue.rs"]
mod queue;

use std::process::ExitCode;

use tokload::stats::binomial::Sample;
use tokload::stats::order::Ranks;
use tokload::stats::quantile::{Quantile, nearest_rank};
use tokload::stats::{BatchMeans, Confidence, Interval, Share, correlation, student};

const C95: Confidence = Confidence::C95;
const TRUTH_REQUESTS: usize = 2_000_000;
const REPEATS: u64 = 400;
const REQUESTS: usize = 1000;
/// Requests before those of a level, so that it begins where the server always is.
const RUN_IN: usize = 2000;
/// Loads in percent, with the coverage that METRICS.md section 7 has for batch means.
const LOADS: [(u32, f64); 4] = [(60, 0.94), (80, 0.85), (90, 0.69), (95, 0.40)];

fn main() -> ExitCode {
    // `cargo bench` says so; as a test, without optimisation, it would take minutes, and `tests/it/coverage.rs` is one.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    println!(
        "Coverage of nominal 95 % intervals: {REPEATS} levels of {REQUESTS} requests, Poisson arrivals.\n"
    );
    let mut too_low = false;
    for (load, spec) in LOADS {
        let truth = Truth::at(load);
        println!(
            "{load} % load: TTFT p90 {:.3} ms, DEFF of \"over it\" {:.1}",
            truth.p90 as f64 / 1e6,
            truth.effect
        );
        let table = Table::of(load, &truth);
        table.print();
        let least = spec - 2.0 * (spec * (1.0 - spec) / REPEATS as f64).sqrt();
        let shown = table.coverage(SHOWN);
        println!("  required of what is shown: {:.1} %\n", least * 100.0);
        too_low |= shown < least;
    }
    if too_low { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// What one very long run says.
struct Truth {
    p50: u64,
    p90: u64,
    p99: u64,
    /// Share of the requests at or below p90.
    attainment: f64,
    mean_ms: f64,
    effect: f64,
}

impl Truth {
    fn at(load: u32) -> Truth {
        let ttft_ns = queue::ttft_ns(queue::arrivals(load), u64::MAX, RUN_IN, TRUTH_REQUESTS);
        let mut sorted = ttft_ns.clone();
        sorted.sort_unstable();
        let at = |quantile| nearest_rank(&sorted, quantile).expect("two million values");
        let p90 = at(Quantile::P90);
        let hits: Vec<f64> = ttft_ns.iter().map(|ns| f64::from(u8::from(*ns <= p90))).collect();
        let batches = BatchMeans::in_batches(&hits, 200).expect("two million values");
        Truth {
            p50: at(Quantile::P50),
            p90,
            p99: at(Quantile::P99),
            attainment: batches.mean(),
            mean_ms: ttft_ns.iter().map(|ns| *ns as f64 / 1e6).sum::<f64>() / ttft_ns.len() as f64,
            effect: batches.design_effect().expect("a tenth is above p90"),
        }
    }
}

const SHOWN: &str = "attainment, shown: batch means and exact";

/// One line per method, in the order in which they were first met.
#[derive(Default)]
struct Table {
    lines: Vec<Line>,
}

struct Line {
    method: &'static str,
    held: u64,
    width: f64,
    levels: u64,
}

impl Table {
    fn of(load: u32, truth: &Truth) -> Table {
        let mut table = Table::default();
        for seed in 0..REPEATS {
            let ttft_ns = queue::ttft_ns(queue::arrivals(load), seed, RUN_IN, REQUESTS);
            table.attainment(&ttft_ns, truth);
            table.quantiles(&ttft_ns, truth);
            // Without a run-in, as a level bounded by a number of requests is: its own start belongs to it.
            let ttft_ns = queue::ttft_ns(queue::arrivals(load), seed, 0, REQUESTS);
            let share = share(&ttft_ns, truth.p90);
            table.add("attainment, shown, from an empty server", share.interval(C95), truth.attainment);
        }
        table
    }

    fn attainment(&mut self, ttft_ns: &[u64], truth: &Truth) {
        let share = share(ttft_ns, truth.p90);
        let hits: Vec<f64> = ttft_ns.iter().map(|ns| f64::from(u8::from(*ns <= truth.p90))).collect();
        let five = BatchMeans::in_batches(&hits, 5).expect("1000 values").interval(C95).clamped(0.0, 1.0);
        let batches = share.by_batch_means(C95).expect("1000 values");
        let independent = Sample::new(share.ones() as u64, REQUESTS as u64).interval(C95);
        self.add("attainment, Wilson of n", wilson(share.value(), REQUESTS as f64), truth.attainment);
        self.add("attainment, exact of n", independent, truth.attainment);
        self.add("attainment, 10 batch means", batches, truth.attainment);
        self.add("attainment, 5 batch means", five, truth.attainment);
        self.add("attainment, overlapping means of 100", overlapping(&hits, 100), truth.attainment);
        self.add("attainment, exact of n_eff", share.exact(C95), truth.attainment);
        self.add(SHOWN, share.interval(C95), truth.attainment);
    }

    fn quantiles(&mut self, ttft_ns: &[u64], truth: &Truth) {
        let values: Vec<f64> = ttft_ns.iter().map(|ns| *ns as f64 / 1e6).collect();
        let mean = BatchMeans::of(&values).expect("1000 values").interval(C95);
        self.add("TTFT mean, 10 batch means (ms)", mean, truth.mean_ms);
        let mut sorted = values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let n_effective = REQUESTS as f64 / correlation::design_effect(&values).unwrap_or(1.0);
        let lines = [
            (Quantile::P50, truth.p50, "TTFT p50, ranks of n (ms)", "TTFT p50, ranks of n_eff (ms)"),
            (Quantile::P99, truth.p99, "TTFT p99, ranks of n (ms)", "TTFT p99, ranks of n_eff (ms)"),
        ];
        for (quantile, truth, of_n, of_n_effective) in lines {
            let plain = Ranks::of(REQUESTS as u64, quantile, C95);
            let effective = Ranks::effective(REQUESTS as u64, n_effective, quantile, C95);
            self.add(of_n, between(&sorted, plain), truth as f64 / 1e6);
            self.add(of_n_effective, between(&sorted, effective), truth as f64 / 1e6);
        }
    }

    fn add(&mut self, method: &'static str, interval: Interval, truth: f64) {
        let place = self.lines.iter().position(|line| line.method == method).unwrap_or_else(|| {
            self.lines.push(Line { method, held: 0, width: 0.0, levels: 0 });
            self.lines.len() - 1
        });
        let line = &mut self.lines[place];
        line.held += u64::from(interval.contains(truth));
        line.width += interval.width();
        line.levels += 1;
    }

    fn coverage(&self, method: &str) -> f64 {
        let line = self.lines.iter().find(|line| line.method == method).expect("a method of this table");
        line.held as f64 / line.levels as f64
    }

    fn print(&self) {
        for line in &self.lines {
            let levels = line.levels as f64;
            let (coverage, width) = (line.held as f64 / levels, line.width / levels);
            // Half of an open interval is infinite, and so is the mean width then.
            let width = if width.is_finite() { format!("{width:.3}") } else { "-".to_owned() };
            println!("  {:42} covers {:5.1} %  mean width {width:>8}", line.method, coverage * 100.0);
        }
    }
}

fn share(ttft_ns: &[u64], limit: u64) -> Share {
    let hits: Vec<bool> = ttft_ns.iter().map(|ns| *ns <= limit).collect();
    let behind: Vec<f64> = ttft_ns.iter().map(|ns| *ns as f64).collect();
    Share::of(&hits, &behind).expect("a level has requests")
}

/// The values at these ranks; an end that is missing is open.
fn between(sorted: &[f64], ranks: Ranks) -> Interval {
    let at = |rank: u64| sorted[rank as usize - 1];
    Interval { low: ranks.lower.map_or(f64::NEG_INFINITY, at), high: ranks.upper.map_or(f64::INFINITY, at) }
}

/// The interval that most tools take for a share, for comparison (Wilson 1927).
fn wilson(share: f64, n: f64) -> Interval {
    let z = student::normal_quantile(C95.two_sided_tail());
    let centre = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let reach = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + (z / (2.0 * n)).powi(2)).sqrt();
    Interval::around(centre, reach)
}

/// Overlapping batch means (Meketon and Schmeiser 1984): two thirds of the variance of the variance, so half as many
/// degrees of freedom again; the bias of short batches remains.
fn overlapping(values: &[f64], size: usize) -> Interval {
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 =
        values.windows(size).map(|batch| (batch.iter().sum::<f64>() / size as f64 - mean).powi(2)).sum();
    let variance = size as f64 * squares / ((n - size) * (n - size + 1)) as f64;
    let df = 1.5 * (n / size - 1) as f64;
    Interval::around(mean, student::quantile(C95.two_sided_tail(), df) * variance.sqrt()).clamped(0.0, 1.0)
}
