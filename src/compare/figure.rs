//! The figures of a level that runs are compared by.

use std::fmt;
use std::str::FromStr;

use crate::metrics::Metric;
use crate::metrics::metric::Better;
use crate::plan;
use crate::run_file::schema::LevelBlock;
use crate::stats::Quantile;

/// A figure of a level, named as in a run file: `ttft_p99`, `out_tok_s`, `attainment`, `failed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The share of good requests.
    Attainment,
    /// The share of failed requests.
    Failed,
    /// A quantile of a latency that a request has one of, over those that ended well.
    Quantile(Metric, Quantile),
    /// Something per second of the window.
    Rate(Rate),
}

/// What is counted per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Good requests.
    Goodput,
    /// Output tokens.
    OutputTokens,
    /// Requests that ended well.
    Requests,
    /// Prompt and output tokens.
    TotalTokens,
}

/// How a change of a figure is expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// As a difference of shares: from 90 % to 85 % is -5 points.
    Points,
    /// As a share of what it was: from 100 ms to 110 ms is +10 %.
    Relative,
}

impl Figure {
    /// TTFT p50 and its like.
    #[must_use]
    pub const fn quantile(metric: Metric, quantile: Quantile) -> Figure {
        Figure::Quantile(metric, quantile)
    }

    /// How a change is expressed: shares by points, all else relatively.
    #[must_use]
    pub const fn scale(self) -> Scale {
        match self {
            Figure::Attainment | Figure::Failed => Scale::Points,
            Figure::Quantile(..) | Figure::Rate(_) => Scale::Relative,
        }
    }

    /// Which way is better.
    #[must_use]
    pub const fn better(self) -> Better {
        match self {
            Figure::Attainment | Figure::Rate(_) => Better::Higher,
            Figure::Failed => Better::Lower,
            Figure::Quantile(metric, _) => metric.better(),
        }
    }

    /// The unit of its values in files: `share`, `requests/s`, `tokens/s`, `ns`.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Figure::Attainment | Figure::Failed => "share",
            Figure::Quantile(..) => "ns",
            Figure::Rate(Rate::Goodput | Rate::Requests) => "requests/s",
            Figure::Rate(Rate::OutputTokens | Rate::TotalTokens) => "tokens/s",
        }
    }

    /// Its twin from the planned send where there is one: what a user feels whose request was held back by a cap.
    #[must_use]
    pub const fn from_plan(self) -> Figure {
        let Figure::Quantile(metric, quantile) = self else { return self };
        let twin = match metric {
            Metric::Ttft => Metric::TtftPlan,
            Metric::Ttfa => Metric::TtfaPlan,
            Metric::E2e => Metric::E2ePlan,
            Metric::Stream => Metric::StreamPlan,
            other => other,
        };
        Figure::Quantile(twin, quantile)
    }

    /// The value in a level's block; `None` where it has none. Goodput and attainment are by the run's own limits.
    #[must_use]
    pub fn stored(self, level: &LevelBlock) -> Option<f64> {
        let rates = &level.rates.window;
        match self {
            Figure::Attainment => Some(level.goodput?.attainment),
            Figure::Failed => {
                let judged = level.counts.judged();
                (judged > 0).then(|| level.counts.failed as f64 / judged as f64)
            }
            Figure::Quantile(metric, quantile) => {
                let block = level.distributions.get(&metric)?;
                let of_buckets = || Some(metric.from_ticks(block.histogram()?.quantile(quantile)? as f64));
                block.quantile(quantile).or_else(of_buckets)
            }
            Figure::Rate(rate) if level.counts.ok > 0 => match rate {
                Rate::Goodput => Some(level.goodput?.good_s),
                Rate::OutputTokens => Some(rates.out_tok_s),
                Rate::Requests => Some(rates.req_s),
                Rate::TotalTokens => Some(rates.total_tok_s),
            },
            Figure::Rate(_) => None,
        }
    }

    /// Whether it is a latency, which has no steady value while a queue grows.
    #[must_use]
    pub const fn is_latency(self) -> bool {
        matches!(self, Figure::Quantile(..))
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Figure::Attainment => f.write_str("attainment"),
            Figure::Failed => f.write_str("failed"),
            Figure::Quantile(metric, quantile) => write!(f, "{}_p{quantile}", metric.name()),
            Figure::Rate(rate) => f.write_str(match rate {
                Rate::Goodput => "goodput_s",
                Rate::OutputTokens => "out_tok_s",
                Rate::Requests => "req_s",
                Rate::TotalTokens => "total_tok_s",
            }),
        }
    }
}

/// The name is that of no figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownFigure;

impl fmt::Display for UnknownFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "give a latency and a percentile as in ttft_p99, tpot_p50, e2e_p90, or one of out_tok_s, total_tok_s, req_s, \
             goodput_s, attainment, failed",
        )
    }
}

impl FromStr for Figure {
    type Err = UnknownFigure;

    fn from_str(name: &str) -> Result<Figure, UnknownFigure> {
        let rates = [Rate::Goodput, Rate::OutputTokens, Rate::Requests, Rate::TotalTokens].map(Figure::Rate);
        let known = rates.into_iter().chain([Figure::Failed]).find(|figure| figure.to_string() == name);
        if let Some(figure) = known {
            return Ok(figure);
        }
        // vLLM's name of E2E.
        let name = name.strip_prefix("e2el_").map_or_else(|| name.to_owned(), |rest| format!("e2e_{rest}"));
        match name.parse::<plan::Figure>() {
            Ok(plan::Figure::Attainment) => Ok(Figure::Attainment),
            Ok(plan::Figure::Quantile(metric, quantile)) => Ok(Figure::Quantile(metric, quantile)),
            Err(_) => Err(UnknownFigure),
        }
    }
}

impl serde::Serialize for Figure {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_as_they_are_written() {
        for name in [
            "attainment",
            "failed",
            "ttft_p50",
            "e2e_plan_p99.9",
            "goodput_s",
            "out_tok_s",
            "req_s",
            "total_tok_s",
        ] {
            assert_eq!(name.parse::<Figure>().unwrap().to_string(), name);
        }
        assert_eq!("e2el_p99".parse::<Figure>().unwrap().to_string(), "e2e_p99");
        for name in ["", "ttft", "itl_p99", "tok_s", "ttft_p100", "ttft_kernel_p50"] {
            assert_eq!(name.parse::<Figure>(), Err(UnknownFigure), "{name}");
        }
    }

    #[test]
    fn a_latency_has_a_twin_from_the_plan_if_it_counts_from_the_start() {
        let twin = |name: &str| name.parse::<Figure>().unwrap().from_plan().to_string();
        assert_eq!(
            ["ttft_p50", "e2e_p99", "tpot_p50", "out_tok_s"].map(twin),
            ["ttft_plan_p50", "e2e_plan_p99", "tpot_p50", "out_tok_s"]
        );
    }
}
