//! The records of a file in any order: each is read when it is wanted.

use std::fmt;
use std::sync::Arc;

use super::entry::Entry;
use super::error::Error;
use super::format::Format;
use super::reader::{Counts, Options};
use super::source::{Input, Source, open};

/// Where the records of a file stand that are wanted: 8 bytes for each.
#[derive(Clone, Debug)]
pub struct Places {
    /// The format that the file has.
    pub format: Format,
    /// What was read.
    pub counts: Counts,
    offsets: Arc<[u64]>,
}

/// A file of which any record can be taken; of several entries of one record the first.
pub struct Shelf<I> {
    source: Source<I>,
    offsets: Arc<[u64]>,
}

impl Places {
    /// Looks through the file from its beginning. `keeps` is asked of each entry, and whether it is the first of its
    /// record; only first ones are ever kept.
    ///
    /// # Errors
    /// Those of [`Survey::of`](super::Survey::of).
    pub fn of(
        file: &str,
        input: &mut dyn Input,
        options: &Options,
        keeps: &mut dyn FnMut(&Entry, bool) -> bool,
    ) -> Result<Places, Error> {
        let mut core = open(file, input, options)?;
        let mut offsets: Vec<u64> = Vec::new();
        let mut record = None;
        while let Some(entry) = core.entry(input) {
            let entry = entry?;
            let offset = core.record_at().offset;
            let is_first = record.replace(offset) != Some(offset);
            if keeps(&entry, is_first) && is_first {
                offsets.push(offset);
            }
        }
        Ok(Places { format: core.format, counts: core.counts, offsets: offsets.into() })
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }
}

impl<I: Input> Shelf<I> {
    /// Opens a file that was looked through with the same options.
    ///
    /// # Errors
    /// Reading fails.
    pub fn open(of: (&str, I), options: &Options, places: &Places) -> Result<Shelf<I>, Error> {
        Ok(Shelf { source: Source::open(of, options)?, offsets: Arc::clone(&places.offsets) })
    }

    /// The entry at place `place` of those that were kept; `None` beyond them.
    ///
    /// # Errors
    /// The file has changed, or reading fails.
    pub fn entry(&mut self, place: usize) -> Result<Option<Entry>, Error> {
        let Some(offset) = self.offsets.get(place).copied() else { return Ok(None) };
        self.source.read_at(offset).map(Some)
    }
}

impl<I> fmt::Debug for Shelf<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shelf").field("entries", &self.offsets.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};

    use super::super::{Prompt, Reason};
    use super::*;

    fn places(text: &str) -> (Places, Options) {
        let options = Options::default();
        let mut input = Cursor::new(text);
        let places = Places::of("f", &mut input, &options, &mut |entry, _| !entry.failed).unwrap();
        (places, options)
    }

    fn text_of(entry: Entry) -> String {
        match entry.prompt {
            Prompt::Text(text) => text.into(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn records_are_taken_in_any_order_from_lines_arrays_and_conversations() {
        let lines: String = (0..20).map(|i| format!("{{\"prompt\": \"p{i}\"}}\n\n")).collect();
        let chat = |i| {
            format!(r#"{{"conversations":[{{"from":"human","value":"p{i}"}},{{"from":"gpt","value":"a"}}]}}"#)
        };
        let array = format!("[{}]", (0..20).map(chat).collect::<Vec<_>>().join(" ,\n"));
        let several: String =
            (0..20).map(|i| format!("{{\"session_id\":\"{i}\",\"turns\":[\"p{i}\",\"more\"]}}\n")).collect();
        for text in [lines, array, several] {
            let (places, options) = places(&text);
            assert_eq!(places.len(), 20);
            let input = BufReader::with_capacity(7, Cursor::new(text));
            let mut shelf = Shelf::open(("f", input), &options, &places).unwrap();
            for place in [19, 0, 3, 2, 2, 11, 19] {
                assert_eq!(text_of(shelf.entry(place).unwrap().unwrap()), format!("p{place}"));
            }
            assert_eq!(shelf.entry(20), Ok(None));
        }
    }

    #[test]
    fn a_file_that_changed_is_told() {
        let text = "{\"prompt\": \"a\"}\n{\"prompt\": \"b\"}\n";
        let (places, options) = places(text);
        let mut shelf = Shelf::open(("f", Cursor::new("{\"prompt\": 1}\n")), &options, &places).unwrap();
        for place in [0, 1] {
            assert_eq!(shelf.entry(place).unwrap_err().reason, Reason::Changed);
        }
    }
}
