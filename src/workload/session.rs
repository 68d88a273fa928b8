//! Synthetic sessions: how many turns each has, what its later turns add and how long they wait, as functions of the seed,
//! the session and the turn.
//!
//! The first turn of a session is the request of its index, word for word that of a plan without sessions. What stands
//! between two turns of a user, the answer, is not known here.

use std::time::Duration;

use super::content::{Content, Item, Part};
use super::lengths;
use crate::metrics::Phase;
use crate::plan::{Conversation, Lengths};
use crate::rng::{self, Purpose};

impl Content {
    /// What the plan says of conversations, where what is measured are such.
    #[must_use]
    pub fn conversation(&self, phase: Phase) -> Option<&Conversation> {
        self.conversation.as_ref().filter(|_| phase == Phase::Measured)
    }

    /// Whether requests of `phase` may be sessions of several turns.
    #[must_use]
    pub fn has_sessions(&self, phase: Phase) -> bool {
        let replays = || self.recording().is_some_and(|recording| recording.has_sessions());
        phase == Phase::Measured && (self.conversation(phase).is_some() || replays())
    }

    /// Turns of the session that begins with `item`, at least 1. Warm-up requests stand alone. Those of a trace are the
    /// recording's.
    #[must_use]
    pub fn turns(&self, item: Item) -> u16 {
        if let (Phase::Measured, Some(agents), Some(session)) =
            (item.phase, self.agents(), self.agents_session(item))
        {
            return agents.requests(session);
        }
        let Some(conversation) = self.conversation(item.phase) else { return 1 };
        if self.recording().is_some() {
            return 1;
        }
        if let (Some(deck), Some(place)) = (self.deck(), self.place(item)) {
            return deck.turns(place);
        }
        let drawn =
            lengths::draw(&conversation.turns, item.seed, Purpose::SessionTurns, self.entry(item.index));
        drawn.clamp(1, Conversation::TURNS_MAX) as u16
    }

    /// The pause before turn `turn` (from 1) of the session that begins with `item`. `said` is the one that a file gives;
    /// where it gives none, there is none in a trace.
    #[must_use]
    pub fn pause(&self, item: Item, turn: u16, said: Option<Duration>) -> Duration {
        let Some(conversation) = self.conversation(item.phase) else {
            return self.stretched(said.unwrap_or_default()).min(self.delays.most);
        };
        let place = self.place_of(item, turn);
        let drawn = || lengths::draw(&conversation.delay_ms, item.seed, Purpose::TurnPauses, place);
        let pause = said.unwrap_or_else(|| Duration::from_millis(u64::from(drawn())));
        self.stretched(pause).min(self.delays.most)
    }

    /// Whether each turn stands alone, and repeats nothing of what was said.
    #[must_use]
    pub fn forgets(&self) -> bool {
        self.conversation.as_ref().is_some_and(|conversation| conversation.shares.is_some())
    }

    /// Words that turn `turn` (from 1) adds; tokens where these are counted.
    #[must_use]
    pub fn turn_words(&self, item: Item, turn: u16) -> u32 {
        self.tokens_of(self.part_of_turn(item, turn))
    }

    /// Appends what turn `turn` (from 1) adds. Its first word is that of the session.
    pub fn write_turn(&self, out: &mut String, item: Item, turn: u16) {
        let own = self.part_of_turn(item, turn);
        let shared = self.shared_parts(item, own.words);
        let words = own.words - shared.iter().map(|part| part.words).sum::<u32>();
        for (place, part) in shared.iter().enumerate() {
            self.write_part(out, item.seed, *part, place == 0);
        }
        // Another seed for each turn: other words behind a first one that no other session nearby has.
        let seed = rng::mixed(item.seed ^ rng::mixed(u64::from(turn)));
        self.write_part(out, seed, Part { words, ..own }, shared.is_empty());
    }

    /// The length of the answer that turn `turn` of the session asks for, tokens.
    #[must_use]
    pub fn turn_tokens(&self, item: Item, turn: u16) -> u32 {
        match turn {
            0 => self.output_tokens(item),
            _ => lengths::draw(&self.output, item.seed, Purpose::OutputLengths, self.place_of(item, turn)),
        }
    }

    /// The value of the session's header, if one is sent: the same for all of its turns, and for no other session of the
    /// run.
    #[must_use]
    pub fn session_header(&self, item: Item) -> Option<(&str, String)> {
        let name = self.session_header.as_deref()?;
        let of_leg = rng::mixed(item.seed ^ item.phase as u64);
        Some((name, format!("{of_leg:016x}-{:x}", item.index)))
    }

    fn part_of_turn(&self, item: Item, turn: u16) -> Part {
        let words = self.words_of_turn(item, self.place_of(item, turn));
        Part { purpose: Purpose::TurnPrompt, index: self.entry(item.index), words: self.words_of_part(words) }
    }

