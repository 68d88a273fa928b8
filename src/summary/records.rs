//! A level from its records: exact.

use crate::metrics::metric::Metric;
use crate::metrics::slo::good;
use crate::metrics::{Class, Phase, Record};
use crate::run::Window;
use crate::summary::rates::{Amounts, level_nanos};
use crate::summary::{Counts, Distribution, Goodput, Input, LevelSummary, Tokens, by_stamps, in_flight};

pub(super) fn summarise(input: &Input<'_>, records: &[Record]) -> LevelSummary {
    let measured = || records.iter().filter(|record| record.phase == Phase::Measured);
    let population: Vec<&Record> = measured().filter(|record| input.window.contains(record.plan)).collect();
    let (mut counts, mut tokens) = (Counts::default(), Tokens::default());
    for record in &population {
        counts.add(record.outcome);
        if record.outcome.is_ok() {
            tokens.add(record);
        }
    }
    let (mut in_window, mut in_level) = (Amounts::default(), Amounts::default());
    let level = Window { whole_level: true, ..input.window };
    for record in measured() {
        in_window.add(record, &input.window);
        in_level.add(record, &level);
    }
    let ok = population.iter().copied().filter(|record| record.outcome.is_ok());
    let mut stamp_pairs = by_stamps::pairs(ok, input.timestamps);
    if !stamp_pairs.is_empty() {
        stamp_pairs.extend(by_stamps::pairs_of(input.tally, &[(Metric::Itl, Metric::ItlKernel)]));
    }
    let ends = measured().filter(|record| record.outcome.class != Class::Cancelled).map(|record| record.end);
    LevelSummary {
        distributions: distributions(input, &population, counts.failed),
        window_rates: in_window.over(input.window.nanos()),
        level_rates: in_level.over(level_nanos(&input.span, ends.max())),
        goodput: goodput(input, &population, &counts),
        in_flight: Some(in_flight::step_function(measured(), &input.window)),
        counts,
        tokens,
        stamp_pairs,
    }
}

fn distributions(input: &Input<'_>, population: &[&Record], failed: u64) -> Vec<Distribution> {
    let distribution = |metric: Metric| {
        if !metric.is_per_request() {
            return Distribution::pooled(metric, input.tally);
        }
        let ok = population.iter().filter(|record| record.outcome.is_ok());
        Distribution::of_values(metric, ok.filter_map(|record| metric.of(record)).collect(), failed)
    };
    Metric::ALL.into_iter().filter_map(distribution).collect()
}

fn goodput(input: &Input<'_>, population: &[&Record], counts: &Counts) -> Option<Goodput> {
    if input.slo.is_empty() {
        return None;
    }
    let kept = population.iter().filter(|record| good(record, &input.slo, input.from_plan)).count() as u64;
    let ratio = |over: f64| if over > 0.0 { kept as f64 / over } else { 0.0 };
    Some(Goodput {
        slo: input.slo,
        from_plan: input.from_plan,
        good: kept,
        good_s: ratio(input.window.nanos() as f64 / 1e9),
        attainment: ratio(counts.judged() as f64),
    })
}
