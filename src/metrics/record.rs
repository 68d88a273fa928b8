//! The record of one request: every mark and count from which a metric can be computed later.
//!
//! In memory a [`Record`] is a plain struct of stamps; on disk it is [`Record::BYTES`] bytes (`bytes`). The
//! per-request formulas live here too, each once. Gaps between content events are not in a record (they are not of
//! fixed size); `metrics::tally` pools them in histograms.

mod bytes;
mod handshake;
mod maybe;

pub use handshake::Handshake;
pub use maybe::Maybe;

use crate::metrics::outcome::{Class, Kind, Outcome};
use crate::sys::prefetch::prefetch;
use crate::time::Stamp;

/// Whether a request belongs to the warm-up or to the measured level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Phase {
    /// Counts nowhere.
    Warmup = 0,
    /// Counts.
    #[default]
    Measured = 1,
}

/// Where a token count came from.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum TokenSource {
    /// Not known.
    #[default]
    Unknown = 0,
    /// The server's `usage`.
    Usage = 1,
    /// The tokenizer given by the user.
    Tokenizer = 2,
    /// The number of content events.
    Events = 3,
}

/// Remarks on a request, as a set of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Flags(u16);

impl Flags {
    /// The request opened a connection of its own.
    pub const FRESH_CONNECTION: Flags = Flags(1);
    /// Sent a second time on a fresh connection, because a reused one was closed before any response byte.
    pub const RESENT: Flags = Flags(1 << 1);
    /// `[DONE]` or a finish reason came, the end of the framing did not.
    pub const FRAMING_INCOMPLETE: Flags = Flags(1 << 2);
    /// Ended with a finish reason but without `[DONE]`, or without the last event of its API.
    pub const NO_DONE: Flags = Flags(1 << 3);
    /// Ended with `[DONE]` but without any finish reason.
    pub const NO_FINISH_REASON: Flags = Flags(1 << 4);
    /// A keep-alive came as event data.
    pub const KEEPALIVE_DATA: Flags = Flags(1 << 5);
    /// The last event lacked its blank line and was accepted at a clean end.
    pub const FLUSHED_AT_EOF: Flags = Flags(1 << 6);
    /// `reasoning_tokens` were counted but no reasoning event was seen.
    pub const HIDDEN_REASONING: Flags = Flags(1 << 7);
    /// Several tokens, one content event: TPOT is left out.
    pub const SINGLE_CHUNK: Flags = Flags(1 << 8);
    /// Some content events shared a read with an earlier one.
    pub const COALESCED: Flags = Flags(1 << 9);
    /// More than one choice: TPOT of the whole is undefined.
    pub const SEVERAL_CHOICES: Flags = Flags(1 << 10);
    /// Judged from `t_plan` (open loop) rather than from `t_start`.
    pub const FROM_PLAN: Flags = Flags(1 << 11);
    /// Output tokens differ from the number asked for.
    pub const LENGTH_OFF: Flags = Flags(1 << 12);
    /// The answer was asked for as one body, not as a stream.
    pub const WHOLE_BODY: Flags = Flags(1 << 13);
    /// The client was late to the read of the first content event, which it shares with a later one: its stamp is that
    /// of the later one, an upper bound.
    pub const FIRST_COALESCED: Flags = Flags(1 << 14);
    /// Its user reads slowly on purpose: its latencies are that user's own and count in no distribution.
    pub const SLOW_READER: Flags = Flags(1 << 15);

    /// The set with `other` added.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Adds `other`.
    pub fn insert(&mut self, other: Flags) {
        self.0 |= other.0;
    }

    /// Whether all of `other` is in the set.
    #[must_use]
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The stored bits.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The set with the stored bits `bits`.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Flags {
        Flags(bits)
    }

    /// The names of the remarks in the set, as in result files.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        const NAMES: [(&str, Flags); 16] = [
            ("fresh_connection", Flags::FRESH_CONNECTION),
            ("resent", Flags::RESENT),
            ("framing_incomplete", Flags::FRAMING_INCOMPLETE),
            ("no_done", Flags::NO_DONE),
            ("no_finish_reason", Flags::NO_FINISH_REASON),
            ("keepalive_data", Flags::KEEPALIVE_DATA),
            ("flushed_at_eof", Flags::FLUSHED_AT_EOF),
            ("hidden_reasoning", Flags::HIDDEN_REASONING),
            ("single_chunk", Flags::SINGLE_CHUNK),
            ("coalesced", Flags::COALESCED),
            ("several_choices", Flags::SEVERAL_CHOICES),
            ("from_plan", Flags::FROM_PLAN),
            ("length_off", Flags::LENGTH_OFF),
            ("whole_body", Flags::WHOLE_BODY),
            ("first_coalesced", Flags::FIRST_COALESCED),
            ("slow_reader", Flags::SLOW_READER),
        ];
        NAMES.into_iter().filter(move |(_, flag)| self.contains(*flag)).map(|(name, _)| name)
    }
}

