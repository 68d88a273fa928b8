//! The dashboard: the whole terminal, drawn by a thread of its own.
//!
//! The thread goes behind all others, reads the sums that shards write, and draws twice a second. A terminal that does
//! not take what is drawn stops this thread and nothing else. However the program ends, the terminal is given back as it
//! was: at the end of the run, when the thread ends, and before a panic of any thread is printed.

mod figures;
mod screen;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event as Key, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};

use self::figures::{Facts, Figures, STEP_S};
use self::screen::Colours;
use super::Around;
use crate::run::Event;
use crate::sys::cpu::go_last;
use crate::telemetry::Viewer;

/// The dashboard of a run; it ends with it.
#[derive(Debug)]
pub(super) struct Dashboard {
    told: Arc<Told>,
    live: crate::metrics::Live,
    thread: Option<JoinHandle<()>>,
    /// Notes, to be said again when the terminal is an ordinary one.
    notes: Vec<String>,
}

/// What the thread that draws is told.
#[derive(Debug, Default)]
struct Told {
    facts: Mutex<Facts>,
    is_over: AtomicBool,
}

/// The terminal is ours: whoever takes this back gives it back.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// How long a key, and the end of a run, may wait for this thread.
const LOOK: Duration = Duration::from_millis(250);
const NOTES_SHOWN: usize = 3;

impl Dashboard {
    /// Takes the terminal.
    ///
    /// # Errors
    /// The terminal refuses.
    pub(super) fn start(around: Around) -> io::Result<Dashboard> {
        let told = Arc::new(Told::default());
        restore_before_panics();
        let terminal = take()?;
        let (of_thread, live) = (Arc::clone(&told), around.live.clone());
        let spawned = std::thread::Builder::new().name("dashboard".to_owned()).spawn(move || {
            go_last();
            // A terminal that is gone is looked at by nobody; the run goes on.
            let _ = draw(terminal, &of_thread, &around);
            give_back();
        });
        match spawned {
            Ok(thread) => Ok(Dashboard { told, live, thread: Some(thread), notes: Vec::new() }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    pub(super) fn on_event(&mut self, event: &Event<'_>) {
        if let Event::Note(note) = event {
            self.notes.push((*note).to_owned());
        }
        let mut facts = self.told.facts.lock().unwrap_or_else(PoisonError::into_inner);
        facts.course.on_event(event);
        match event {
            Event::LevelStarted { .. } => facts.base = Arc::new(self.live.read()),
            Event::Note(note) => {
                facts.notes.push_back((*note).to_owned());
                if facts.notes.len() > NOTES_SHOWN {
                    facts.notes.pop_front();
                }
            }
            _ => {}
        }
    }

    /// Gives the terminal back, and what was noted.
    pub(super) fn finish(mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.told.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // One that panicked has given the terminal back before.
            let _ = thread.join();
        }
    }
}

type Screen = Terminal<CrosstermBackend<io::Stderr>>;

/// Draws until the run is over, and hears the key to stop meanwhile.
fn draw(mut terminal: Screen, told: &Told, around: &Around) -> io::Result<()> {
    let colours = Colours::of(std::env::var_os("NO_COLOR").as_deref());
    let mut figures = Figures::new(around.title.clone());
    let (mut next_s, mut heard) = (0.0, false);
    while !told.is_over.load(Ordering::Relaxed) && IS_TAKEN.load(Ordering::Relaxed) {
        let now_s = around.clock.now().as_secs_f64();
        if now_s >= next_s {
            figures.take(now_s, around.live.read());
            let said = around.telemetry.as_ref().map(Viewer::snapshot);
            figures.servers = said.as_ref().map(figures::servers).unwrap_or_default();
            // Not from the planned moment on: a terminal that hung is not made up for.
            next_s = now_s + STEP_S - LOOK.as_secs_f64() / 2.0;
            heard = true;
        }
        if heard {
            // A copy: what is drawn may take as long as the terminal likes.
            figures.facts = told.facts.lock().unwrap_or_else(PoisonError::into_inner).clone();
            figures.stops = around.interrupts.count();
            terminal.draw(|frame| screen::draw(frame, &figures, colours))?;
        }
        heard = hear(around);
    }
    Ok(())
}

/// Waits for a key or a change of the terminal's size, and says whether one came. Ctrl-C is a key while the terminal is ours;
/// what it does is the same.
fn hear(around: &Around) -> bool {
    match event::poll(LOOK) {
        Ok(true) => {}
        Ok(false) => return false,
        Err(_) => {
            // Nobody types here: no keyboard, and Ctrl-C is still a signal.
            std::thread::sleep(LOOK);
            return false;
        }
    }
    if let Ok(Key::Key(key)) = event::read()
        && key.kind == KeyEventKind::Press
        && (matches!(key.code, KeyCode::Char('q' | 'Q'))
            || (key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)))
    {
        around.interrupts.raise();
    }
    true
}

fn take() -> io::Result<Screen> {
    IS_TAKEN.store(true, Ordering::Relaxed);
    // Without a keyboard there is none that could be read key by key.
    let _ = enable_raw_mode();
    let terminal = execute!(io::stderr(), EnterAlternateScreen, cursor::Hide)
        .and_then(|()| Terminal::new(CrosstermBackend::new(io::stderr())));
    if terminal.is_err() {
        give_back();
    }
    terminal
}

/// The terminal as it was; the second time nothing.
fn give_back() {
    if IS_TAKEN.swap(false, Ordering::Relaxed) {
        let _ = execute!(io::stderr(), LeaveAlternateScreen, cursor::Show);
        let _ = disable_raw_mode();
    }
}

/// What a panic prints would be lost with the screen that it is printed on.
fn restore_before_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
    });
}
