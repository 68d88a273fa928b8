//! A tokenizer of Hugging Face in this process, read from the text of its `tokenizer.json`.
//!
//! Behind the cargo feature `tokenizer`. It counts before the run and never while it runs.

use std::fmt;

/// A tokenizer.
pub struct Tokenizer(tokenizers::Tokenizer);

impl Tokenizer {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// Why it is none, in words.
    pub fn read(text: &[u8]) -> Result<Tokenizer, String> {
        let mut tokenizer = tokenizers::Tokenizer::from_bytes(text).map_err(|error| error.to_string())?;
        // A file may say both, for batches of training.
        tokenizer.with_truncation(None).map_err(|error| error.to_string())?;
        tokenizer.with_padding(None);
        Ok(Tokenizer(tokenizer))
    }

    /// The tokens of a text, without those that mark its beginning or end.
    ///
    /// # Errors
    /// The text cannot be tokenised: a vocabulary without a token for what it does not know.
    pub fn tokens(&self, text: &str) -> Result<Vec<u32>, String> {
        let encoding = self.0.encode_fast(text, false).map_err(|error| error.to_string())?;
        Ok(encoding.get_ids().to_vec())
    }

    /// How many tokens mark the beginning and the end of a text.
    #[must_use]
    pub fn added(&self) -> u32 {
        let marks = self.0.encode_fast("", true).map_or(0, |encoding| encoding.len());
        u32::try_from(marks).unwrap_or(u32::MAX)
    }

    /// Words of the vocabulary, small letters after a blank, those of the smallest ids first.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let vocabulary = self.0.get_vocab(false);
        let word = |piece: &str| {
            let word = piece.strip_prefix(['\u{120}', '\u{2581}', ' '])?;
            let is_word =
                (2..=12).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase());
            is_word.then(|| word.to_owned())
        };
        let mut words: Vec<(u32, String)> =
            vocabulary.iter().filter_map(|(piece, id)| Some((*id, word(piece)?))).collect();
        words.sort_unstable();
        words.into_iter().map(|(_, word)| word).collect()
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer").finish_non_exhaustive()
    }
}
