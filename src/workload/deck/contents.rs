//! What of a data set is sent and what is left out, as one look through it tells.

use std::fmt;

use crate::plan::{Compat, DataSet, Filter, LengthRule};
use crate::workload::recorded::Bodies;
use crate::workload::reuse::{Blocks, Reuse};
use crate::workload::trace::{Agents, Counts, Entry, Format, Prompt, Threads, vllm_sharegpt_keeps};

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

impl Contents {
    pub(super) fn none() -> Contents {
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
    pub(super) fn count_of_agents(&mut self, entry: &Entry, rules: &Rules, blocks: &mut Blocks) -> bool {
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

    pub(super) fn end_agents(&mut self, agents: &Agents, blocks: &Blocks) {
        (self.format, self.counts) = (agents.format, agents.counts.clone());
        self.prompts = agents.len() as u64;
        self.turns = agents.beyond;
        self.later -= self.turns + self.prompts;
        self.agents = self.agents.filter(|_| blocks.knows_all());
    }

    /// Counts an entry, and says whether it is kept.
    pub(super) fn count(&mut self, entry: &Entry, rules: &Rules, (path, is_first): (&str, bool)) -> bool {
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
    pub(super) fn count_turn(
        &mut self,
        entry: &Entry,
        rules: &Rules,
        (path, is_later): (&str, bool),
    ) -> bool {
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

    /// Counts what bounds on turns have left of `threads`: all of it, but for so many sessions and so many turns of others. What
    /// is said of prompts one by one is said of all of the file.
    pub(super) fn limit_turns(&mut self, threads: &Threads, left_out: u64, cut: u64) {
        let all: u64 = (0..threads.len()).map(|session| u64::from(threads.turns(session))).sum();
        self.prompts = threads.len() as u64;
        self.later = all - self.prompts;
        self.filtered += left_out;
        self.turns += cut;
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

/// Which prompts are left out for what they are.
pub(super) struct Rules {
    filter: Filter,
    compat: Option<Compat>,
    /// Answers have another length than the recorded one.
    output_is_set: bool,
}

impl Rules {
    pub(super) fn of(data: &DataSet) -> Rules {
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
pub(super) fn recorded_tokens(entry: &Entry) -> Option<u32> {
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

/// Prompts whose lengths a warm-up repeats.
const FIRST_MAX: usize = 64;
