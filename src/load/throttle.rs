//! How much a slow reader may read, and when: a bucket of bytes that fills at the reader's rate. No sockets, no clocks.
//!
//! The reader empties the bucket in portions: what is left of less than half of it is not worth a read, and it waits until
//! the bucket is full. So a server that sends no faster than the reader reads is heard at once, and one that sends faster
//! at the rate, a portion at a time.

use std::time::Duration;

use crate::time::Stamp;

/// The bucket of one connection.
///
/// In any span of time no more is read than the rate allows in it, and one bucketful.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Throttle {
    bytes_per_s: u64,
    /// What the bucket holds, bytes.
    size: u64,
    /// When it will be full again, if nothing is read until then.
    full_at: Stamp,
    /// Nothing is read before.
    opens_at: Stamp,
}

/// A portion is what the reader takes in this time: as often as a slow link delivers packets.
const PORTION: Duration = Duration::from_millis(50);
/// Longest portion, bytes: that of one read of a shard.
const PORTION_MAX: u64 = 64 << 10;
/// A few packets.
const RECEIVE_BUFFER_MIN: u64 = 4 << 10;
const RECEIVE_BUFFER_MAX: u64 = 1 << 20;
const NANOS: u64 = 1_000_000_000;

impl Throttle {
    /// A full bucket of a reader of `bytes_per_s`, which is above 0.
    pub(crate) fn new(bytes_per_s: u64) -> Throttle {
        let bytes_per_s = bytes_per_s.max(1);
        let size = bytes_per_s.saturating_mul(PORTION.as_nanos() as u64) / NANOS;
        Throttle {
            bytes_per_s,
            size: size.clamp(1, PORTION_MAX),
            full_at: Stamp::ZERO,
            opens_at: Stamp::ZERO,
        }
    }

    /// How many bytes may be read at `now`; 0 until [`Throttle::opens_at`].
    #[must_use]
    pub(crate) fn room(&self, now: Stamp) -> usize {
        if now < self.opens_at { 0 } else { self.held(now) as usize }
    }

    /// `bytes` were read at `now`, no more than there was room for.
    pub(crate) fn take(&mut self, bytes: usize, now: Stamp) {
        // Rounded up, so that no rounding makes the reader faster.
        let ns = (bytes as u64).saturating_mul(NANOS).div_ceil(self.bytes_per_s);
        self.full_at = self.full_at.max(now) + Duration::from_nanos(ns);
        if self.held(now) * 2 < self.size {
            self.opens_at = self.full_at;
        }
    }

    /// From when on there is room; in the past if there is some now.
    #[must_use]
    pub(crate) fn opens_at(&self) -> Stamp {
        self.opens_at
    }

    /// How much the kernel may receive ahead, bytes: little, so that what the reader leaves stops the server's sending, but
    /// enough for the rate over a long way (a tenth of a second).
    #[must_use]
    pub(crate) fn receive_buffer(&self) -> usize {
        (self.bytes_per_s / 10).clamp(RECEIVE_BUFFER_MIN, RECEIVE_BUFFER_MAX) as usize
    }

    fn held(&self, now: Stamp) -> u64 {
        let missing = u128::from(self.full_at.nanos_since(now)) * u128::from(self.bytes_per_s);
        self.size.saturating_sub(u64::try_from(missing.div_ceil(u128::from(NANOS))).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{self, Purpose};

    /// Reads whatever `sent` says is there, as soon as it may, and gives the stamps and sizes of the reads.
    fn reads(rate: u64, sent: &[(u64, usize)]) -> Vec<(u64, usize)> {
        let (mut throttle, mut there, mut reads) = (Throttle::new(rate), 0, Vec::new());
        let mut sent = sent.iter().copied().peekable();
        let mut now = Stamp::ZERO;
        loop {
            while let Some((_, bytes)) = sent.next_if(|(at, _)| Stamp::from_nanos(*at) <= now) {
                there += bytes;
            }
            let count = throttle.room(now).min(there);
            if count > 0 {
                there -= count;
                throttle.take(count, now);
                reads.push((now.as_nanos(), count));
            }
            let opens = (there > 0).then(|| throttle.opens_at().max(now + Duration::from_nanos(1)));
            let comes = sent.peek().map(|(at, _)| Stamp::from_nanos(*at));
            match opens.into_iter().chain(comes).min() {
                Some(next) => now = next,
                None => return reads,
            }
        }
    }

    #[test]
    fn a_quick_server_is_read_a_portion_at_a_time() {
        let ms = |n: u64| n * 1_000_000;
        // 1000 bytes a second are 50 in each 50 ms.
        assert_eq!(reads(1000, &[(0, 130)]), [(0, 50), (ms(50), 50), (ms(100), 30)]);
        // 20 of 50 bytes are no more than half missing: 10 more come at once, and then the bucket has to fill.
        let expected = [(0, 20), (ms(1), 31), (ms(51), 19)];
        assert_eq!(reads(1000, &[(0, 20), (ms(1), 50)]), expected);
    }

    #[test]
    fn a_slower_server_is_heard_at_once() {
        let sent: Vec<_> = (0..100).map(|n| (n * 10_000_000, 9)).collect();
        assert_eq!(reads(1000, &sent), sent);
    }

    #[test]
    fn no_span_has_more_than_the_rate_and_a_bucketful() {
        for seed in 0..50 {
            let mut stream = rng::stream(seed, Purpose::Choice, 0);
            let rate = 16 + u64::from(rng::below(&mut stream, 20_000));
            let mut at = 0;
            let sent: Vec<_> = (0..60)
                .map(|_| {
                    at += u64::from(rng::below(&mut stream, 90_000_000));
                    (at, rng::below(&mut stream, 3000) as usize)
                })
                .collect();
            let reads = reads(rate, &sent);
            let total = |list: &[(u64, usize)]| list.iter().map(|(_, bytes)| bytes).sum::<usize>();
            assert_eq!(total(&reads), total(&sent), "everything is read in the end");
            let size = (rate / 20).max(1);
            for (place, (from, _)) in reads.iter().enumerate() {
                let mut within = 0;
                for (until, bytes) in &reads[place..] {
                    within += *bytes as u64;
                    let allowed = (until - from) as f64 * rate as f64 / 1e9 + size as f64;
                    assert!(within as f64 <= allowed + 1e-6, "{within} of {allowed} bytes, seed {seed}");
                }
            }
        }
    }
}
