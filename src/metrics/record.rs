//! The record of one request: every mark and count from which a metric can be computed later.
//!
//! In memory a [`Record`] is a plain struct of stamps; on disk it is [`Record::BYTES`] bytes of fixed layout. The
//! per-request formulas live here too, each once. Gaps between content events are not in a record (they are not of
//! fixed size); `metrics::tally` pools them in histograms.

use crate::metrics::outcome::{Class, Kind, Outcome};
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
    /// Ended with a finish reason but without `[DONE]`.
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
        const NAMES: [(&str, Flags); 14] = [
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
        ];
        NAMES.into_iter().filter(move |(_, flag)| self.contains(*flag)).map(|(name, _)| name)
    }
}

/// Everything kept of one request.
///
/// Stamps are on the run's time line. `None` means that the event did not happen (or is not known), never zero.
/// `kernel_*` are the kernel's receive stamps of the same events, where the machine gave them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Place in the level's plan, from 0; warm-up requests count from 0 on their own.
    pub index: u64,
    /// Session that the request belongs to; equal to `index` for single-turn workloads.
    pub session: u64,
    /// Turn within the session, from 0.
    pub turn: u16,
    /// Which of the plan's endpoints served it.
    pub endpoint: u16,
    /// Which of the plan's models was asked.
    pub model: u16,
    /// Warm-up or measured.
    pub phase: Phase,
    /// How it ended.
    pub outcome: Outcome,
    /// Remarks.
    pub flags: Flags,
    /// Intended send.
    pub plan: Stamp,
    /// The concurrency cap admitted it (equal to `plan` without a cap).
    pub permit: Stamp,
    /// Taken in hand, before looking for a connection.
    pub start: Stamp,
    /// Connection ready.
    pub conn: Option<Stamp>,
    /// Last request byte handed to the kernel.
    pub sent: Option<Stamp>,
    /// First response byte.
    pub byte: Option<Stamp>,
    /// First content event.
    pub first: Option<Stamp>,
    /// First content event that is not reasoning.
    pub answer: Option<Stamp>,
    /// Last content event.
    pub last: Option<Stamp>,
    /// End: `[DONE]`, final event, end of body, or the moment of failure.
    pub end: Stamp,
    /// Kernel stamp of `first`.
    pub kernel_first: Option<Stamp>,
    /// Kernel stamp of `answer`.
    pub kernel_answer: Option<Stamp>,
    /// Kernel stamp of `last`.
    pub kernel_last: Option<Stamp>,
    /// Largest gap between content events (per choice), ns.
    pub stall_ns: Option<u64>,
    /// The same by kernel stamps, ns.
    pub kernel_stall_ns: Option<u64>,
    /// Prompt tokens.
    pub prompt_tokens: Option<u32>,
    /// Source of `prompt_tokens`.
    pub prompt_source: TokenSource,
    /// Output tokens, reasoning included.
    pub output_tokens: Option<u32>,
    /// Source of `output_tokens`.
    pub output_source: TokenSource,
    /// Prompt tokens served from the prefix cache.
    pub cached_tokens: Option<u32>,
    /// Reasoning tokens as the server counted them.
    pub reasoning_tokens: Option<u32>,
    /// Content events.
    pub events: u32,
    /// Tokens after the first content event (`n_last - n_first`), where running counts were given.
    pub tokens_after_first: Option<u32>,
}

impl Record {
    /// Size of an encoded record.
    pub const BYTES: usize = 128;

    /// A record of a request that was planned for `plan` and has not been started.
    #[must_use]
    pub fn planned(index: u64, plan: Stamp) -> Record {
        Record {
            index,
            session: index,
            turn: 0,
            endpoint: 0,
            model: 0,
            phase: Phase::Measured,
            outcome: Outcome::new(Class::Unfinished, Kind::None, 0),
            flags: Flags::default(),
            plan,
            permit: plan,
            start: plan,
            conn: None,
            sent: None,
            byte: None,
            first: None,
            answer: None,
            last: None,
            end: plan,
            kernel_first: None,
            kernel_answer: None,
            kernel_last: None,
            stall_ns: None,
            kernel_stall_ns: None,
            prompt_tokens: None,
            prompt_source: TokenSource::Unknown,
            output_tokens: None,
            output_source: TokenSource::Unknown,
            cached_tokens: None,
            reasoning_tokens: None,
            events: 0,
            tokens_after_first: None,
        }
    }

    /// Wait for the cap, ns: `permit - plan`.
    #[must_use]
    pub fn cap_wait_ns(&self) -> u64 {
        self.permit.nanos_since(self.plan)
    }