/// Everything kept of one request.
///
/// Stamps are on the run's time line. `None` means that the event did not happen (or is not known), never zero.
/// `kernel_*` are the kernel's receive stamps of the same events, where the machine gave them.
// A level's statistics are walks over hundreds of thousands of these, whose price is to fetch them: three lines of the
// cache, the first with what most walks ask for, the second with all that a read or a content event asks for or changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Record {
    /// Intended send.
    pub plan: Stamp,
    /// Taken in hand, before looking for a connection.
    pub start: Stamp,
    /// End: `[DONE]`, final event, end of body, or the moment of failure.
    pub end: Stamp,
    /// Output tokens, reasoning included.
    pub output_tokens: Option<u32>,
    /// Prompt tokens.
    pub prompt_tokens: Option<u32>,
    /// The TLS handshake of the connection that was opened for it; `None` without TLS, and where the connection stood.
    pub handshake: Option<Handshake>,
    /// How it ended.
    pub outcome: Outcome,
    /// Which replica answered, by its place among the level's names, below [`Record::REPLICAS_MAX`]; `None`: not known.
    pub replica: Option<u16>,
    /// Remarks.
    pub flags: Flags,
    /// Turn within the session, from 0.
    pub turn: u16,
    /// Which of the plan's endpoints served it.
    pub endpoint: u16,
    /// Which of the plan's models was asked.
    pub model: u16,
    /// Warm-up or measured.
    pub phase: Phase,
    /// Source of `output_tokens`.
    pub output_source: TokenSource,
    /// Source of `prompt_tokens`.
    pub prompt_source: TokenSource,

    /// First content event.
    pub first: Option<Stamp>,
    /// First content event that is not reasoning.
    pub answer: Option<Stamp>,
    /// Last content event.
    pub last: Option<Stamp>,
    /// Kernel stamp of `first`.
    pub kernel_first: Option<Stamp>,
    /// Kernel stamp of `answer`.
    pub kernel_answer: Option<Stamp>,
    /// Kernel stamp of `last`.
    pub kernel_last: Option<Stamp>,
    /// Content events.
    pub events: u32,
    /// Tokens after the first content event (`n_last - n_first`), where running counts were given.
    pub tokens_after_first: Maybe<u32>,
    /// First response byte.
    pub byte: Option<Stamp>,

    /// Place in the level's plan, from 0; warm-up requests count from 0 on their own.
    pub index: u64,
    /// Session that the request belongs to; equal to `index` for single-turn workloads.
    pub session: u64,
    /// The concurrency cap admitted it (equal to `plan` without a cap).
    pub permit: Stamp,
    /// Connection ready.
    pub conn: Option<Stamp>,
    /// Last request byte handed to the kernel.
    pub sent: Option<Stamp>,
    /// Largest gap between content events (per choice), ns.
    pub stall_ns: Maybe<u64>,
    /// The largest gap by kernel stamps, ns.
    pub kernel_stall_ns: Maybe<u64>,
    /// Prompt tokens served from the prefix cache.
    pub cached_tokens: Maybe<u32>,
    /// Reasoning tokens as the server counted them.
    pub reasoning_tokens: Maybe<u32>,
}

const _: () = assert!(size_of::<Record>() == 3 * 64 && std::mem::offset_of!(Record, first) == 64);

impl Record {
    /// Has what a content event asks for and changes brought into the cache.
    #[inline]
    pub(crate) fn prefetch_content(&self) {
        prefetch(&self.first);
    }

