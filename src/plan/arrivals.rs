//! Arrival processes as a file writes them, and what follows from the rate of a load.

use serde::{Deserialize, Serialize};

use super::{Arrivals, Course, Gaps, Load, Piece, Rate, Series, Varying, trace};

/// A process in a file: its name and its numbers. A rate that varies stands in the place of one that does not.
#[derive(Deserialize, Serialize)]
#[serde(tag = "process", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Text {
    // With braces, so that a key that it does not have is refused.
    Closed {},
    Joining {
        ramp_s: f64,
    },
    Paced {
        interval_s: f64,
    },
    Burst {},
    Bursts {
        size: u32,
        every_s: f64,
    },
    Constant {
        rate: Rate,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        exact_count: bool,
    },
    Poisson {
        rate: Rate,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        exact_count: bool,
    },
    Gamma {
        rate: Rate,
        burstiness: f64,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        exact_count: bool,
    },
    Trace {
        #[serde(default = "trace::as_recorded")]
        speedup: f64,
    },
}

impl From<Text> for Arrivals {
    fn from(text: Text) -> Arrivals {
        let (gaps, rate, exact_count) = match text {
            Text::Closed {} => return Arrivals::Closed,
            Text::Joining { ramp_s } => return Arrivals::Joining { ramp_s },
            Text::Paced { interval_s } => return Arrivals::Paced { interval_s },
            Text::Burst {} => return Arrivals::Burst,
            Text::Bursts { size, every_s } => return Arrivals::Bursts { size, every_s },
            Text::Trace { speedup } => return Arrivals::Trace { speedup },
            Text::Constant { rate, exact_count } => (Gaps::Constant, rate, exact_count),
            Text::Poisson { rate, exact_count } => (Gaps::Poisson, rate, exact_count),
            Text::Gamma { rate, burstiness, exact_count } => (Gaps::Gamma { burstiness }, rate, exact_count),
        };
        Arrivals::with(Varying { gaps, rate, exact_count })
    }
}

impl From<Arrivals> for Text {
    fn from(arrivals: Arrivals) -> Text {
        let steady = |gaps, rate| Varying { gaps, rate: Rate::Steady(rate), exact_count: false };
        let Varying { gaps, rate, exact_count } = match arrivals {
            Arrivals::Closed => return Text::Closed {},
            Arrivals::Joining { ramp_s } => return Text::Joining { ramp_s },
            Arrivals::Paced { interval_s } => return Text::Paced { interval_s },
            Arrivals::Burst => return Text::Burst {},
            Arrivals::Bursts { size, every_s } => return Text::Bursts { size, every_s },
            Arrivals::Trace { speedup } => return Text::Trace { speedup },
            Arrivals::Constant { rate } => steady(Gaps::Constant, rate),
            Arrivals::Gamma { rate, burstiness } => steady(Gaps::Gamma { burstiness }, rate),
            Arrivals::Poisson { rate } => steady(Gaps::Poisson, rate),
            Arrivals::Varying(varying) => varying,
        };
        match gaps {
            Gaps::Constant => Text::Constant { rate, exact_count },
            Gaps::Gamma { burstiness } => Text::Gamma { rate, burstiness, exact_count },
            Gaps::Poisson => Text::Poisson { rate, exact_count },
        }
    }
}

impl Arrivals {
    /// The arrivals of a rate that may vary: as [`Arrivals::Varying`] only where it does, or where their number is exact.
    #[must_use]
    pub fn with(varying: Varying) -> Arrivals {
        match varying {
            Varying { gaps, rate: Rate::Steady(rate), exact_count: false } => match gaps {
                Gaps::Constant => Arrivals::Constant { rate },
                Gaps::Gamma { burstiness } => Arrivals::Gamma { rate, burstiness },
                Gaps::Poisson => Arrivals::Poisson { rate },
            },
            varying => Arrivals::Varying(varying),
        }
    }

    /// The gaps of a process with a rate; `None` of others.
    #[must_use]
    pub fn gaps(&self) -> Option<Gaps> {
        match self {
            Arrivals::Constant { .. } => Some(Gaps::Constant),
            Arrivals::Gamma { burstiness, .. } => Some(Gaps::Gamma { burstiness: *burstiness }),
            Arrivals::Poisson { .. } => Some(Gaps::Poisson),
            Arrivals::Varying(varying) => Some(varying.gaps),
            Arrivals::Burst
            | Arrivals::Bursts { .. }
            | Arrivals::Closed
            | Arrivals::Joining { .. }
            | Arrivals::Paced { .. }
            | Arrivals::Trace { .. } => None,
        }
    }

