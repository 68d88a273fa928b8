//! Token counts as a server reports them.

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
