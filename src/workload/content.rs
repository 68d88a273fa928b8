//! What each request says and how long an answer it asks for: a function of the seed, the phase and the index.
//!
//! Owns how a workload's lengths, shared beginnings and repetitions make one prompt. The words themselves are
//! `prompts`'s, the lengths `lengths`'s, the body around them `api`'s.

use std::sync::Arc;
use std::time::Duration;

use rand_distr::{Distribution as _, Zipf};
use serde_json::{Map, Value};

use super::conduct::Conduct;
use super::counted::Counted;
use super::deck::Deck;
use super::lengths;
use super::prompts::{self, write_prompt};
use super::recorded::{self, Frame};
use super::recording::Recording;
use super::trace::{Entry, Error};
use crate::api::Filling;
use crate::api::request::Template;
use crate::metrics::Phase;
use crate::plan::{Conversation, Lengths, Level, Plan, Prefix, Sharing, Sizes, Timing, Workload};
use crate::rng::{self, Purpose};
use crate::stats::sort;

#[cfg(test)]
mod tests;

/// Which request of a run is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Seed of its level.
    pub seed: u64,
    /// Measured or warm-up: the two never share a word's place in a cache.
    pub phase: Phase,
    /// Its index in that phase of the level.
    pub index: u64,
}

impl Item {
    /// By what the placeholders of the request are filled. A session has one request so far.
    #[must_use]
    pub fn filling(self) -> Filling {
        let Item { seed, phase, index } = self;
        Filling { seed, index, session: index, warm_up: phase == Phase::Warmup }
    }
}

/// The contents of the requests of a workload.
///
/// - Requests beyond [`Workload::distinct`](crate::plan::Workload::distinct) repeat earlier ones, prompt and lengths, in rounds.
/// - A prompt is the words of one of the shared prefixes, if there are any, and then words of its own, whose first is
///   that of no other prompt nearby (see [`write_prompt`]): what prompts share ends exactly with the prefix.
/// - A warm-up request has the lengths of the measured one of its index. Its words are others, those of prefixes
///   included, so that a measured level finds none of its prompts in a cache before it has sent them.
/// - Where the requests of a file are sent, what is measured is written by [`Content::write_recorded`]; a warm-up
///   request has the length of one of the first of them, and words.
#[derive(Clone, Debug)]
pub struct Content {
    pub(super) input: Lengths,
    pub(super) output: Lengths,
    prefix: Option<Prefix>,
    /// By the seed of each level, the share of its requests that have a prefix; empty if all have.
    pooled: Arc<[(u64, f64)]>,
    /// The plan, where such shares are wanted of the levels of a search, which are known one after the other.
    hunting: Option<Arc<Plan>>,
    system_words: u32,
    context_words: u32,
    distinct: Option<u64>,
    script: Option<Script>,
    counted: Option<Counted>,
    extra_body: Map<String, Value>,
    conduct: Conduct,
    pub(super) conversation: Option<Conversation>,
    pub(super) session_header: Option<String>,
    pub(super) timing: Option<Timing>,
    pub(super) delays: Delays,
}

/// What becomes of the pauses that a file gives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delays {
    /// They are so many times as long.
    pub(super) ratio: f64,
    /// And not longer than this.
    pub(super) most: Duration,
}

impl Delays {
    fn of(workload: &Workload) -> Delays {
        let of_trace = || workload.trace.as_ref().map(|trace| (trace.delay_ratio, trace.delay_max_s));
        let of_talks = workload.conversation.as_ref().map(|talk| (talk.delay_ratio, talk.delay_max_s));
        let (ratio, most) = of_talks.or_else(of_trace).unwrap_or((1.0, None));
        let most = most.map_or(Duration::MAX, |s| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX));
        Delays { ratio, most }
    }
}

/// A file whose requests are sent in place of synthetic ones.
#[derive(Clone, Debug)]
pub enum Script {
    /// A data set, whose prompts any load takes.
    Data(Arc<Deck>),
    /// A trace, sent at its times.
    Trace(Arc<Recording>),
}

