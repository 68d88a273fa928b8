//! vLLM's custom data set, and its rule which conversations of ShareGPT it keeps.

use super::entry::{Entry, Prompt};
use super::error::Fault;
use super::json::Object;

/// `{"prompt": ..., "output_tokens": ...}`, the latter optional.
pub(super) fn read_custom(object: &Object<'_>) -> Result<Entry, Fault> {
    Ok(Entry {
        output_tokens: object.count(&["output_tokens"])?,
        ..Entry::new(Prompt::Text(object.needed("prompt")?.text()?))
    })
}

/// Whether vLLM's benchmark keeps a pair of these lengths: neither below 4 tokens, a prompt of at most 1024, both
/// together at most 2048. An answer whose length is set by an option may be short.
#[must_use]
pub fn sharegpt_keeps(prompt_tokens: u32, output_tokens: u32, output_is_set: bool) -> bool {
    let is_long_enough = prompt_tokens >= 4 && (output_is_set || output_tokens >= 4);
    is_long_enough && prompt_tokens <= 1024 && u64::from(prompt_tokens) + u64::from(output_tokens) <= 2048
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_kept_up_to_the_bounds_and_not_beyond() {
        for (prompt, output, is_kept) in [
            (4, 4, true),
            (3, 4, false),
            (4, 3, false),
            (1024, 1024, true),
            (1025, 4, false),
            (1024, 1025, false),
        ] {
            assert_eq!(sharegpt_keeps(prompt, output, false), is_kept, "{prompt}, {output}");
        }
        assert!(sharegpt_keeps(4, 0, true));
        assert!(!sharegpt_keeps(3, u32::MAX, true));
    }
}
