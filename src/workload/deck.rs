//! A data set as the prompts of a load: which record each request takes, and what is known of them beforehand.
//!
//! Owns the order (by the seed, another one for each pass through the file) and what of a file is left out. Formats are
//! [`trace`](super::trace)'s, bodies [`recorded`](super::recorded)'s. Of a file only the places of its records are kept,
//! 8 bytes each; every shard reads them from a handle of its own when it writes their requests.

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use rand_xoshiro::rand_core::Rng as _;

use super::recorded::Bodies;
use super::recording::{Open, Refusal};
use super::reuse::{Blocks, Reuse};
use super::trace::{
    AgentReader, Agents, Counts, Entry, Error, Format, Input, OnError, Options, Places, Prompt, Shelf,
    Spindle, Threads, Turns, format_of, vllm_sharegpt_keeps,
};
use crate::plan::{Compat, DataSet, Filter, LengthRule, RecordErrors};
use crate::rng::{self, Purpose};

/// A data set that was looked through.
pub struct Deck {
    file: Arc<str>,
    options: Options,
    places: Where,
    open: Open,
    is_shuffled: bool,
    lengths: LengthRule,
    contents: Contents,
    /// Why reading failed behind the look, where it has.
    broken: OnceLock<Error>,
}

/// Where what requests take stands.
#[derive(Debug)]
enum Where {
    /// First questions alone.
    Prompts(Places),
    /// Whole conversations.
    Sessions(Threads),
    /// Whole sessions of agents that start others.
    Agents(Agents),
}

/// What a look through a data set found.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    /// Its format.
    pub format: Format,
    /// What was read.
    pub counts: Counts,
    /// Prompts that requests take, or sessions.
    pub prompts: u64,
    /// Later turns that are sent.
    pub later: u64,
    /// Left out: later turns of conversations, which would need the answer before them.
    pub turns: u64,
    /// Left out: calls that failed when they were recorded.
    pub failed: u64,
    /// Left out: ready bodies for another path than the run's.
    pub other_paths: u64,
    /// Left out: prompts of other lengths than are wanted, or that the rules of another tool leave out.
    pub filtered: u64,
    /// Prompts that are chat messages.
    pub chats: u64,
    /// Prompts whose images are left out.
    pub images: u64,
    /// Tokens of the longest request, its answer included, as far as the file gives lengths.
    pub longest_prompt: Option<u32>,
    /// Ready bodies, by what they are for.
    pub bodies: Bodies,
    /// Prompts that have a time in the file, which is not kept.
    pub timed: u64,
    /// Answers whose length the file says.
    pub lengths_said: u64,
    /// Answers whose length is estimated from their recorded text.
    pub lengths_estimated: u64,
    /// Lengths of the first prompts: words, and tokens of the answer where the file says.
    pub first: Vec<(u32, Option<u32>)>,
    /// Of sessions of agents: the tokens of their prompts, and how many of them a prefix cache without an end finds, unless
    /// their blocks are too many to be remembered.
    pub agents: Option<Reuse>,
}

/// The data set as one shard reads it.
#[derive(Debug)]
pub struct Hand {
    of: Arc<Deck>,
    shelf: Option<Shelf<Box<dyn Input + Send>>>,
    spindle: Option<Spindle<Box<dyn Input + Send>>>,
    agents: Option<AgentReader<Box<dyn Input + Send>>>,
}