/// A stretch of a prompt that was written for one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) purpose: Purpose,
    pub(super) index: u64,
    pub(super) words: u32,
}

impl Content {
    /// The contents that `plan` asks for, which is taken as validated.
    #[must_use]
    pub fn new(plan: &Plan) -> Content {
        let workload = &plan.workload;
        let aims = workload.prefix.filter(|prefix| prefix.hit_fraction.is_some());
        let pooled = aims.map_or_else(Vec::new, |prefix| pooled_shares(plan, &prefix));
        Content {
            input: workload.input_words.clone(),
            output: workload.output_tokens.clone(),
            prefix: workload.prefix,
            pooled: pooled.into(),
            hunting: aims.and(plan.search).map(|_| Arc::new(plan.clone())),
            system_words: workload.system_words.unwrap_or(0),
            context_words: workload.context_words.unwrap_or(0),
            distinct: workload.distinct,
            script: None,
            counted: workload.tokens.as_ref().and_then(|tokens| tokens.found.as_ref()).map(Counted::new),
            extra_body: workload.extra_body.clone(),
            conduct: Conduct::new(workload),
            conversation: workload.conversation.clone(),
            session_header: workload.session_header.clone(),
            timing: workload.timing,
            delays: Delays::of(workload),
        }
    }

    /// The same with the requests of a file in place of synthetic ones.
    #[must_use]
    pub fn with_script(self, script: Option<Script>) -> Content {
        Content { script, ..self }
    }

    /// Whether what is sent in `level` differs from what the plan says of all.
    #[must_use]
    pub fn differs_in(&self, level: &Level) -> bool {
        !level.sizes.is_empty() || self.hunting.is_some()
    }

    /// The same for `level`, the run's at place `ordinal`: with the lengths that it has of its own, and, in a search, with
    /// prefixes for as many of its requests as its length wants.
    #[must_use]
    pub fn of_level(mut self, level: &Level, ordinal: usize) -> Content {
        let aims = self.hunting.as_deref().and_then(|plan| Some((plan, plan.workload.prefix?)));
        if let Some((plan, prefix)) = aims {
            self.pooled = [pooled_share(plan, &prefix, (ordinal, level))].into();
        }
        let Sizes { input_words, output_tokens } = level.sizes;
        if let Some(words) = input_words {
            self.input = words.into();
        }
        if let Some(tokens) = output_tokens {
            self.output = tokens.into();
        }
        self
    }

    /// How the users of the requests behave.
    #[must_use]
    pub fn conduct(&self) -> &Conduct {
        &self.conduct
    }

    /// How prompts get so many tokens; `None`: a word is one.
    #[must_use]
    pub fn counted(&self) -> Option<&Counted> {
        self.counted.as_ref()
    }

    /// Whether prompts are written as lists of token ids.
    #[must_use]
    pub fn writes_ids(&self) -> bool {
        self.counted.as_ref().is_some_and(Counted::writes_ids)
    }

    /// The trace whose requests are sent.
    #[must_use]
    pub fn recording(&self) -> Option<&Arc<Recording>> {
        match &self.script {
            Some(Script::Trace(recording)) => Some(recording),
            _ => None,
        }
    }

    /// The data set whose prompts are sent.
    #[must_use]
    pub fn deck(&self) -> Option<&Arc<Deck>> {
        match &self.script {
            Some(Script::Data(deck)) => Some(deck),
            _ => None,
        }
    }

    /// The file whose requests are sent.
    pub(super) fn script(&self) -> Option<&Script> {
        self.script.as_ref()
    }

    /// Whether requests come again.
    pub(super) fn repeats(&self) -> bool {
        self.distinct.is_some()
    }

