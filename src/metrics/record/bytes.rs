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
        w.put::<6>(self.index);
        w.put::<6>(self.session);
        w.put::<2>(u64::from(self.turn));
        w.put::<2>(u64::from(self.endpoint));
        w.put::<2>(u64::from(self.model));
        // The replica plus one, in what phase and sources leave free: 11 bits.
        let replica = self
            .replica
            .filter(|place| *place < Record::REPLICAS_MAX)
            .map_or(0, |place| u64::from(place) + 1);
        w.put::<1>(self.phase as u64 | (replica & 0x7f) << 1);
        // The TLS handshake, in what class, status, kind and plan leave free: 4 bits that are 0 without one, 14, and 1. A
        // reader of before does not know the class then, and refuses the record.
        let (mantissa, exponent) = self.handshake.map_or((0, 0), Handshake::code);
        let resumed = u64::from(self.handshake.is_some_and(Handshake::is_resumed));
        w.put::<1>(self.outcome.class as u64 | exponent << 4);
        w.put::<2>(u64::from(self.outcome.status.min(STATUS_MAX)) | (mantissa >> 8) << STATUS_BITS);
        w.put::<1>(self.outcome.kind as u64 | resumed << 7);
        let sources = self.output_source as u64 | (self.prompt_source as u64) << 4;
        w.put::<1>(sources | (replica >> 7 & 3) << 2 | (replica >> 9) << 6);
        w.put::<2>(u64::from(self.flags.bits()));
        w.put::<7>(self.plan.as_nanos());
        w.put::<1>(mantissa & 0xff);
        w.put_mark(self.plan, Some(self.permit));
        w.put_mark(self.plan, Some(self.start));
        w.put_mark(self.plan, self.conn);
        w.put_mark(self.plan, self.sent);
        w.put_mark(self.plan, self.byte);
        w.put_mark(self.plan, self.first);
        w.put_mark(self.plan, self.answer);
        w.put_mark(self.plan, self.last);
        w.put_mark(self.plan, Some(self.end));
        w.put_lag(self.first, self.kernel_first);
        w.put_lag(self.answer, self.kernel_answer);
        w.put_lag(self.last, self.kernel_last);
        w.put_optional::<6>(self.stall_ns.get());
        w.put::<4>(u64::from(self.kernel_stall_code()));
        w.put_tokens(self.prompt_tokens);
        w.put_tokens(self.output_tokens);
        w.put_tokens(self.cached_tokens.get());
        w.put_tokens(self.reasoning_tokens.get());
        w.put::<3>(u64::from(self.events));
        w.put_tokens(self.tokens_after_first.get());
        debug_assert_eq!(w.at, Record::BYTES);
        w.bytes
    }

    /// The record stored in `bytes`; `None` if a code in it is not one of ours.
    #[must_use]
    pub fn decode(bytes: &[u8; Record::BYTES]) -> Option<Record> {
        let mut r = Reader { bytes, at: 0 };
        let index = r.take::<6>();
        let session = r.take::<6>();
        let (turn, endpoint, model) = (r.take::<2>() as u16, r.take::<2>() as u16, r.take::<2>() as u16);
        let phase = r.take::<1>();
        let low = phase >> 1;
        let phase = match phase & 1 {
            0 => Phase::Warmup,
            _ => Phase::Measured,
        };
        let class = r.take::<1>();
        let exponent = class >> 4;
        let class = Class::from_code((class & 0x0f) as u8)?;
        let status = r.take::<2>();
        let mantissa = status >> STATUS_BITS;
        let status = status as u16 & STATUS_MAX;
        let kind = r.take::<1>();
        let resumed = kind >> 7 == 1;
        let kind = Kind::from_code((kind & 0x7f) as u8)?;
        let sources = r.take::<1>() as u8;
        let replica = (low | u64::from(sources >> 2 & 3) << 7 | u64::from(sources >> 6) << 9) as u16;
        let flags = Flags::from_bits(r.take::<2>() as u16);
        let plan = Stamp::from_nanos(r.take::<7>());
        let handshake = Handshake::from_code((mantissa << 8 | r.take::<1>(), exponent), resumed);
        let (permit, start) = (r.take_mark(plan)?, r.take_mark(plan)?);
        let (conn, sent, byte) = (r.take_mark(plan), r.take_mark(plan), r.take_mark(plan));
        let (first, answer, last) = (r.take_mark(plan), r.take_mark(plan), r.take_mark(plan));
        let end = r.take_mark(plan)?;
        let (kernel_first, kernel_answer, kernel_last) =
            (r.take_lag(first), r.take_lag(answer), r.take_lag(last));
        let stall_ns = r.take_optional::<6>();
        let kernel_stall_ns = kernel_stall(stall_ns, r.take::<4>() as u32);
        let (prompt_tokens, output_tokens) = (r.take_tokens(), r.take_tokens());
        let (cached_tokens, reasoning_tokens) = (r.take_tokens(), r.take_tokens());
        let events = r.take::<3>() as u32;
        let tokens_after_first = r.take_tokens();
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
            stall_ns: stall_ns.into(),
            kernel_stall_ns: kernel_stall_ns.into(),
            prompt_tokens,
            prompt_source: source(sources >> 4 & 3)?,
            output_tokens,
            output_source: source(sources & 3)?,
            cached_tokens: cached_tokens.into(),
            reasoning_tokens: reasoning_tokens.into(),
            events,
            tokens_after_first: tokens_after_first.into(),
        })
    }

    /// The kernel stall as its signed difference from the user stall, biased by 2^31; 0 means absent.
    fn kernel_stall_code(&self) -> u32 {
        match (self.stall_ns.get(), self.kernel_stall_ns.get()) {
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

/// Fields one after another. All widths are constants and everything is inlined, so that each field is one store at a
/// place known beforehand: a shard writes a record for every request.
struct Writer {
    bytes: [u8; Record::BYTES],
    at: usize,
}

impl Writer {
    #[inline(always)]
    fn put<const WIDTH: usize>(&mut self, value: u64) {
        let le = value.min(largest(WIDTH)).to_le_bytes();
        match self.bytes[self.at..].first_chunk_mut::<8>() {
            // The zeros behind the field are where the next ones go.
            Some(eight) => *eight = le,
            None => self.bytes[self.at..self.at + WIDTH].copy_from_slice(&le[..WIDTH]),
        }
        self.at += WIDTH;
    }

    /// All ones stand for "absent"; a value that large is stored as one less.
    #[inline(always)]
    fn put_optional<const WIDTH: usize>(&mut self, value: Option<u64>) {
        let absent = largest(WIDTH);
        self.put::<WIDTH>(value.map_or(absent, |v| v.min(absent - 1)));
    }

    #[inline(always)]
    fn put_mark(&mut self, plan: Stamp, mark: Option<Stamp>) {
        self.put_optional::<6>(mark.map(|at| at.nanos_since(plan)));
    }

    #[inline(always)]
    fn put_lag(&mut self, user: Option<Stamp>, kernel: Option<Stamp>) {
        self.put_optional::<4>(user.zip(kernel).map(|(user, kernel)| user.nanos_since(kernel)));
    }

    #[inline(always)]
    fn put_tokens(&mut self, tokens: Option<u32>) {
        self.put_optional::<3>(tokens.map(u64::from));
    }
}

/// The same way back, for whoever reads all records of a level.
struct Reader<'a> {
    bytes: &'a [u8; Record::BYTES],
    at: usize,
}

impl Reader<'_> {
    #[inline(always)]
    fn take<const WIDTH: usize>(&mut self) -> u64 {
        let value = match self.bytes[self.at..].first_chunk::<8>() {
            Some(eight) => u64::from_le_bytes(*eight) & largest(WIDTH),
            None => {
                let mut le = [0; 8];
                le[..WIDTH].copy_from_slice(&self.bytes[self.at..self.at + WIDTH]);
                u64::from_le_bytes(le)
            }
        };
        self.at += WIDTH;
        value
    }

    #[inline(always)]
    fn take_optional<const WIDTH: usize>(&mut self) -> Option<u64> {
        Some(self.take::<WIDTH>()).filter(|v| *v != largest(WIDTH))
    }

    #[inline(always)]
    fn take_mark(&mut self, plan: Stamp) -> Option<Stamp> {
        let ns = self.take_optional::<6>()?;
        Some(Stamp::from_nanos(plan.as_nanos().saturating_add(ns)))
    }

    #[inline(always)]
    fn take_lag(&mut self, user: Option<Stamp>) -> Option<Stamp> {
        let lag = self.take_optional::<4>()?;
        Some(Stamp::from_nanos(user?.as_nanos().saturating_sub(lag)))
    }

    #[inline(always)]
    fn take_tokens(&mut self) -> Option<u32> {
        self.take_optional::<3>().map(|n| n as u32)
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

    /// What files of before hold: each field in so many bytes, one behind the other.
    #[test]
    fn fields_lie_where_they_always_have() {
        let record = full();
        let ms = |ms: u64| ms * 1_000_000;
        let handshake = record.handshake.map_or((0, 0), Handshake::code);
        let fields = [
            (1 << 40, 6),
            (77, 6),
            (3, 2),
            (9, 2),
            (2, 2),
            // Replica 301 of 11 bits beside the phase, above the sources, and beyond them.
            (1 | (301 & 0x7f) << 1, 1),
            (record.outcome.class as u64 | handshake.1 << 4, 1),
            (200 | (handshake.0 >> 8) << 10, 2),
            (record.outcome.kind as u64 | 1 << 7, 1),
            (3 | 1 << 4 | (301 >> 7 & 3) << 2, 1),
            (u64::from(record.flags.bits()), 2),
            (ms(1000), 7),
            (handshake.0 & 0xff, 1),
            (ms(1), 6),
            (ms(2), 6),
            (ms(3), 6),
            (ms(4), 6),
            (ms(100), 6),
            (ms(200), 6),
            (ms(300), 6),
            (ms(1000), 6),
            (ms(1001), 6),
            (ms(1), 4),
            (ms(1), 4),
            (ms(2), 4),
            (5_000_000, 6),
            ((1 << 31) + 100_000, 4),
            (128, 3),
            (64, 3),
            (0, 3),
            (0xff_ffff, 3),
            (60, 3),
            (62, 3),
        ];
        let bytes: Vec<u8> = fields
            .iter()
            .flat_map(|(value, width): &(u64, usize)| value.to_le_bytes()[..*width].to_vec())
            .collect();
        assert_eq!(record.encode().to_vec(), bytes);
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
