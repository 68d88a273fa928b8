//! The token counts of an event or an answer.

use super::{Seen, Walk};
use crate::api::Usage;

/// A name in `usage`.
#[derive(Clone, Copy)]
enum Count {
    Prompt,
    Completion,
    /// The sum of both, which nobody reads.
    Total,
    PromptDetails,
    CompletionDetails,
}

/// A name in the details of a count: the one that is read, or another.
#[derive(Clone, Copy, PartialEq)]
enum Detail {
    Cached,
    Reasoning,
    Other,
}

impl Walk<'_> {
    /// The counts, or null in their place.
    pub(super) fn usage(&mut self, usage: &mut Usage) -> Option<()> {
        if self.stands_null() {
            return Some(());
        }
        let mut seen = Seen(0);
        self.object_of(Walk::count_name, |walk, name| {
            seen.first(1 << name as u8)
                && match name {
                    Count::Prompt => walk.count().map(|n| usage.prompt = Some(n)),
                    Count::Completion => walk.count().map(|n| usage.completion = Some(n)),
                    Count::Total => walk.count().map(|_| ()),
                    Count::PromptDetails => walk.details(Detail::Cached, &mut usage.cached),
                    Count::CompletionDetails => walk.details(Detail::Reasoning, &mut usage.reasoning),
                }
                .is_some()
        })
    }

    fn count_name(&mut self) -> Option<Count> {
        self.skip_blanks();
        None.or_else(|| self.if_key(br#""prompt_tokens":"#, Count::Prompt))
            .or_else(|| self.if_key(br#""completion_tokens":"#, Count::Completion))
            .or_else(|| self.if_key(br#""total_tokens":"#, Count::Total))
            .or_else(|| self.if_key(br#""prompt_tokens_details":"#, Count::PromptDetails))
            .or_else(|| self.if_key(br#""completion_tokens_details":"#, Count::CompletionDetails))
    }

    /// The details of a count, or null in their place: of them `wanted` is read, once.
    fn details(&mut self, wanted: Detail, to: &mut Option<u32>) -> Option<()> {
        if self.stands_null() {
            return Some(());
        }
        self.object_of(Walk::detail_name, |walk, name| match name == wanted {
            true if to.is_some() => false,
            true => {
                *to = walk.count();
                to.is_some()
            }
            false => walk.count().is_some(),
        })
    }

    fn detail_name(&mut self) -> Option<Detail> {
        self.skip_blanks();
        None.or_else(|| self.if_key(br#""cached_tokens":"#, Detail::Cached))
            .or_else(|| self.if_key(br#""reasoning_tokens":"#, Detail::Reasoning))
            .or_else(|| self.if_key(br#""audio_tokens":"#, Detail::Other))
            .or_else(|| self.if_key(br#""accepted_prediction_tokens":"#, Detail::Other))
            .or_else(|| self.if_key(br#""rejected_prediction_tokens":"#, Detail::Other))
    }

    fn count(&mut self) -> Option<u32> {
        self.whole_number().and_then(super::number)
    }
}
