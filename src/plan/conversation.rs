//! Conversations as a part of a plan: how many turns a session has, when a turn follows, what stands for the answers.
//!
//! What a later turn says is `workload`'s, how a dialect writes what was said before `api`'s.

use serde::{Deserialize, Serialize};

use super::{Arrivals, Error, Lengths, Plan, Workload};
use crate::api::Dialect;

/// Sessions of several turns: each later turn repeats what was said before it, answers included, and adds to it.
///
/// A session is what a level counts, deals and lets arrive: [`Stop::units`](super::Stop::units) are sessions, a rate is
/// one of sessions, and a user of a closed loop runs one to its end before it takes the next. A turn is planned for the
/// end of the answer before it plus the pause. One that fails ends its session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Conversation {
    /// Turns of a synthetic session, at least 1 and at most [`Conversation::TURNS_MAX`]. 3 by default. Those of a data
    /// set or a trace are the file's.
    pub turns: Lengths,
    /// Pause between the end of an answer and the next turn, ms. 0 by default. A pause that a file gives wins.
    pub delay_ms: Lengths,
    /// All pauses are so many times as long, those of a file too. 1 by default.
    pub delay_ratio: f64,
    /// Longest pause, s: longer ones, those of a file too, are cut to it. Absent: none is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_max_s: Option<f64>,
    /// Words that a later turn of a synthetic session adds; absent: as many as the first has of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later_words: Option<Lengths>,
    /// What later turns repeat as the answers.
    pub replies: Replies,
}

/// What stands in a later turn for the answers to those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replies {
    /// What the server said in this run, without its reasoning.
    #[default]
    Live,
    /// What the file says that was said; what the server said where it says nothing.
    Recorded,
}

/// By which of its times a request of a session of agents goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timing {
    /// The recorded think time after the answers that it waits for.
    ThinkOnly,
    /// As long after the beginning of its session as recorded, or when those answers have ended.
    Original,
}

impl Default for Conversation {
    fn default() -> Conversation {
        Conversation {
            turns: 3.into(),
            delay_ms: 0.into(),
            delay_ratio: 1.0,
            delay_max_s: None,
            later_words: None,
            replies: Replies::default(),
        }
    }
}

impl Conversation {
    /// Most turns of a session; a draw beyond is this many. A record has 16 bits for the turn.
    pub const TURNS_MAX: u32 = u16::MAX as u32;
}

impl Plan {
    /// Conversations that can be had in the plan's dialect, with its loads.
    pub(super) fn check_conversation(&self) -> Result<(), Error> {
        let Workload { timing, trace, data, conversation, .. } = &self.workload;
        if timing.is_some() && trace.is_none() && (data.is_none() || conversation.is_none()) {
            let (told, remedy) = (
                "says when the requests of recorded sessions go, and none are sent",
                "give --dataset-path FILE --multi-turn, or --trace FILE",
            );
            return Err(Error::new("--timing-strategy", told, remedy));
        }
        let Some(conversation) = &self.workload.conversation else { return Ok(()) };
        let wrong = |option: &str, wrong: String, remedy: &str| Err(Error::new(option, wrong, remedy));
        let Conversation { turns, delay_ms, delay_ratio, delay_max_s, later_words, .. } = conversation;
        super::check::check_lengths("--multi-turn-num-turns", turns, 1)?;
        if turns.fixed().is_some_and(|turns| turns > Conversation::TURNS_MAX) {
            let remedy = format!("give at most {}", Conversation::TURNS_MAX);
            return wrong("--multi-turn-num-turns", "is out of range".to_owned(), &remedy);
        }
        super::check::check_lengths("--multi-turn-delay-ms", delay_ms, 0)?;
        if !(delay_ratio.is_finite() && (0.0..=DELAY_RATIO_MAX).contains(delay_ratio)) {
            let remedy = format!("give a factor from 0 for none to {DELAY_RATIO_MAX}");
            return wrong("--session-delay-ratio", format!("{delay_ratio} is no factor"), &remedy);
        }
        if delay_max_s.is_some_and(|s| !(s.is_finite() && s >= 0.0)) {
            let remedy = "give seconds, as in 60";
            return wrong("--inter-turn-delay-cap-seconds", "is no length of time".to_owned(), remedy);
        }
        if delay_max_s.is_some() && self.workload.timing == Some(Timing::Original) {
            let remedy = "leave it out, or give --timing-strategy think-only";
            let told = "cuts pauses, and nothing pauses at recorded times".to_owned();
            return wrong("--inter-turn-delay-cap-seconds", told, remedy);
        }
        if let Some(words) = later_words {
            super::check::check_lengths("--per-turn-input-len", words, 1)?;
            if words.bounds().1 > Lengths::MAX {
                let remedy = format!("give at most {}", Lengths::MAX);
                return wrong("--per-turn-input-len", "is out of range".to_owned(), &remedy);
            }
        }
        let remedy = "leave it out, or ask another API by --backend";
        match self.target.dialect {
            Dialect::Embeddings => wrong("--multi-turn", "embeddings have no answers".to_owned(), remedy),
            Dialect::Raw => {
                let told = "how a body of your own holds what was said before is not known";
                wrong("--multi-turn", told.to_owned(), remedy)
            }
            _ if self.levels.iter().any(|level| matches!(level.load.arrivals, Arrivals::Paced { .. })) => {
                let remedy = "leave it out: a later turn is planned by the answer before it";
                wrong("--pace", "users with a schedule send single requests".to_owned(), remedy)
            }
            _ => Ok(()),
        }
    }
}

