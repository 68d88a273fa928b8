//! A level in the definitions of vLLM's client: the block that `vllm bench serve` prints, and its JSON.
//!
//! Both are written from one [`Level`], which is computed from the [`Answer`]s of a level. Its definitions differ from
//! ours (means and population deviations, percentiles by linear interpolation over the ok requests of the
//! whole level, a TPOT of 0 for answers that came in one piece), so the two never stand in one table.
//!
//! Records hold content events alone. vLLM's client also takes an event whose choice has no text for one: a first event
//! with a role only would stop its TTFT, an event with the finish reason would end its E2EL and add a gap.

mod block;
mod collect;
mod json;
mod selection;

pub use block::write;
pub use collect::{level, recorded};
pub use json::{Saved, file_name, to_json};
pub use selection::{Figure, Selection};

use crate::plan::Slo;
use crate::stats::Quantile;
use crate::stats::quantile::linear;

/// What vLLM's client keeps of a request. Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// It ended well. Of the others only `error`, `start_s` and `queue_s` count.
    pub ok: bool,
    /// Its user went away as planned. vLLM's client has no such users: it is neither complete nor failed.
    pub cancelled: bool,
    /// How it ended, where it did not end well; else empty.
    pub error: String,
    /// Start, since the beginning of the level.
    pub start_s: f64,
    /// Wait before the start: behind a limit on concurrency, and our own lateness.
    pub queue_s: f64,
    /// From the start to the first token; `None` for an answer that was not streamed.
    pub ttft_s: Option<f64>,
    /// From the start to the last token.
    pub latency_s: f64,
    /// Gaps between the events that brought tokens; `None` if their times were not kept.
    pub gaps_s: Option<Vec<f64>>,
    /// Tokens of the prompt, 0 if nobody counted them.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
}

/// What is set, or known from elsewhere, of a level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// Place of the level in the run, from 0.
    pub ordinal: usize,
    /// From the level's beginning to the end of its last request, s.
    pub duration_s: f64,
    /// Limits of a good request; `ttft_ms`, `tpot_ms` and `e2e_ms` count, as vLLM has no others.
    pub slo: Slo,
    /// Most requests in flight.
    pub max_concurrency: Option<u32>,
    /// Requests per second; `None`: `inf`.
    pub request_rate: Option<f64>,
    /// Answers are texts, not embeddings.
    pub generates: bool,
    /// Gaps, where the answers have none.
    pub itl: Option<Spread>,
}

/// The numbers of a level.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// What they were computed for.
    pub about: About,
    /// Requests that ended well.
    pub completed: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests whose users went away as planned, which the two others leave out.
    pub cancelled: u64,
    /// Those that ended well and kept the limits; `None` without limits.
    pub good: Option<u64>,
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Tokens of answers.
    pub output_tokens: u64,
    /// Most events with tokens in a second of the level; `None` if their times were not kept.
    pub peak_tokens_s: Option<u64>,
    /// Most requests in flight at once, of those that ended well; `None` if none did.
    pub peak_requests: Option<u64>,
    /// The chosen figures that are defined, in vLLM's order.
    pub spreads: Vec<(Figure, Spread)>,
    /// The requests, in the order of the plan.
    pub answers: Vec<Answer>,
}

/// Mean, median, population standard deviation and percentiles of a figure, ms. All are 0 without any value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spread {
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub median_ms: f64,
    /// Population standard deviation.
    pub std_ms: f64,
    /// Percentiles in the order in which they were asked for.
    pub percentiles: Vec<(Quantile, f64)>,
}

impl Answer {
    /// TPOT, s: 0 for an answer of one event; `None` for one of at most one token, or that was not streamed.
    #[must_use]
    pub fn tpot_s(&self) -> Option<f64> {
        let tokens = self.output_tokens.checked_sub(1).filter(|tokens| *tokens > 0)?;
        Some((self.latency_s - self.ttft_s?) / tokens as f64)
    }

    /// Whether the limits were kept. Where TPOT is undefined it counts as 0.
    fn is_good(&self, slo: &Slo) -> bool {
        let keeps = |limit_ms: Option<f64>, s: f64| limit_ms.is_none_or(|ms| ms / 1000.0 >= s);
        keeps(slo.ttft_ms, self.ttft_s.unwrap_or(0.0))
            && keeps(slo.tpot_ms, self.tpot_s().unwrap_or(0.0))
            && keeps(slo.e2e_ms, self.latency_s)
    }
}