    fn words_of_turn(&self, item: Item, place: u64) -> u32 {
        let lengths: &Lengths =
            self.conversation.as_ref().and_then(|talk| talk.later_words.as_ref()).unwrap_or(&self.input);
        lengths::draw(lengths, item.seed, Purpose::InputLengths, place).max(1)
    }

    /// Where the draws of a turn stand: sessions have 48 bits, turns 16. That of the first turn is the session's.
    fn place_of(&self, item: Item, turn: u16) -> u64 {
        self.entry(item.index) & (u64::MAX >> 16) | u64::from(turn) << 48
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::plan::{Distribution, Plan, Workload};

    fn content(change: impl FnOnce(&mut Workload, &mut Conversation)) -> Content {
        let mut workload = Workload { input_words: 24.into(), ..Workload::default() };
        let mut conversation = Conversation::default();
        change(&mut workload, &mut conversation);
        workload.conversation = Some(conversation);
        Content::new(&Plan { workload, ..Plan::new(7) })
    }

    fn item(index: u64) -> Item {
        Item { seed: 7, phase: Phase::Measured, index }
    }

    fn text(content: &Content, index: u64, turn: u16) -> String {
        let mut out = String::new();
        content.write_turn(&mut out, item(index), turn);
        out
    }

    #[test]
    fn a_first_turn_is_the_request_of_a_plan_without_sessions() {
        let workload = Workload { input_words: 24.into(), ..Workload::default() };
        let plain = Content::new(&Plan { workload, ..Plan::new(7) });
        let (mut alone, mut first) = (String::new(), String::new());
        plain.write_prompt(&mut alone, item(5));
        content(|_, _| {}).write_prompt(&mut first, item(5));
        assert_eq!(alone, first);
        assert_eq!((plain.turns(item(5)), content(|_, _| {}).turns(item(5))), (1, 3));
        let warm_up = Item { phase: Phase::Warmup, ..item(5) };
        assert_eq!(content(|_, _| {}).turns(warm_up), 1);
    }

    #[test]
    fn turns_differ_in_all_their_words_and_have_their_length() {
        let content = content(|_, talk| talk.later_words = Some(12.into()));
        let mut seen = HashSet::new();
        for index in 0..50 {
            for turn in 1..6 {
                let text = text(&content, index, turn);
                assert_eq!(text.split(' ').count(), 12);
                assert_eq!(content.turn_words(item(index), turn), 12);
                assert!(seen.insert(text));
            }
        }
        assert_eq!(text(&content, 3, 2), text(&content, 3, 2));
    }

    #[test]
    fn numbers_of_turns_and_pauses_are_drawn_for_each() {
        let between = |min, max| Lengths::Drawn(Distribution::Uniform { min, max });
        let content = content(|workload, talk| {
            talk.turns = between(2, 5);
            talk.delay_ms = between(100, 300);
            talk.delay_ratio = 0.5;
            workload.output_tokens = between(1, 40);
        });
        let turns: HashSet<u16> = (0..200).map(|index| content.turns(item(index))).collect();
        assert_eq!(turns, HashSet::from([2, 3, 4, 5]));
        let pauses: HashSet<Duration> = (0..20)
            .flat_map(|index| (1..5).map(move |turn| (index, turn)))
            .map(|(index, turn)| content.pause(item(index), turn, None))
            .collect();
        assert!(pauses.len() > 40 && pauses.iter().all(|pause| (50..=150).contains(&pause.as_millis())));
        assert_eq!(content.pause(item(0), 1, Some(Duration::from_millis(800))), Duration::from_millis(400));
        let tokens: HashSet<u32> = (0..40).map(|turn| content.turn_tokens(item(0), turn)).collect();
        assert!(tokens.len() > 10);
        assert_eq!(content.turn_tokens(item(9), 0), content.output_tokens(item(9)));
    }

    #[test]
    fn a_session_that_repeats_another_repeats_its_turns() {
        let content = content(|workload, _| workload.distinct = Some(3));
        assert_eq!(text(&content, 1, 2), text(&content, 4, 2));
        assert_ne!(text(&content, 1, 2), text(&content, 2, 2));
    }

    #[test]
    fn a_header_tells_sessions_apart_and_turns_not() {
        let content = content(|workload, _| workload.session_header = Some("X-Session-ID".to_owned()));
        let of = |item| content.session_header(item).unwrap().1;
        let values: HashSet<String> = (0..100)
            .flat_map(|index| [7, 8].map(|seed| of(Item { seed, ..item(index) })))
            .chain([of(Item { phase: Phase::Warmup, ..item(0) })])
            .collect();
        assert_eq!(values.len(), 201);
        assert_eq!(content.session_header(item(3)).unwrap().0, "X-Session-ID");
    }
}