    /// The rate over time, where it varies.
    #[must_use]
    pub fn series(&self) -> Option<&Series> {
        match self {
            Arrivals::Varying(varying) => varying.rate.series(),
            _ => None,
        }
    }

    /// Whether arrivals are moved so that their number is exact.
    #[must_use]
    pub fn is_exact_count(&self) -> bool {
        matches!(self, Arrivals::Varying(Varying { exact_count: true, .. }))
    }
}

impl Load {
    /// How long the users of a closed loop take to come in one after another, s; `None` where they come at once.
    #[must_use]
    pub fn ramp_s(&self) -> Option<f64> {
        match self.arrivals {
            Arrivals::Joining { ramp_s } => Some(ramp_s),
            _ => None,
        }
    }

    /// How long the load takes at its beginning to become what it then is for good, s: users who come in, or one ramp of
    /// the rate. 0 where it is so at once.
    #[must_use]
    pub fn lead_in_s(&self) -> f64 {
        self.ramp_s().or_else(|| self.arrivals.series()?.lead_in_s()).unwrap_or(0.0)
    }

    /// Whether its rate goes up and down as planned for as long as the level lasts, so that there is no steady state to
    /// look for.
    #[must_use]
    pub fn has_own_shape(&self) -> bool {
        self.arrivals.series().is_some_and(|series| series.lead_in_s().is_none())
    }

    /// When the load becomes what it is from then on, s after the start; `None` where it never does.
    #[must_use]
    pub fn steady_from_s(&self) -> Option<f64> {
        (!self.has_own_shape()).then(|| self.lead_in_s())
    }

    /// The largest rate at any time, requests per second; `None` where there is none. That of repeated bursts is
    /// between them.
    #[must_use]
    pub fn peak_rate(&self) -> Option<f64> {
        self.arrivals.series().map(|series| Rate::Series(series.clone()).peak()).or_else(|| self.rate())
    }

    /// Requests of one burst, where they come again and again.
    #[must_use]
    pub fn burst_size(&self) -> Option<u32> {
        match self.arrivals {
            Arrivals::Bursts { size, .. } => Some(size),
            _ => None,
        }
    }

    /// The asked rate over time; `None` where there is none.
    #[must_use]
    pub fn course(&self) -> Option<Course> {
        match &self.arrivals {
            Arrivals::Varying(varying) => Some(Course::of(&varying.rate)),
            _ => self.rate().map(|rate| Course::of(&Rate::Steady(rate))),
        }
    }

    /// What a rate over time, bursts and users who come in do, one line each, with at most so many pieces; none of other
    /// loads.
    #[must_use]
    pub fn course_in_words(&self, pieces_max: usize) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(ramp_s) = self.ramp_s() {
            lines.push(format!("users come in one after another, the last after {ramp_s} s"));
        }
        if let Some(series) = self.arrivals.series() {
            let pieces = series.pieces.iter().take(pieces_max);
            lines.extend(pieces.map(|piece| format!("rate {piece}")));
            if let more @ 1.. = series.pieces.len().saturating_sub(pieces_max) {
                lines.push(format!("and {more} more"));
            }
            let length_s = series.length_s();
            lines.push(match series.repeat {
                true => format!("after {length_s} s all of it comes again"),
                false => {
                    let held = Rate::Steady(series.pieces.last().map_or(0.0, Piece::end));
                    format!("after {length_s} s {held} is held")
                }
            });
        }
        if self.arrivals.is_exact_count() {
            lines.push("the last request comes when the rate has made as many".to_owned());
        }
        lines
    }

    /// The asked rate on average from one time of the level until another, s, in requests per second; `None` where there is
    /// none, or no time between them.
    #[must_use]
    pub fn asked_between(&self, from_s: f64, until_s: f64) -> Option<f64> {
        let course = match self.rate() {
            Some(rate) => return Some(rate),
            None => self.course()?,
        };
        let count = course.count_by(until_s) - course.count_by(from_s);
        (until_s > from_s).then(|| count / (until_s - from_s))
    }
}
