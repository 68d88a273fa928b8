//! The text that the server speaks: words that are one token in most tokenizers, all of one length in bytes, so that
//! patching them into an event changes no other byte.

/// Which words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Vocabulary {
    /// With letters of two, three and four bytes.
    MultiByte,
    /// ASCII.
    #[default]
    Plain,
}

/// Length of every word, with the space before it, bytes.
pub(super) const WORD: usize = 6;

const PLAIN: [&[u8; WORD]; 16] = [
    b" apple", b" bread", b" cloud", b" dance", b" eagle", b" field", b" grass", b" house", b" light",
    b" music", b" north", b" ocean", b" plant", b" river", b" stone", b" water",
];

const MULTI_BYTE: [&str; 4] = [" caf\u{e9}", " 5\u{e9}\u{e8}", " a\u{20ac}b", " a\u{1f600}"];

impl Vocabulary {
    /// The word of token `number` of a choice; choices begin at different words.
    pub(super) fn word(self, choice: u32, number: u32) -> &'static [u8] {
        let place = choice.wrapping_mul(5).wrapping_add(number) as usize;
        match self {
            Vocabulary::MultiByte => MULTI_BYTE[place % MULTI_BYTE.len()].as_bytes(),
            Vocabulary::Plain => PLAIN[place % PLAIN.len()],
        }
    }

    /// Appends the words of `count` tokens from number `from`.
    pub(super) fn write(self, choice: u32, from: u32, count: u32, out: &mut Vec<u8>) {
        for place in 0..count {
            out.extend_from_slice(self.word(choice, from.wrapping_add(place)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_words_are_of_one_length_and_text() {
        for vocabulary in [Vocabulary::MultiByte, Vocabulary::Plain] {
            let mut text = Vec::new();
            vocabulary.write(1, u32::MAX - 7, 40, &mut text);
            assert_eq!(text.len(), 40 * WORD);
            let text = String::from_utf8(text).unwrap();
            assert_eq!(text.is_ascii(), vocabulary == Vocabulary::Plain);
            assert_eq!(text.split(' ').count(), 41);
        }
    }
}