/// Longest stretch of pauses.
const DELAY_RATIO_MAX: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Distribution, Endpoint, Level, Load};

    fn plan(change: impl FnOnce(&mut Plan)) -> Result<(), Error> {
        let mut plan = Plan::new(1);
        plan.target.endpoints = vec![Endpoint { url: "http://127.0.0.1:1".to_owned() }];
        plan.levels.push(Level { load: Load::closed(2), ..Level::default() });
        plan.workload.conversation = Some(Conversation::default());
        change(&mut plan);
        plan.complete();
        plan.validate()
    }

    #[test]
    fn a_conversation_is_a_table_of_a_plan_and_comes_back_as_it_was() {
        let text = "[workload.conversation]\nturns = { distribution = \"uniform\", min = 2, max = 5 }\nreplies = \"recorded\"\n";
        let plan = Plan::from_toml(text, 1).unwrap();
        let found = plan.workload.conversation.clone().unwrap();
        assert_eq!(found.turns, Lengths::Drawn(Distribution::Uniform { min: 2, max: 5 }));
        assert_eq!((found.delay_ms, found.delay_ratio, found.replies), (0.into(), 1.0, Replies::Recorded));
        assert_eq!(Plan::from_toml(&plan.to_toml(), 2).unwrap().workload, plan.workload);
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
    }

    #[test]
    fn what_cannot_be_had_is_refused_by_its_option() {
        assert_eq!(plan(|_| {}), Ok(()));
        let option = |change: fn(&mut Plan)| plan(change).unwrap_err().subject;
        assert_eq!(option(|plan| talk(plan).turns = 0.into()), "--multi-turn-num-turns");
        assert_eq!(option(|plan| talk(plan).turns = 70_000.into()), "--multi-turn-num-turns");
        assert_eq!(option(|plan| talk(plan).delay_ratio = f64::NAN), "--session-delay-ratio");
        assert_eq!(option(|plan| talk(plan).delay_ratio = -1.0), "--session-delay-ratio");
        assert_eq!(option(|plan| talk(plan).later_words = Some(0.into())), "--per-turn-input-len");
        assert_eq!(option(|plan| plan.target.dialect = Dialect::Embeddings), "--multi-turn");
        assert_eq!(option(|plan| plan.levels[0].load = Load::paced(2, 1.0)), "--pace");
    }

    fn talk(plan: &mut Plan) -> &mut Conversation {
        plan.workload.conversation.as_mut().unwrap()
    }
}