impl Level {
    /// The numbers of `answers`.
    #[must_use]
    pub fn of(answers: Vec<Answer>, about: About, selection: &Selection) -> Level {
        let ok: Vec<&Answer> = answers.iter().filter(|answer| answer.ok).collect();
        let limits = [about.slo.ttft_ms, about.slo.tpot_ms, about.slo.e2e_ms];
        let is_limited = about.generates && limits.iter().any(Option::is_some);
        let spreads = spreads(&ok, &about, selection);
        Level {
            completed: ok.len() as u64,
            failed: answers.iter().filter(|answer| !answer.ok && !answer.cancelled).count() as u64,
            cancelled: answers.iter().filter(|answer| answer.cancelled).count() as u64,
            good: is_limited.then(|| ok.iter().filter(|answer| answer.is_good(&about.slo)).count() as u64),
            input_tokens: ok.iter().map(|answer| answer.input_tokens).sum(),
            output_tokens: ok.iter().map(|answer| answer.output_tokens).sum(),
            peak_tokens_s: peak_tokens(&ok),
            peak_requests: peak_requests(&ok),
            spreads,
            about,
            answers,
        }
    }

    /// `amount` per second of the level.
    #[must_use]
    pub fn per_second(&self, amount: u64) -> f64 {
        if self.about.duration_s > 0.0 { amount as f64 / self.about.duration_s } else { 0.0 }
    }
}

impl Spread {
    /// The spread of values in seconds.
    #[must_use]
    pub fn of(mut values_s: Vec<f64>, percentiles: &[Quantile]) -> Spread {
        values_s.sort_unstable_by(f64::total_cmp);
        let at = |quantile: Quantile| linear(&values_s, quantile).unwrap_or(0.0) * 1e3;
        let n = values_s.len().max(1) as f64;
        let mean = values_s.iter().sum::<f64>() / n;
        let variance = values_s.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
        Spread {
            mean_ms: mean * 1e3,
            median_ms: at(Quantile::P50),
            std_ms: variance.sqrt() * 1e3,
            percentiles: percentiles.iter().map(|quantile| (*quantile, at(*quantile))).collect(),
        }
    }
}

fn spreads(ok: &[&Answer], about: &About, selection: &Selection) -> Vec<(Figure, Spread)> {
    let is_streamed = ok.iter().any(|answer| answer.ttft_s.is_some());
    let has_gaps = ok.iter().all(|answer| answer.gaps_s.is_some());
    let spread = |values: Vec<f64>| Some(Spread::of(values, &selection.percentiles));
    let of = |figure: Figure| match figure {
        Figure::Ttft | Figure::Tpot | Figure::Itl if !is_streamed || !about.generates => None,
        Figure::Ttft => spread(ok.iter().filter_map(|answer| answer.ttft_s).collect()),
        Figure::Tpot => spread(ok.iter().filter_map(|answer| answer.tpot_s()).collect()),
        Figure::Itl if has_gaps => {
            spread(ok.iter().flat_map(|answer| answer.gaps_s.iter().flatten().copied()).collect())
        }
        Figure::Itl => about.itl.clone(),
        Figure::E2el => spread(ok.iter().map(|answer| answer.latency_s).collect()),
        Figure::ClientQueueTime => {
            about.max_concurrency?;
            spread(ok.iter().map(|answer| answer.queue_s).collect())
        }
        Figure::E2elIncludingClientQueue => {
            about.max_concurrency.zip(about.request_rate)?;
            spread(ok.iter().map(|answer| answer.latency_s + answer.queue_s).collect())
        }
    };
    let chosen = Figure::ALL.into_iter().filter(|figure| selection.figures.contains(figure));
    chosen.filter_map(|figure| Some((figure, of(figure)?))).collect()
}

/// Most events with tokens that fall into the same second after the first start.
fn peak_tokens(ok: &[&Answer]) -> Option<u64> {
    let start = ok.iter().map(|answer| answer.start_s).min_by(f64::total_cmp)?;
    let mut seconds: Vec<u64> = Vec::new();
    for answer in ok {
        let mut at = answer.start_s + answer.ttft_s? - start;
        let gaps = answer.gaps_s.as_ref()?;
        for gap in std::iter::once(0.0).chain(gaps.iter().copied()) {
            at += gap;
            // `as` saturates at 0.
            let second = at as usize;
            if second >= seconds.len() {
                seconds.resize(second + 1, 0);
            }
            seconds[second] += 1;
        }
    }
    seconds.into_iter().max()
}

/// Most of the lives `[start, start + latency)` at once.
fn peak_requests(ok: &[&Answer]) -> Option<u64> {
    let mut turns: Vec<(f64, i64)> =
        ok.iter().flat_map(|answer| [(answer.start_s, 1), (answer.start_s + answer.latency_s, -1)]).collect();
    // Who ends makes room for who begins at the same time.
    turns.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let in_flight = turns.iter().scan(0_i64, |now, (_, turn)| {
        *now += turn;
        Some(*now)
    });
    in_flight.max().and_then(|most| u64::try_from(most).ok())
}

#[cfg(test)]
mod tests;
