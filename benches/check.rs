//! How often the gate is wrong: `cargo bench --bench check`.
//!
//! Pairs of simulated runs, each with prompts, arrivals and costs of its own, go through `gate::check` at its defaults.
//! Of 400 pairs of equal builds, how many are called a regression; of pairs whose candidate has a TTFT p50 at least 10 %
//! longer, how many are found if a check that is inconclusive is run again with the requests that it asked for. Fails if
//! more than 5 of 400 are false, or fewer than 90 % are found.

#[path = "../tests/it/check/builds.rs"]
mod builds;

use std::process::ExitCode;

use tokload::compare::{Figure, Sample};
use tokload::gate::{self, Outcome, Report, Thresholds};
use tokload::metrics::Metric;
use tokload::stats::Quantile;

/// Requests of each load at first.
const UNITS: u64 = 400;
const EQUAL_PAIRS: u64 = 400;
const SLOWER_PAIRS: u64 = 100;
const FALSE_MAX: u64 = 5;
const FOUND_MIN: f64 = 0.9;
/// Requests of each load from which the true TTFT is taken.
const TRUTH_UNITS: u64 = 40_000;
/// By how much TTFT is to be longer in every load.
const SLOWER: f64 = 0.10;

fn main() -> ExitCode {
    // `cargo bench` says so; without optimisation it would take an hour, and `tests/it/check.rs` is a test.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let labels = ["4 users", "poisson 6/s", "poisson 9/s"];
    let prefill = slower_by(SLOWER);
    println!(
        "TTFT p50 of builds whose prompts take {prefill:.3} times as long, by the runs of {TRUTH_UNITS} requests:"
    );
    let truth = true_changes(prefill);
    for (label, change) in labels.iter().zip(&truth) {
        println!("  {label:12} {:+.1} %", change * 100.0);
    }
    println!("\n{UNITS} requests of each load, thresholds and confidence as they are by default");
    let equal = Tally::of("equal builds", EQUAL_PAIRS, 1.0);
    let slower = Tally::of("slower builds", SLOWER_PAIRS, prefill);
    equal.print();
    slower.print();
    let is_good = equal.at_once.regressions <= FALSE_MAX
        && equal.in_the_end.regressions <= FALSE_MAX
        && slower.in_the_end.regressions as f64 >= FOUND_MIN * SLOWER_PAIRS as f64;
    println!(
        "\nfalse regressions: {} at once and {} after the requests asked for, of {EQUAL_PAIRS} (at most {FALSE_MAX})",
        equal.at_once.regressions, equal.in_the_end.regressions
    );
    println!(
        "found: {} at once and {} after the requests asked for, of {SLOWER_PAIRS} (at least {})",
        slower.at_once.regressions,
        slower.in_the_end.regressions,
        FOUND_MIN * SLOWER_PAIRS as f64
    );
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How checks ended.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    passes: u64,
    inconclusive: u64,
    regressions: u64,
    /// Of one run, over all its loads.
    requests: u64,
}

struct Tally {
    what: &'static str,
    pairs: u64,
    at_once: Ends,
    /// With those that were inconclusive run again.
    in_the_end: Ends,
}

impl Ends {
    fn add(&mut self, report: &Report) {
        match report.outcome {
            Outcome::Pass => self.passes += 1,
            Outcome::Inconclusive => self.inconclusive += 1,
            Outcome::Regression => self.regressions += 1,
        }
        self.requests += report.loads.iter().map(|load| load.candidate_requests).sum::<u64>();
    }
}

impl Tally {
    fn of(what: &'static str, pairs: u64, prefill: f64) -> Tally {
        let mut tally = Tally { what, pairs, at_once: Ends::default(), in_the_end: Ends::default() };
        let mut seeds = 1_000_000 * u64::from(prefill != 1.0)..;
        for _ in 0..pairs {
            let first = pair(&mut seeds, prefill, &[UNITS; 3], &[UNITS; 3]);
            tally.at_once.add(&first);
            if first.outcome != Outcome::Inconclusive {
                tally.in_the_end.add(&first);
                continue;
            }
            let asked = |side: fn(&gate::Needed) -> u64| -> Vec<u64> {
                first.loads.iter().map(|load| load.needed.as_ref().map_or(UNITS, side)).collect()
            };
            let (base, own) = (asked(|needed| needed.baseline), asked(|needed| needed.candidate));
            tally.in_the_end.add(&pair(&mut seeds, prefill, &base, &own));
        }
        tally
    }

    fn print(&self) {
        println!("\n{}: {} pairs", self.what, self.pairs);
        for (when, ends) in [("at once", self.at_once), ("run again where inconclusive", self.in_the_end)] {
            println!(
                "  {when:30} {:4} pass, {:4} inconclusive, {:4} regression; {:7.0} requests a run",
                ends.passes,
                ends.inconclusive,
                ends.regressions,
                ends.requests as f64 / self.pairs as f64
            );
        }
    }
}

/// A baseline and a candidate, with seeds of their own.
fn pair(seeds: &mut impl Iterator<Item = u64>, prefill: f64, base: &[u64], own: &[u64]) -> Report {
    let loads = builds::loads();
    let mut run = |name, units: &[u64], prefill| -> Sample {
        let seed = seeds.next().expect("there is always another");
        builds::run(name, &builds::plan(seed, &loads, units), builds::build(prefill))
    };
    let (baseline, candidate) = (run("baseline", base, 1.0), run("candidate", own, prefill));
    gate::check(&[baseline], &candidate, &Thresholds::default())
}

/// How TTFT p50 truly changes in each load.
fn true_changes(prefill: f64) -> Vec<f64> {
    let ttft = Figure::Quantile(Metric::Ttft, Quantile::P50);
    let of = |prefill| -> Vec<f64> {
        let plan = builds::plan(u64::MAX / 4, &builds::loads(), &[TRUTH_UNITS; 3]);
        let run = builds::run("truth", &plan, builds::build(prefill));
        run.run.levels.iter().map(|level| ttft.stored(level).expect("requests end well")).collect()
    };
    of(1.0).iter().zip(of(prefill)).map(|(before, after)| after / before - 1.0).collect()
}

/// How much longer prompts must take for TTFT to be longer by `share` in every load, to a hundredth.
fn slower_by(share: f64) -> f64 {
    let (mut low, mut high) = (1.0, 1.5);
    while high - low > 0.01 {
        let middle = f64::midpoint(low, high);
        let least = true_changes(middle).into_iter().fold(f64::INFINITY, f64::min);
        if least < share { low = middle } else { high = middle }
    }
    high
}
