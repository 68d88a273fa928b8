//! A recorded trace as a part of a plan: which file, how it is read, and what of it is sent.
//!
//! Times and lengths are the file's; the plan names it and says what is left out. It does not hold what the file says:
//! a run of the plan needs the file again.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::{Arrivals, Error, Level, Plan};

/// The trace whose requests a level with [`Arrivals::Trace`] sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// The file, as the command line named it.
    pub file: String,
    /// Its format by name; told from its beginning if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// What a record does that cannot be read, and one that cannot be sent at a time of its own.
    #[serde(default)]
    pub errors: RecordErrors,
    /// Where the slice begins that is sent, s after the first request, in recorded time. 0 by default.
    #[serde(default)]
    pub from_s: f64,
    /// Where it ends; absent: with the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
    /// Only requests to these models are sent; all if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Calls that failed when they were recorded are sent too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed_too: bool,
    /// Longer prompts are cut to so many tokens, where the trace gives lengths and no texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens_max: Option<u32>,
    /// Longer answers are asked for with so many tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens_max: Option<u32>,
    /// Recorded pauses, and times within sessions, are so many times as long: 0 for none. 1 by default.
    #[serde(default = "as_recorded", skip_serializing_if = "is_as_recorded")]
    pub delay_ratio: f64,
    /// Longer pauses are cut to this, s; absent: none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_max_s: Option<f64>,
    /// Tokens of a hashed block; what the format says if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_tokens: Option<NonZeroU32>,
}

/// What happens to records that cannot be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordErrors {
    /// The first one ends everything, before anything is sent.
    #[default]
    Fail,
    /// They are left out and counted.
    Skip,
}

impl Trace {
    /// All of `file`, as it stands.
    #[must_use]
    pub fn of(file: &str) -> Trace {
        Trace {
            file: file.to_owned(),
            format: None,
            errors: RecordErrors::default(),
            from_s: 0.0,
            until_s: None,
            models: Vec::new(),
            failed_too: false,
            prompt_tokens_max: None,
            output_tokens_max: None,
            delay_ratio: as_recorded(),
            delay_max_s: None,
            block_tokens: None,
        }
    }

    /// Whether sessions have other pauses than those recorded.
    #[must_use]
    pub fn changes_delays(&self) -> bool {
        self.delay_ratio != as_recorded() || self.delay_max_s.is_some()
    }
}

impl Plan {
    /// The trace is there where it is needed and only there, and nothing else says what is sent.
    pub(super) fn check_trace(&self) -> Result<(), Error> {
        let wrong = |option: &str, wrong: &str, remedy: &str| Err(Error::new(option, wrong, remedy));
        let replayed = |level: &&Level| matches!(level.load.arrivals, Arrivals::Trace { .. });
        let levels = self.levels.iter().filter(replayed).count();
        let Some(trace) = &self.workload.trace else {
            return match levels {
                0 => Ok(()),
                _ => wrong(
                    "--fixed-schedule",
                    "there is no trace whose times could be kept",
                    "give --trace FILE",
                ),
            };
        };
        if levels < self.levels.len() {
            return wrong("--trace", "a level has a rate or users of its own", "leave out one of the two");
        }
        if trace.file.is_empty() {
            return wrong("--trace", "no file is named", "give the file's name");
        }
        if self.workload.prefix.is_some() || self.workload.distinct.is_some() {
            let remedy = "leave out --num-dataset-entries and what prompts begin with";
            return wrong("--trace", "its requests say themselves what they share", remedy);
        }
        let until_s = trace.until_s.unwrap_or(f64::INFINITY);
        if !(trace.from_s >= 0.0 && trace.from_s.is_finite() && until_s > trace.from_s) {
            let remedy = "give FROM:UNTIL in seconds after the first request, as in 0:600 or 600:";
            return wrong("--trace-slice", "nothing lies in it", remedy);
        }
        for (option, most) in
            [("--trace-input-max", trace.prompt_tokens_max), ("--trace-output-max", trace.output_tokens_max)]
        {
            if most == Some(0) {
                return wrong(option, "0 tokens ask for nothing", "give at least 1");
            }
        }
        super::conversation::check_delays(trace.delay_ratio, trace.delay_max_s, self.workload.timing)?;
        if self.until.is_some() {
            let remedy = "leave it out; a trace is sent as long as it is";
            return wrong("--until-ci", "a trace cannot be made longer", remedy);
        }
        Ok(())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_as_recorded(ratio: &f64) -> bool {
    *ratio == as_recorded()
}

/// A trace is replayed as fast as it was recorded.
pub(super) const fn as_recorded() -> f64 {
    1.0
}
