//! What a plan would send first, without sending it.
//!
//! Values only; printing them is the command line's business.

use std::sync::Arc;
use std::time::Duration;

use super::arrival::{Schedule, joined_offset_ns, paced_offset_ns};
use super::content::{Content, Item, Script};
use super::deck::Deck;
use super::recording::{Recording, Sent};
use super::trace::{Agents, Entry, Error, Prompt, blocks};
use crate::metrics::Phase;
use crate::plan::{Plan, Timing};

/// One request that a plan would send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// Place of its level in the plan, from 0.
    pub ordinal: usize,
    /// Its index within the level.
    pub index: u64,
    /// Planned send after the start of the level, ns; `None` in a closed loop without pace after a user's first
    /// request, whose time depends on the answer before.
    pub offset_ns: Option<u64>,
    /// Words of its prompt.
    pub words: u32,
    /// The first words of its prompt, and of what follows a shared prefix, each with ` ...` where there are more.
    pub prompt: String,
    /// Its `max_tokens`.
    pub max_tokens: u32,
    /// The first turns that follow it in its session.
    pub later: Vec<LaterTurn>,
    /// How many more there are.
    pub more: u16,
}

/// A later turn of a session, as far as it is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaterTurn {
    /// The turns whose answers it waits for, from 0, where these are not the one before it.
    pub after: Option<Vec<u16>>,
    /// Pause after the answer before it; `None` where it has a time of its own.
    pub pause: Option<Duration>,
    /// That time, ns after the start of the level.
    pub offset_ns: Option<u64>,
    /// Words that it adds, or all of them where it is `whole`.
    pub words: u32,
    /// A file gives the whole request, what was said before included.
    pub whole: bool,
    /// The first of them, with ` ...` where there are more.
    pub prompt: String,
    /// Its `max_tokens`.
    pub max_tokens: u32,
}

impl Preview {
    /// The first `count` requests of level `ordinal` of a complete plan; none if there is no such level.
    #[must_use]
    pub fn of_level(plan: &Plan, ordinal: usize, count: usize) -> Vec<Preview> {
        let Some(level) = plan.levels.get(ordinal) else {
            return Vec::new();
        };
        let seed = plan.level_seed(ordinal);
        let content = Content::new(plan).of_level(level, ordinal);
        let preview = |index, offset_ns| {
            let item = Item { seed, phase: Phase::Measured, index };
            Preview {
                ordinal,
                index,
                offset_ns,
                words: content.prompt_words(item),
                prompt: content.excerpt(item, WORDS_SHOWN),
                max_tokens: content.output_tokens(item),
                later: Vec::new(),
                more: 0,
            }
            .with_turns(content.turns(item), |turn| Some(synthetic_turn(&content, item, turn)))
        };
        let Some(users) = level.load.users else {
            let schedule = Schedule::new(&level.load.arrivals, seed, &level.stop);
            return schedule.take(count).map(|due| preview(due.index, Some(due.offset_ns))).collect();
        };
        let units = level.stop.units.unwrap_or(u64::MAX);
        if let Some(interval_s) = level.load.interval_s() {
            let interval_ns = (interval_s * 1e9).round() as u64;
            let end_ns = level.stop.duration_s.map_or(u64::MAX, |s| (s * 1e9).round() as u64);
            let planned = (0..units).map(|index| (index, paced_offset_ns(index, users, interval_ns)));
            let in_time = planned.take_while(|(_, offset_ns)| *offset_ns < end_ns).take(count);
            return in_time.map(|(index, offset_ns)| preview(index, Some(offset_ns))).collect();
        }
        // Users without a ramp start within microseconds of each other, which is no part of the plan's arrivals.
        let ramp_ns = level.load.ramp_s().map_or(0, |s| (s * 1e9).round() as u64);
        let first = |index| {
            let user = u32::try_from(index).ok().filter(|user| *user < users)?;
            Some(joined_offset_ns(user, users, ramp_ns))
        };
        (0..units).take(count).map(|index| preview(index, first(index))).collect()
    }
}

