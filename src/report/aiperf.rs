//! A level in the definitions of aiperf 0.13: the tables that `aiperf profile` prints, and its files.
//!
//! All are written from one [`Level`], which is computed from the [`Answer`]s of a level and holds a [`Figure`] for each
//! metric that aiperf would have. Its definitions differ from ours (means and population deviations, percentiles by
//! linear interpolation over the requests of the whole level that ended well, planned cancellations among the errors),
//! so the two never stand in one table.
//!
//! Metrics that aiperf makes of what no record holds are left out rather than guessed: bytes and chunks of the
//! transport, look-ups of names (done before the run here), and how far an answer is from the length asked for.

mod answer;
mod block;
mod collect;
mod config;
mod csv;
mod curve;
mod figures;
mod grid;
mod json;
mod lines;
mod metric;
mod saved;
mod stats;
mod sweeps;
pub mod timeslices;

pub use answer::{Answer, Failure, Value};
pub use block::{WIDTH_MIN, WIDTH_OF_FILES, width, write, write_errors};
pub use collect::{level, recorded};
pub use csv::write as write_csv;
pub use json::to_json;
pub use lines::write as write_lines;
pub use metric::{Group, Metric};
pub use saved::Saved;
pub use stats::Stats;

pub use super::export::write_aiperf_files as write_files;

use crate::plan::Slo;

/// The version whose definitions and files these are.
pub const VERSION: &str = "0.13.0";

/// What is set, or known from elsewhere, of a level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// Place of the level in the run, from 0.
    pub ordinal: usize,
    /// First planned send of the level, ns since 1970.
    pub begun_ns: u64,
    /// End of its last request, ns since 1970.
    pub ended_ns: u64,
    /// Limits of a good request; the largest gap is none of aiperf's and does not count.
    pub slo: Slo,
    /// Answers are texts, not embeddings.
    pub generates: bool,
    /// Inter-token latency leaves out the tokens of the first event where they were counted (`--per-chunk-usage`).
    pub per_chunk_usage: bool,
    /// The level was ended early.
    pub interrupted: bool,
    /// Gaps, where the answers have none.
    pub gaps: Option<Stats>,
}

/// One metric of a level.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Which.
    pub metric: Metric,
    /// The same with failures as infinitely long: `adj_` in files, `(error-adjusted)` in tables.
    pub adjusted: bool,
    /// Its numbers.
    pub stats: Stats,
}

/// An error and how many requests ended so.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorCount {
    /// The error.
    pub failure: Failure,
    /// Requests.
    pub count: u64,
}

/// The numbers of a level.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// What they were computed for.
    pub about: About,
    /// The metrics that have a value, in the order of aiperf's tables.
    pub figures: Vec<Figure>,
    /// How requests failed, the first seen first.
    pub errors: Vec<ErrorCount>,
    /// The requests, in the order of the plan.
    pub answers: Vec<Answer>,
    /// The metrics of the warm-up; empty without one.
    pub warmup: Vec<Figure>,
    /// The requests of the warm-up.
    pub warmup_answers: Vec<Answer>,
}

impl Level {
    /// The numbers of `answers`, `warmup` being those that came before and count nowhere.
    #[must_use]
    pub fn of(answers: Vec<Answer>, warmup: Vec<Answer>, about: About) -> Level {
        let before = |answers: &[Answer]| {
            let begun_ns = answers.iter().map(|answer| answer.issued_ns).min()?;
            let ended_ns = answers.iter().map(|answer| answer.end_ns).max()?;
            // The stored gaps are those of the measured requests.
            Some(About { begun_ns, ended_ns, gaps: None, ..about.clone() })
        };
        Level {
            figures: figures::of(&answers, &about),
            errors: errors(&answers),
            warmup: before(&warmup).map(|about| figures::of(&warmup, &about)).unwrap_or_default(),
            warmup_answers: warmup,
            answers,
            about,
        }
    }

    /// The figure of `metric` over the requests that ended well; `None` where it has no value.
    #[must_use]
    pub fn figure(&self, metric: Metric) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.metric == metric && !figure.adjusted)
    }
}

impl Figure {
    /// Its name in files.
    #[must_use]
    pub fn tag(&self) -> String {
        let tag = self.metric.tag();
        if self.adjusted { format!("adj_{tag}") } else { tag.to_owned() }
    }

    /// Its name in tables.
    #[must_use]
    pub fn header(&self) -> String {
        let header = self.metric.header();
        if self.adjusted { format!("{header} (error-adjusted)") } else { header.to_owned() }
    }
}

fn errors(answers: &[Answer]) -> Vec<ErrorCount> {
    let mut errors: Vec<ErrorCount> = Vec::new();
    for failure in answers.iter().filter_map(|answer| answer.failure.as_ref()) {
        match errors.iter_mut().find(|error| error.failure == *failure) {
            Some(error) => error.count += 1,
            None => errors.push(ErrorCount { failure: failure.clone(), count: 1 }),
        }
    }
    errors
}

#[cfg(test)]
mod tests;
