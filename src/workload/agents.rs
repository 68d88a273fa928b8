//! Sessions of agents as a load: which session of the file a request belongs to, and by which of its times it goes.

use std::time::Duration;

use super::content::{Content, Item, Script};
use super::trace::Agents;
use crate::plan::Timing;

impl Content {
    /// The sessions of agents that are sent, where it is a file of such.
    #[must_use]
    pub fn agents(&self) -> Option<&Agents> {
        match self.script()? {
            Script::Data(deck) => deck.agents(),
            Script::Trace(recording) => recording.agents(),
        }
    }

    /// Which of these sessions `item` begins; `None` for those of other files, and beyond the last of a trace.
    #[must_use]
    pub fn agents_session(&self, item: Item) -> Option<usize> {
        match self.script()? {
            Script::Data(deck) if deck.agents().is_some() => usize::try_from(self.place(item)?).ok(),
            Script::Data(_) => None,
            Script::Trace(recording) => recording.agents_session(item.index),
        }
    }

    /// By which times the requests of these sessions go: a trace is sent at its own, and any other load by answers, unless
    /// the plan says otherwise.
    #[must_use]
    pub fn timing(&self) -> Timing {
        self.timing.unwrap_or(match self.script() {
            // Where pauses are to be short or none at all, times that hold them would let requests seem late.
            Some(Script::Trace(_)) if self.delays.ratio > 0.0 && self.delays.most == Duration::MAX => {
                Timing::Original
            }
            _ => Timing::ThinkOnly,
        })
    }

    /// A recorded time within a session, as long as the plan makes it.
    #[must_use]
    pub fn stretched(&self, time: Duration) -> Duration {
        let ratio = self.delays.ratio;
        if ratio == 1.0 {
            return time;
        }
        // `as` saturates.
        Duration::from_nanos((time.as_nanos() as f64 * ratio).round() as u64)
    }
}
