//! How often the gate is wrong: `cargo bench --bench check`.
//!
//! Pairs of simulated runs, each with prompts, arrivals and costs of its own, go through `gate::check` at its defaults.
//! Of 400 pairs of equal builds, how many are called a regression; of pairs whose candidate has a TTFT p50 that is 10 %
//! longer in one load and less in the others, how many are found if a check that is inconclusive is run again with the
//! requests that it asked for. Fails if more than 5 of 400 are false, or fewer than 90 % are found.

#[path = "../tests/it/check/builds.rs"]
mod builds;

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use tokload::compare::{Figure, Sample};
use tokload::gate::{self, Outcome, Report, Thresholds};
use tokload::metrics::Metric;
use tokload::stats::Quantile;

/// Requests of each load at first.
const UNITS: u64 = 400;
const EQUAL_PAIRS: u64 = 400;
const SLOWER_PAIRS: u64 = 100;
/// Pairs of equal builds that are run again if they are inconclusive: each takes tens of thousands of requests.
const EQUAL_AGAIN: u64 = 60;
const FALSE_MAX: u64 = 5;
const FOUND_MIN: f64 = 0.9;
/// Requests of each load from which the true TTFT is taken.
const TRUTH_UNITS: u64 = 20_000;
/// By how much TTFT p50 is to be longer in one load, and less in the others.
const SLOWER: f64 = 0.10;

fn main() -> ExitCode {
    // `cargo bench` says so; without optimisation it would take an hour, and `tests/it/check.rs` is a test.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let truth = Truth::new();
    let prefill = truth.slower_by(SLOWER);
    println!(
        "TTFT p50 of builds whose prompts take {prefill:.3} times as long, by {TRUTH_UNITS} requests of each load:"
    );
    for (label, change) in ["4 users", "poisson 8/s", "poisson 14/s"].iter().zip(truth.changes(prefill)) {
        println!("  {label:12} {:+.1} %", change * 100.0);
    }
    println!("\n{UNITS} requests of each load, thresholds and confidence as they are by default");
    let equal = Tally::of("equal builds", EQUAL_PAIRS, EQUAL_AGAIN, 1.0);
    equal.print();
    let slower = Tally::of("slower builds", SLOWER_PAIRS, SLOWER_PAIRS, prefill);
    slower.print();
    let false_ones = equal.at_once.regressions + equal.again.regressions;
    let found = slower.at_once.regressions + slower.again.regressions;
    println!(
        "\nfalse regressions: {false_ones} of {EQUAL_PAIRS}, those run again included (at most {FALSE_MAX})"
    );
    println!("found: {found} of {SLOWER_PAIRS} (at least {:.0})", FOUND_MIN * SLOWER_PAIRS as f64);
    let is_good = false_ones <= FALSE_MAX && found as f64 >= FOUND_MIN * SLOWER_PAIRS as f64;
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How checks ended.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    pairs: u64,
    passes: u64,
    inconclusive: u64,
    regressions: u64,
    /// Of the candidates, over all their loads.
    requests: u64,
}

struct Tally {
    what: &'static str,
    at_once: Ends,
    /// Those that were inconclusive, with as many requests as they asked for.
    again: Ends,
}

impl Ends {
    fn add(&mut self, report: &Report) {
        self.pairs += 1;
        match report.outcome {
            Outcome::Pass => self.passes += 1,
            Outcome::Inconclusive => self.inconclusive += 1,
            Outcome::Regression => self.regressions += 1,
        }
        self.requests += report.loads.iter().map(|load| load.candidate_requests).sum::<u64>();
    }

    fn merge(&mut self, other: Ends) {
        self.pairs += other.pairs;
        self.passes += other.passes;
        self.inconclusive += other.inconclusive;
        self.regressions += other.regressions;
        self.requests += other.requests;
    }
}

impl Tally {
    /// Of `pairs` pairs, at most the first `again` of which are run again.
    fn of(what: &'static str, pairs: u64, again: u64, prefill: f64) -> Tally {
        let next = AtomicU64::new(0);
        let some = || {
            let (mut at_once, mut in_the_end) = (Ends::default(), Ends::default());
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                if place >= pairs {
                    return (at_once, in_the_end);
                }
                // Four runs at most, each with a seed of its own.
                let seed = 4 * place + 1_000_000 * u64::from(prefill != 1.0);
                let first = pair(seed, prefill, &[UNITS; 3], &[UNITS; 3]);
                at_once.add(&first);
                if first.outcome != Outcome::Inconclusive || place >= again {
                    continue;
                }
                let asked = |side: fn(&gate::Needed) -> u64| -> Vec<u64> {
                    first.loads.iter().map(|load| load.needed.as_ref().map_or(UNITS, side)).collect()
                };
                let (base, own) = (asked(|needed| needed.baseline), asked(|needed| needed.candidate));
                in_the_end.add(&pair(seed + 2, prefill, &base, &own));
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut tally = Tally { what, at_once: Ends::default(), again: Ends::default() };
        std::thread::scope(|scope| {
            let started: Vec<_> = (0..threads).map(|_| scope.spawn(some)).collect();
            for thread in started {
                let (at_once, again) = thread.join().expect("no pair panics");
                tally.at_once.merge(at_once);
                tally.again.merge(again);
            }
        });
        tally
    }

    fn print(&self) {
        println!("\n{}", self.what);
        for (when, ends) in [("at once", self.at_once), ("run again", self.again)] {
            println!(
                "  {when:10} {:4} pairs: {:4} pass, {:4} inconclusive, {:4} regression; {:7.0} requests a run",
                ends.pairs,
                ends.passes,
                ends.inconclusive,
                ends.regressions,
                ends.requests as f64 / ends.pairs.max(1) as f64
            );
        }
    }
}

/// A baseline of seed `seed` and a candidate of the next.
fn pair(seed: u64, prefill: f64, base: &[u64], own: &[u64]) -> Report {
    let loads = builds::loads();
    let run = |name, seed, units: &[u64], prefill| -> Sample {
        builds::run(name, &builds::plan(seed, &loads, units), builds::build(prefill))
    };
    let (baseline, candidate) = (run("baseline", seed, base, 1.0), run("candidate", seed + 1, own, prefill));
    gate::check(&[baseline], &candidate, &Thresholds::default())
}

/// TTFT p50 of the baseline's build in each load.
struct Truth(Vec<f64>);

impl Truth {
    fn new() -> Truth {
        Truth(Truth::of(1.0))
    }

    /// Of a build, from runs that leave little to chance.
    fn of(prefill: f64) -> Vec<f64> {
        let ttft = Figure::Quantile(Metric::Ttft, Quantile::P50);
        let plan = builds::plan(u64::MAX / 4, &builds::loads(), &[TRUTH_UNITS; 3]);
        let run = builds::run("truth", &plan, builds::build(prefill));
        run.run.levels.iter().map(|level| ttft.stored(level).expect("requests end well")).collect()
    }

    /// How it changes.
    fn changes(&self, prefill: f64) -> Vec<f64> {
        self.0.iter().zip(Truth::of(prefill)).map(|(before, after)| after / before - 1.0).collect()
    }

    /// How much longer prompts must take for TTFT to be longer by `share` in the load that suffers most, to 0.5 %.
    fn slower_by(&self, share: f64) -> f64 {
        let (mut low, mut high) = (1.0, 2.0);
        while high - low > 0.005 {
            let middle = f64::midpoint(low, high);
            let most = self.changes(middle).into_iter().fold(0.0, f64::max);
            if most < share { low = middle } else { high = middle }
        }
        high
    }
}