    /// Why the file of the requests broke off, if it did.
    #[must_use]
    pub fn fault(&self) -> Option<&Error> {
        match self.script.as_ref()? {
            Script::Data(deck) => deck.fault(),
            Script::Trace(recording) => recording.fault(),
        }
    }

    /// The place in the data set of the prompt that `item` takes.
    #[must_use]
    pub fn place(&self, item: Item) -> Option<u64> {
        Some(self.deck()?.place(item.seed, self.entry(item.index)))
    }

    /// The longest answer that `item` asks for, which is `entry` of the file, tokens.
    #[must_use]
    pub fn recorded_tokens(&self, item: Item, entry: &Entry) -> u32 {
        let said = self.deck().map_or(entry.output_tokens, |deck| deck.output_tokens(entry));
        said.map_or_else(|| self.drawn_tokens(item), |tokens| tokens.max(1))
    }

    /// Appends the body of `item`, which is `entry` of the file, and returns the longest answer that it asks for, tokens;
    /// `desk` is scratch space.
    pub fn write_recorded(
        &self,
        out: &mut Vec<u8>,
        template: &Template,
        (item, entry): (Item, &Entry),
        desk: &mut String,
    ) -> u32 {
        let max_tokens = self.recorded_tokens(item, entry);
        // A session of agents that comes again is another one of the same shape.
        let again = self.deck().map_or(0, |deck| deck.pass_of_agents(self.entry(item.index)));
        let renewed = (again > 0).then(|| entry.with_other_words(again));
        let entry = renewed.as_ref().unwrap_or(entry);
        // What a trace leaves to chance is the request's own; a prompt of a data set is the same whenever it comes.
        let item = Item { index: self.place(item).unwrap_or(item.index), ..item };
        let frame =
            Frame { template, extra_body: &self.extra_body, max_tokens, counted: self.counted.as_ref() };
        recorded::write_body(out, &frame, (item, entry), desk)
    }

    /// The words of the prompt of `item`, those of the system message and of a shared prefix among them; its tokens where
    /// these are counted.
    #[must_use]
    pub fn prompt_words(&self, item: Item) -> u32 {
        let system = self.system(item).map_or(0, |part| self.tokens_of(part));
        let prompt = match &self.counted {
            Some(counted) => {
                counted.tokens(self.parts(item).map(|part| part.words).fold(0, u32::saturating_add))
            }
            None => self.parts(item).map(Part::tokens).fold(0, u32::saturating_add),
        };
        prompt.saturating_add(system)
    }

    /// Appends the message of the system that `item` has, if there is one.
    pub fn write_system(&self, out: &mut String, item: Item) {
        if let Some(part) = self.system(item) {
            self.write_part(out, item.seed, part, true);
        }
    }

    /// What other requests of the level have in common with `item`.
    pub(super) fn common(&self, item: Item) -> Common {
        let parts = || self.parts(item);
        Common {
            entry: self.entry(item.index),
            system_tokens: self.system(item).map_or(0, |part| self.tokens_of(part)),
            prefix: parts()
                .find(|part| part.purpose == Purpose::Prefix)
                .map(|part| (part.index, self.tokens_of(part))),
            tokens: self.prompt_words(item),
        }
    }

    /// The tokens of a part of a prompt, as far as is known.
    pub(super) fn tokens_of(&self, part: Part) -> u32 {
        self.counted.as_ref().map_or_else(|| part.tokens(), |counted| counted.tokens_of_part(part.words))
    }

    /// The length of the answer that `item` asks for, in tokens.
    #[must_use]
    pub fn output_tokens(&self, item: Item) -> u32 {
        let rehearsed = self.rehearsed(item).and_then(|(_, tokens)| tokens);
        rehearsed.map_or_else(|| self.drawn_tokens(item), |tokens| tokens.max(1))
    }

    fn drawn_tokens(&self, item: Item) -> u32 {
        lengths::draw(&self.output, item.seed, Purpose::OutputLengths, self.entry(item.index))
    }