impl Preview {
    /// The first `count` requests of level `ordinal` of a plan that sends `recording`; none if there is no such level.
    ///
    /// # Errors
    /// The file can no longer be read.
    pub fn of_trace(
        plan: &Plan,
        ordinal: usize,
        recording: &Arc<Recording>,
        count: usize,
    ) -> Result<Vec<Preview>, Error> {
        let level = plan.levels.get(ordinal);
        let Some((level, speedup)) = level.and_then(|level| Some((level, level.load.speedup()?))) else {
            return Ok(Vec::new());
        };
        let seed = plan.level_seed(ordinal);
        let content = Content::new(plan).with_script(Some(Script::Trace(Arc::clone(recording))));
        let units =
            level.stop.units.map_or(count, |units| usize::try_from(units).unwrap_or(count).min(count));
        let end_ns = level.stop.duration_s.map_or(u64::MAX, |s| (s * 1e9).round() as u64);
        let sends = recording.sends(speedup, (0, 1))?;
        let mut turns = sends.turns();
        let sends = sends.take_while(|sent| sent.offset_ns < end_ns).take(units);
        let shown = sends.map(|Sent { index, offset_ns, entry }| {
            let session = turns.as_ref().and_then(|turns| turns.session(index, &entry));
            let count = turns.as_ref().zip(session).map_or(1, |(turns, session)| turns.count(session));
            let item = Item { seed, phase: Phase::Measured, index };
            Preview {
                ordinal,
                index,
                offset_ns: Some(offset_ns),
                words: entry.words().max(1),
                prompt: excerpt(item, &entry),
                max_tokens: content.recorded_tokens(item, &entry),
                later: Vec::new(),
                more: 0,
            }
            .with_turns(count, |turn| {
                Some(recorded_turn(&content, (item, item), turn, &turns.as_mut()?.turn(session?, turn)?))
            })
        });
        let shown = shown.collect();
        recording.fault().map_or(Ok(shown), |fault| Err(fault.clone()))
    }
}

impl Preview {
    /// The first `count` requests of level `ordinal` of a plan that takes its prompts from `deck`.
    ///
    /// # Errors
    /// The file can no longer be read.
    pub fn of_data(
        plan: &Plan,
        ordinal: usize,
        deck: &Arc<Deck>,
        count: usize,
    ) -> Result<Vec<Preview>, Error> {
        let content = Content::new(plan).with_script(Some(Script::Data(Arc::clone(deck))));
        let mut hand = deck.hand();
        let mut shown = Preview::of_level(plan, ordinal, count);
        for request in &mut shown {
            let item = Item { seed: plan.level_seed(ordinal), phase: Phase::Measured, index: request.index };
            let Some((place, entry)) =
                content.place(item).and_then(|place| Some((place, hand.entry(place)?)))
            else {
                continue;
            };
            request.words = entry.words().max(1);
            request.prompt = excerpt(Item { index: place, ..item }, &entry);
            request.max_tokens = content.recorded_tokens(item, &entry);
            let at_place = Item { index: place, ..item };
            *request = std::mem::take(request).with_turns(deck.turns(place), |turn| {
                let entry = hand.turn(place, turn)?;
                let entry = Entry { at: entry.at.filter(|_| deck.agents().is_some()), ..entry };
                Some(recorded_turn(&content, (item, at_place), turn, &entry))
            });
        }
        deck.fault().map_or(Ok(shown), |fault| Err(fault.clone()))
    }
}

impl Preview {
    /// The same with the first of its later turns.
    fn with_turns(self, turns: u16, mut turn: impl FnMut(u16) -> Option<LaterTurn>) -> Preview {
        let later: Vec<LaterTurn> = (1..turns.min(TURNS_SHOWN + 1)).map_while(&mut turn).collect();
        let more = turns.saturating_sub(TURNS_SHOWN + 1);
        Preview { later, more, ..self }
    }
}