    /// A record of a request that was planned for `plan` and has not been started.
    #[must_use]
    pub fn planned(index: u64, plan: Stamp) -> Record {
        Record {
            index,
            session: index,
            turn: 0,
            endpoint: 0,
            model: 0,
            replica: None,
            phase: Phase::Measured,
            outcome: Outcome::new(Class::Unfinished, Kind::None, 0),
            flags: Flags::default(),
            plan,
            permit: plan,
            start: plan,
            conn: None,
            handshake: None,
            sent: None,
            byte: None,
            first: None,
            answer: None,
            last: None,
            end: plan,
            kernel_first: None,
            kernel_answer: None,
            kernel_last: None,
            stall_ns: Maybe::NONE,
            kernel_stall_ns: Maybe::NONE,
            prompt_tokens: None,
            prompt_source: TokenSource::Unknown,
            output_tokens: None,
            output_source: TokenSource::Unknown,
            cached_tokens: Maybe::NONE,
            reasoning_tokens: Maybe::NONE,
            events: 0,
            tokens_after_first: Maybe::NONE,
        }
    }

    /// Whether its times belong to the level's distributions, if it is of its window: it ended well, and its user was not the
    /// one that was slow.
    #[must_use]
    #[inline]
    pub fn is_in_distributions(&self) -> bool {
        self.outcome.is_ok() && !self.flags.contains(Flags::SLOW_READER)
    }

    /// Wait for the cap, ns: `permit - plan`.
    #[must_use]
    #[inline]
    pub fn cap_wait_ns(&self) -> u64 {
        self.permit.nanos_since(self.plan)
    }

    /// Our own lateness, ns: `start - max(plan, permit)`.
    #[must_use]
    #[inline]
    pub fn schedule_delay_ns(&self) -> u64 {
        self.start.nanos_since(self.plan.max(self.permit))
    }

    /// Connection set-up, ns: `conn - start`; `None` if there was no connection.
    #[must_use]
    #[inline]
    pub fn connect_ns(&self) -> Option<u64> {
        self.conn.map(|at| at.nanos_since(self.start))
    }

    /// Time to a connection that was opened for it, without the TLS handshake, ns: `conn - start - tls_handshake`. `None`
    /// on one that stood. Of a request that was sent again it holds the first attempt as well.
    #[must_use]
    #[inline]
    pub fn tcp_connect_ns(&self) -> Option<u64> {
        let whole = self.connect_ns().filter(|_| self.flags.contains(Flags::FRESH_CONNECTION))?;
        Some(whole.saturating_sub(self.tls_handshake_ns().unwrap_or(0)))
    }

    /// TLS handshake of a connection that was opened for it, ns, from the moment the connection under it stands.
    #[must_use]
    #[inline]
    pub fn tls_handshake_ns(&self) -> Option<u64> {
        self.handshake.map(Handshake::ns)
    }

    /// First response byte, ns: `byte - start`.
    #[must_use]
    #[inline]
    pub fn ttfb_ns(&self) -> Option<u64> {
        self.byte.map(|at| at.nanos_since(self.start))
    }

    /// TTFT, ns: `first - start`.
    #[must_use]
    #[inline]
    pub fn ttft_ns(&self) -> Option<u64> {
        self.first.map(|at| at.nanos_since(self.start))
    }

    /// TTFT by the kernel's stamp, ns.
    #[must_use]
    #[inline]
    pub fn kernel_ttft_ns(&self) -> Option<u64> {
        self.kernel_first.map(|at| at.nanos_since(self.start))
    }

    /// The record with the kernel's stamps in place of the user's on its content events; `None` unless every mark of
    /// a content event has one.
    ///
    /// Bytes arrive before they are read, so that the first byte is then no later than the first content event.
    #[must_use]
    pub fn by_kernel(&self) -> Option<Record> {
        let first = self.kernel_first?;
        let last = self.kernel_last?;
        if self.answer.is_some() && self.kernel_answer.is_none() {
            return None;
        }
        if self.stall_ns.is_some() && !self.kernel_stall_ns.is_some() {
            return None;
        }
        Some(Record {
            byte: self.byte.map(|byte| byte.min(first)),
            first: Some(first),
            answer: self.kernel_answer,
            last: Some(last),
            stall_ns: self.kernel_stall_ns,
            ..*self
        })
    }

    /// The record with the earliest stamps that its first content event may have, where that was read late and with a
    /// later one: such a read has one stamp, that of its last byte. It came after the request was sent, and after the
    /// read of the head if that was an earlier one. `None` where the stamps are as they are.
    #[must_use]
    pub fn with_first_at_its_earliest(&self) -> Option<Record> {
        let first = self.first.filter(|_| self.flags.contains(Flags::FIRST_COALESCED))?;
        let earliest = match self.byte {
            Some(byte) if byte < first => byte,
            _ => self.sent.unwrap_or(self.start).min(first),
        };
        let answer = if self.answer == self.first { Some(earliest) } else { self.answer };
        Some(Record { first: Some(earliest), answer, ..*self })
    }