impl Deck {
    /// Looks through the data set of a plan whose requests go to `path`, for the first question of each conversation.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn look(data: &DataSet, path: &str, open: Open) -> Result<Deck, Refusal> {
        let file: Arc<str> = data.file.as_str().into();
        let options = options(data)?;
        let mut input = open().map_err(Refusal::Unreadable)?;
        let mut contents = Contents::none();
        let rules = Rules::of(data);
        let mut keeps = |entry: &Entry, is_first| contents.count(entry, &rules, (path, is_first));
        let places = Places::of(&file, &mut input, &options, &mut keeps).map_err(Refusal::Record)?;
        (contents.format, contents.counts) = (places.format, places.counts.clone());
        Deck::of(data, (file, options, open), Where::Prompts(places), contents)
    }

    /// The same for whole conversations.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn look_for_sessions(data: &DataSet, path: &str, open: Open) -> Result<Deck, Refusal> {
        let file: Arc<str> = data.file.as_str().into();
        let options = Options { turns: Turns::All, ..options(data)? };
        let mut input = open().map_err(Refusal::Unreadable)?;
        let mut contents = Contents::none();
        let rules = Rules::of(data);
        if format_of(&file, &mut input, &options).map_err(Refusal::Record)? == Format::Weka {
            let mut blocks = Blocks::default();
            let mut keeps = |entry: &Entry, _| contents.count_of_agents(entry, &rules, &mut blocks);
            let agents = Agents::of(&file, &mut input, &options, &mut keeps).map_err(Refusal::Record)?;
            contents.end_agents(&agents, &blocks);
            return Deck::of(data, (file, options, open), Where::Agents(agents), contents);
        }
        let mut keeps = |entry: &Entry, is_later| contents.count_turn(entry, &rules, (path, is_later));
        let threads = Threads::of(&file, &mut input, &options, &mut keeps).map_err(Refusal::Record)?;
        (contents.format, contents.counts) = (threads.format, threads.counts.clone());
        Deck::of(data, (file, options, open), Where::Sessions(threads), contents)
    }

    fn of(
        data: &DataSet,
        (file, options, open): (Arc<str>, Options, Open),
        places: Where,
        contents: Contents,
    ) -> Result<Deck, Refusal> {
        if contents.format == Format::Weka && !matches!(places, Where::Agents(_)) {
            return Err(Refusal::OfSessions);
        }
        if contents.prompts == 0 {
            return Err(Refusal::Nothing);
        }
        let (is_shuffled, lengths) = (data.shuffle, data.lengths);
        let broken = OnceLock::new();
        Ok(Deck { file, options, places, open, is_shuffled, lengths, contents, broken })
    }

    /// What the look found.
    #[must_use]
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The place of the prompt that request `index` of a level with this seed takes: all are taken once before the first
    /// comes again.
    #[must_use]
    pub fn place(&self, seed: u64, index: u64) -> u64 {
        let prompts = self.contents.prompts.max(1);
        let (pass, place) = (index / prompts, index % prompts);
        if self.is_shuffled {
            shuffled(place, prompts, rng::stream(seed, Purpose::DataOrder, pass).next_u64())
        } else {
            place
        }
    }

    /// Turns of the session at `place`, at least 1.
    #[must_use]
    pub fn turns(&self, place: u64) -> u16 {
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        let turns = match &self.places {
            Where::Prompts(_) => 1,
            Where::Sessions(threads) => threads.turns(place),
            Where::Agents(agents) => agents.requests(place).into(),
        };
        u16::try_from(turns.max(1)).unwrap_or(u16::MAX)
    }

    /// The sessions of agents that it is of.
    #[must_use]
    pub fn agents(&self) -> Option<&Agents> {
        match &self.places {
            Where::Agents(agents) => Some(agents),
            _ => None,
        }
    }

    /// How often all of these sessions have been taken before request `index`; 0 for other data sets.
    pub(super) fn pass_of_agents(&self, index: u64) -> u64 {
        self.agents().map_or(0, |_| index / self.contents.prompts.max(1))
    }

    /// The length of the answer to `entry`, where the data set decides it.
    #[must_use]
    pub fn output_tokens(&self, entry: &Entry) -> Option<u32> {
        match self.lengths {
            LengthRule::Planned => None,
            LengthRule::Recorded => recorded_tokens(entry),
        }
    }

    /// Whether the data set decides how long answers are, where it says.
    #[must_use]
    pub fn decides_lengths(&self) -> bool {
        self.lengths == LengthRule::Recorded
    }

    /// A handle for one shard, whose file is not opened yet.
    #[must_use]
    pub fn hand(self: &Arc<Deck>) -> Hand {
        Hand { of: Arc::clone(self), shelf: None, spindle: None, agents: None }
    }

    /// Why a prompt could not be read, if one could not.
    #[must_use]
    pub fn fault(&self) -> Option<&Error> {
        self.broken.get()
    }
}

