//! Counts over requests: how they ended, and their tokens.
//!
//! Plain sums, filled request by request and added over shards.

use serde::{Deserialize, Serialize};

use crate::metrics::outcome::{Class, Outcome};
use crate::metrics::record::{Flags, Record, TokenSource};

/// Requests by how they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Planned in the window.
    pub planned: u64,
    /// Ended well.
    pub ok: u64,
    /// Failed, unfinished ones included.
    pub failed: u64,
    /// Cancelled as planned.
    pub cancelled: u64,
    /// Cancelled when some of the answer had come.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cancelled_after_first: u64,
    /// Output tokens that had come of the cancelled, for nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cancelled_tokens: u64,
    /// Ended well, and are in no distribution and not judged by SLOs because their users read slowly.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slow_ok: u64,
    /// Failed likewise.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slow_failed: u64,
    /// Every outcome seen, with its count, in the order of [`Outcome`].
    pub outcomes: Vec<OutcomeCount>,
}

/// How often an outcome was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeCount {
    /// The outcome.
    pub outcome: Outcome,
    /// How often.
    pub count: u64,
}

/// Token counts of `ok` requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tokens {
    /// Output tokens.
    pub output: u64,
    /// Prompt tokens where known.
    pub prompt: u64,
    /// Requests whose prompt tokens are known.
    pub prompt_known: u64,
    /// Cached prompt tokens where known; `None` if no answer said.
    pub cached: Option<u64>,
    /// Content events.
    pub events: u64,
    /// Requests with each source of output tokens: usage, tokenizer, events, unknown.
    pub sources: [u64; 4],
    /// More than one source of output tokens in the level.
    pub mixed_sources: bool,
    /// Requests with several tokens in a single content event.
    pub single_chunk: u64,
    /// Requests whose output length differs from the one asked for.
    pub length_off: u64,
    /// Requests with tokens of reasoning that were counted and not streamed.
    #[serde(default)]
    pub hidden_reasoning: u64,
}

impl Tokens {
    /// Whether nobody has counted or measured any tokens, as in a log of latencies alone.
    #[must_use]
    pub fn is_uncounted(&self) -> bool {
        self.sources == [0; 4] && self.prompt_known == 0
    }
}

impl Counts {
    /// Counts a request that ended.
    pub fn add(&mut self, record: &Record) {
        let outcome = record.outcome;
        self.add_n(OutcomeCount { outcome, count: 1 });
        if outcome.class == Class::Cancelled {
            self.cancelled_after_first += u64::from(record.events > 0);
            self.cancelled_tokens += u64::from(record.output_tokens.unwrap_or(0));
        } else if record.flags.contains(Flags::SLOW_READER) {
            self.slow_ok += u64::from(outcome.is_ok());
            self.slow_failed += u64::from(outcome.is_failure());
        }
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Counts) {
        other.outcomes.iter().for_each(|seen| self.add_n(*seen));
        self.cancelled_after_first += other.cancelled_after_first;
        self.cancelled_tokens += other.cancelled_tokens;
        self.slow_ok += other.slow_ok;
        self.slow_failed += other.slow_failed;
    }

    /// Requests that the latencies and the SLOs are about: that ended well or failed, without those of slow readers.
    #[must_use]
    pub fn ranked(&self) -> u64 {
        self.judged().saturating_sub(self.slow_ok).saturating_sub(self.slow_failed)
    }

    /// Those of them that failed.
    #[must_use]
    pub fn ranked_failed(&self) -> u64 {
        self.failed.saturating_sub(self.slow_failed)
    }

    /// Requests that ended well or failed: all but the cancelled.
    #[must_use]
    pub fn judged(&self) -> u64 {
        self.ok + self.failed
    }

    fn add_n(&mut self, seen: OutcomeCount) {
        self.planned += seen.count;
        match seen.outcome.class {
            Class::Ok => self.ok += seen.count,
            Class::Cancelled => self.cancelled += seen.count,
            _ => self.failed += seen.count,
        }
        // Nearly all end well, which stands first.
        if let Some(first) = self.outcomes.first_mut().filter(|known| known.outcome == seen.outcome) {
            first.count += seen.count;
            return;
        }
        match self.outcomes.binary_search_by_key(&seen.outcome, |known| known.outcome) {
            Ok(place) => self.outcomes[place].count += seen.count,
            Err(place) => self.outcomes.insert(place, seen),
        }
    }
}

impl Tokens {
    /// Counts the tokens of a request that ended well.
    pub fn add(&mut self, record: &Record) {
        let flag = |flag| u64::from(record.flags.contains(flag));
        self.output += u64::from(record.output_tokens.unwrap_or(0));
        if let Some(prompt) = record.prompt_tokens {
            self.prompt += u64::from(prompt);
            self.prompt_known += 1;
        }
        self.cached = sum_known(self.cached, record.cached_tokens.get().map(u64::from));
        self.events += u64::from(record.events);
        let source = record.output_tokens.map_or(TokenSource::Unknown, |_| record.output_source);
        self.sources[place(source)] += 1;
        self.single_chunk += flag(Flags::SINGLE_CHUNK);
        self.length_off += flag(Flags::LENGTH_OFF);
        self.hidden_reasoning += flag(Flags::HIDDEN_REASONING);
        self.note_mixture();
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Tokens) {
        self.output += other.output;
        self.prompt += other.prompt;
        self.prompt_known += other.prompt_known;
        self.cached = sum_known(self.cached, other.cached);
        self.events += other.events;
        self.sources.iter_mut().zip(other.sources).for_each(|(ours, theirs)| *ours += theirs);
        self.single_chunk += other.single_chunk;
        self.length_off += other.length_off;
        self.hidden_reasoning += other.hidden_reasoning;
        self.note_mixture();
    }

