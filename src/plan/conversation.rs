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
    /// Each turn stands alone and shares its beginning with others instead of repeating what was said; absent: it repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares: Option<TurnShares>,
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

/// Parts of the words of each turn that stand at its beginning and that other turns have too, 0..1, together below 1. Rounded
/// down to whole words.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnShares {
    /// What all turns of all sessions begin with.
    pub all: f64,
    /// What then follows in all turns of one session.
    pub session: f64,
}

impl TurnShares {
    /// So many of a turn's words are those of all turns, and so many those of its session.
    #[must_use]
    pub fn of(self, words: u32) -> (u32, u32) {
        // `as` saturates; shares are below 1.
        let part = |share: f64| (f64::from(words) * share) as u32;
        (part(self.all), part(self.session))
    }
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
            shares: None,
            replies: Replies::default(),
        }
    }
}

impl Conversation {
    /// Most turns of a session; a draw beyond is this many. A record has 16 bits for the turn.
    pub const TURNS_MAX: u32 = u16::MAX as u32;
}

/// Pauses that are so many times as long as recorded, and cut to so many seconds.
pub(super) fn check_delays(ratio: f64, max_s: Option<f64>, timing: Option<Timing>) -> Result<(), Error> {
    let cap = "--inter-turn-delay-cap-seconds";
    if !(ratio.is_finite() && (0.0..=DELAY_RATIO_MAX).contains(&ratio)) {
        let remedy = format!("give a factor from 0 for none to {DELAY_RATIO_MAX}");
        return Err(Error::new("--session-delay-ratio", format!("{ratio} is no factor"), remedy));
    }
    if max_s.is_some_and(|s| !(s.is_finite() && s >= 0.0)) {
        return Err(Error::new(cap, "is no length of time", "give seconds, as in 60"));
    }
    if max_s.is_some() && timing == Some(Timing::Original) {
        let remedy = "leave it out, or give --timing-strategy think-only";
        return Err(Error::new(cap, "cuts pauses, and nothing pauses at recorded times", remedy));
    }
    Ok(())
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
        self.check_context()?;
        let Some(conversation) = &self.workload.conversation else { return Ok(()) };
        let wrong = |option: &str, wrong: String, remedy: &str| Err(Error::new(option, wrong, remedy));
        let Conversation { turns, delay_ms, delay_ratio, delay_max_s, later_words, .. } = conversation;
        super::check::check_lengths("--multi-turn-num-turns", turns, 1)?;
        if turns.fixed().is_some_and(|turns| turns > Conversation::TURNS_MAX) {
            let remedy = format!("give at most {}", Conversation::TURNS_MAX);
            return wrong("--multi-turn-num-turns", "is out of range".to_owned(), &remedy);
        }
        super::check::check_lengths("--multi-turn-delay-ms", delay_ms, 0)?;
        check_delays(*delay_ratio, *delay_max_s, self.workload.timing)?;
        if let Some(words) = later_words {
            super::check::check_lengths("--per-turn-input-len", words, 1)?;
            if words.bounds().1 > Lengths::MAX {
                let remedy = format!("give at most {}", Lengths::MAX);
                return wrong("--per-turn-input-len", "is out of range".to_owned(), &remedy);
            }
        }
        if let Some(TurnShares { all, session }) = conversation.shares {
            let option = "--multi-turn-prefix-global-ratio";
            if !(all >= 0.0 && session >= 0.0 && all + session < 1.0) {
                let remedy = "give both from 0 on, together below 1";
                return wrong(option, format!("{all} and {session} leave no words of its own"), remedy);
            }
            if self.workload.data.is_some() || self.workload.trace.is_some() || self.workload.prefix.is_some()
            {
                let told = "is about turns that are made of words and share nothing else".to_owned();
                return wrong(option, told, "leave out the file, or what prompts begin with");
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

impl Plan {
    /// Words that each session has of its own are part of what is made of words, and the only beginning that there is.
    fn check_context(&self) -> Result<(), Error> {
        let Workload { context_words: Some(words), trace, data, prefix, .. } = &self.workload else {
            return Ok(());
        };
        let option = "--user-context-prompt-length";
        let wrong = |wrong: &str, remedy: &str| Err(Error::new(option, wrong, remedy));
        if trace.is_some() || data.is_some() {
            return wrong("is part of prompts that are made of words", "leave it out, or the file");
        }
        if prefix.is_some() {
            let remedy = "leave out one of them; --shared-system-prompt-length goes with it";
            return wrong("stands where prompts have a shared beginning", remedy);
        }
        if !(1..=Lengths::MAX).contains(words) {
            return wrong("is out of range", &format!("give a number from 1 to {}", Lengths::MAX));
        }
        Ok(())
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
