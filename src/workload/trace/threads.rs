//! The sessions of a file: which of its entries are turns of one conversation, each read when it is wanted.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::entry::{Entry, Session};
use super::error::Error;
use super::format::Format;
use super::reader::{Counts, Options};
use super::source::{Input, Source, open};

/// Where the turns of each session stand: 16 bytes for each turn and 4 for each session.
#[derive(Clone, Debug)]
pub struct Threads {
    /// The format that the file has.
    pub format: Format,
    /// What was read.
    pub counts: Counts,
    /// Session by session, its turns in order.
    turns: Arc<[Place]>,
    /// Where the turns of each session begin; one more at the end.
    starts: Arc<[u32]>,
}

/// An entry: the record that it is in, and which of that record's it is.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    nth: u32,
}

/// A file of which any turn of any session can be taken.
pub struct Spindle<I> {
    source: Source<I>,
    threads: Threads,
}

/// Which session an entry belongs to, while the file is looked through.
#[derive(Default)]
struct Known {
    named: HashMap<Box<str>, u32>,
    linked: HashMap<u64, u32>,
    sessions: u32,
}

impl Threads {
    /// Looks through the file from its beginning. `keeps` is asked of each entry, and whether it is a later turn of a
    /// session that has been kept. Turns follow each other in the order of the file, whatever lies between them; entries
    /// of no session are sessions of one.
    ///
    /// # Errors
    /// Those of [`Survey::of`](super::Survey::of).
    pub fn of(
        file: &str,
        input: &mut dyn Input,
        options: &Options,
        keeps: &mut dyn FnMut(&Entry, bool) -> bool,
    ) -> Result<Threads, Error> {
        Threads::with_names(file, input, options, keeps).map(|(threads, _)| threads)
    }

    /// The same with the place of each session by its name, where it has one.
    ///
    /// # Errors
    /// Those of [`Threads::of`].
    pub fn with_names(
        file: &str,
        input: &mut dyn Input,
        options: &Options,
        keeps: &mut dyn FnMut(&Entry, bool) -> bool,
    ) -> Result<(Threads, HashMap<Box<str>, u32>), Error> {
        let mut core = open(file, input, options)?;
        let mut known = Known::default();
        let mut turns: Vec<(u32, Place)> = Vec::new();
        let (mut record, mut nth) = (None, 0);
        while let Some(entry) = core.entry(input) {
            let entry = entry?;
            let offset = core.record_at().offset;
            nth = if record.replace(offset) == Some(offset) { nth + 1 } else { 0 };
            let earlier = known.session_of(&entry);
            if keeps(&entry, earlier.is_some()) {
                let session = known.learn(&entry, earlier);
                turns.push((session, Place { offset, nth }));
            }
        }
        // A stable sort: the turns of a session stay in the order of the file.
        turns.sort_by_key(|(session, _)| *session);
        let mut starts = vec![0_u32; known.sessions as usize + 1];
        for (session, _) in &turns {
            starts[*session as usize + 1] += 1;
        }
        for place in 1..starts.len() {
            starts[place] += starts[place - 1];
        }
        let turns = turns.into_iter().map(|(_, place)| place).collect();
        let threads = Threads { format: core.format, counts: core.counts, turns, starts: starts.into() };
        Ok((threads, known.named))
    }

    /// The same without the sessions of fewer than `least` turns, and without what goes beyond `most` turns of the others;
    /// with how many sessions are left out, and how many turns are cut off.
    #[must_use]
    pub fn limited(self, least: u32, most: u32) -> (Threads, u64, u64) {
        let (mut left_out, mut cut) = (0, 0);
        let (mut turns, mut starts) = (Vec::new(), vec![0_u32]);
        for session in 0..self.len() {
            let (start, count) = (self.starts[session] as usize, self.turns(session));
            if count < least {
                left_out += 1;
                continue;
            }
            let kept = count.min(most);
            cut += u64::from(count - kept);
            turns.extend_from_slice(&self.turns[start..start + kept as usize]);
            starts.push(turns.len() as u32);
        }
        (Threads { turns: turns.into(), starts: starts.into(), ..self }, left_out, cut)
    }

    /// How many sessions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Turns of the session at `place`; 0 beyond the last.
    #[must_use]
    pub fn turns(&self, place: usize) -> u32 {
        match (self.starts.get(place), self.starts.get(place + 1)) {
            (Some(start), Some(end)) => end - start,
            _ => 0,
        }
    }

    fn place(&self, session: usize, turn: usize) -> Option<Place> {
        let start = *self.starts.get(session)? as usize;
        (turn < self.turns(session) as usize).then(|| self.turns[start + turn])
    }
}

impl Known {
    fn session_of(&self, entry: &Entry) -> Option<u32> {
        match entry.session.as_ref()? {
            Session::Named(name) => self.named.get(name).copied(),
            Session::Linked { parent, .. } => self.linked.get(&(*parent)?).copied(),
        }
    }