fn synthetic_turn(content: &Content, item: Item, turn: u16) -> LaterTurn {
    let mut text = String::new();
    content.write_turn(&mut text, item, turn);
    LaterTurn {
        after: None,
        pause: Some(content.pause(item, turn, None)),
        offset_ns: None,
        words: content.turn_words(item, turn),
        whole: false,
        prompt: beginning(&text),
        max_tokens: content.turn_tokens(item, turn),
    }
}

/// A turn of a file; of the two items the first is the session's, the second is the one that words are made by.
fn recorded_turn(content: &Content, (item, at): (Item, Item), turn: u16, entry: &Entry) -> LaterTurn {
    if let (Some(agents), Some(session)) = (content.agents(), content.agents_session(item)) {
        return agents_turn(content, (agents, session), (item, at), turn, entry);
    }
    let offset_ns = entry.at.filter(|_| entry.after_previous.is_none());
    LaterTurn {
        after: None,
        pause: offset_ns.is_none().then(|| content.pause(item, turn, entry.after_previous)),
        offset_ns,
        words: entry.words().max(1),
        whole: entry.is_whole(),
        prompt: excerpt(at, entry),
        max_tokens: content.recorded_tokens(item, entry),
    }
}

/// A request of agents, whose time counts from the beginning of its session.
fn agents_turn(
    content: &Content,
    (agents, session): (&Agents, usize),
    (item, at): (Item, Item),
    turn: u16,
    entry: &Entry,
) -> LaterTurn {
    let after = agents.after(session, turn);
    let waits = content.timing() == Timing::ThinkOnly && !after.is_empty();
    // Of a trace it is that of the level, of a data set that of the session.
    let first_ns = agents.when(session, 0).map_or(0, |when| when.at_ns);
    let of_session = |at_ns: u64| {
        content.stretched(Duration::from_nanos(at_ns.saturating_sub(first_ns))).as_nanos() as u64
    };
    let at_ns = entry.at.filter(|_| !waits);
    let offset_ns = if content.deck().is_some() {
        at_ns.map(of_session)
    } else {
        at_ns.map(|at_ns| first_ns.min(at_ns).saturating_add(of_session(at_ns)))
    };
    LaterTurn {
        after: (after != [turn - 1]).then(|| after.to_vec()),
        pause: waits.then(|| content.pause(item, turn, entry.after_previous)),
        offset_ns,
        words: entry.words().max(1),
        whole: entry.is_whole(),
        prompt: excerpt(at, entry),
        max_tokens: content.recorded_tokens(item, entry),
    }
}

/// The first words of a text.
fn beginning(text: &str) -> String {
    let mut words = text.split_whitespace();
    let shown: Vec<&str> = words.by_ref().take(WORDS_SHOWN as usize).collect();
    shown.join(" ") + if words.next().is_some() { " ..." } else { "" }
}

/// The first words of a recorded prompt.
fn excerpt(item: Item, entry: &Entry) -> String {
    match &entry.prompt {
        Prompt::Tokens { count, blocks } => {
            let mut text = String::new();
            // One word more shows that there are more.
            let shown = (*count).clamp(1, WORDS_SHOWN + 1);
            blocks::write_prompt(&mut text, (item.seed, item.index), (shown, blocks.as_ref()), None);
            beginning(&text)
        }
        Prompt::Text(text) => beginning(text),
        Prompt::Parts(parts) => beginning(&parts.join(" ")),
        Prompt::Messages { messages, .. } => beginning(messages),
        Prompt::Body { body, .. } => beginning(body),
    }
}

