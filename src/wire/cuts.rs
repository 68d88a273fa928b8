//! Ways to cut a stream of bytes into reads, for the laws that say that a cut changes nothing.

/// One way to cut a stream, drawn from a state that moves on with every read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cuts {
    /// No read is longer than this.
    len_max: usize,
    state: u64,
}

impl Cuts {
    /// Everything in one read.
    pub(crate) fn none() -> Cuts {
        Cuts { len_max: usize::MAX, state: 0 }
    }

    /// Byte by byte, and four others that the bytes decide, so that a finding repeats.
    pub(crate) fn of(bytes: &[u8]) -> [Cuts; 5] {
        // FNV-1a, and an odd number so that the state never sticks at 0.
        let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let state = bytes.iter().fold(0xcbf2_9ce4_8422_2325, hash) | 1;
        [1, 2, 5, 40, 400].map(|len_max| Cuts { len_max, state })
    }

    /// The length of the next read, at least 1 and at most `left`, which is not 0.
    pub(crate) fn next_len(&mut self, left: usize) -> usize {
        // xorshift64.
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let span = self.len_max.min(left);
        if self.state == 0 { span } else { 1 + (self.state % span as u64) as usize }
    }
}