    /// The record on a time line on which `from` is `to`: every stamp is moved by as much, no duration changes.
    #[must_use]
    pub fn moved(&self, from: Stamp, to: Stamp) -> Record {
        let at = |stamp: Stamp| stamp.moved(from, to);
        Record {
            plan: at(self.plan),
            permit: at(self.permit),
            start: at(self.start),
            conn: self.conn.map(at),
            sent: self.sent.map(at),
            byte: self.byte.map(at),
            first: self.first.map(at),
            answer: self.answer.map(at),
            last: self.last.map(at),
            end: at(self.end),
            kernel_first: self.kernel_first.map(at),
            kernel_answer: self.kernel_answer.map(at),
            kernel_last: self.kernel_last.map(at),
            ..*self
        }
    }

    /// The record as if there had been no kernel stamps.
    #[must_use]
    pub fn without_kernel(&self) -> Record {
        Record {
            kernel_first: None,
            kernel_answer: None,
            kernel_last: None,
            kernel_stall_ns: Maybe::NONE,
            ..*self
        }
    }

    /// Time to the first answer token, ns: `answer - start`.
    #[must_use]
    #[inline]
    pub fn ttfa_ns(&self) -> Option<u64> {
        self.answer.map(|at| at.nanos_since(self.start))
    }

    /// E2E, ns: `last - start`; for a body that was not streamed the same as [`Record::stream_ns`].
    #[must_use]
    #[inline]
    pub fn e2e_ns(&self) -> Option<u64> {
        if self.flags.contains(Flags::WHOLE_BODY) {
            return self.outcome.is_ok().then(|| self.stream_ns());
        }
        self.last.map(|at| at.nanos_since(self.start))
    }

    /// The whole response, ns: `end - start`, with finish, usage and `[DONE]`.
    #[must_use]
    #[inline]
    pub fn stream_ns(&self) -> u64 {
        self.end.nanos_since(self.start)
    }

    /// TTFT from the planned send, ns.
    #[must_use]
    #[inline]
    pub fn ttft_plan_ns(&self) -> Option<u64> {
        self.first.map(|at| at.nanos_since(self.plan))
    }

    /// Time to the first answer token from the planned send, ns.
    #[must_use]
    #[inline]
    pub fn ttfa_plan_ns(&self) -> Option<u64> {
        self.answer.map(|at| at.nanos_since(self.plan))
    }

    /// E2E from the planned send, ns.
    #[must_use]
    #[inline]
    pub fn e2e_plan_ns(&self) -> Option<u64> {
        if self.flags.contains(Flags::WHOLE_BODY) {
            return self.outcome.is_ok().then(|| self.stream_plan_ns());
        }
        self.last.map(|at| at.nanos_since(self.plan))
    }

    /// The whole response from the planned send, ns.
    #[must_use]
    #[inline]
    pub fn stream_plan_ns(&self) -> u64 {
        self.end.nanos_since(self.plan)
    }

    /// TPOT, ns per token: `(last - first) / (n - 1)`.
    ///
    /// `n` are the output tokens, without hidden reasoning tokens. Undefined for `n <= 1`, for one content event,
    /// and for several choices.
    #[must_use]
    #[inline]
    pub fn tpot_ns(&self) -> Option<f64> {
        if self.flags.contains(Flags::SEVERAL_CHOICES) || self.events < 2 {
            return None;
        }
        let mut n = self.output_tokens?;
        if self.flags.contains(Flags::HIDDEN_REASONING) {
            n = n.saturating_sub(self.reasoning_tokens.get().unwrap_or(0));
        }
        if n <= 1 {
            return None;
        }
        Some(self.last?.nanos_since(self.first?) as f64 / f64::from(n - 1))
    }

    /// TPOT over the tokens after the first content event, ns per token; needs running token counts.
    #[must_use]
    #[inline]
    pub fn tpot_adjusted_ns(&self) -> Option<f64> {
        let tokens = self.tokens_after_first.get().filter(|n| *n > 0)?;
        Some(self.last?.nanos_since(self.first?) as f64 / f64::from(tokens))
    }

