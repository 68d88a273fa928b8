//! What a measurement is worth: the client's own error, what else takes from the numbers, and one word for it all.
//!
//! Owns no measurement: everything here is made of a level's result and its summary, or of what was stored of them.
//! What is known before a run is `plan::lint`'s.

pub mod budget;
pub mod facts;
mod rules;

use serde::{Deserialize, Serialize};

use crate::plan::{Finding, Grade, Plan};
use crate::stats::sort;

pub use facts::Facts;

/// What a measurement is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing was found that could mislead.
    #[default]
    Valid,
    /// Some numbers may mislead: there are warnings.
    Degraded,
    /// The numbers are not what they claim to be.
    Invalid,
}

impl Verdict {
    /// The verdict that findings of these grades lead to: that of the gravest.
    #[must_use]
    pub fn of(grades: impl IntoIterator<Item = Grade>) -> Verdict {
        grades.into_iter().map(Verdict::from).max().unwrap_or_default()
    }

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Valid => "valid",
            Verdict::Degraded => "degraded",
            Verdict::Invalid => "invalid",
        }
    }
}

impl From<Grade> for Verdict {
    fn from(grade: Grade) -> Verdict {
        match grade {
            Grade::Info => Verdict::Valid,
            Grade::Warn => Verdict::Degraded,
            Grade::Invalid => Verdict::Invalid,
        }
    }
}

/// What a level shows of itself after it was run, in the order of the rules.
#[must_use]
pub fn findings(plan: &Plan, facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    for look in rules::ALL {
        look(plan, facts, &mut found);
    }
    sort::few_by_key(&mut found, |finding| finding.rule);
    found
}