/// Later turns of a session that are shown.
const TURNS_SHOWN: u16 = 4;
/// Words of a prompt that are shown.
const WORDS_SHOWN: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Arrivals, Conversation, Distribution, Lengths, Level, Load, Prefix};
    use crate::rng::Purpose;
    use crate::workload::prompts::write_prompt;

    fn plan(load: Load) -> Plan {
        let mut plan = Plan::new(5);
        plan.levels.push(Level { load, ..Level::default() });
        plan.complete();
        plan
    }

    #[test]
    fn an_open_loop_shows_its_schedule() {
        let arrivals = Arrivals::Constant { rate: 4.0 };
        let plan = plan(Load { arrivals, cap: None, users: None, think_s: 0.0 });
        let shown = Preview::of_level(&plan, 0, 3);
        assert_eq!(
            shown.iter().map(|p| p.offset_ns).collect::<Vec<_>>(),
            [Some(0), Some(250_000_000), Some(500_000_000)]
        );
        let mut whole = String::new();
        write_prompt(&mut whole, plan.level_seed(0), Purpose::Prompt, 2, 128);
        assert_eq!(shown[2].words, 128);
        assert!(whole.starts_with(shown[2].prompt.strip_suffix(" ...").unwrap()));
        assert_eq!(shown[0].max_tokens, 64);
        assert_eq!(Preview::of_level(&plan, 0, 1000).len(), 64);
        assert_eq!(Preview::of_level(&plan, 1, 3), []);
    }

    #[test]
    fn lengths_and_shared_beginnings_show() {
        let mut plan = plan(Load::closed(1));
        plan.workload.input_words = Lengths::Drawn(Distribution::Uniform { min: 20, max: 90 });
        plan.workload.output_tokens = Lengths::Drawn(Distribution::Uniform { min: 5, max: 10 });
        plan.workload.prefix = Some(Prefix::new(30, 1));
        let shown = Preview::of_level(&plan, 0, 9);
        let content = Content::new(&plan);
        for preview in &shown {
            let item = Item { seed: plan.level_seed(0), phase: Phase::Measured, index: preview.index };
            assert_eq!(preview.words, content.prompt_words(item));
            assert_eq!(preview.max_tokens, content.output_tokens(item));
            assert_eq!(preview.prompt.matches(" ...").count(), 2);
        }
        assert!(shown.iter().any(|preview| preview.words != shown[0].words));
    }

    #[test]
    fn sessions_show_their_turns() {
        let mut plan = plan(Load::closed(2));
        plan.workload.conversation = Some(Conversation {
            turns: 7.into(),
            delay_ms: 250.into(),
            later_words: Some(12.into()),
            ..Conversation::default()
        });
        let shown = Preview::of_level(&plan, 0, 3);
        for (index, request) in shown.iter().enumerate() {
            assert_eq!((request.words, request.later.len(), request.more), (128, 4, 2));
            let turn = &request.later[1];
            assert_eq!((turn.pause, turn.words, turn.max_tokens), (Some(Duration::from_millis(250)), 12, 64));
            let mut whole = String::new();
            let item = Item { seed: plan.level_seed(0), phase: Phase::Measured, index: index as u64 };
            Content::new(&plan).write_turn(&mut whole, item, 2);
            assert!(whole.starts_with(turn.prompt.strip_suffix(" ...").unwrap()));
        }
        plan.workload.conversation = None;
        assert!(Preview::of_level(&plan, 0, 1)[0].later.is_empty());
    }

    #[test]
    fn paced_users_show_their_schedules() {
        let shown = Preview::of_level(&plan(Load::paced(4, 2.0)), 0, 6);
        let offsets_ms: Vec<_> = shown.iter().map(|p| p.offset_ns.unwrap() / 1_000_000).collect();
        assert_eq!(offsets_ms, [0, 500, 1000, 1500, 2000, 2500]);
        let mut short = plan(Load::paced(4, 2.0));
        short.levels[0].stop.duration_s = Some(1.0);
        assert_eq!(Preview::of_level(&short, 0, 6).len(), 2);
    }

    #[test]
    fn a_closed_loop_knows_the_time_of_first_requests_only() {
        let shown = Preview::of_level(&plan(Load::closed(2)), 0, 4);
        assert_eq!(shown.iter().map(|p| p.offset_ns).collect::<Vec<_>>(), [Some(0), Some(0), None, None]);
    }
}
