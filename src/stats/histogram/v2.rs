//! The stored form of HdrHistogram, version 2, deflated: byte for byte what `hdrhistogram` writes of the same counts.
//!
//! The crate writes it from an array of all buckets of the range, with room for nine bytes each: some 0.4 MB for a moment,
//! several dozen times at the end of a level, where a program that does little else has its most memory. Here only what is
//! written takes room. Reading is the crate's.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// Of a histogram from 1 to `highest` in `digits` digits: its `buckets` that hold values, ascending, each with its place and
/// its count.
pub(super) fn deflated(buckets: impl Iterator<Item = (u16, u64)>, highest: u64, digits: u8) -> Vec<u8> {
    let mut counts = Vec::new();
    let mut next = 0;
    for (place, count) in buckets {
        match place - next {
            0 => {}
            // One empty bucket is a count of zero, several are their number, negative.
            1 => put(&mut counts, 0),
            empty => put(&mut counts, -i64::from(empty)),
        }
        put(&mut counts, i64::try_from(count).unwrap_or(i64::MAX));
        next = place + 1;
    }
    if counts.is_empty() {
        put(&mut counts, 0);
    }
    let mut plain = Vec::with_capacity(HEAD_BYTES + counts.len());
    plain.extend(COOKIE.to_be_bytes());
    plain.extend((counts.len() as u32).to_be_bytes());
    // What indices are normalised by.
    plain.extend(0_u32.to_be_bytes());
    plain.extend(u32::from(digits).to_be_bytes());
    plain.extend(1_u64.to_be_bytes());
    plain.extend(highest.to_be_bytes());
    // What counts of integers are multiplied by where they stand for floats.
    plain.extend(1_f64.to_be_bytes());
    plain.extend(counts);
    let mut out = COOKIE_DEFLATED.to_be_bytes().to_vec();
    out.extend([0; 4]);
    let mut deflate = ZlibEncoder::new(out, Compression::default());
    let written = deflate.write_all(&plain).and_then(|()| deflate.finish());
    let mut out = written.expect("writing to memory does not fail");
    let bytes = (out.len() - 8) as u32;
    out[4..8].copy_from_slice(&bytes.to_be_bytes());
    out
}

const COOKIE: u32 = 0x1c84_9303 | 0x10;
const COOKIE_DEFLATED: u32 = 0x1c84_9304 | 0x10;
const HEAD_BYTES: usize = 40;

/// Appends `number` zig-zagged, seven bits a byte, the lowest first; a ninth byte has eight.
fn put(out: &mut Vec<u8>, number: i64) {
    let mut left = ((number << 1) ^ (number >> 63)) as u64;
    for _ in 0..8 {
        if left < 0x80 {
            return out.push(left as u8);
        }
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}