    /// The lengths of the recorded request that a warm-up request stands for.
    fn rehearsed(&self, item: Item) -> Option<(u32, Option<u32>)> {
        let (first, says_tokens) = match self.script.as_ref().filter(|_| item.phase == Phase::Warmup)? {
            Script::Data(deck) => (&deck.contents().first, deck.decides_lengths()),
            Script::Trace(recording) => (&recording.overview().first, true),
        };
        let place = usize::try_from(item.index % first.len().max(1) as u64).ok()?;
        first.get(place).map(|(words, tokens)| (*words, tokens.filter(|_| says_tokens)))
    }

    /// Appends the prompt of `item` to `out`.
    pub fn write_prompt(&self, out: &mut String, item: Item) {
        for (place, part) in self.parts(item).enumerate() {
            self.write_part(out, item.seed, part, place == 0);
        }
    }

    pub(super) fn write_part(&self, out: &mut String, seed: u64, part: Part, is_first: bool) {
        let Part { purpose, index, words } = part;
        if let Some(counted) = &self.counted {
            return counted.write_prompt(out, (seed, purpose, index), words, is_first);
        }
        if !is_first {
            out.push(' ');
        }
        write_prompt(out, seed, purpose, index, words);
    }

    /// The first `words` words of each part of the prompt of `item`, `...` standing for what is left out: an excerpt
    /// for reading.
    #[must_use]
    pub fn excerpt(&self, item: Item, words: u32) -> String {
        let mut out = String::new();
        for (place, part) in self.parts(item).enumerate() {
            self.write_part(&mut out, item.seed, Part { words: part.words.min(words), ..part }, place == 0);
            if part.words > words {
                out.push_str(" ...");
            }
        }
        out
    }

    /// The shared part of a prompt, if there is one, and its own, unless a prefix is all it has.
    fn parts(&self, item: Item) -> impl Iterator<Item = Part> + use<> {
        let index = self.entry(item.index);
        let (of_prefix, of_prompt) = match item.phase {
            Phase::Warmup => (Purpose::WarmupPrefix, Purpose::WarmupPrompt),
            Phase::Measured => (Purpose::Prefix, Purpose::Prompt),
        };
        let has_one = self.prefix.filter(|_| self.has_prefix(item.seed, index));
        let shared = has_one.map(|prefix| {
            let choice = prefix_number(&prefix, item.seed, index);
            Part { purpose: of_prefix, index: choice, words: self.words_of_part(prefix.words) }
        });
        let words = match self.rehearsed(item) {
            Some((words, _)) => words.max(1),
            None => lengths::draw(&self.input, item.seed, Purpose::InputLengths, index)
                .saturating_add(self.context_words),
        };
        // Without a prefix a prompt has as many words of its own in its place.
        let words = match self.prefix.filter(|_| shared.is_none()) {
            Some(prefix) => words.saturating_add(prefix.words),
            None => words,
        };
        let words = match &self.counted {
            None => words,
            Some(counted) if shared.is_some() => counted.words_behind(words),
            Some(counted) => counted.words(words),
        };
        let of_turns = self.shared_parts(item, words);
        let words = words - of_turns.iter().map(|part| part.words).sum::<u32>();
        let own = Part { purpose: of_prompt, index, words };
        shared.into_iter().chain(of_turns).chain((words > 0 || shared.is_none()).then_some(own))
    }

    /// What a turn of so many words has in common with the others of its level, and of its session, where turns stand alone.
    pub(super) fn shared_parts(&self, item: Item, words: u32) -> Vec<Part> {
        let shares = self.conversation(item.phase).and_then(|conversation| conversation.shares);
        let Some((all, session)) = shares.map(|shares| shares.of(words)) else { return Vec::new() };
        let index = self.entry(item.index);
        let of_all = Part { purpose: Purpose::Prefix, index: 0, words: all };
        let of_session = Part { purpose: Purpose::SessionPrefix, index, words: session };
        [of_all, of_session].into_iter().filter(|part| part.words > 0).collect()
    }

