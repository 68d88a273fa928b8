//! One exporter: the thread that asks it, and what it has said so far.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::known::Reading;
use super::scrape::Scraper;
use super::{Ask, Whom, dcgm, host, nvml};
use crate::stats::Track;
use crate::summary::telemetry::{ExporterSeen, Kind, Source, TROUBLES_MAX, Trouble};
use crate::sys::clock::RunClock;
use crate::time::Stamp;

/// Somebody who can be asked. Blocks, but not for ever.
pub(super) trait Probe: Send {
    /// What it says now.
    ///
    /// # Errors
    /// A line for the user: it said nothing.
    fn read(&mut self) -> Result<Vec<Said>, String>;
}

/// What was said of one server, GPU or machine.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    /// Of whom.
    pub(super) of: String,
    /// What kind of server or GPU it is.
    pub(super) product: Option<String>,
    /// What.
    pub(super) readings: Vec<Reading>,
    /// What it did not say, in a line for the user.
    pub(super) trouble: Option<String>,
}

/// Servers, GPUs of one exporter at most; series of each.
const SOURCES_MAX: usize = 256;
const SERIES_MAX: usize = 128;
/// How long it is left alone at most after it failed again and again.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Failures after which one that nobody named is not asked again, if it never answered.
const QUIET_TRIES: u64 = 2;

#[derive(Clone, Debug)]
pub(super) struct Exporter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    control: Mutex<Control>,
    /// The thread is wanted, or has answered.
    changed: Condvar,
    seen: Mutex<ExporterSeen>,
    quietly: bool,
}

#[derive(Debug, Default)]
struct Control {
    /// Looks that were wished, the first at once, and the last of them that is done.
    wished: u64,
    done: u64,
    /// Cuts that were wished.
    cuts: u64,
    stop: bool,
    /// It will not be asked again.
    gone: bool,
    /// It answered when it was asked last, in time where somebody waited for it.
    answers: bool,
}

