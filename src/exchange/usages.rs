//! Token counts as the server tells them: once, once per answer, again and again, or in parts.

use crate::api::Usage;
use crate::exchange::Ask;

/// The usage objects of one response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usages {
    /// The last one.
    pub last: Option<Usage>,
    /// How many there were.
    pub count: u32,
    /// All of them added up.
    sum: Usage,
}

impl Usages {
    /// Counts told in parts are one object, however many events they come in.
    pub(super) fn update(&mut self, usage: Usage) {
        match &mut self.last {
            Some(last) => *last = last.updated(usage),
            None => self.add(usage),
        }
    }

    pub(super) fn add(&mut self, usage: Usage) {
        let add = |sum: Option<u32>, one: Option<u32>| match (sum, one) {
            (Some(sum), Some(one)) => Some(sum.saturating_add(one)),
            (sum, one) => sum.or(one),
        };
        self.count = self.count.saturating_add(1);
        self.sum = Usage {
            prompt: add(self.sum.prompt, usage.prompt),
            completion: add(self.sum.completion, usage.completion),
            cached: add(self.sum.cached, usage.cached),
            reasoning: add(self.sum.reasoning, usage.reasoning),
        };
        self.last = Some(usage);
    }

    /// The counts of the whole response: the last object, or, where there is exactly one per answer (llama.cpp), the
    /// sum of what was made, with the prompt and its cached part counted once per prompt.
    #[must_use]
    pub fn total(&self, ask: &Ask) -> Option<Usage> {
        let last = self.last?;
        if ask.answers < 2 || self.count != ask.answers {
            return Some(last);
        }
        let made = Usage { completion: self.sum.completion, reasoning: self.sum.reasoning, ..last };
        if ask.prompts < 2 {
            return Some(made);
        }
        let per_prompt = (ask.answers / ask.prompts).max(1);
        let once = |sum: Option<u32>| sum.map(|sum| sum / per_prompt);
        Some(Usage { prompt: once(self.sum.prompt), cached: once(self.sum.cached), ..made })
    }
}