    /// Decode speed that this user saw, tokens per second: `1 / tpot`.
    #[must_use]
    #[inline]
    pub fn user_speed(&self) -> Option<f64> {
        self.tpot_ns().filter(|ns| *ns > 0.0).map(|ns| 1e9 / ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn full() -> Record {
        let at = Stamp::from_millis;
        Record {
            index: 1 << 40,
            session: 77,
            turn: 3,
            endpoint: 9,
            model: 2,
            replica: Some(300),
            phase: Phase::Measured,
            outcome: Outcome::ok(200),
            flags: Flags::FRESH_CONNECTION.with(Flags::FROM_PLAN),
            plan: at(1000),
            permit: at(1001),
            start: at(1002),
            conn: Some(at(1003)),
            handshake: Some(Handshake::of(std::time::Duration::from_micros(400), true)),
            sent: Some(at(1004)),
            byte: Some(at(1100)),
            first: Some(at(1200)),
            answer: Some(at(1300)),
            last: Some(at(2000)),
            end: at(2001),
            kernel_first: Some(at(1199)),
            kernel_answer: Some(at(1299)),
            kernel_last: Some(at(1998)),
            stall_ns: 5_000_000.into(),
            kernel_stall_ns: 5_100_000.into(),
            prompt_tokens: Some(128),
            prompt_source: TokenSource::Usage,
            output_tokens: Some(64),
            output_source: TokenSource::Events,
            cached_tokens: 0.into(),
            reasoning_tokens: Maybe::NONE,
            events: 60,
            tokens_after_first: 62.into(),
        }
    }

    #[test]
    fn formulas_follow_the_marks() {
        let r = full();
        assert_eq!(r.cap_wait_ns(), 1_000_000);
        assert_eq!(r.schedule_delay_ns(), 1_000_000);
        assert_eq!(r.connect_ns(), Some(1_000_000));
        assert_eq!((r.tcp_connect_ns(), r.tls_handshake_ns()), (Some(600_000), Some(400_000)));
        let reused = Record { flags: Flags::FROM_PLAN, handshake: None, ..r };
        assert_eq!((reused.tcp_connect_ns(), reused.tls_handshake_ns()), (None, None));
        assert_eq!(r.ttft_ns(), Some(198_000_000));
        assert_eq!(r.ttft_plan_ns(), Some(200_000_000));
        assert_eq!(r.ttfa_ns(), Some(298_000_000));
        assert_eq!(r.e2e_ns(), Some(998_000_000));
        assert_eq!(r.stream_ns(), 999_000_000);
        assert_eq!(r.tpot_ns(), Some(800_000_000.0 / 63.0));
        assert_eq!(r.tpot_adjusted_ns(), Some(800_000_000.0 / 62.0));
    }

    #[test]
    fn kernel_stamps_take_the_place_of_all_marks_or_of_none() {
        let r = full();
        let by_kernel = r.by_kernel().unwrap();
        assert_eq!(by_kernel.ttft_ns(), Some(197_000_000));
        assert_eq!(by_kernel.ttfa_ns(), Some(297_000_000));
        assert_eq!(by_kernel.e2e_ns(), Some(996_000_000));
        assert_eq!(by_kernel.tpot_ns(), Some(799_000_000.0 / 63.0));
        assert_eq!(by_kernel.stall_ns.get(), Some(5_100_000));
        assert_eq!((by_kernel.byte, by_kernel.end, by_kernel.start), (r.byte, r.end, r.start));
        let late = Record { byte: r.first, ..r };
        assert_eq!(late.by_kernel().unwrap().byte, r.kernel_first, "head and first event came in one read");
        for missing in [
            Record { kernel_first: None, ..r },
            Record { kernel_answer: None, ..r },
            Record { kernel_last: None, ..r },
            Record { kernel_stall_ns: Maybe::NONE, ..r },
        ] {
            assert_eq!(missing.by_kernel(), None);
        }
    }

    #[test]
    fn tpot_is_undefined_for_one_token_one_event_or_several_choices() {
        let mut r = full();
        r.output_tokens = Some(1);
        assert_eq!(r.tpot_ns(), None);
        r.output_tokens = Some(5);
        r.events = 1;
        assert_eq!(r.tpot_ns(), None);
        r.events = 5;
        r.flags.insert(Flags::SEVERAL_CHOICES);
        assert_eq!(r.tpot_ns(), None);
    }
}
