//! The stored form of a record: [`Record::BYTES`] bytes of fixed layout, little endian.

use super::{Flags, Handshake, Phase, Record, TokenSource};
use crate::metrics::outcome::{Class, Kind, Outcome};
use crate::time::Stamp;

/// An HTTP status has three digits.
const STATUS_BITS: u32 = 10;
const STATUS_MAX: u16 = (1 << STATUS_BITS) - 1;

impl Record {
    /// Size of an encoded record.
    pub const BYTES: usize = 128;
    /// So many replicas can be told apart.
    pub const REPLICAS_MAX: u16 = 2047;

    /// The stored form.
    ///
    /// Layout, little endian: the fields in the order below, without gaps. Marks are 48-bit offsets
    /// from `plan` (78 hours), which has 56 itself (2 years), token counts 24 bits, kernel stamps 32-bit lags behind the user stamp; a value
    /// beyond its field saturates at the largest one that is not the "absent" mark.
    #[must_use]
    pub fn encode(&self) -> [u8; Record::BYTES] {
        let mut w = Writer { bytes: [0; Record::BYTES], at: 0 };
        w.put(self.index, 6);
        w.put(self.session, 6);
        w.put(u64::from(self.turn), 2);
        w.put(u64::from(self.endpoint), 2);
        w.put(u64::from(self.model), 2);
        // The replica plus one, in what phase and sources leave free: 11 bits.
        let replica = self
            .replica
            .filter(|place| *place < Record::REPLICAS_MAX)
            .map_or(0, |place| u64::from(place) + 1);
        w.put(self.phase as u64 | (replica & 0x7f) << 1, 1);
        // The TLS handshake, in what class, status, kind and plan leave free: 4 bits that are 0 without one, 14, and 1. A
        // reader of before does not know the class then, and refuses the record.
        let (mantissa, exponent) = self.handshake.map_or((0, 0), Handshake::code);
        let resumed = u64::from(self.handshake.is_some_and(Handshake::is_resumed));
        w.put(self.outcome.class as u64 | exponent << 4, 1);
        w.put(u64::from(self.outcome.status.min(STATUS_MAX)) | (mantissa >> 8) << STATUS_BITS, 2);
        w.put(self.outcome.kind as u64 | resumed << 7, 1);
        let sources = self.output_source as u64 | (self.prompt_source as u64) << 4;
        w.put(sources | (replica >> 7 & 3) << 2 | (replica >> 9) << 6, 1);
        w.put(u64::from(self.flags.bits()), 2);
        w.put(self.plan.as_nanos(), 7);
        w.put(mantissa & 0xff, 1);
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
        let phase = r.take(1);
        let low = phase >> 1;
        let phase = match phase & 1 {
            0 => Phase::Warmup,
            _ => Phase::Measured,
        };
        let class = r.take(1);
        let exponent = class >> 4;
        let class = Class::from_code((class & 0x0f) as u8)?;
        let status = r.take(2);
        let mantissa = status >> STATUS_BITS;
        let status = status as u16 & STATUS_MAX;
        let kind = r.take(1);
        let resumed = kind >> 7 == 1;
        let kind = Kind::from_code((kind & 0x7f) as u8)?;
        let sources = r.take(1) as u8;
        let replica = (low | u64::from(sources >> 2 & 3) << 7 | u64::from(sources >> 6) << 9) as u16;
        let flags = Flags::from_bits(r.take(2) as u16);
        let plan = Stamp::from_nanos(r.take(7));
        let handshake = Handshake::from_code((mantissa << 8 | r.take(1), exponent), resumed);
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
            replica: replica.checked_sub(1),
            phase,
            outcome: Outcome { class, kind, status },
            flags,
            plan,
            permit,
            start,
            conn,
            handshake,
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
            prompt_source: source(sources >> 4 & 3)?,
            output_tokens,
            output_source: source(sources & 3)?,
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
    use super::super::tests::full;
    use super::*;

    #[test]
    fn decode_undoes_encode() {
        let record = full();
        assert_eq!(Record::decode(&record.encode()), Some(record));
        let bare = Record::planned(5, Stamp::from_millis(7));
        assert_eq!(Record::decode(&bare.encode()), Some(bare));
    }

    #[test]
    fn a_replica_takes_what_others_leave_free() {
        for place in [0, 1, 126, 127, 511, 512, 2046] {
            let record = Record { replica: Some(place), ..full() };
            assert_eq!(Record::decode(&record.encode()), Some(record));
        }
        let beyond = Record { replica: Some(Record::REPLICAS_MAX), ..full() };
        assert_eq!(Record::decode(&beyond.encode()), Some(Record { replica: None, ..full() }));
        assert_eq!(Record { replica: None, ..full() }.encode()[18], Phase::Measured as u8);
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
        bytes[19] = 0x0f;
        assert_eq!(Record::decode(&bytes), None);
        let mut bytes = full().encode();
        bytes[22] = 0x7f;
        assert_eq!(Record::decode(&bytes), None);
    }

    #[test]
    fn a_handshake_takes_what_others_leave_free() {
        for (ns, resumed) in
            [(0, false), (1, true), (16_384, false), (20_000_000, true), (3_600_000_000_000, false)]
        {
            let handshake = Some(Handshake::of(std::time::Duration::from_nanos(ns), resumed));
            let record =
                Record { handshake, outcome: Outcome::new(Class::Http, Kind::HttpStatus, 599), ..full() };
            assert_eq!(Record::decode(&record.encode()), Some(record));
        }
        // Files of before have zeros there.
        let bare = Record { handshake: None, ..full() }.encode();
        assert_eq!((bare[19], bare[21] >> 2, bare[22] >> 7, bare[33]), (0, 0, 0, 0));
    }
}