impl Hand {
    /// The prompt at `place`, the first of its session; `None` where the file can no longer be read ([`Deck::fault`]).
    pub fn entry(&mut self, place: u64) -> Option<Entry> {
        self.turn(place, 0)
    }

    /// Turn `turn` of the session at `place`; `None` beyond the last, and where the file can no longer be read.
    pub fn turn(&mut self, place: u64, turn: u16) -> Option<Entry> {
        let read = self.read(place, turn);
        read.unwrap_or_else(|error| {
            // Whoever notices first says so.
            let _ = self.of.broken.set(error);
            None
        })
    }

    fn read(&mut self, place: u64, turn: u16) -> Result<Option<Entry>, Error> {
        let Deck { file, options, places, open, .. } = &*self.of;
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        let opened = || open().map_err(|error: io::Error| super::trace::unreadable(file, &error));
        match places {
            Where::Prompts(_) if turn > 0 => Ok(None),
            Where::Prompts(places) => {
                if self.shelf.is_none() {
                    self.shelf = Some(Shelf::open((&**file, opened()?), options, places)?);
                }
                self.shelf.as_mut().map_or(Ok(None), |shelf| shelf.entry(place))
            }
            Where::Sessions(threads) => {
                if self.spindle.is_none() {
                    self.spindle = Some(Spindle::open((&**file, opened()?), options, threads)?);
                }
                self.spindle.as_mut().map_or(Ok(None), |spindle| spindle.entry(place, usize::from(turn)))
            }
            Where::Agents(agents) => {
                if self.agents.is_none() {
                    self.agents = Some(AgentReader::open((&**file, opened()?), options, agents)?);
                }
                self.agents.as_mut().map_or(Ok(None), |reader| reader.entry(place, turn))
            }
        }
    }
}

impl Contents {
    fn none() -> Contents {
        Contents {
            format: Format::Text,
            counts: Counts::default(),
            prompts: 0,
            later: 0,
            turns: 0,
            failed: 0,
            other_paths: 0,
            filtered: 0,
            chats: 0,
            images: 0,
            longest_prompt: None,
            bodies: Bodies::default(),
            timed: 0,
            lengths_said: 0,
            lengths_estimated: 0,
            first: Vec::new(),
            agents: None,
        }
    }

    /// Counts a request of agents, and says whether it is kept.
    fn count_of_agents(&mut self, entry: &Entry, rules: &Rules, blocks: &mut Blocks) -> bool {
        if !rules.keep(entry) {
            self.filtered += 1;
            return false;
        }
        if self.first.len() < FIRST_MAX {
            self.first.push((entry.words(), recorded_tokens(entry)));
        }
        self.later += 1;
        self.lengths_said += u64::from(entry.output_tokens.is_some());
        self.longest_prompt = self.longest_prompt.max(entry.whole_tokens());
        let reuse = self.agents.get_or_insert_default();
        if let Some((tokens, found)) = blocks.found(entry) {
            reuse.prompt_tokens += u64::from(tokens);
            reuse.found_tokens += u64::from(found);
        }
        true
    }

    fn end_agents(&mut self, agents: &Agents, blocks: &Blocks) {
        (self.format, self.counts) = (agents.format, agents.counts.clone());
        self.prompts = agents.len() as u64;
        self.turns = agents.beyond;
        self.later -= self.turns + self.prompts;
        self.agents = self.agents.filter(|_| blocks.knows_all());
    }

    /// Counts an entry, and says whether it is kept.
    fn count(&mut self, entry: &Entry, rules: &Rules, (path, is_first): (&str, bool)) -> bool {
        let is_turn = entry.turn.is_some_and(|turn| turn > 0) || entry.after_previous.is_some();
        // A length with blocks stands for the whole prompt, answers of earlier turns included.
        let is_whole = matches!(entry.prompt, Prompt::Tokens { .. });
        let is_later = !is_first || (is_turn && !is_whole);
        let left_out = if entry.failed {
            &mut self.failed
        } else if is_later {
            &mut self.turns
        } else if is_for_another_path(entry, path) {
            &mut self.other_paths
        } else if !rules.keep(entry) {
            &mut self.filtered
        } else {
            self.prompts += 1;
            if self.first.len() < FIRST_MAX {
                self.first.push((entry.words(), recorded_tokens(entry)));
            }
            self.keep(entry);
            return true;
        };
        *left_out += 1;
        false
    }

