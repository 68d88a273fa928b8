//! One line on standard error that says where the run is, at most four times a second.
//!
//! Shows nothing when standard error is not a terminal. It measures nothing: the line's rates are for the eye.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::course::{Course, Goal};
use crate::run::{Event, Tick};

/// The line.
#[derive(Debug)]
pub(super) struct Bar {
    bar: ProgressBar,
    line: Line,
}

/// What it says, apart from how it is drawn.
#[derive(Debug, Default)]
struct Line {
    course: Course,
    events_s: Option<f64>,
}

impl Bar {
    /// The line; `hidden` it takes all and draws nothing.
    pub(super) fn new(hidden: bool) -> Bar {
        let target = if hidden {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND)
        };
        let bar = ProgressBar::with_draw_target(Some(BAR_STEPS), target);
        // The template is a constant of ours; without it the default style shows the same.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {wide_msg}") {
            bar.set_style(style.progress_chars("━━ "));
        }
        Bar { bar, line: Line::default() }
    }

    pub(super) fn on_event(&mut self, event: &Event<'_>) {
        match event {
            Event::LevelFinished(_) => return self.bar.set_position(BAR_STEPS),
            Event::Note(_) => return,
            event => self.line.on_event(event),
        }
        self.bar.set_position((self.line.course.done() * BAR_STEPS as f64) as u64);
        self.bar.set_message(self.line.words());
    }

    /// Takes the line away while something else is printed.
    pub(super) fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }

    /// Takes it away for good.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Line {
    fn on_event(&mut self, event: &Event<'_>) {
        match event {
            Event::LevelStarted { .. } => self.events_s = None,
            Event::Tick(tick) => self.events_s = self.rate(*tick).or(self.events_s),
            _ => {}
        }
        self.course.on_event(event);
    }

    /// Content events per second, smoothed.
    fn rate(&self, tick: Tick) -> Option<f64> {
        let before = self.course.last.unwrap_or_default();
        let seconds = tick.elapsed_s - before.elapsed_s;
        let now = tick.events.saturating_sub(before.events) as f64 / seconds;
        // Half of the new value: four draws a second would flicker.
        (seconds > 0.0).then(|| self.events_s.map_or(now, |shown| (shown + now) / 2.0))
    }

    fn words(&self) -> String {
        let (course, head) = (&self.course, self.course.head());
        if let Some(requests) = course.warming {
            return format!("{head}: warm-up, {requests} requests");
        }
        let Some(tick) = course.last else { return head };
        let goal = match course.goal {
            Goal::None => format!("{:.0} s", tick.elapsed_s),
            Goal::Requests(requests) => format!("{}/{requests}", tick.ok + tick.failed),
            Goal::Seconds(seconds) => format!("{:.0}/{seconds:.0} s", tick.elapsed_s),
        };
        let mut words = format!("{head}: {goal}, {} in flight, {} ok", tick.in_flight, tick.ok);
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

#[cfg(test)]
mod tests {
    use super::super::course::tests::{level, started, tick};
    use super::*;

    #[test]
    fn the_line_says_where_the_run_is() {
        let mut line = Line { course: started(&level(Some(64), None)), events_s: None };
        assert_eq!(line.words(), "level 2 of 3, 4 users");
        line.on_event(&Event::WarmupStarted { ordinal: 1, requests: 2 });
        assert_eq!(line.words(), "level 2 of 3, 4 users: warm-up, 2 requests");
        line.on_event(&tick(0.5, 15, 1, 500));
        assert_eq!(
            line.words(),
            "level 2 of 3, 4 users: 16/64, 4 in flight, 15 ok, 1 failed, about 1000 tok/s"
        );
        line.on_event(&tick(1.0, 31, 1, 1500));
        assert!(line.words().ends_with(", about 1500 tok/s"), "{}", line.words());
        let mut line = Line { course: started(&level(None, Some(60.0))), events_s: None };
        line.on_event(&tick(15.0, 3, 0, 0));
        assert!(line.words().contains("15/60 s, 4 in flight, 3 ok"), "{}", line.words());
    }

    #[test]
    fn the_hidden_line_takes_every_event() {
        let mut bar = Bar::new(true);
        let level = level(Some(64), None);
        bar.on_event(&Event::LevelStarted { ordinal: 0, levels: Some(1), level: &level });
        bar.on_event(&Event::WarmupStarted { ordinal: 0, requests: 2 });
        bar.on_event(&tick(1.0, 32, 0, 0));
        bar.on_event(&Event::Note("not shown"));
        assert!(bar.bar.is_hidden());
        assert_eq!(bar.bar.position(), BAR_STEPS / 2);
        bar.finish();
    }
}
