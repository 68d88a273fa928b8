//! What prompts share, as a plan states it.
//!
//! Owns the types and what of them is said of a workload; which request has which beginning is `workload::content`'s
//! business.

use serde::{Deserialize, Serialize};

use super::Workload;

/// A beginning that prompts share: before its own words, each request has the words of one of `pool` prefixes, drawn
/// by the seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefix {
    /// Its words; they come on top of those of the prompt.
    pub words: u32,
    /// How many different ones there are. 1 by default: all prompts begin alike.
    #[serde(default = "one")]
    pub pool: u32,
}

impl Workload {
    /// The words of each prompt, those of a shared prefix among them, if all prompts have as many.
    #[must_use]
    pub fn prompt_words(&self) -> Option<u32> {
        if self.is_recorded() {
            return None;
        }
        let shared = self.prefix.map_or(0, |prefix| prefix.words);
        self.input_words.fixed().map(|own| own.saturating_add(shared))
    }

    /// Whether prompts are those of a file.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.trace.is_some() || self.data.is_some()
    }

    /// The words asked for in prompts, for reading: `128`, `1500 shared + 200 to 300`, `those of the trace`.
    #[must_use]
    pub fn prompt_words_text(&self) -> String {
        match self.prefix {
            _ if self.trace.is_some() => "those of the trace".to_owned(),
            _ if self.data.is_some() => "those of the data set".to_owned(),
            None => self.input_words.to_string(),
            Some(Prefix { words, .. }) => format!("{words} shared + {}", self.input_words),
        }
    }
}

fn one() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Distribution, Lengths};

    #[test]
    fn for_reading() {
        let uniform = Lengths::Drawn(Distribution::Uniform { min: 100, max: 300 });
        let mut workload = Workload { input_words: uniform, ..Workload::default() };
        assert_eq!((workload.prompt_words(), workload.prompt_words_text()), (None, "100 to 300".into()));
        workload.prefix = Some(Prefix { words: 1500, pool: 1 });
        assert_eq!(workload.prompt_words_text(), "1500 shared + 100 to 300");
        workload.input_words = 24.into();
        assert_eq!(workload.prompt_words(), Some(1524));
    }
}