    /// Counts an entry where whole conversations are sent, and says whether it is kept.
    fn count_turn(&mut self, entry: &Entry, rules: &Rules, (path, is_later): (&str, bool)) -> bool {
        if !is_later {
            let first = Entry { turn: None, after_previous: None, ..entry.clone() };
            return self.count(&first, rules, (path, true));
        }
        let left_out = if entry.failed {
            &mut self.failed
        } else if is_for_another_path(entry, path) {
            &mut self.other_paths
        } else {
            self.later += 1;
            self.keep(entry);
            return true;
        };
        *left_out += 1;
        false
    }

    fn keep(&mut self, entry: &Entry) {
        self.chats += u64::from(matches!(entry.prompt, Prompt::Messages { .. }));
        self.images += u64::from(entry.images > 0);
        self.longest_prompt = self.longest_prompt.max(entry.whole_tokens());
        self.bodies.count(entry);
        self.timed += u64::from(entry.at.is_some());
        self.lengths_said += u64::from(entry.output_tokens.is_some());
        self.lengths_estimated += u64::from(entry.output_tokens.is_none() && entry.answer.is_some());
    }
}

impl fmt::Debug for Deck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deck")
            .field("file", &self.file)
            .field("contents", &self.contents)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Contents {
    /// One line: `sharegpt data: 2 prompts, answers of 2 estimated from their recorded texts; left out: 1 later turn`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = |n: u64| if n == 1 { "" } else { "s" };
        match self.later {
            0 => write!(f, "{} data: {} prompt{}", self.format.name(), self.prompts, s(self.prompts))?,
            later => {
                let (sessions, turns) = (self.prompts, self.prompts + later);
                write!(f, "{} data: {sessions} session{} of {turns} turns", self.format.name(), s(sessions))?;
            }
        }
        if let Some(reuse) = self.agents {
            let (tokens, share) = (reuse.prompt_tokens, 100.0 * reuse.share());
            write!(f, ", {tokens} prompt tokens, of which a prefix cache without an end finds {share:.1} %")?;
        }
        let left_out = [
            (self.counts.malformed, "malformed record"),
            (self.counts.unanswered, "unanswered conversation"),
            (self.failed, "failed call"),
            (self.turns, "later turn"),
            (self.other_paths, "other request"),
            (self.filtered, "filtered prompt"),
        ];
        let said = left_out.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}{}", s(*n)));
        let said: Vec<String> = said.collect();
        if !said.is_empty() {
            write!(f, "; left out: {}", said.join(", "))?;
        }
        if self.images > 0 {
            write!(f, "; {} without images that belong to them", self.images)?;
        }
        Ok(())
    }
}

fn options(data: &DataSet) -> Result<Options, Refusal> {
    let named = |name: &String| Format::from_name(name).ok_or_else(|| Refusal::UnknownFormat(name.clone()));
    Ok(Options {
        format: data.format.as_ref().map(named).transpose()?,
        on_error: match data.errors {
            RecordErrors::Fail => OnError::Fail,
            RecordErrors::Skip => OnError::Skip,
        },
        column: data.column.as_deref().map(Into::into),
        turns: if data.compat == Some(Compat::Vllm) { Turns::Vllm } else { Turns::default() },
        ..Options::default()
    })
}

/// Which prompts are left out for what they are.
struct Rules {
    filter: Filter,
    compat: Option<Compat>,
    /// Answers have another length than the recorded one.
    output_is_set: bool,
}

impl Rules {
    fn of(data: &DataSet) -> Rules {
        let output_is_set = data.lengths == LengthRule::Planned;
        Rules { filter: data.filter, compat: data.compat, output_is_set }
    }

