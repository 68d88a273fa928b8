//! The seam between a plan and whatever runs it: one level at a time, for real or virtually.
//!
//! Owns the order of the levels and the events around them. How a level is run is the engine's business; what is
//! done with its result is the caller's.

use std::{fmt, io};

use crate::plan::Level;
use crate::run::{Event, LevelResult};

/// Something that can run a level.
pub trait Engine {
    /// Runs the level at place `ordinal`, warm-up included, and returns what was measured.
    ///
    /// It reports [`Event::WarmupStarted`], [`Event::MeasuringStarted`], [`Event::Tick`] and [`Event::Note`]; the events around a level are
    /// [`drive`]'s.
    ///
    /// # Errors
    ///
    /// A fault of ours or of this machine. What goes wrong with a request is part of the result.
    fn run_level(
        &mut self,
        ordinal: usize,
        level: &Level,
        events: &mut dyn FnMut(Event<'_>),
    ) -> Result<LevelResult, Error>;
}

/// Why a level could not be run: never the server's doing.
#[derive(Debug)]
pub enum Error {
    /// The operating system refused something.
    Machine {
        /// What was being done: "cannot pin a shard to core 3".
        doing: String,
        /// What the system said.
        source: io::Error,
    },
    /// The plan asks for more than this machine gives, or for what the engine cannot do; a sentence with the remedy.
    Refused(String),
    /// A shard ended by a panic; its part of the level is lost.
    ShardLost {
        /// Which shard.
        shard: usize,
        /// The panic's message.
        message: String,
    },
}

/// What [`drive`] brought home.
#[derive(Debug)]
pub struct Driven {
    /// The levels that were run, in order.
    pub finished: Vec<LevelResult>,
    /// Why the next one could not be run.
    pub failed: Option<Error>,
}

/// Which levels are run.
pub struct Course<'a> {
    /// Place of the first, where others were run before.
    pub first: usize,
    /// How many there will be; `None` where that is not known.
    pub levels: Option<usize>,
    /// The next one, with the results so far; `None`: no more.
    pub next: &'a mut dyn FnMut(&[LevelResult]) -> Option<Level>,
}

/// Runs the levels of `course` one after another.
///
/// Stops after a level that was interrupted (its result is kept) and at the first that cannot be run (those before it are
/// kept: what was measured is not given up for a later fault).
pub fn drive(engine: &mut dyn Engine, course: Course<'_>, events: &mut dyn FnMut(Event<'_>)) -> Driven {
    let Course { first, levels, next } = course;
    let mut driven = Driven { finished: Vec::new(), failed: None };
    while let Some(level) = next(&driven.finished) {
        let (ordinal, level) = (first + driven.finished.len(), &level);
        events(Event::LevelStarted { ordinal, levels, level });
        match engine.run_level(ordinal, level, events) {
            Ok(result) => {
                events(Event::LevelFinished(&result));
                let interrupted = result.interrupted;
                driven.finished.push(result);
                if interrupted {
                    break;
                }
            }
            Err(error) => {
                driven.failed = Some(error);
                break;
            }
        }
    }
    driven
}

impl fmt::Debug for Course<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Course")
            .field("first", &self.first)
            .field("levels", &self.levels)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Machine { doing, source } => write!(f, "{doing}: {source}"),
            Error::Refused(sentence) => f.write_str(sentence),
            Error::ShardLost { shard, message } => {
                write!(f, "shard {shard} panicked ({message}); its requests are lost: please report this")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Machine { source, .. } => Some(source),
            Error::Refused(_) | Error::ShardLost { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Tally;
    use crate::plan::{Load, Stop};
    use crate::run::{Span, Stamps, Tick, Window};
    use crate::time::Stamp;

    /// A table of prepared results, handed out in order.
    struct Table(Vec<Result<LevelResult, Error>>);

    impl Engine for Table {
        fn run_level(
            &mut self,
            ordinal: usize,
            _: &Level,
            events: &mut dyn FnMut(Event<'_>),
        ) -> Result<LevelResult, Error> {
            events(Event::Tick(Tick { ok: ordinal as u64, ..Tick::default() }));
            self.0.remove(0)
        }
    }

    fn level(users: u32) -> Level {
        Level {
            load: Load::closed(users),
            stop: Stop { units: Some(16), duration_s: None, grace_s: 30.0 },
            warmups: 0,
            ..Level::default()
        }
    }

    fn result(ordinal: usize, interrupted: bool) -> LevelResult {
        let (start, end) = (Stamp::ZERO, Stamp::from_millis(10));
        LevelResult {
            slices: None,
            replicas: Vec::new(),
            ordinal,
            level: level(1),
            span: Span { t0: start, t1: end, t2: end },
            window: Window { start, end, whole_level: true },
            tally: Tally::default(),
            records: None,
            shards: Vec::new(),
            host: None,
            stamps: Stamps::default(),
            examples: Vec::new(),
            lengthened: None,
            judged: None,
            interrupted,
        }
    }

    /// The places that were finished, the error's text, and the events as short words.
    fn outcome(results: Vec<Result<LevelResult, Error>>) -> (Vec<usize>, Option<String>, Vec<String>) {
        let levels = [level(1), level(2), level(4)];
        let mut seen = Vec::new();
        let mut next = |done: &[LevelResult]| levels.get(done.len()).cloned();
        let course = Course { first: 0, levels: Some(levels.len()), next: &mut next };
        let driven = drive(&mut Table(results), course, &mut |event| {
            seen.push(match event {
                Event::LevelStarted { ordinal, levels, level } => {
                    format!("start {ordinal}/{} users {:?}", levels.unwrap(), level.load.users)
                }
                Event::LevelFinished(result) => format!("end {}", result.ordinal),
                Event::Tick(tick) => format!("tick {}", tick.ok),
                Event::WarmupStarted { .. } | Event::MeasuringStarted { .. } | Event::Note(_) => {
                    "other".to_owned()
                }
            });
        });
        let finished = driven.finished.iter().map(|r| r.ordinal).collect();
        (finished, driven.failed.map(|e| e.to_string()), seen)
    }

    #[test]
    fn levels_run_in_order_each_between_its_events() {
        let (finished, failed, seen) =
            outcome(vec![Ok(result(0, false)), Ok(result(1, false)), Ok(result(2, false))]);
        assert_eq!((finished, failed), (vec![0, 1, 2], None));
        let expected = [
            "start 0/3 users Some(1)",
            "tick 0",
            "end 0",
            "start 1/3 users Some(2)",
            "tick 1",
            "end 1",
            "start 2/3 users Some(4)",
            "tick 2",
            "end 2",
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn an_interrupted_level_is_kept_and_the_last() {
        let (finished, failed, seen) = outcome(vec![Ok(result(0, false)), Ok(result(1, true))]);
        assert_eq!((finished, failed), (vec![0, 1], None));
        assert_eq!(seen.last().map(String::as_str), Some("end 1"));
    }

    #[test]
    fn a_fault_of_ours_keeps_the_levels_before_it() {
        let lost = Error::ShardLost { shard: 1, message: "boom".to_owned() };
        let (finished, failed, seen) = outcome(vec![Ok(result(0, false)), Err(lost)]);
        assert_eq!(finished, [0]);
        assert!(failed.unwrap().starts_with("shard 1 panicked (boom)"));
        assert_eq!(seen.last().map(String::as_str), Some("tick 1"));
    }
}