    fn learn(&mut self, entry: &Entry, earlier: Option<u32>) -> u32 {
        let session = earlier.unwrap_or_else(|| {
            self.sessions += 1;
            self.sessions - 1
        });
        match &entry.session {
            Some(Session::Named(name)) if earlier.is_none() => {
                self.named.insert(name.clone(), session);
            }
            Some(Session::Linked { id, .. }) => {
                self.linked.insert(*id, session);
            }
            _ => {}
        }
        session
    }
}

impl<I: Input> Spindle<I> {
    /// Opens a file that was looked through with the same options.
    ///
    /// # Errors
    /// Reading fails.
    pub fn open(of: (&str, I), options: &Options, threads: &Threads) -> Result<Spindle<I>, Error> {
        Ok(Spindle { source: Source::open(of, options)?, threads: threads.clone() })
    }

    /// Turn `turn` of the session at `session`; `None` beyond them.
    ///
    /// # Errors
    /// The file has changed, or reading fails.
    pub fn entry(&mut self, session: usize, turn: usize) -> Result<Option<Entry>, Error> {
        let Some(Place { offset, nth }) = self.threads.place(session, turn) else { return Ok(None) };
        let mut entry = self.source.read_at(offset)?;
        for _ in 0..nth {
            entry = self.source.rest_of(offset)?;
        }
        Ok(Some(entry))
    }
}

impl<I> fmt::Debug for Spindle<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spindle").field("sessions", &self.threads.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};

    use super::super::{Prompt, Turns};
    use super::*;

    fn threads(text: &str) -> (Threads, Options) {
        let options = Options { turns: Turns::All, ..Options::default() };
        let mut input = Cursor::new(text);
        let found = Threads::of("f", &mut input, &options, &mut |entry, _| !entry.failed).unwrap();
        (found, options)
    }

    fn told(text: &str) -> Vec<Vec<String>> {
        let (threads, options) = threads(text);
        let input = BufReader::with_capacity(7, Cursor::new(text.to_owned()));
        let mut spindle = Spindle::open(("f", input), &options, &threads).unwrap();
        let mut all = vec![Vec::new(); threads.len()];
        // Backwards: any of them may be wanted at any time.
        for session in (0..threads.len()).rev() {
            for turn in (0..threads.turns(session) as usize).rev() {
                let entry = spindle.entry(session, turn).unwrap().unwrap();
                all[session].insert(
                    0,
                    match entry.prompt {
                        Prompt::Text(text) => text.into(),
                        Prompt::Tokens { count, .. } => count.to_string(),
                        Prompt::Messages { messages, .. } => messages.into(),
                        other => panic!("{other:?}"),
                    },
                );
            }
            assert_eq!(spindle.entry(session, threads.turns(session) as usize), Ok(None));
        }
        assert_eq!(spindle.entry(threads.len(), 0), Ok(None));
        all
    }

    #[test]
    fn turns_of_one_record_are_a_session() {
        let text = "{\"session_id\":\"a\",\"turns\":[\"1\",\"2\",\"3\"]}\n{\"turns\":[\"x\"]}\n{\"turns\":[\"y\",\"z\"]}\n";
        assert_eq!(told(text), [vec!["1", "2", "3"], vec!["x"], vec!["y", "z"]]);
        let array = r#"[{"id":"a","conversations":[{"from":"human","value":"1"},{"from":"gpt","value":"A"},
            {"from":"human","value":"2"},{"from":"gpt","value":"B"}]},
            {"id":"b","conversations":[{"from":"human","value":"3"},{"from":"gpt","value":"C"}]}]"#;
        assert_eq!(told(array), [vec!["1", "2"], vec!["3"]]);
    }

    #[test]
    fn turns_of_several_records_find_each_other_by_name_or_by_link() {
        let named = "{\"text\":\"a1\",\"session_id\":\"a\"}\n{\"text\":\"alone\"}\n{\"text\":\"b1\",\"session_id\":\"b\"}\n\
                     {\"text\":\"a2\",\"session_id\":\"a\"}\n";
        assert_eq!(told(named), [vec!["a1", "a2"], vec!["alone"], vec!["b1"]]);
        let row = |id, parent, tokens| {
            format!(
                "{{\"chat_id\":{id},\"parent_chat_id\":{parent},\"timestamp\":1,\"input_length\":{tokens},\
                 \"output_length\":1,\"turn\":1}}\n"
            )
        };
        let linked = row(1, -1, 10) + &row(7, -1, 20) + &row(2, 1, 11) + &row(3, 2, 12) + &row(9, 99, 30);
        assert_eq!(told(&linked), [vec!["10", "11", "12"], vec!["20"], vec!["30"]]);
    }

    #[test]
    fn a_list_of_messages_is_cut_behind_each_answer() {
        let text = r#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"1"},{"role":"assistant","content":"A"},{"role":"user","content":"2"}],"tools":[{"type":"function"}]}"#;
        let said = told(text);
        assert_eq!(said.len(), 1);
        assert_eq!(said[0][0], r#"[{"role":"system","content":"s"},{"role":"user","content":"1"}]"#);
        assert_eq!(said[0][1], r#"[{"role":"user","content":"2"}]"#);
    }
}
