//! Who looks at a run while it goes on: the terminal, and whoever asks the endpoint for metrics.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::cli::failure::Failure;
use crate::cli::plan_from_args::Output;
use crate::metrics::Live;
use crate::plan::{Error, Plan};
use crate::report::progress::{Around, Course, Progress, Ui};
use crate::report::prometheus;
use crate::run::Event;
use crate::sys::clock::RunClock;
use crate::sys::signals::Interrupts;
use crate::telemetry::{Endpoint, Viewer};

/// What is looked at, made before the run so that what cannot be had is known before.
pub(super) struct Watching {
    ui: Ui,
    /// Notes may be said.
    notes: bool,
    seen: Seen,
    /// Until the result is saved, and as much longer as is wished: a scrape at the end finds all of it.
    endpoint: Option<Endpoint>,
    linger: Duration,
}

/// The endpoint for metrics of a run that is over: its last values, for whoever asks seldom.
pub(in crate::cli) struct Lingering {
    endpoint: Endpoint,
    length: Duration,
    /// A further one ends it.
    interrupts: Interrupts,
}

/// What there is to see; nothing before the run begins.
#[derive(Clone, Default)]
struct Seen {
    live: Arc<OnceLock<Live>>,
    course: Arc<Mutex<Course>>,
}

impl Watching {
    /// Opens what `output` asks for.
    pub(super) fn open(output: &Output) -> Result<Watching, Failure> {
        output
            .ui
            .check()
            .map_err(|(wrong, remedy)| Failure::bad(Error::new("--ui dashboard", wrong, remedy)))?;
        let seen = Seen::default();
        let endpoint = output.metrics_listen.map(|address| {
            let of_page = seen.clone();
            Endpoint::start(address, move || of_page.page()).map_err(|error| {
                let option = format!("--metrics-listen {address}");
                Failure::bad(Error::new(
                    &option,
                    error.to_string(),
                    "name a free port of this machine, or 0 for any",
                ))
            })
        });
        let (notes, linger) = (!output.quiet, output.metrics_linger);
        Ok(Watching { ui: output.ui, notes, seen, endpoint: endpoint.transpose()?, linger })
    }

    /// Where so many shards are to show what they do, if anybody looks.
    pub(super) fn live(&self, shards: usize) -> Option<Live> {
        let is_seen = self.endpoint.is_some() || self.ui == Ui::Dashboard;
        is_seen.then(|| self.seen.live.get_or_init(|| Live::new(shards)).clone())
    }

    /// Where to ask for metrics.
    pub(super) fn note(&self) -> Option<String> {
        let address = self.endpoint.as_ref()?.address();
        let longer = match self.linger.as_secs_f64() {
            0.0 => String::new(),
            s => format!(", and {s} s longer"),
        };
        Some(format!("metrics of the run are at http://{address}/metrics until it ends{longer}"))
    }

    /// The display of a run of `plan`.
    pub(super) fn progress(
        &self,
        plan: &Plan,
        clock: RunClock,
        interrupts: Interrupts,
        telemetry: Option<Viewer>,
    ) -> Progress {
        let around = self.seen.live.get().filter(|_| self.ui == Ui::Dashboard).map(|live| {
            let title = [
                plan.target.models.join(", "),
                plan.target.endpoints.first().map_or_else(String::new, |first| first.url.clone()),
            ];
            let title: Vec<&str> = title.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
            Around { clock, live: live.clone(), interrupts, title: title.join(" · "), telemetry }
        });
        Progress::new(self.ui, self.notes, around)
    }

    /// Takes in what has happened, for whoever asks.
    pub(super) fn on_event(&self, event: &Event<'_>) {
        if self.endpoint.is_some() {
            self.seen.course.lock().unwrap_or_else(PoisonError::into_inner).on_event(event);
        }
    }
}

impl Watching {
    /// What stays open when the run is saved, if anything is to; a user who has given up open requests waits for nothing more.
    pub(super) fn into_lingering(self, interrupts: Interrupts) -> Option<Lingering> {
        let endpoint = self.endpoint.filter(|_| self.linger > Duration::ZERO && interrupts.count() < 2)?;
        Some(Lingering { endpoint, length: self.linger, interrupts })
    }
}

impl Lingering {
    /// Stays open until the time is over or the user has had enough.
    pub(in crate::cli) fn wait(self, quiet: bool) {
        if !quiet {
            let (address, s) = (self.endpoint.address(), self.length.as_secs_f64());
            crate::cli::say(&format!(
                "the last values are at http://{address}/metrics for {s} s more, Ctrl-C ends that"
            ));
        }
        let (clock, before) = (RunClock::start(), self.interrupts.count());
        let is_over = || clock.now().as_secs_f64() >= self.length.as_secs_f64();
        while !is_over() && self.interrupts.count() == before {
            std::thread::sleep(LOOK.min(self.length));
        }
    }
}

/// How often the wish to end is looked for.
const LOOK: Duration = Duration::from_millis(50);

impl Seen {
    fn page(&self) -> String {
        let course = self.course.lock().unwrap_or_else(PoisonError::into_inner).clone();
        prometheus::page(&self.live.get().map(Live::read).unwrap_or_default(), &course)
    }
}