    fn keep(&self, entry: &Entry) -> bool {
        let prompt = entry.prompt_tokens().unwrap_or_else(|| tokens_of(entry.words()));
        let answer = recorded_tokens(entry);
        let by_tool = match (self.compat, entry.answer.is_some(), entry.model.as_deref()) {
            (Some(Compat::Vllm), true, _) => {
                vllm_sharegpt_keeps(prompt, answer.unwrap_or(0), self.output_is_set)
            }
            // Of the formats with a model in each record only BurstGPT's are prompts of a data set there.
            (Some(Compat::Vllm), false, Some(model)) => model == "GPT-4",
            _ => true,
        };
        by_tool && self.filter.keeps(prompt, answer)
    }
}

/// The recorded length of an answer, or an estimate from its text.
fn recorded_tokens(entry: &Entry) -> Option<u32> {
    let estimate = |text: &str| tokens_of(u32::try_from(text.split_whitespace().count()).unwrap_or(u32::MAX));
    entry.output_tokens.or_else(|| entry.answer.as_deref().map(estimate))
}

/// Tokens of so many words: four for three, as in English.
fn tokens_of(words: u32) -> u32 {
    words.saturating_mul(4).div_ceil(3)
}

/// Bodies name their path with or without what stands before `/v1`.
fn is_for_another_path(entry: &Entry, path: &str) -> bool {
    match &entry.prompt {
        Prompt::Body { url: Some(url), .. } => !(url.ends_with(path) || path.ends_with(&**url)),
        _ => false,
    }
}

