//! In which portions bytes are handed to the kernel. Each portion is a send of its own, and with Nagle's algorithm
//! off a segment of its own unless the peer's window is full.

use super::faults::{Delivery, Fault};

/// Where bytes are cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Segments {
    /// After every byte.
    Bytes,
    /// After the first byte of every letter that has several.
    Letters,
    /// Nowhere.
    #[default]
    Whole,
}

impl Segments {
    pub(super) fn of(fault: Option<Fault>) -> Segments {
        match fault.and_then(Fault::delivery) {
            Some(Delivery::ByteSegments) => Segments::Bytes,
            Some(Delivery::SplitUtf8) => Segments::Letters,
            _ => Segments::Whole,
        }
    }

    /// The portions of `bytes`, none of them empty.
    pub(super) fn split(self, mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
        std::iter::from_fn(move || {
            let (portion, rest) = bytes.split_at(self.first(bytes));
            bytes = rest;
            (!portion.is_empty()).then_some(portion)
        })
    }

    /// Length of the first portion.
    fn first(self, bytes: &[u8]) -> usize {
        match self {
            Segments::Bytes => bytes.len().min(1),
            // The lead byte of a letter of several has its two upper bits set.
            Segments::Letters => bytes.iter().position(|byte| *byte >= 0xC0).map_or(bytes.len(), |at| at + 1),
            Segments::Whole => bytes.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_add_up_and_are_cut_where_they_should() {
        let text = "caf\u{e9} \u{20ac}\u{1f600}x".as_bytes();
        let of = |segments: Segments| segments.split(text).map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(of(Segments::Whole), [text.to_vec()]);
        assert_eq!(of(Segments::Bytes).len(), text.len());
        let letters = of(Segments::Letters);
        assert_eq!(letters.len(), 4);
        assert!(letters[..3].iter().all(|portion| std::str::from_utf8(portion).is_err()));
        for segments in [Segments::Bytes, Segments::Letters, Segments::Whole] {
            assert_eq!(of(segments).concat(), text);
            assert_eq!(segments.split(b"").count(), 0);
        }
    }
}
