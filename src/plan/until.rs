//! How well a figure is to be known before a level may end.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::metrics::metric::{Metric, Unit};
use crate::stats::Quantile;

/// Levels go on beyond their planned length until a figure is known this well.
///
/// A level is doubled, at most up to `times_max` times its planned length, for as long as half the 95 % interval of the
/// figure is wider than the wish. The rule looks at the data: it stops a little more often when the interval happens to
/// be narrow, so that an interval reached by it holds a little less than it says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// The figure.
    pub figure: Figure,
    /// Half the width of its 95 % interval that is narrow enough, as a share of its value: above 0, below 1.
    pub half_width: f64,
    /// The longest level, in planned lengths. 16 by default: doubled four times.
    #[serde(default = "Until::times_max")]
    pub times_max: u32,
}

/// A figure of a level that has an interval, written as `attainment` or `ttft_p99`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The share of good requests.
    Attainment,
    /// A quantile of a latency that a request has one of.
    Quantile(Metric, Quantile),
}

impl Until {
    /// [`Until::times_max`] where nobody says.
    #[must_use]
    pub const fn times_max() -> u32 {
        16
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Figure::Attainment => f.write_str("attainment"),
            Figure::Quantile(metric, quantile) => write!(f, "{}_p{quantile}", metric.name()),
        }
    }
}

impl FromStr for Figure {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Figure, &'static str> {
        if name == "attainment" {
            return Ok(Figure::Attainment);
        }
        let known = || {
            let (metric, percentile) = name.rsplit_once("_p")?;
            let metric = metric.parse::<Metric>().ok()?;
            let quantile = percentile.parse::<Quantile>().ok()?;
            let fits =
                metric.is_per_request() && metric.unit() == Unit::Nanoseconds && !metric.is_by_kernel();
            (fits && quantile < Quantile::MAX).then_some(Figure::Quantile(metric, quantile))
        };
        known().ok_or("give attainment, or a latency and a percentile as in ttft_p99, tpot_p50, e2e_plan_p90")
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Figure, D::Error> {
        let name = String::deserialize(from)?;
        name.parse().map_err(|remedy| de::Error::custom(format_args!("'{name}' is no figure: {remedy}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_as_they_are_written() {
        for name in ["attainment", "ttft_p50", "ttft_p99.9", "e2e_plan_p90", "tpot_p99", "stall_p95"] {
            assert_eq!(name.parse::<Figure>().unwrap().to_string(), name);
        }
        for name in [
            "",
            "ttft",
            "ttft_p",
            "ttft_p100",
            "ttft_p101",
            "itl_p99",
            "ttft_kernel_p50",
            "user_speed_p50",
            "x_p50",
        ] {
            assert!(name.parse::<Figure>().is_err(), "{name}");
        }
    }
}