    /// Our own lateness, ns: `start - max(plan, permit)`.
    #[must_use]
    pub fn schedule_delay_ns(&self) -> u64 {
        self.start.nanos_since(self.plan.max(self.permit))
    }

    /// Connection set-up, ns: `conn - start`; `None` if there was no connection.
    #[must_use]
    pub fn connect_ns(&self) -> Option<u64> {
        self.conn.map(|at| at.nanos_since(self.start))
    }

    /// First response byte, ns: `byte - start`.
    #[must_use]
    pub fn ttfb_ns(&self) -> Option<u64> {
        self.byte.map(|at| at.nanos_since(self.start))
    }

    /// TTFT, ns: `first - start`.
    #[must_use]
    pub fn ttft_ns(&self) -> Option<u64> {
        self.first.map(|at| at.nanos_since(self.start))
    }

    /// TTFT by the kernel's stamp, ns.
    #[must_use]
    pub fn kernel_ttft_ns(&self) -> Option<u64> {
        self.kernel_first.map(|at| at.nanos_since(self.start))
    }

    /// Time to the first answer token, ns: `answer - start`.
    #[must_use]
    pub fn ttfa_ns(&self) -> Option<u64> {
        self.answer.map(|at| at.nanos_since(self.start))
    }

    /// E2E, ns: `last - start`; for a body that was not streamed the same as [`Record::stream_ns`].
    #[must_use]
    pub fn e2e_ns(&self) -> Option<u64> {
        if self.flags.contains(Flags::WHOLE_BODY) {
            return self.outcome.is_ok().then(|| self.stream_ns());
        }
        self.last.map(|at| at.nanos_since(self.start))
    }

    /// The whole response, ns: `end - start`, with finish, usage and `[DONE]`.
    #[must_use]
    pub fn stream_ns(&self) -> u64 {
        self.end.nanos_since(self.start)
    }

    /// TTFT from the planned send, ns.
    #[must_use]
    pub fn ttft_plan_ns(&self) -> Option<u64> {
        self.first.map(|at| at.nanos_since(self.plan))
    }

    /// Time to the first answer token from the planned send, ns.
    #[must_use]
    pub fn ttfa_plan_ns(&self) -> Option<u64> {
        self.answer.map(|at| at.nanos_since(self.plan))
    }

    /// E2E from the planned send, ns.
    #[must_use]
    pub fn e2e_plan_ns(&self) -> Option<u64> {
        if self.flags.contains(Flags::WHOLE_BODY) {
            return self.outcome.is_ok().then(|| self.stream_plan_ns());
        }
        self.last.map(|at| at.nanos_since(self.plan))
    }

    /// The whole response from the planned send, ns.
    #[must_use]
    pub fn stream_plan_ns(&self) -> u64 {
        self.end.nanos_since(self.plan)
    }

    /// TPOT, ns per token: `(last - first) / (n - 1)`.
    ///
    /// `n` are the output tokens, without hidden reasoning tokens. Undefined for `n <= 1`, for one content event,
    /// and for several choices.
    #[must_use]
    pub fn tpot_ns(&self) -> Option<f64> {
        if self.flags.contains(Flags::SEVERAL_CHOICES) || self.events < 2 {
            return None;
        }
        let mut n = self.output_tokens?;
        if self.flags.contains(Flags::HIDDEN_REASONING) {
            n = n.saturating_sub(self.reasoning_tokens.unwrap_or(0));
        }
        if n <= 1 {
            return None;
        }
        Some(self.last?.nanos_since(self.first?) as f64 / f64::from(n - 1))
    }

    /// TPOT over the tokens after the first content event, ns per token; needs running token counts.
    #[must_use]
    pub fn tpot_adjusted_ns(&self) -> Option<f64> {
        let tokens = self.tokens_after_first.filter(|n| *n > 0)?;
        Some(self.last?.nanos_since(self.first?) as f64 / f64::from(tokens))
    }

    /// Decode speed that this user saw, tokens per second: `1 / tpot`.
    #[must_use]
    pub fn user_speed(&self) -> Option<f64> {
        self.tpot_ns().filter(|ns| *ns > 0.0).map(|ns| 1e9 / ns)
    }