    fn system(&self, item: Item) -> Option<Part> {
        let purpose = match item.phase {
            Phase::Warmup => Purpose::WarmupSystem,
            Phase::Measured => Purpose::System,
        };
        let words = self.words_of_part(self.system_words);
        (self.system_words > 0).then_some(Part { purpose, index: 0, words })
    }

    /// The words of a part of so many tokens, where these are counted; otherwise that is what they are.
    pub(super) fn words_of_part(&self, tokens: u32) -> u32 {
        self.counted.as_ref().map_or(tokens, |counted| counted.words_of_part(tokens))
    }

    /// Whether the request that is drawn as number `index` of the level with this seed begins with a prefix.
    fn has_prefix(&self, seed: u64, index: u64) -> bool {
        let share =
            self.pooled.binary_search_by_key(&seed, |(seed, _)| *seed).map(|place| self.pooled[place].1);
        // Of a level that is not in the plan nobody knows what it takes.
        share.is_ok_and(|share| rng::unit(&mut rng::stream(seed, Purpose::PrefixShare, index)) < share)
            || self.pooled.is_empty()
    }

    /// The request that request `index` is or repeats.
    pub(super) fn entry(&self, index: u64) -> u64 {
        index % self.distinct.unwrap_or(u64::MAX).max(1)
    }
}

/// What a request has in common with others of its level, tokens as far as words are known to be one each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Common {
    /// The request that it is or repeats.
    pub(super) entry: u64,
    /// Of the system message, which all have.
    pub(super) system_tokens: u32,
    /// The number of its prefix, and that one's tokens.
    pub(super) prefix: Option<(u64, u32)>,
    /// Of the whole prompt.
    pub(super) tokens: u32,
}

impl Part {
    fn tokens(self) -> u32 {
        prompts::prompt_words(self.purpose, self.index, self.words)
    }
}

/// Which of the pool request `index` has.
fn prefix_number(prefix: &Prefix, seed: u64, index: u64) -> u64 {
    let mut stream = rng::stream(seed, Purpose::PrefixChoice, index);
    let Some(exponent) = prefix.exponent else { return u64::from(rng::below(&mut stream, prefix.pool)) };
    let zipf = Zipf::new(f64::from(prefix.pool), exponent);
    // From 1; `as` saturates.
    zipf.map_or(0, |zipf| (zipf.sample(&mut stream) as u64).saturating_sub(1))
}

/// The share of the requests of each level that must have a prefix, by the levels' seeds, in order of these. It is worked
/// out with the mean of the lengths that the level draws, or of many of them.
fn pooled_shares(plan: &Plan, prefix: &Prefix) -> Vec<(u64, f64)> {
    let levels = plan.in_rounds();
    let mut shares: Vec<_> =
        levels.iter().enumerate().map(|level| pooled_share(plan, prefix, level)).collect();
    sort::few_by_key(&mut shares, |(seed, _)| *seed);
    shares
}

/// The same of the level at place `ordinal`, with its seed.
fn pooled_share(plan: &Plan, prefix: &Prefix, (ordinal, level): (usize, &Level)) -> (u64, f64) {
    let seed = plan.level_seed(ordinal);
    let sharing = plan.sharing(level);
    let drawn = sharing.requests.unwrap_or(LENGTHS_MAX).clamp(1, LENGTHS_MAX);
    let length = |index| lengths::draw(&plan.workload.input_words, seed, Purpose::InputLengths, index);
    let sum: u64 = (0..drawn).map(|index| u64::from(length(index))).sum();
    let own_words = sum as f64 / drawn as f64;
    (seed, prefix.pooled_share(Sharing { own_words, ..sharing }))
}

/// Lengths of a level that are drawn for their mean: it is known to a thousandth of their spread then.
const LENGTHS_MAX: u64 = 1 << 20;
