//! Lengths that a level has in place of those of the workload.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Error, Lengths, Level, Plan};

/// Lengths of the requests of one level, in place of the workload's; all of it absent where they are the workload's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sizes {
    /// Words of each synthetic prompt, as [`Workload::input_words`](super::Workload::input_words) has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_words: Option<u32>,
    /// `max_tokens` of each request, as [`Workload::output_tokens`](super::Workload::output_tokens) has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u32>,
}

impl Sizes {
    /// Whether all lengths are the workload's.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.input_words.is_none() && self.output_tokens.is_none()
    }

    /// `, prompts of 3000, answers of 200`; empty where all lengths are the workload's.
    #[must_use]
    pub fn in_label(&self) -> String {
        let prompts = self.input_words.map_or_else(String::new, |words| format!(", prompts of {words}"));
        let answers = self.output_tokens.map_or_else(String::new, |tokens| format!(", answers of {tokens}"));
        prompts + &answers
    }
}

impl Plan {
    /// The plan as its level `level` has it: with that level's lengths as those of the workload.
    #[must_use]
    pub fn of_level(&self, level: &Level) -> Cow<'_, Plan> {
        let Sizes { input_words, output_tokens } = level.sizes;
        if level.sizes.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut plan = self.clone();
        let lengths = [
            (&mut plan.workload.input_words, input_words),
            (&mut plan.workload.output_tokens, output_tokens),
        ];
        for (lengths, own) in lengths {
            if let Some(own) = own {
                *lengths = own.into();
            }
        }
        Cow::Owned(plan)
    }

    /// Lengths of levels that synthetic requests can have.
    pub(super) fn check_sizes(&self) -> Result<(), Error> {
        // What is shared may be all there is.
        let least = u32::from(self.workload.prefix.is_none());
        for Level { sizes, .. } in self.levels.iter().filter(|level| !level.sizes.is_empty()) {
            if self.workload.is_recorded() || self.workload.conversation.is_some() {
                let remedy = "leave out `sizes` of the levels";
                return Err(Error::new("levels.sizes", "the lengths are not one for all requests", remedy));
            }
            for (name, length, least) in
                [("input_words", sizes.input_words, least), ("output_tokens", sizes.output_tokens, 1)]
            {
                if length.is_some_and(|length| !(least..=Lengths::MAX).contains(&length)) {
                    let remedy = format!("give a number from {least} to {}", Lengths::MAX);
                    return Err(Error::new(format!("levels.sizes.{name}"), "is out of range", remedy));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Conversation;

    fn sized(sizes: Sizes) -> (Plan, Level) {
        let mut plan = Plan::new(1);
        let level = Level { sizes, ..Level::default() };
        plan.levels = vec![level.clone()];
        (plan, level)
    }

    #[test]
    fn a_level_has_its_lengths_in_place_of_the_workloads() {
        let (plan, level) = sized(Sizes { input_words: Some(3000), output_tokens: None });
        let own = plan.of_level(&level);
        assert_eq!((&own.workload.input_words, &own.workload.output_tokens), (&3000.into(), &64.into()));
        assert_eq!(Plan { workload: plan.workload.clone(), ..own.into_owned() }, plan);
        let (plan, level) = sized(Sizes { input_words: None, output_tokens: Some(9) });
        assert_eq!(plan.of_level(&level).workload.output_tokens, 9.into());
        assert!(matches!(plan.of_level(&Level::default()), Cow::Borrowed(_)));
        assert_eq!(level.sizes.in_label(), ", answers of 9");
    }

    #[test]
    fn they_are_stored_where_there_are_some_and_checked() {
        let (mut plan, _) = sized(Sizes { input_words: Some(3000), output_tokens: Some(9) });
        plan.complete();
        assert_eq!(Plan::from_toml(&plan.to_toml(), 1).unwrap().levels, plan.levels);
        assert!(plan.check_sizes().is_ok());
        plan.levels[0].sizes.output_tokens = Some(0);
        assert_eq!(plan.check_sizes().unwrap_err().subject, "levels.sizes.output_tokens");
        plan.levels[0].sizes = Sizes { input_words: Some(Lengths::MAX + 1), output_tokens: None };
        assert_eq!(plan.check_sizes().unwrap_err().subject, "levels.sizes.input_words");
        plan.levels[0].sizes.input_words = Some(1);
        plan.workload.conversation = Some(Conversation::default());
        assert_eq!(plan.check_sizes().unwrap_err().subject, "levels.sizes");
        assert!(!Plan::new(1).to_toml().contains("sizes"));
    }
}