    /// The stored form.
    ///
    /// Layout, little endian: see `ENCODING` in this file's tests for each field's place. Marks are 48-bit offsets
    /// from `plan` (78 hours), token counts 24 bits, kernel stamps 32-bit lags behind the user stamp; a value
    /// beyond its field saturates at the largest one that is not the "absent" mark.
    #[must_use]
    pub fn encode(&self) -> [u8; Record::BYTES] {
        let mut w = Writer { bytes: [0; Record::BYTES], at: 0 };
        w.put(self.index, 6);
        w.put(self.session, 6);
        w.put(u64::from(self.turn), 2);
        w.put(u64::from(self.endpoint), 2);
        w.put(u64::from(self.model), 2);
        w.put(self.phase as u64, 1);
        w.put(self.outcome.class as u64, 1);
        w.put(u64::from(self.outcome.status), 2);
        w.put(self.outcome.kind as u64, 1);
        w.put(self.output_source as u64 | (self.prompt_source as u64) << 4, 1);
        w.put(u64::from(self.flags.bits()), 2);
        w.put(self.plan.as_nanos(), 8);
        let offset = |at: Stamp| at.nanos_since(self.plan);
        let marks = [
            Some(self.permit),
            Some(self.start),
            self.conn,
            self.sent,
            self.byte,
            self.first,
            self.answer,
            self.last,
        ];
        for mark in marks {
            w.put_optional(mark.map(offset), 6);
        }
        w.put_optional(Some(offset(self.end)), 6);
        let lag = |user: Option<Stamp>, kernel: Option<Stamp>| Some(user?.nanos_since(kernel?));
        w.put_optional(lag(self.first, self.kernel_first), 4);
        w.put_optional(lag(self.answer, self.kernel_answer), 4);
        w.put_optional(lag(self.last, self.kernel_last), 4);
        w.put_optional(self.stall_ns, 6);
        w.put(u64::from(self.kernel_stall_code()), 4);
        for tokens in [self.prompt_tokens, self.output_tokens, self.cached_tokens, self.reasoning_tokens] {
            w.put_optional(tokens.map(u64::from), 3);
        }
        w.put(u64::from(self.events), 3);
        w.put_optional(self.tokens_after_first.map(u64::from), 3);
        debug_assert_eq!(w.at, Record::BYTES);
        w.bytes
    }

    /// The record stored in `bytes`; `None` if a code in it is not one of ours.
    #[must_use]
    pub fn decode(bytes: &[u8; Record::BYTES]) -> Option<Record> {
        let mut r = Reader { bytes, at: 0 };
        let index = r.take(6);
        let session = r.take(6);
        let (turn, endpoint, model) = (r.take(2) as u16, r.take(2) as u16, r.take(2) as u16);
        let phase = match r.take(1) {
            0 => Phase::Warmup,
            1 => Phase::Measured,
            _ => return None,
        };
        let class = Class::from_code(r.take(1) as u8)?;
        let status = r.take(2) as u16;
        let kind = Kind::from_code(r.take(1) as u8)?;
        let sources = r.take(1) as u8;
        let flags = Flags::from_bits(r.take(2) as u16);
        let plan = Stamp::from_nanos(r.take(8));
        let mut mark = || r.take_optional(6).map(|ns| Stamp::from_nanos(plan.as_nanos().saturating_add(ns)));
        let (permit, start) = (mark()?, mark()?);
        let (conn, sent, byte, first, answer, last) = (mark(), mark(), mark(), mark(), mark(), mark());
        let end = mark()?;
        let mut kernel = |user: Option<Stamp>| {
            let lag = r.take_optional(4)?;
            Some(Stamp::from_nanos(user?.as_nanos().saturating_sub(lag)))
        };
        let (kernel_first, kernel_answer, kernel_last) = (kernel(first), kernel(answer), kernel(last));
        let stall_ns = r.take_optional(6);
        let kernel_stall_ns = kernel_stall(stall_ns, r.take(4) as u32);
        let mut tokens = || r.take_optional(3).map(|n| n as u32);
        let (prompt_tokens, output_tokens, cached_tokens, reasoning_tokens) =
            (tokens(), tokens(), tokens(), tokens());
        let events = r.take(3) as u32;
        let tokens_after_first = r.take_optional(3).map(|n| n as u32);
        Some(Record {
            index,
            session,
            turn,
            endpoint,
            model,
            phase,
            outcome: Outcome { class, kind, status },
            flags,
            plan,
            permit,
            start,
            conn,
            sent,
            byte,
            first,
            answer,
            last,
            end,
            kernel_first,
            kernel_answer,
            kernel_last,
            stall_ns,
            kernel_stall_ns,
            prompt_tokens,
            prompt_source: source(sources >> 4)?,
            output_tokens,
            output_source: source(sources & 15)?,
            cached_tokens,
            reasoning_tokens,
            events,
            tokens_after_first,
        })
    }

    /// The kernel stall as its signed difference from the user stall, biased by 2^31; 0 means absent.
    fn kernel_stall_code(&self) -> u32 {
        match (self.stall_ns, self.kernel_stall_ns) {
            (Some(user), Some(kernel)) => {
                let difference = (i128::from(kernel) - i128::from(user))
                    .clamp(-i128::from(i32::MAX), i128::from(i32::MAX));
                (difference + (1 << 31)) as u32
            }
            _ => 0,
        }
    }
}

