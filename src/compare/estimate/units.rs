//! From the rounds of a load to an estimate.

use super::super::figure::{Figure, Rate, Scale};
use super::super::sample::Round;
use super::{Between, C95_TAIL, Errors, Estimate, KnownShare, Within, blocks};
use crate::metrics::Class;
use crate::metrics::slo::{good, strain};
use crate::plan::Slo;
use crate::run_file::schema::LevelBlock;
use crate::stats::bootstrap::{QuantileOfBlocks, Resamples};
use crate::stats::order::Ranks;
use crate::stats::quantile::nearest_rank;
use crate::stats::{Confidence, Histogram, Quantile, Repeats, Share, correlation, student};
use crate::summary::Observed;

/// What repeats itself: a run among several, or a round of one. Its rounds are taken as one stretch of requests.
#[derive(Clone, Debug)]
pub struct Unit<'a> {
    /// The levels with the load.
    pub rounds: Vec<Round<'a>>,
    /// Other units are other runs, whose spread is a noise floor; else they are rounds of the same run.
    pub is_run: bool,
}

/// By what goodput is judged.
#[derive(Clone, Copy, Debug)]
struct Judge {
    slo: Slo,
    from_plan: bool,
}

impl Estimate {
    /// The estimate of `figure` over `units`, goodput being judged by `slo`, from the planned send if `from_plan`. `None`
    /// where there is no value, or none that a relative change could be stated of.
    #[must_use]
    pub fn of(figure: Figure, units: &[Unit<'_>], slo: Slo, from_plan: bool) -> Option<Estimate> {
        let judge = Judge { slo, from_plan };
        let rounds: Vec<Round<'_>> = units.iter().flat_map(|unit| unit.rounds.iter().copied()).collect();
        let Known { value, n_eff, within } = Known::of(figure, &rounds, judge)?;
        let scale = figure.scale();
        // No relative change of nothing, and no logarithm of it.
        if !value.is_finite() || (scale == Scale::Relative && value <= 0.0) {
            return None;
        }
        let mut estimate = Estimate { value, scale, n_eff, within, between: None };
        if units.len() > 1 {
            estimate.compare_units(figure, units, judge);
        }
        Some(estimate)
    }

    /// Lets the spread between the units speak: alone where there are five, else as far as it exceeds what each knows of
    /// itself.
    fn compare_units(&mut self, figure: Figure, units: &[Unit<'_>], judge: Judge) {
        let value = |unit: &Unit<'_>| {
            let value = Known::of(figure, &unit.rounds, judge)?.value;
            Some(if self.scale == Scale::Relative { value.ln() } else { value })
        };
        let values: Option<Vec<f64>> = units.iter().map(value).collect();
        let Some(repeats) = values.and_then(|values| Repeats::of(&values)) else { return };
        let n = repeats.n() as f64;
        let variance = repeats.standard_deviation().powi(2) / n;
        if repeats.n() >= Repeats::ENOUGH {
            self.between = Some(Between { variance, df: Some(n - 1.0) });
            // A share without a miss in any run is still not known exactly.
            if !matches!(self.within, Within::Share(_)) || variance > 0.0 {
                self.within = Within::Runs;
            }
            return;
        }
        if units.iter().any(|unit| unit.is_run) {
            let own = self.within(super::SD_TAIL, 1.0);
            let own = own.low.max(own.high);
            let excess = if own.is_finite() { variance - own.powi(2) } else { variance };
            self.between = (excess > 0.0).then_some(Between { variance: excess, df: None });
        }
    }
}

/// A figure of a stretch of requests.
struct Known {
    value: f64,
    n_eff: f64,
    within: Within,
}

impl Known {
    fn of(figure: Figure, rounds: &[Round<'_>], judge: Judge) -> Option<Known> {
        let observed: Option<Vec<&Observed>> = rounds.iter().map(|round| round.observed).collect();
        match observed {
            Some(observed) if !observed.is_empty() => match figure {
                Figure::Quantile(metric, quantile) => {
                    let values = |one: &&Observed| -> Vec<f64> {
                        let ok = one.population().iter().filter(|record| record.outcome.is_ok());
                        ok.filter_map(|record| metric.of(record)).collect()
                    };
                    Known::of_values(&observed.iter().map(values).collect::<Vec<_>>(), quantile)
                }
                Figure::Attainment if judge.slo.is_empty() => None,
                Figure::Attainment | Figure::Failed => Known::of_share(&observed, figure, judge),
                Figure::Rate(rate) => Known::of_rate(&observed, rate, judge),
            },
            _ => Known::of_blocks(figure, rounds),
        }
    }

    /// A quantile of the values of each round, in the order of their plans.
    fn of_values(rounds: &[Vec<f64>], quantile: Quantile) -> Option<Known> {
        let values: Vec<f64> = rounds.concat();
        let mut sorted = values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let value = nearest_rank(&sorted, quantile)?;
        let effective = |round: &Vec<f64>| {
            let over: Vec<bool> = round.iter().map(|one| *one > value).collect();
            Share::of(&over, round).map_or(0.0, |share| share.n_effective())
        };
        let n_eff: f64 = rounds.iter().map(effective).sum();
        let (low, high) = rank_errors(&sorted, value, quantile, n_eff);
        let mut edges = Vec::new();
        let mut start = 0;
        for round in rounds {
            // Each round has its share of the blocks, and is no block together with another.
            let share = blocks(n_eff) * round.len() as f64 / values.len() as f64;
            let count = (share.round() as usize).clamp(1, round.len().max(1));
            edges.extend((1..=count).map(|i| start + i * round.len() / count));
            start += round.len();
        }
        let effect = values.len() as f64 / n_eff.max(1.0);
        let of_blocks = QuantileOfBlocks::new(&values, &edges, quantile, effect)?;
        let drawn = Resamples::of(edges.len()).standard_error(|draws| of_blocks.drawn(draws).ln());
        let drawn = drawn.unwrap_or(f64::INFINITY);
        let errors = Errors::of_quantile(low.max(drawn), high.max(drawn), quantile);
        Some(Known { value, n_eff, within: Within::Errors(errors) })
    }

    fn of_share(rounds: &[&Observed], figure: Figure, judge: Judge) -> Option<Known> {
        let Judge { slo, from_plan } = judge;
        let judged = rounds.iter().flat_map(|round| round.population());
        let judged = judged.filter(|record| record.outcome.class != Class::Cancelled);
        let (hits, behind): (Vec<bool>, Vec<f64>) = judged
            .map(|record| match figure {
                Figure::Failed => (record.outcome.is_failure(), f64::NAN),
                _ => (good(record, &slo, from_plan), strain(record, &slo, from_plan)),
            })
            .unzip();
        let share = Share::of(&hits, &behind)?;
        let (value, n_eff) = (share.value(), share.n_effective());
        Some(Known { value, n_eff, within: Within::Share(KnownShare::from(share)) })
    }

    /// Of slices of the windows, put together to blocks.
    fn of_rate(rounds: &[&Observed], rate: Rate, judge: Judge) -> Option<Known> {
        let mut rates = Vec::new();
        for round in rounds {
            let seconds = round.window().nanos() as f64 / 1e9;
            if seconds <= 0.0 {
                continue;
            }
            let count = (round.population().len() / REQUESTS_PER_SLICE).clamp(SLICES.0, SLICES.1);
            let slice_s = seconds / count as f64;
            rates.extend(amounts(round, rate, judge, count)?.into_iter().map(|amount| amount / slice_s));
        }
        let value = rates.iter().sum::<f64>() / rates.len() as f64;
        let effect = correlation::design_effect(&rates).unwrap_or(1.0);
        let n_eff = rates.len() as f64 / effect;
        let count = (blocks(n_eff) as usize).min(rates.len() / 2);
        let batches = crate::stats::BatchMeans::in_batches(&rates, count)?;
        let variance = rates.iter().map(|one| (one - value).powi(2)).sum::<f64>() / rates.len() as f64;
        let error = batches.standard_error().max((variance / n_eff).sqrt());
        Some(Known { value, n_eff, within: Within::Errors(Errors::even(error / value)) })
    }

    /// Without records: of the blocks of the rounds.
    fn of_blocks(figure: Figure, rounds: &[Round<'_>]) -> Option<Known> {
        if let ([round], Some(known)) = (rounds, rounds.first().and_then(|round| stored(figure, round.block)))
        {
            return Some(Known { value: figure.stored(round.block)?, ..known });
        }
        let values: Option<Vec<f64>> = rounds.iter().map(|round| figure.stored(round.block)).collect();
        let value = match (figure, values?.as_slice()) {
            (_, []) => return None,
            (_, [one]) => *one,
            // Percentiles have no mean; histograms add up.
            (Figure::Quantile(metric, quantile), _) => {
                let mut all = Histogram::new();
                for round in rounds {
                    all.merge(&round.block.distributions.get(&metric)?.histogram()?);
                }
                metric.from_ticks(all.quantile(quantile)? as f64)
            }
            (_, many) => {
                // As much of each as it has time or requests.
                let weight = |round: &Round<'_>| match figure {
                    Figure::Rate(_) => round.block.rates.window.span_s,
                    _ => round.block.counts.judged() as f64,
                };
                let weights: Vec<f64> = rounds.iter().map(weight).collect();
                let sum: f64 = many.iter().zip(&weights).map(|(value, weight)| value * weight).sum();
                sum / weights.iter().sum::<f64>()
            }
        };
        Some(Known { value, n_eff: 0.0, within: Within::Unknown })
    }
}

/// What the statistics that a run kept say of a figure.
fn stored(figure: Figure, level: &LevelBlock) -> Option<Known> {
    let statistics = level.statistics.as_ref()?;
    let value = figure.stored(level)?;
    let share = |n_eff| Within::Share(KnownShare { value, batch_error: 0.0 }).with(value, n_eff);
    match figure {
        Figure::Attainment => Some(share(statistics.attainment?.n_eff)),
        // How failures cluster was not kept; how good requests do was.
        Figure::Failed => {
            let n_eff = statistics.attainment.map(|attainment| attainment.n_eff);
            n_eff.map(share)
        }
        Figure::Quantile(metric, quantile) => {
            let latency = statistics.latency(metric)?;
            let known = latency.quantile(quantile)?;
            let least = level.distributions.get(&metric)?;
            let normal = student::normal_quantile(C95_TAIL);
            let low = (value / known.low.or(least.min)?).ln() / normal;
            let high = (known.high.or(least.max)? / value).ln() / normal;
            let errors = Errors::of_quantile(low, high, quantile);
            Some(Within::Errors(errors).with(value, latency.n_eff))
        }
        Figure::Rate(Rate::Requests | Rate::OutputTokens) => {
            let throughput = statistics.throughput?;
            let known =
                if figure == Figure::Rate(Rate::Requests) { throughput.req_s } else { throughput.out_tok_s };
            let factor = student::quantile(C95_TAIL, super::BLOCKS.0 - 1.0);
            let error = (known.high - known.value) / known.value / factor;
            // Ten batches, as it was made of.
            let n_eff = super::BLOCKS.0 * super::LENGTHS_PER_BLOCK;
            Some(Within::Errors(Errors::even(error)).with(value, n_eff))
        }
        Figure::Rate(_) => None,
    }
}

impl Within {
    fn with(self, value: f64, n_eff: f64) -> Known {
        Known { value, n_eff, within: self }
    }
}

/// Standard errors of the logarithm of a quantile to both sides, from the ranks between which it lies with 95 %. Where
/// there is no such rank the outermost value stands for it, to plan by.
fn rank_errors(sorted: &[f64], value: f64, quantile: Quantile, n_eff: f64) -> (f64, f64) {
    let n = sorted.len() as u64;
    let ranks = Ranks::effective(n, n_eff, quantile, Confidence::C95);
    let at = |rank: Option<u64>, otherwise: u64| sorted[rank.unwrap_or(otherwise) as usize - 1];
    let normal = student::normal_quantile(C95_TAIL);
    let (low, high) = (at(ranks.lower, 1), at(ranks.upper, n));
    ((value / low).ln() / normal, (high / value).ln() / normal)
}

/// What is counted per second, in each slice of a round.
fn amounts(round: &Observed, rate: Rate, judge: Judge, count: usize) -> Option<Vec<f64>> {
    if rate != Rate::Goodput {
        let slices = round.throughput(count);
        let of = |slice: &crate::summary::Throughput| match rate {
            Rate::Requests => slice.requests,
            Rate::OutputTokens => slice.output_tokens,
            Rate::Goodput | Rate::TotalTokens => slice.output_tokens + slice.prompt_tokens,
        };
        return Some(slices.iter().map(of).collect());
    }
    let Judge { slo, from_plan } = judge;
    if slo.is_empty() {
        return None;
    }
    let window = round.window();
    let mut amounts = vec![0.0; count];
    for record in round.population().iter().filter(|record| good(record, &slo, from_plan)) {
        let offset = u128::from(record.plan.nanos_since(window.start));
        let slice = offset * count as u128 / u128::from(window.nanos().max(1));
        amounts[(slice as usize).min(count - 1)] += 1.0;
    }
    Some(amounts)
}

/// So many requests make a slice of a window where it has enough, and fewest and most slices.
const REQUESTS_PER_SLICE: usize = 8;
const SLICES: (usize, usize) = (20, 300);
