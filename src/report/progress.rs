//! What is shown on standard error while a run goes on: nothing, a line, or a dashboard.
//!
//! A display sees a run only through its [`Event`]s and through [`Live`], whose sums it reads when it draws. It measures
//! nothing, and no shard ever waits for it.

mod bar;
pub mod course;
#[cfg(feature = "dashboard")]
mod dashboard;

use std::io::{self, Write as _};

use super::format;
use crate::metrics::Live;
use crate::run::Event;
use crate::sys::clock::RunClock;
use crate::sys::signals::Interrupts;
use crate::telemetry::Viewer;

pub use course::Course;

/// What is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ui {
    /// The whole terminal: series, percentiles, failures, what the client adds itself.
    Dashboard,
    /// One line, where standard error is a terminal.
    #[default]
    Simple,
    /// Nothing but notes.
    None,
}

/// The live display of a run.
#[derive(Debug)]
pub struct Progress {
    display: Display,
    notes: bool,
}

#[derive(Debug)]
enum Display {
    Line(bar::Bar),
    #[cfg(feature = "dashboard")]
    Dashboard(dashboard::Dashboard),
}

/// What a dashboard needs beside events.
#[derive(Debug)]
pub struct Around {
    /// The run's time line.
    pub clock: RunClock,
    /// The sums that shards write.
    pub live: Live,
    /// Raised by its key to stop.
    pub interrupts: Interrupts,
    /// What is loaded, in a few words.
    pub title: String,
    /// What servers and GPUs say; `None` where nobody is asked.
    pub telemetry: Option<Viewer>,
}

impl Ui {
    /// Whether this build has it, and the terminal it needs is there.
    ///
    /// # Errors
    /// What is missing, and what to do.
    pub fn check(self) -> Result<(), (&'static str, &'static str)> {
        if self != Ui::Dashboard {
            return Ok(());
        }
        if !cfg!(feature = "dashboard") {
            return Err((
                "is not part of this build",
                "build it with cargo build --release --features dashboard, or give simple",
            ));
        }
        if !console::Term::stderr().features().is_attended() {
            return Err(("needs a terminal on standard error", "give simple or none where there is none"));
        }
        Ok(())
    }
}

impl Progress {
    /// The display. Without notes it says nothing that is not asked for, and nothing is drawn but a dashboard. One without
    /// what it needs, or that the terminal refuses, becomes a line.
    #[must_use]
    pub fn new(ui: Ui, notes: bool, around: Option<Around>) -> Progress {
        #[cfg(feature = "dashboard")]
        if let (Ui::Dashboard, Some(around)) = (ui, around) {
            match dashboard::Dashboard::start(around) {
                Ok(dashboard) => return Progress { display: Display::Dashboard(dashboard), notes },
                Err(error) => {
                    let progress = Progress { display: Display::Line(bar::Bar::new(!notes)), notes };
                    progress
                        .note(&format!("the terminal cannot be drawn on ({error}): a line is shown instead"));
                    return progress;
                }
            }
        }
        #[cfg(not(feature = "dashboard"))]
        drop(around);
        Progress { display: Display::Line(bar::Bar::new(ui == Ui::None || !notes)), notes }
    }

    /// Shows what has happened.
    pub fn on_event(&mut self, event: &Event<'_>) {
        match (&mut self.display, event) {
            (Display::Line(_), Event::Note(note)) => self.note(note),
            (Display::Line(bar), event) => bar.on_event(event),
            #[cfg(feature = "dashboard")]
            (Display::Dashboard(dashboard), event) => dashboard.on_event(event),
        }
    }

    /// Takes the display away, so that the result can be printed. What a dashboard showed of notes is said again.
    pub fn finish(self) {
        match self.display {
            Display::Line(bar) => bar.finish(),
            #[cfg(feature = "dashboard")]
            Display::Dashboard(dashboard) => {
                let said = dashboard.finish();
                let line = Progress { display: Display::Line(bar::Bar::new(true)), notes: self.notes };
                said.iter().for_each(|note| line.note(note));
            }
        }
    }

    fn note(&self, note: &str) {
        if self.notes
            && let Display::Line(bar) = &self.display
        {
            // Also without a terminal, and whether anybody reads it or not.
            bar.suspend(|| {
                let _ = writeln!(io::stderr(), "{}", format::one_line(note, NOTE_CHARS_MAX));
            });
        }
    }
}

const NOTE_CHARS_MAX: usize = 1000;