fn kernel_stall(user: Option<u64>, code: u32) -> Option<u64> {
    let user = i128::from(user?);
    (code != 0).then(|| (user + i128::from(code) - (1 << 31)).max(0) as u64)
}

fn source(code: u8) -> Option<TokenSource> {
    Some(match code {
        0 => TokenSource::Unknown,
        1 => TokenSource::Usage,
        2 => TokenSource::Tokenizer,
        3 => TokenSource::Events,
        _ => return None,
    })
}

struct Writer {
    bytes: [u8; Record::BYTES],
    at: usize,
}

impl Writer {
    fn put(&mut self, value: u64, width: usize) {
        let value = value.min(largest(width));
        self.bytes[self.at..self.at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        self.at += width;
    }

    /// All ones stand for "absent"; a value that large is stored as one less.
    fn put_optional(&mut self, value: Option<u64>, width: usize) {
        let absent = largest(width);
        self.put(value.map_or(absent, |v| v.min(absent - 1)), width);
    }
}

struct Reader<'a> {
    bytes: &'a [u8; Record::BYTES],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, width: usize) -> u64 {
        let mut le = [0; 8];
        le[..width].copy_from_slice(&self.bytes[self.at..self.at + width]);
        self.at += width;
        u64::from_le_bytes(le)
    }

    fn take_optional(&mut self, width: usize) -> Option<u64> {
        Some(self.take(width)).filter(|v| *v != largest(width))
    }
}

const fn largest(width: usize) -> u64 {
    if width >= 8 { u64::MAX } else { (1 << (8 * width)) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Record {
        let at = Stamp::from_millis;
        Record {
            index: 1 << 40,
            session: 77,
            turn: 3,
            endpoint: 9,
            model: 2,
            phase: Phase::Measured,
            outcome: Outcome::ok(200),
            flags: Flags::FRESH_CONNECTION.with(Flags::FROM_PLAN),
            plan: at(1000),
            permit: at(1001),
            start: at(1002),
            conn: Some(at(1003)),
            sent: Some(at(1004)),
            byte: Some(at(1100)),
            first: Some(at(1200)),
            answer: Some(at(1300)),
            last: Some(at(2000)),
            end: at(2001),
            kernel_first: Some(at(1199)),
            kernel_answer: Some(at(1299)),
            kernel_last: Some(at(1998)),
            stall_ns: Some(5_000_000),
            kernel_stall_ns: Some(5_100_000),
            prompt_tokens: Some(128),
            prompt_source: TokenSource::Usage,
            output_tokens: Some(64),
            output_source: TokenSource::Events,
            cached_tokens: Some(0),
            reasoning_tokens: None,
            events: 60,
            tokens_after_first: Some(62),
        }
    }

    #[test]
    fn decode_undoes_encode() {
        let record = full();
        assert_eq!(Record::decode(&record.encode()), Some(record));
        let bare = Record::planned(5, Stamp::from_millis(7));
        assert_eq!(Record::decode(&bare.encode()), Some(bare));
    }

    #[test]
    fn values_beyond_a_field_saturate_and_stay_present() {
        let mut record = full();
        record.prompt_tokens = Some(u32::MAX);
        record.end = record.plan + std::time::Duration::from_secs(1_000_000_000);
        let back = Record::decode(&record.encode()).unwrap();
        assert_eq!(back.prompt_tokens, Some((1 << 24) - 2));
        assert_eq!(back.end.nanos_since(back.plan), (1 << 48) - 2);
    }

    #[test]
    fn foreign_codes_are_refused() {
        let mut bytes = full().encode();
        bytes[19] = 200;
        assert_eq!(Record::decode(&bytes), None);
    }

    #[test]
    fn formulas_follow_the_marks() {
        let r = full();
        assert_eq!(r.cap_wait_ns(), 1_000_000);
        assert_eq!(r.schedule_delay_ns(), 1_000_000);
        assert_eq!(r.ttft_ns(), Some(198_000_000));
        assert_eq!(r.ttft_plan_ns(), Some(200_000_000));
        assert_eq!(r.ttfa_ns(), Some(298_000_000));
        assert_eq!(r.e2e_ns(), Some(998_000_000));
        assert_eq!(r.stream_ns(), 999_000_000);
        assert_eq!(r.tpot_ns(), Some(800_000_000.0 / 63.0));
        assert_eq!(r.tpot_adjusted_ns(), Some(800_000_000.0 / 62.0));
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