/// What the thread is to do next.
struct Turn {
    wished: u64,
    cuts: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is left half done under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Exporter {
    pub(super) fn start(ask: Ask, clock: RunClock, interval: Duration) -> Exporter {
        let Ask { name, whom, quietly } = ask;
        let kind = match &whom {
            Whom::Server(_) => Kind::Server,
            Whom::Dcgm(_) | Whom::Gpus(_) => Kind::Gpu,
            Whom::Host => Kind::Host,
        };
        let seen = ExporterSeen { kind, name: name.clone(), ..ExporterSeen::default() };
        let shared = Arc::new(Shared {
            control: Mutex::new(Control { wished: 1, answers: true, ..Control::default() }),
            changed: Condvar::new(),
            seen: Mutex::new(seen),
            quietly,
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("telemetry".to_owned()).spawn(move || {
            let mut probe: Box<dyn Probe> = match whom {
                Whom::Server(page) => Box::new(Scraper::new(name, page)),
                Whom::Dcgm(page) => Box::new(dcgm::Exporter::new(page)),
                Whom::Gpus(library) => Box::new(nvml::Gpus::new(library)),
                Whom::Host => Box::new(host::Host::default()),
            };
            of_thread.ask_until_stopped(&mut *probe, &clock, interval);
            lock(&of_thread.control).gone = true;
            of_thread.changed.notify_all();
        });
        if let Err(error) = thread {
            lock(&shared.control).gone = true;
            lock(&shared.seen).trouble(format!("no thread could be started ({error})"));
        }
        Exporter { shared }
    }

    pub(super) fn cut(&self) {
        lock(&self.shared.control).cuts += 1;
        self.look();
    }

    pub(super) fn look(&self) {
        lock(&self.shared.control).wished += 1;
        self.shared.changed.notify_all();
    }

    /// Waits until the last look is done, at most `patience`.
    pub(super) fn wait(&self, patience: Duration) {
        let control = lock(&self.shared.control);
        let waits = |control: &mut Control| control.done < control.wished && !control.gone;
        drop(self.shared.changed.wait_timeout_while(control, patience, waits));
    }

    /// The same, but for who did not answer when it was asked last: nobody waits for that.
    pub(super) fn wait_if_it_answers(&self, patience: Duration) {
        let answers = lock(&self.shared.control).answers;
        if answers {
            self.wait(patience);
            let mut control = lock(&self.shared.control);
            control.answers &= control.done >= control.wished;
        }
    }

    pub(super) fn stop(&self) {
        lock(&self.shared.control).stop = true;
        self.shared.changed.notify_all();
    }

    /// Stops it; what it has said, unless nobody asked for it and it said nothing.
    pub(super) fn end(&self) -> Option<ExporterSeen> {
        self.stop();
        let hangs = {
            let control = lock(&self.shared.control);
            control.done < control.wished && !control.gone
        };
        let mut seen = self.seen();
        if seen.answered == 0 && self.shared.quietly {
            return None;
        }
        if hangs {
            let never = seen.answered == 0;
            seen.trouble(format!(
                "{} when the run ended",
                if never { "had not answered" } else { "did not answer" }
            ));
        }
        Some(seen)
    }

    pub(super) fn seen(&self) -> ExporterSeen {
        lock(&self.shared.seen).clone()
    }
}

impl Shared {
    fn ask_until_stopped(&self, probe: &mut dyn Probe, clock: &RunClock, interval: Duration) {
        let (mut failures, mut cuts) = (0_u64, 0);
        let mut due = clock.now();
        while let Some(turn) = self.next_turn(clock, due) {
            let begun = clock.now();
            let said = probe.read();
            let ended = clock.now();
            failures = if said.is_ok() { 0 } else { failures + 1 };
            let never = {
                let mut seen = lock(&self.seen);
                if turn.cuts > cuts {
                    seen.sources
                        .iter_mut()
                        .flat_map(|source| source.tracks.values_mut())
                        .for_each(Track::cut);
                    cuts = turn.cuts;
                }
                // What it says is not older than the question: a reading asked for after the end of a level has all of it.
                seen.hear(begun, said);
                seen.answered == 0
            };
            {
                let mut control = lock(&self.control);
                control.done = turn.wished;
                control.answers = failures == 0;
            }
            self.changed.notify_all();
            if self.quietly && never && failures >= QUIET_TRIES {
                return;
            }
            // Whoever fails is asked less and less often; whoever is slow is not asked twice at once.
            let doubled = interval.saturating_mul(1 << failures.min(8));
            let pause = if failures == 0 { interval } else { doubled.min(PAUSE_MAX.max(interval)) };
            due = (begun + pause).max(ended + pause / 4);
        }
    }

    /// Waits until it is `due`, or a look is wished; `None`: no more.
    fn next_turn(&self, clock: &RunClock, due: Stamp) -> Option<Turn> {
        let mut control = lock(&self.control);
        loop {
            if control.stop {
                return None;
            }
            let now = clock.now();
            if now >= due || control.done < control.wished {
                return Some(Turn { wished: control.wished, cuts: control.cuts });
            }
            let waited = self.changed.wait_timeout(control, due - now);
            control = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl ExporterSeen {
    fn hear(&mut self, at: Stamp, said: Result<Vec<Said>, String>) {
        self.attempts += 1;
        match said {
            Ok(all) => {
                self.answered += 1;
                self.heard.add(at, 1.0);
                all.into_iter().for_each(|said| self.keep(at, said));
            }
            Err(trouble) => self.trouble(trouble),
        }
    }

    fn keep(&mut self, at: Stamp, said: Said) {
        let Said { of, product, readings, trouble } = said;
        trouble.into_iter().for_each(|trouble| self.trouble(trouble));
        let place = match self.sources.iter().position(|source| source.name == of) {
            Some(place) => place,
            None if self.sources.len() < SOURCES_MAX => {
                self.sources.push(Source { name: of, ..Source::default() });
                self.sources.len() - 1
            }
            None => {
                return self.trouble(format!("tells of more than {SOURCES_MAX}, of which these are kept"));
            }
        };
        let source = &mut self.sources[place];
        source.product = product.or(source.product.take());
        for Reading { meter, name, value } in readings {
            let room = source.tracks.len() < SERIES_MAX;
            let key = (meter, name);
            match source.tracks.get_mut(&key) {
                Some(track) => track.add(at, value),
                None if room => {
                    let mut track = if meter.is_counter() { Track::counter() } else { Track::default() };
                    track.add(at, value);
                    source.tracks.insert(key, track);
                }
                None => {}
            }
        }
    }

    /// Keeps the line, or counts it if it was said before.
    fn trouble(&mut self, what: String) {
        if let Some(same) = self.troubles.iter_mut().find(|trouble| trouble.what == what) {
            same.times += 1;
        } else if self.troubles.len() < TROUBLES_MAX {
            self.troubles.push(Trouble { what, times: 1 });
        }
    }
}
