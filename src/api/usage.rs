//! Token counts as a server reports them.

use crate::wire::json::Value;

/// One `usage` object. A count that is absent, negative or not a number is `None`, never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// `prompt_tokens`.
    pub prompt: Option<u32>,
    /// `completion_tokens`, reasoning included.
    pub completion: Option<u32>,
    /// `prompt_tokens_details.cached_tokens`.
    pub cached: Option<u32>,
    /// `completion_tokens_details.reasoning_tokens`.
    pub reasoning: Option<u32>,
}

impl Usage {
    /// The counts of a `usage` value; `None` where it holds none (`null`, `{}`, other names): such a value must not
    /// hide an earlier one that did.
    #[inline]
    pub(super) fn of(value: Value<'_>) -> Option<Usage> {
        let mut usage = Usage::default();
        for (name, value) in value.fields() {
            match name {
                "prompt_tokens" => usage.prompt = value.as_u32(),
                "completion_tokens" => usage.completion = value.as_u32(),
                "prompt_tokens_details" => usage.cached = count(value, "cached_tokens"),
                "completion_tokens_details" => usage.reasoning = count(value, "reasoning_tokens"),
                _ => {}
            }
        }
        usage.told()
    }

    /// The same unless it holds no count.
    #[inline]
    pub(super) fn told(self) -> Option<Usage> {
        (self != Usage::default()).then_some(self)
    }

    /// The counts after `later` ones were told, which leave out what has not changed. A prompt that was told with its
    /// cached part is not replaced by one that leaves that out.
    #[must_use]
    pub fn updated(self, later: Usage) -> Usage {
        let is_partial = self.cached.is_some() && later.cached.is_none();
        Usage {
            prompt: later.prompt.filter(|_| !is_partial).or(self.prompt),
            completion: later.completion.or(self.completion),
            cached: later.cached.or(self.cached),
            reasoning: later.reasoning.or(self.reasoning),
        }
    }
}

#[inline]
fn count(details: Value<'_>, name: &str) -> Option<u32> {
    details.field(name).and_then(Value::as_u32)
}
