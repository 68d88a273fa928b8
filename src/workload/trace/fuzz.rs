//! The law of the readers, for any bytes. See `fuzz/fuzz_targets/trace.rs`.

use std::io::{BufRead, BufReader, Cursor};

use super::agents::{AgentReader, Agents};
use super::entry::Entry;
use super::error::{Error, OnError};
use super::format::Format;
use super::order::{Planned, Replay, Survey};
use super::reader::{Counts, Options, Reader};
use super::select::Selection;
use super::sharegpt::Turns;

/// Reads the bytes behind the first one as a file of the format that the first one chooses (or, beyond them, of the
/// one that is detected).
///
/// - Nothing panics, and reading ends.
/// - Every error and every entry names a line that the file has.
/// - How the bytes are cut changes nothing.
/// - Skipping what is malformed first meets the error that failing ends with.
/// - A replay gives the same entries, no offset earlier than the one before it.
#[doc(hidden)]
pub fn fuzz_trace(bytes: &[u8]) {
    let Some((choice, file)) = bytes.split_first() else { return };
    let options = options(*choice);
    let whole = read(&mut &*file, &options);
    // Two more lines: that behind the last line end, and the end of the file.
    let lines = file.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    for error in whole.errors() {
        assert!((1..=lines).contains(&error.line), "{error:?} of {lines} lines");
    }
    assert!(whole.entries.iter().all(|entry| (1..=lines).contains(&entry.line)));
    assert_eq!(read(&mut BufReader::with_capacity(1 + usize::from(*choice) % 7, file), &options), whole);
    let failing = read(&mut &*file, &Options { on_error: OnError::Fail, ..options.clone() });
    assert_eq!(failing.errors().next(), whole.errors().next());
    replay(file, &options, &whole);
}

/// What a file gave.
#[derive(Debug, PartialEq)]
struct Read {
    entries: Vec<Entry>,
    counts: Counts,
    end: Option<Error>,
}

impl Read {
    /// Those that are known, in their order.
    fn errors(&self) -> impl Iterator<Item = &Error> {
        self.counts.first_errors.iter().chain(&self.end)
    }
}

fn options(choice: u8) -> Options {
    let turns = [Turns::First, Turns::All, Turns::Vllm][usize::from(choice) / 32 % 3];
    Options {
        format: Format::ALL.get(usize::from(choice) % 32).copied(),
        on_error: OnError::Skip,
        turns,
        // Short enough for a seed to pass it.
        record_bytes_max: 4096,
        ..Options::default()
    }
}

fn read(input: &mut dyn BufRead, options: &Options) -> Read {
    let mut reader = match Reader::open("fuzz", input, options.clone()) {
        Ok(reader) => reader,
        Err(error) => return Read { entries: Vec::new(), counts: Counts::default(), end: Some(error) },
    };
    let mut entries = Vec::new();
    let mut end = None;
    for entry in &mut reader {
        match entry {
            Ok(entry) => entries.push(entry),
            Err(error) => end = Some(error),
        }
    }
    Read { entries, counts: reader.counts().clone(), end }
}

fn replay(file: &[u8], options: &Options, whole: &Read) {
    let mut input = Cursor::new(file);
    let survey = match Survey::of("fuzz", &mut input, options) {
        Ok(survey) => survey,
        Err(error) => return assert_eq!(Some(error), whole.end),
    };
    assert_eq!(survey.counts, whole.counts);
    let replay = Replay::new("fuzz", &mut input, options, &survey).expect("it was read before");
    let planned: Vec<Planned> = replay.map(|planned| planned.expect("it was read before")).collect();
    let mut replayed: Vec<_> = planned.iter().map(|planned| planned.entry.clone()).collect();
    if survey.is_in_order {
        assert_eq!(replayed, whole.entries);
    } else {
        assert_eq!(replayed.len(), whole.entries.len());
        let mut read: Vec<_> = whole.entries.iter().map(|entry| Entry { line: 0, ..entry.clone() }).collect();
        // The same entries in another order.
        for entries in [&mut replayed, &mut read] {
            entries.sort_by_cached_key(|entry| format!("{entry:?}"));
        }
        assert_eq!(replayed, read);
    }
    if survey.format == Format::Weka {
        agents(file, options, whole);
    }
    if !matches!(survey.format, Format::Weka | Format::AiperfMultiTurn) {
        assert!(planned.iter().filter_map(|planned| planned.offset_ns).is_sorted());
    }
    let kept = Selection::default().of(planned.into_iter().map(Ok)).count();
    assert_eq!(kept, whole.entries.iter().filter(|entry| !entry.failed).count());
}

/// Each request of agents is what it was in the order of the file, and waits for earlier ones alone, which know of it.
fn agents(file: &[u8], options: &Options, whole: &Read) {
    let agents =
        Agents::of("fuzz", &mut Cursor::new(file), options, &mut |_, _| true).expect("it was read before");
    let of = ("fuzz", Cursor::new(file));
    let mut reader = AgentReader::open(of, options, &agents).expect("it was read before");
    let mut entries = whole.entries.iter();
    for session in 0..agents.len() {
        for number in 0..agents.requests(session) {
            let read = reader.entry(session, number).expect("it was read before").expect("it is there");
            let Some(entry) = entries.next() else { panic!("more requests than entries") };
            assert_eq!(
                (&read.prompt, read.output_tokens, &read.model),
                (&entry.prompt, entry.output_tokens, &entry.model)
            );
            for before in agents.after(session, number) {
                assert!(*before < number && agents.next(session, *before).contains(&number));
            }
            for next in agents.next(session, number) {
                assert!(agents.after(session, *next).contains(&number));
            }
        }
    }
    assert_eq!(entries.count() as u64, agents.beyond);
}