    fn note_mixture(&mut self) {
        self.mixed_sources = self.sources.iter().filter(|n| **n > 0).count() > 1;
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The place of a source in [`Tokens::sources`].
fn place(source: TokenSource) -> usize {
    match source {
        TokenSource::Usage => 0,
        TokenSource::Tokenizer => 1,
        TokenSource::Events => 2,
        TokenSource::Unknown => 3,
    }
}

fn sum_known(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::outcome::Kind;
    use crate::time::Stamp;

    #[test]
    fn outcomes_are_counted_in_their_order() {
        let reset = Outcome::new(Class::Reset, Kind::NoResponse, 0);
        let refused = Outcome::new(Class::Connect, Kind::Refused, 0);
        let cancelled = Outcome::new(Class::Cancelled, Kind::None, 200);
        let (mut counts, mut other) = (Counts::default(), Counts::default());
        let ended = |outcome| Record { outcome, ..Record::planned(0, Stamp::ZERO) };
        [reset, Outcome::ok(200), reset, cancelled]
            .into_iter()
            .for_each(|outcome| counts.add(&ended(outcome)));
        [refused, reset].into_iter().for_each(|outcome| other.add(&ended(outcome)));
        counts.merge(&other);
        assert_eq!((counts.planned, counts.ok, counts.failed, counts.cancelled), (6, 1, 4, 1));
        assert_eq!(counts.judged(), 5);
        let seen: Vec<_> = counts.outcomes.iter().map(|seen| (seen.outcome, seen.count)).collect();
        assert_eq!(seen, [(Outcome::ok(200), 1), (cancelled, 1), (refused, 1), (reset, 3)]);
    }

    #[test]
    fn what_was_given_up_and_what_was_read_slowly_is_told_apart() {
        let ended = |class, events, flags| Record {
            outcome: Outcome::new(class, Kind::None, 200),
            events,
            output_tokens: (events > 0).then_some(events),
            flags,
            ..Record::planned(0, Stamp::ZERO)
        };
        let (slow, other) = (Flags::SLOW_READER, Flags::default());
        let mut counts = Counts::default();
        let all = [
            (Class::Cancelled, 0, other),
            (Class::Cancelled, 3, other),
            (Class::Cancelled, 4, slow),
            (Class::Ok, 9, slow),
            (Class::Ok, 9, other),
            (Class::Reset, 2, slow),
            (Class::Truncated, 2, other),
        ];
        for (class, events, flags) in all {
            let mut one = Counts::default();
            one.add(&ended(class, events, flags));
            counts.merge(&one);
        }
        assert_eq!((counts.cancelled, counts.cancelled_after_first, counts.cancelled_tokens), (3, 2, 7));
        assert_eq!((counts.ok, counts.failed, counts.slow_ok, counts.slow_failed), (2, 2, 1, 1));
        assert_eq!((counts.judged(), counts.ranked(), counts.ranked_failed()), (4, 2, 1));
    }

    #[test]
    fn unknown_token_counts_are_not_zeros() {
        let mut record = Record::planned(0, Stamp::ZERO);
        let mut tokens = Tokens::default();
        record.output_source = TokenSource::Usage;
        record.events = 4;
        tokens.add(&record);
        assert_eq!((tokens.prompt_known, tokens.cached, tokens.sources), (0, None, [0, 0, 0, 1]));
        (record.output_tokens, record.prompt_tokens, record.cached_tokens) = (Some(5), Some(7), 0.into());
        record.flags = Flags::SINGLE_CHUNK.with(Flags::LENGTH_OFF).with(Flags::HIDDEN_REASONING);
        tokens.add(&record);
        let expected = Tokens {
            output: 5,
            prompt: 7,
            prompt_known: 1,
            cached: Some(0),
            events: 8,
            sources: [1, 0, 0, 1],
            mixed_sources: true,
            single_chunk: 1,
            length_off: 1,
            hidden_reasoning: 1,
        };
        assert_eq!(tokens, expected);
    }

    #[test]
    fn merging_shards_of_different_sources_is_a_mixture() {
        let mut record = Record::planned(0, Stamp::ZERO);
        (record.output_tokens, record.output_source) = (Some(5), TokenSource::Usage);
        let (mut left, mut right) = (Tokens::default(), Tokens::default());
        left.add(&record);
        record.output_source = TokenSource::Events;
        record.cached_tokens = 3.into();
        right.add(&record);
        assert!(!left.mixed_sources && !right.mixed_sources);
        left.merge(&right);
        assert!(left.mixed_sources);
        assert_eq!((left.output, left.cached, left.sources), (10, Some(3), [1, 0, 1, 0]));
    }
}
