//! Where a run is: its level, how much of that is done, and how long it will still take.

use crate::plan::Level;
use crate::run::{Event, Tick};
use crate::run_file::schema::level_label;

/// Where a run is, as its [`Event`]s tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// Place of the level, from 0; `None` before the first.
    pub ordinal: Option<usize>,
    /// Number of levels; `None` where it depends on what comes.
    pub levels: Option<usize>,
    /// The load in words.
    pub label: String,
    /// Most requests in flight: users, or the cap of a rate.
    pub users: Option<u32>,
    /// The rate that is asked for, where it is one number, requests/s.
    pub rate: Option<f64>,
    /// What ends the level.
    pub goal: Goal,
    /// Requests of the warm-up that goes on.
    pub warming: Option<u32>,
    /// How far the level is; `None` before the first news.
    pub last: Option<Tick>,
    /// The level is over.
    pub is_over: bool,
}

/// What ends a level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Goal {
    /// Something else.
    #[default]
    None,
    /// So many requests.
    Requests(u64),
    /// So many seconds.
    Seconds(f64),
}

impl Course {
    /// Takes in what has happened.
    pub fn on_event(&mut self, event: &Event<'_>) {
        match event {
            Event::LevelStarted { ordinal, levels, level } => *self = Course::begin(*ordinal, *levels, level),
            Event::WarmupStarted { requests, .. } => self.warming = Some(*requests),
            Event::MeasuringStarted { .. } => self.warming = None,
            Event::Tick(tick) => (self.warming, self.last) = (None, Some(*tick)),
            Event::LevelFinished(_) => (self.warming, self.is_over) = (None, true),
            Event::Note(_) => {}
        }
    }

    fn begin(ordinal: usize, levels: Option<usize>, level: &Level) -> Course {
        let goal = match (level.stop.units, level.stop.duration_s) {
            // With both the nearer end is not known before; requests are what is promised.
            (Some(requests), _) => Goal::Requests(requests),
            (None, Some(seconds)) => Goal::Seconds(seconds),
            (None, None) => Goal::None,
        };
        Course {
            ordinal: Some(ordinal),
            levels,
            label: level_label(level),
            users: level.load.users.or(level.load.cap),
            rate: level.load.rate().filter(|rate| rate.is_finite()),
            goal,
            ..Course::default()
        }
    }

    /// Its level in words: `level 2 of 3, 4 users`.
    #[must_use]
    pub fn head(&self) -> String {
        let Some(ordinal) = self.ordinal else { return String::new() };
        let of = self.levels.map_or_else(String::new, |levels| format!(" of {levels}"));
        format!("level {}{of}, {}", ordinal + 1, self.label)
    }

    /// Share of the level that is done, 0..=1.
    #[must_use]
    pub fn done(&self) -> f64 {
        if self.is_over {
            return 1.0;
        }
        let Some(tick) = self.last else { return 0.0 };
        let share = match self.goal {
            Goal::None => 0.0,
            Goal::Requests(requests) => (tick.ok + tick.failed) as f64 / requests.max(1) as f64,
            Goal::Seconds(seconds) => tick.elapsed_s / seconds.max(f64::MIN_POSITIVE),
        };
        share.clamp(0.0, 1.0)
    }

    /// How long the level will still take, s, if requests go on ending as they have so far; `None` where that cannot be
    /// told.
    #[must_use]
    pub fn left_s(&self) -> Option<f64> {
        let tick = self.last.filter(|_| !self.is_over)?;
        match self.goal {
            Goal::None => None,
            Goal::Seconds(seconds) => Some((seconds - tick.elapsed_s).max(0.0)),
            Goal::Requests(_) => {
                let done = self.done();
                (done > 0.0).then(|| tick.elapsed_s * (1.0 - done) / done)
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::plan::{Load, Stop};

    pub(in super::super) fn level(units: Option<u64>, duration_s: Option<f64>) -> Level {
        Level {
            load: Load::closed(4),
            stop: Stop { units, duration_s, grace_s: 30.0 },
            warmups: 2,
            ..Level::default()
        }
    }

    pub(in super::super) fn started(level: &Level) -> Course {
        let mut course = Course::default();
        course.on_event(&Event::LevelStarted { ordinal: 1, levels: Some(3), level });
        course
    }

    pub(in super::super) fn tick(elapsed_s: f64, ok: u64, failed: u64, events: u64) -> Event<'static> {
        Event::Tick(Tick { elapsed_s, in_flight: 4, ok, failed, events })
    }

    #[test]
    fn a_level_of_requests_is_done_with_its_last_one() {
        let mut course = started(&level(Some(64), None));
        assert_eq!((course.done(), course.left_s()), (0.0, None));
        course.on_event(&tick(0.5, 15, 1, 500));
        assert_eq!((course.done(), course.left_s()), (0.25, Some(1.5)));
        assert_eq!(course.head(), "level 2 of 3, 4 users");
    }

    #[test]
    fn a_level_of_a_duration_is_counted_in_seconds_and_never_beyond_its_end() {
        let mut course = started(&level(None, Some(60.0)));
        course.on_event(&tick(15.0, 0, 0, 0));
        assert_eq!((course.done(), course.left_s()), (0.25, Some(45.0)));
        course.on_event(&tick(75.0, 0, 0, 0));
        assert_eq!((course.done(), course.left_s()), (1.0, Some(0.0)));
        let mut endless = started(&level(None, None));
        endless.on_event(&tick(75.0, 9, 0, 0));
        assert_eq!((endless.done(), endless.left_s()), (0.0, None));
    }
}
