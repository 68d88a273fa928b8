//! Live progress on standard error: one line that says where the run is, at most four times a second.
//!
//! Shows nothing when standard error is not a terminal or quiet was asked for. It sees a run only through
//! [`Event`]s, and measures nothing: the line's rates are for the eye.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::format;
use crate::plan::Level;
use crate::run::{Event, Tick};
use crate::run_file::schema::level_label;

/// The live display of a run.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    line: Line,
    notes: bool,
}

/// What the line says, apart from how it is drawn.
#[derive(Debug, Default)]
struct Line {
    head: String,
    /// Requests of the level, or its length in ms.
    goal: Goal,
    warming: Option<u32>,
    last: Option<Tick>,
    events_s: Option<f64>,
}

/// What the bar counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Goal {
    #[default]
    None,
    Requests(u64),
    Seconds(f64),
}

impl Progress {
    /// The display; with `quiet` it stays silent, notes included.
    #[must_use]
    pub fn new(quiet: bool) -> Progress {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND)
        };
        let bar = ProgressBar::with_draw_target(Some(BAR_STEPS), target);
        // The template is a constant of ours; without it the default style shows the same.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {wide_msg}") {
            bar.set_style(style.progress_chars("━━ "));
        }
        Progress { bar, line: Line::default(), notes: !quiet }
    }

    /// Shows what has happened.
    pub fn on_event(&mut self, event: &Event<'_>) {
        match event {
            Event::LevelStarted { ordinal, levels, level } => self.line.start(*ordinal, *levels, level),
            Event::WarmupStarted { requests, .. } => self.line.warming = Some(*requests),
            Event::MeasuringStarted { .. } => self.line.warming = None,
            Event::Tick(tick) => self.line.tick(*tick),
            Event::LevelFinished(_) => return self.bar.set_position(BAR_STEPS),
            Event::Note(note) => return self.note(note),
        }
        self.bar.set_position((self.line.done() * BAR_STEPS as f64) as u64);
        self.bar.set_message(self.line.words());
    }

    /// Takes the display away, so that the result can be printed.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }

    #[expect(clippy::print_stderr, reason = "notes belong on standard error, also without a terminal")]
    fn note(&self, note: &str) {
        if self.notes {
            self.bar.suspend(|| eprintln!("{}", format::one_line(note, NOTE_CHARS_MAX)));
        }
    }
}

impl Line {
    fn start(&mut self, ordinal: usize, levels: Option<usize>, level: &Level) {
        let goal = match (level.stop.units, level.stop.duration_s) {
            // With both the nearer end is not known before; requests are what is promised.
            (Some(requests), _) => Goal::Requests(requests),
            (None, Some(seconds)) => Goal::Seconds(seconds),
            (None, None) => Goal::None,
        };
        let of = levels.map_or_else(String::new, |levels| format!(" of {levels}"));
        let head = format!("level {}{of}, {}", ordinal + 1, level_label(level));
        *self = Line { head, goal, ..Line::default() };
    }

    fn tick(&mut self, tick: Tick) {
        let before = self.last.unwrap_or_default();
        let seconds = tick.elapsed_s - before.elapsed_s;
        if seconds > 0.0 {
            let now = tick.events.saturating_sub(before.events) as f64 / seconds;
            // Half of the new value: four draws a second would flicker.
            self.events_s = Some(self.events_s.map_or(now, |shown| (shown + now) / 2.0));
        }
        self.warming = None;
        self.last = Some(tick);
    }

    /// Share of the level that is done, 0..=1.
    fn done(&self) -> f64 {
        let Some(tick) = self.last else { return 0.0 };
        let share = match self.goal {
            Goal::None => 0.0,
            Goal::Requests(requests) => (tick.ok + tick.failed) as f64 / requests.max(1) as f64,
            Goal::Seconds(seconds) => tick.elapsed_s / seconds.max(f64::MIN_POSITIVE),
        };
        share.clamp(0.0, 1.0)
    }

    fn words(&self) -> String {
        if let Some(requests) = self.warming {
            return format!("{}: warm-up, {requests} requests", self.head);
        }
        let Some(tick) = self.last else { return self.head.clone() };
        let goal = match self.goal {
            Goal::None => format!("{:.0} s", tick.elapsed_s),
            Goal::Requests(requests) => format!("{}/{requests}", tick.ok + tick.failed),
            Goal::Seconds(seconds) => format!("{:.0}/{seconds:.0} s", tick.elapsed_s),
        };
        let mut words = format!("{}: {goal}, {} in flight, {} ok", self.head, tick.in_flight, tick.ok);
        if tick.failed > 0 {
            words += &format!(", {} failed", tick.failed);
        }
        if let Some(rate) = self.events_s {
            words += &format!(", about {rate:.0} tok/s");
        }
        words
    }
}

const DRAWS_PER_SECOND: u8 = 4;
const BAR_STEPS: u64 = 1000;
const NOTE_CHARS_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Load, Stop};

    fn level(units: Option<u64>, duration_s: Option<f64>) -> Level {
        Level {
            load: Load::closed(4),
            stop: Stop { units, duration_s, grace_s: 30.0 },
            warmups: 2,
            ..Level::default()
        }
    }

    fn started(level: &Level) -> Line {
        let mut line = Line::default();
        line.start(1, Some(3), level);
        line
    }

    #[test]
    fn the_line_says_where_the_run_is() {
        let mut line = started(&level(Some(64), None));
        assert_eq!(line.words(), "level 2 of 3, 4 users");
        line.warming = Some(2);
        assert_eq!(line.words(), "level 2 of 3, 4 users: warm-up, 2 requests");
        line.tick(Tick { elapsed_s: 0.5, in_flight: 4, ok: 15, failed: 1, events: 500 });
        assert_eq!(
            line.words(),
            "level 2 of 3, 4 users: 16/64, 4 in flight, 15 ok, 1 failed, about 1000 tok/s"
        );
        assert_eq!(line.done(), 0.25);
        line.tick(Tick { elapsed_s: 1.0, in_flight: 4, ok: 31, failed: 1, events: 1500 });
        assert!(line.words().ends_with(", about 1500 tok/s"), "{}", line.words());
    }

    #[test]
    fn the_quiet_display_takes_every_event_and_shows_none() {
        let mut progress = Progress::new(true);
        let level = level(Some(64), None);
        progress.on_event(&Event::LevelStarted { ordinal: 0, levels: Some(1), level: &level });
        progress.on_event(&Event::WarmupStarted { ordinal: 0, requests: 2 });
        progress.on_event(&Event::Tick(Tick { elapsed_s: 1.0, ok: 32, ..Tick::default() }));
        progress.on_event(&Event::Note("not shown"));
        assert!(progress.bar.is_hidden());
        assert_eq!(progress.bar.position(), BAR_STEPS / 2);
        progress.finish();
    }

    #[test]
    fn a_level_of_a_duration_is_counted_in_seconds_and_never_beyond_its_end() {
        let mut line = started(&level(None, Some(60.0)));
        line.tick(Tick { elapsed_s: 15.0, ..Tick::default() });
        assert_eq!(line.done(), 0.25);
        assert!(line.words().contains("15/60 s, 0 in flight, 0 ok"));
        line.tick(Tick { elapsed_s: 75.0, ..Tick::default() });
        assert_eq!(line.done(), 1.0);
    }
}
