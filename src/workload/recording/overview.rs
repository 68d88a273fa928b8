//! What is known of a trace before anything of it is sent.

use std::fmt;

use super::Refusal;
use super::sessions::{Firsts, Place};
use crate::plan::RecordErrors;
use crate::workload::recorded::Bodies;
use crate::workload::trace::{Counts, Dropped, Entry, Format, Input, Prompt, Replay, Selected, Survey};

/// What a look through a trace found, and what of it is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// Its format.
    pub format: Format,
    /// What was read.
    pub counts: Counts,
    /// What the slice and the filters leave out, and what is shortened.
    pub dropped: Dropped,
    /// Requests without a time that follow no turn of their session; they are not sent.
    pub turns: u64,
    /// Requests that are sent at their times: first turns, where there are sessions whose turns wait for answers.
    pub requests: u64,
    /// Later turns of these sessions, which are sent when the answers before them have ended.
    pub later: u64,
    /// Whether the sessions are of agents that start others, each with a clock of its own.
    pub of_agents: bool,
    /// Of the prompts, the tokens that a prefix cache without an end finds, where the requests are those of agents' sessions
    /// and their blocks are not too many to be remembered.
    pub found_tokens: Option<u64>,
    /// Time of the last of them after the beginning of the slice, as recorded, ns.
    pub last_ns: u64,
    /// Tokens of their prompts, as far as the trace gives lengths.
    pub prompt_tokens: u64,
    /// Requests that bring chat messages of their own.
    pub chats: u64,
    /// Requests with images, which no trace holds: their texts alone are sent.
    pub images: u64,
    /// Tokens of the longest request, its answer included, as far as the trace gives lengths.
    pub longest_prompt: Option<u32>,
    /// Ready bodies, by what they are for.
    pub bodies: Bodies,
    /// Lengths of the first of them: words of the prompt and, where the trace says, tokens of the answer.
    pub first: Vec<(u32, Option<u32>)>,
}

impl Overview {
    /// Nothing found yet.
    pub(super) fn none(format: Format) -> Overview {
        Overview {
            format,
            counts: Counts::default(),
            dropped: Dropped::default(),
            turns: 0,
            requests: 0,
            later: 0,
            of_agents: false,
            found_tokens: None,
            last_ns: 0,
            prompt_tokens: 0,
            chats: 0,
            images: 0,
            longest_prompt: None,
            bodies: Bodies::default(),
            first: Vec::new(),
        }
    }

    pub(super) fn of<I: Input>(
        survey: &Survey,
        mut entries: Selected<Replay<I>>,
        (mut firsts, errors): (Firsts, RecordErrors),
    ) -> Result<Overview, Refusal> {
        let mut overview = Overview { counts: survey.counts.clone(), ..Overview::none(survey.format) };
        for planned in entries.by_ref() {
            let planned = planned.map_err(Refusal::Record)?;
            match firsts.place(&planned.entry, planned.offset_ns) {
                Place::Timed => overview.count(&planned.entry, planned.offset_ns.unwrap_or_default()),
                Place::Later => overview.later += 1,
                Place::Nowhere if errors == RecordErrors::Fail => {
                    return Err(Refusal::Turn(planned.entry.line));
                }
                Place::Nowhere => overview.turns += 1,
            }
        }
        overview.dropped = entries.dropped();
        if overview.requests == 0 { Err(Refusal::Nothing) } else { Ok(overview) }
    }

    fn count(&mut self, entry: &Entry, offset_ns: u64) {
        self.requests += 1;
        self.last_ns = offset_ns;
        self.count_prompt(entry);
    }

    /// Counts what is said of a prompt.
    pub(super) fn count_prompt(&mut self, entry: &Entry) {
        self.prompt_tokens += entry.prompt_tokens().map_or(0, u64::from);
        self.chats += u64::from(matches!(entry.prompt, Prompt::Messages { .. }));
        self.images += u64::from(entry.images > 0);
        self.longest_prompt = self.longest_prompt.max(entry.whole_tokens());
        self.bodies.count(entry);
        if self.first.len() < FIRST_MAX {
            self.first.push((entry.words(), entry.output_tokens));
        }
    }
}

impl fmt::Display for Overview {
    /// One line: `mooncake trace: 5 requests over 3.000 s, 4726 prompt tokens; left out: 1 malformed record`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = match self.of_agents {
            false => plural(self.requests, "request"),
            true => {
                let all = plural(self.requests + self.later, "request");
                format!("{} of agents with {all}", plural(self.requests, "session"))
            }
        };
        write!(f, "{} trace: {requests} over {:.3} s", self.format.name(), self.last_ns as f64 / 1e9)?;
        if self.prompt_tokens > 0 {
            write!(f, ", {} prompt tokens", self.prompt_tokens)?;
        }
        if let Some(found) = self.found_tokens {
            let share = 100.0 * found as f64 / self.prompt_tokens.max(1) as f64;
            write!(f, ", of which a prefix cache without an end finds {share:.1} %")?;
        }
        if self.later > 0 && !self.of_agents {
            write!(f, "; {} after the answers before them", plural(self.later, "later turn"))?;
        }
        let Dropped { failed, other_model, outside, prompts_cut, outputs_cut } = self.dropped;
        let left_out = [
            (self.counts.malformed, "malformed record"),
            (failed, "failed call"),
            (other_model, "request to another model"),
            (outside, "request outside of the slice"),
            (self.turns, "request without a time"),
        ];
        let changed = [
            (prompts_cut, "shortened prompt"),
            (outputs_cut, "shortened answer"),
            (self.images, "request with images left out"),
        ];
        for (heading, counts) in [("; left out: ", &left_out[..]), ("; sent with changes: ", &changed)] {
            let said: Vec<String> =
                counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| plural(*n, what)).collect();
            if !said.is_empty() {
                write!(f, "{heading}{}", said.join(", "))?;
            }
        }
        Ok(())
    }
}

/// `1 failed call`, `2 failed calls`, `2 turns that wait`: the first noun gets the ending.
fn plural(n: u64, what: &str) -> String {
    match what.split_once(' ') {
        _ if n == 1 => format!("1 {what}"),
        Some(("malformed" | "failed" | "shortened" | "later", _)) | None => format!("{n} {what}s"),
        Some((noun, rest)) => format!("{n} {noun}s {rest}"),
    }
}

/// Requests whose lengths a warm-up repeats.
const FIRST_MAX: usize = 64;