/// The image of `place` under a permutation of the numbers below `n`: a network of four rounds over twice half the bits,
/// walked until it is below `n` again. It takes no memory, whatever `n`.
fn shuffled(place: u64, n: u64, key: u64) -> u64 {
    let half = (u64::BITS - n.saturating_sub(1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1 << half) - 1;
    let mut at = place;
    loop {
        let (mut left, mut right) = (at >> half, at & mask);
        for round in 0..4 {
            (left, right) = (right, left ^ (rng::mixed(key ^ (right << 3 | round)) & mask));
        }
        at = left << half | right;
        // The numbers below 4 n at most are permuted, so the walk is short; it ends because it comes back to `place`.
        if at < n {
            return at;
        }
    }
}

/// Prompts whose lengths a warm-up repeats.
const FIRST_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::io::Cursor;

    use super::*;

    fn deck(text: &'static str, data: &DataSet) -> Result<Arc<Deck>, Refusal> {
        let open: Open = Box::new(move || Ok(Box::new(Cursor::new(text))));
        Deck::look(data, "/v1/chat/completions", open).map(Arc::new)
    }

    #[test]
    fn a_shuffle_is_a_permutation_of_any_size() {
        for n in [1, 2, 3, 7, 64, 65, 1000, 4097] {
            for key in [0, 1, u64::MAX] {
                let images: HashSet<u64> = (0..n).map(|place| shuffled(place, n, key)).collect();
                assert!(images.len() as u64 == n && images.iter().all(|image| *image < n), "{n}");
            }
        }
    }

    #[test]
    fn shuffles_are_even_and_differ_by_key() {
        // Where place 0 goes among 10, over 10 000 keys: 1000 each, sd 30; five of those either way.
        let mut counts = [0_u32; 10];
        for key in 0..10_000 {
            counts[shuffled(0, 10, rng::mixed(key)) as usize] += 1;
        }
        assert!(counts.iter().all(|n| (850..=1150).contains(n)), "{counts:?}");
        // Fixed points of a random permutation of 1000: 1 on average.
        let fixed: usize = (0..50)
            .map(|key| (0..1000).filter(|place| shuffled(*place, 1000, rng::mixed(key)) == *place).count())
            .sum();
        assert!((15..=95).contains(&fixed), "{fixed}");
    }

    #[test]
    fn every_prompt_is_taken_once_before_the_first_comes_again() {
        let text = "a\nb\nc\nd\ne\n";
        let data = DataSet::of("t.txt");
        let shuffled = deck(text, &data).unwrap();
        let pass = |seed, pass: u64| (0..5).map(|i| shuffled.place(seed, pass * 5 + i)).collect::<Vec<_>>();
        for seed in 0..20 {
            for n in 0..3 {
                let mut places = pass(seed, n);
                places.sort_unstable();
                assert_eq!(places, [0, 1, 2, 3, 4]);
            }
        }
        assert!((0..20).any(|seed| pass(seed, 0) != pass(seed, 1)), "another order for each pass");
        assert!((0..20).any(|seed| pass(seed, 0) != pass(20, 0)), "another order for each seed");
        let plain = deck(text, &DataSet { shuffle: false, ..data }).unwrap();
        assert_eq!((0..7).map(|i| plain.place(3, i)).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 0, 1]);
    }

    #[test]
    fn whole_conversations_are_sessions_whose_turns_are_read_when_they_are_wanted() {
        let text = "{\"session_id\":\"a\",\"turns\":[\"one\",{\"text\":\"two\",\"delay\":800},\"three\"]}\n{\"turns\":[\"x\"]}\n";
        let open: Open = Box::new(move || Ok(Box::new(Cursor::new(text))));
        let data = DataSet { shuffle: false, ..DataSet::of("c.jsonl") };
        let deck = Arc::new(Deck::look_for_sessions(&data, "/v1/chat/completions", open).unwrap());
        assert_eq!(deck.contents().to_string(), "multi-turn data: 2 sessions of 4 turns");
        assert_eq!((deck.turns(0), deck.turns(1), deck.turns(2)), (3, 1, 1));
        let mut hand = deck.hand();
        assert_eq!(hand.turn(0, 2).unwrap().prompt, Prompt::Text("three".into()));
        assert_eq!(hand.turn(0, 1).unwrap().after_previous, Some(std::time::Duration::from_millis(800)));
        assert_eq!(hand.entry(1).unwrap().prompt, Prompt::Text("x".into()));
        assert_eq!((hand.turn(1, 1), hand.turn(2, 0), deck.fault()), (None, None, None));
    }

    #[test]
    fn what_is_no_prompt_of_its_own_is_left_out_and_counted() {
        let batch = "{\"custom_id\":\"a\",\"url\":\"/v1/chat/completions\",\"body\":{\"messages\":[],\"max_tokens\":5}}\n\
                     {\"custom_id\":\"b\",\"url\":\"/v1/completions\",\"body\":{\"prompt\":\"x\"}}\n";
        let found = deck(batch, &DataSet::of("b.jsonl")).unwrap().contents().clone();
        assert_eq!((found.prompts, found.other_paths, found.lengths_said), (1, 1, 1));
        let turns = "{\"session_id\":\"a\",\"turns\":[\"one\",\"two\",\"three\"]}\n";
        let found = deck(turns, &DataSet::of("c.jsonl")).unwrap().contents().clone();
        assert_eq!((found.prompts, found.turns), (1, 2));
        assert_eq!(found.to_string(), "multi-turn data: 1 prompt; left out: 2 later turns");
    }

    #[test]
    fn answers_are_as_long_as_said_or_as_their_text_seems_or_as_planned() {
        let text = "{\"instruction\":\"i\",\"context\":\"\",\"response\":\"one two three four\"}\n";
        let recorded = deck(text, &DataSet::of("d.jsonl")).unwrap();
        let entry = recorded.hand().entry(0).unwrap();
        assert_eq!(recorded.output_tokens(&entry), Some(6), "four tokens for three words");
        assert_eq!(recorded.output_tokens(&Entry { output_tokens: Some(9), ..entry.clone() }), Some(9));
        assert_eq!(recorded.output_tokens(&Entry { answer: None, ..entry.clone() }), None);
        let planned =
            deck(text, &DataSet { lengths: LengthRule::Planned, ..DataSet::of("d.jsonl") }).unwrap();
        assert_eq!(planned.output_tokens(&entry), None);
    }

    #[test]
    fn prompts_are_left_out_by_their_lengths() {
        let filter = |filter| {
            let text = "{\"prompt\":\"one two three\",\"output_tokens\":5}\n{\"prompt\":\"one\"}\n\
                        {\"prompt\":\"1 2 3 4 5 6\",\"output_tokens\":90}\n";
            deck(text, &DataSet { filter, shuffle: false, ..DataSet::of("c.jsonl") })
        };
        // 4, 2 and 8 tokens; answers of 5, nobody knows how many, and 90.
        let kept = |by: Filter| filter(by).map(|deck| deck.contents().prompts).ok();
        let none = Filter::default();
        assert_eq!(kept(none), Some(3));
        assert_eq!(kept(Filter { prompt_min: Some(3), ..none }), Some(2));
        assert_eq!(kept(Filter { prompt_max: Some(4), ..none }), Some(2));
        assert_eq!(kept(Filter { answer_min: Some(5), answer_max: Some(5), ..none }), Some(2));
        assert_eq!(kept(Filter { total_max: Some(97), ..none }), Some(2));
        assert_eq!(kept(Filter { total_max: Some(98), ..none }), Some(3));
        assert_eq!(kept(Filter { prompt_min: Some(9), ..none }), None, "nothing is left");
        let deck = filter(Filter { prompt_min: Some(3), ..none }).unwrap();
        assert_eq!(deck.contents().to_string(), "custom data: 2 prompts; left out: 1 filtered prompt");
        assert_eq!(deck.hand().entry(1).unwrap().prompt, Prompt::Text("1 2 3 4 5 6".into()));
    }

    #[test]
    fn vllm_takes_the_first_two_turns_of_bearable_length_and_gpt_4() {
        let said = |turns: &[(&str, &str)]| {
            let turns = turns.iter().map(|(from, value)| format!(r#"{{"from":"{from}","value":"{value}"}}"#));
            format!(r#"{{"conversations":[{}]}}"#, turns.collect::<Vec<_>>().join(","))
        };
        let long = "word ".repeat(769);
        let text = [
            said(&[("gpt", "a b c"), ("human", "d e f"), ("gpt", "g h i")]),
            said(&[("human", "a b"), ("gpt", "c d e f")]),
            said(&[("human", "a b c"), ("gpt", "d")]),
            said(&[("human", &long), ("gpt", "d e f g")]),
            said(&[("human", "alone and long enough")]),
        ];
        let text: &'static str = Box::leak(text.join("\n").into_boxed_str());
        let data = DataSet { compat: Some(Compat::Vllm), shuffle: false, ..DataSet::of("s.jsonl") };
        let vllm = deck(text, &data).unwrap();
        let found = vllm.contents();
        // Of three words are made four tokens, of two three, of 769 more than 1024.
        assert_eq!((found.prompts, found.filtered, found.counts.unanswered), (1, 3, 1));
        assert_eq!(vllm.hand().entry(0).unwrap().prompt, Prompt::Text("a b c".into()));
        let set = deck(text, &DataSet { lengths: LengthRule::Planned, ..data.clone() }).unwrap();
        assert_eq!(set.contents().prompts, 2, "a short answer does not matter where its length is set");
        let ours = deck(text, &DataSet { compat: None, ..data.clone() }).unwrap();
        assert_eq!(ours.contents().prompts, 4);

        let burst = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
                     1,ChatGPT,10,5,15,a\n2,GPT-4,11,5,16,a\n3,GPT-4,12,0,12,a\n";
        let found = deck(burst, &data).unwrap().contents().clone();
        assert_eq!((found.prompts, found.filtered, found.failed), (1, 1, 1));
    }

    #[test]
    fn a_csv_column_is_named_and_nothing_to_send_is_refused() {
        let column = |name: Option<&str>| {
            let data = DataSet { column: name.map(str::to_owned), ..DataSet::of("q.csv") };
            deck("id,question,answer\n1,why?,so\n2,\"who, me?\",you\n", &data)
        };
        let found = column(Some("question")).unwrap();
        assert_eq!(found.hand().entry(1).unwrap().prompt, Prompt::Text("who, me?".into()));
        assert!(column(None).is_err());
        assert!(matches!(
            deck("\n", &DataSet { format: Some("text".into()), ..DataSet::of("t") }),
            Err(Refusal::Nothing)
        ));
    }
}
