//! A data set as the prompts of a load: which record each request takes, and what is known of them beforehand.
//!
//! Owns the order, by the seed, another one for each pass through the file. What of a file is left out is `contents`'s,
//! formats are [`trace`](super::trace)'s, bodies [`recorded`](super::recorded)'s. Of a file only the places of its records
//! are kept, 8 bytes each; every shard reads them from a handle of its own when it writes their requests.

mod contents;

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use rand_xoshiro::rand_core::Rng as _;

pub use contents::Contents;
use contents::{Rules, recorded_tokens};

use super::recording::{Open, Refusal};
use super::reuse::Blocks;
use super::trace::{
    AgentReader, Agents, Entry, Error, Format, Input, OnError, Options, Places, Shelf, Spindle, Threads,
    Turns, format_of,
};
use crate::plan::{Compat, DataSet, LengthRule, RecordErrors};
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
            if (data.filter.turns_min, data.filter.turns_max) != (None, None) {
                return Err(Refusal::WholeSessions);
            }
            let mut blocks = Blocks::default();
            let mut keeps = |entry: &Entry, _| contents.count_of_agents(entry, &rules, &mut blocks);
            let agents = Agents::of(&file, &mut input, &options, &mut keeps).map_err(Refusal::Record)?;
            contents.end_agents(&agents, &blocks);
            return Deck::of(data, (file, options, open), Where::Agents(agents), contents);
        }
        let mut keeps = |entry: &Entry, is_later| contents.count_turn(entry, &rules, (path, is_later));
        let threads = Threads::of(&file, &mut input, &options, &mut keeps).map_err(Refusal::Record)?;
        (contents.format, contents.counts) = (threads.format, threads.counts.clone());
        let (least, most) = (data.filter.turns_min.unwrap_or(0), data.filter.turns_max.unwrap_or(u32::MAX));
        let (threads, left_out, cut) = threads.limited(least, most.max(1));
        contents.limit_turns(&threads, left_out, cut);
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

impl fmt::Debug for Deck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deck")
            .field("file", &self.file)
            .field("contents", &self.contents)
            .finish_non_exhaustive()
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

#[cfg(test)]
mod tests;
