//! The commands as functions, for programs that measure, search and check by themselves: a plan in, a run out.
//!
//! Nothing is printed, no signal is taken, and nothing is saved unless it is said where. [`Run`] is a saved run as well
//! as one that has just ended; what stands in it are the blocks of [`run_file::schema`](crate::run_file::schema). The
//! rooms below hold all of it in parts, for programs that need another engine or another order.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::cli::library::{self, Failed, Kind, Measured, Order};
use crate::compare::Sample;
use crate::gate::{Report, Thresholds};
use crate::model::Settings;
use crate::plan::{Plan, Search, Secret};
use crate::report::terminal::{self, Style};
use crate::report::view::View;
use crate::run_file::schema::{KneeBlock, LevelBlock};
use crate::run_file::write::to_json;
use crate::run_file::{Loaded, RunFile};
use crate::strategy::Found;
use crate::sys::signals::Interrupts;
use crate::verdict::Verdict;

/// How plans are run: what a plan does not hold because it is secret, of this machine, or of one run alone.
///
/// [`run`], [`simulate`] and [`find_capacity`] are those of the default one, which sends no key, waits 10 s for a server
/// that is not ready, and saves nothing.
#[derive(Clone, Debug)]
pub struct Runner {
    order: Order,
}

/// A run, measured, simulated or loaded. [`Display`](fmt::Display) writes the table that `tokload report` prints, 80
/// columns wide.
#[derive(Clone, Debug)]
pub struct Run {
    sample: Sample,
}

/// Why there is no run, or not all of one.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    sentence: String,
    run: Option<Box<Run>>,
}

/// Whose fault an [`Error`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The plan, or a file, cannot be used: it has to be changed.
    Input,
    /// This machine or tokload itself: a limit, a full disk, a fault of ours.
    Machine,
    /// The server cannot be reached, or is not ready.
    Unreachable,
}

/// Runs `plan` on its server.
///
/// What a server does wrong is part of the run: a level in which every request failed is no error. The process's limit on
/// open files is raised as far as it may be. Blocks until the last level has ended.
///
/// # Errors
/// A plan that cannot be run, a server that does not answer, or a machine that refuses something.
pub fn run(plan: &Plan) -> Result<Run, Error> {
    Runner::new().run(plan)
}

/// Runs `plan` on a modelled server, in virtual time: the same plan and server give the same numbers, and a minute takes
/// a fraction of a second. Nobody is asked, whatever endpoints, models and headers the plan has.
///
/// # Errors
/// A plan that cannot be run or would never end, or a model that is impossible.
pub fn simulate(plan: &Plan, server: &Settings) -> Result<Run, Error> {
    Runner::new().simulate(plan, server)
}

/// Looks for the highest load at which the server of `plan` keeps the plan's limits. The plan's first level says what else
/// is like; its load is `search`'s. [`Run::capacity`] has the answer.
///
/// A plan that was [built](Plan::builder) with a search is the same in [`run`], and in [`simulate`].
///
/// # Errors
/// Those of [`run`], and a search that does not fit the plan.
pub fn find_capacity(plan: &Plan, search: Search) -> Result<Run, Error> {
    let mut plan = plan.clone();
    plan.levels.truncate(1);
    if let Some(level) = plan.levels.first_mut() {
        *level = search.level_to_begin(level);
    }
    plan.search = Some(search);
    run(&plan)
}

/// Whether `candidate` got worse than its baseline by more than allowed, as far as can be told. Several baselines are a
/// noise floor; without any there is nothing to compare.
///
/// # Errors
/// Where no load of the candidate is one of a baseline, or nothing that both have is limited: a gate that compared nothing
/// has not passed.
pub fn check<'a>(
    candidate: &Run,
    baselines: impl IntoIterator<Item = &'a Run>,
    thresholds: &Thresholds,
) -> Result<Report, Error> {
    let baselines: Vec<Sample> = baselines.into_iter().map(|run| run.sample.clone()).collect();
    library::compared(&baselines, &candidate.sample, thresholds).map_err(|failed| Error::new(failed, None))
}

impl Runner {
    /// The default one.
    #[must_use]
    pub fn new() -> Runner {
        Runner { order: Order { wait: Duration::from_secs(10), ..Order::default() } }
    }

    /// Sends `key` as a bearer token. It is never stored.
    #[must_use]
    pub fn api_key(mut self, key: &str) -> Runner {
        self.order.secrets.set_bearer(key);
        self
    }

    /// Sends a header whose value is secret. It is never stored.
    #[must_use]
    pub fn secret_header(mut self, name: &str, value: &str) -> Runner {
        self.order.secrets.insert(name, Secret::new(value));
        self
    }

    /// How long a server that is not ready is waited for.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Runner {
        self.order.wait = wait;
        self
    }

    /// Saves runs as the run file `path`, its records beside it. That it can be written is known before anything is sent.
    #[must_use]
    pub fn save(mut self, path: impl AsRef<Path>) -> Runner {
        self.order.file = Some(path.as_ref().to_string_lossy().into_owned());
        self
    }

    /// Overwrites a file that is there already.
    #[must_use]
    pub fn overwrite(mut self) -> Runner {
        self.order.force = true;
        self
    }

    /// A name that is stored with runs.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Runner {
        self.order.label = Some(label.into());
        self
    }

    /// A fact that is stored with runs.
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Runner {
        self.order.metadata.push((name.into(), value.into()));
        self
    }

    /// Ends runs when `interrupts` is raised, from any thread: what is open is followed for the plan's grace, or given up
    /// when it is raised twice. The run has what was measured until then.
    #[must_use]
    pub fn stop_by(mut self, interrupts: &Interrupts) -> Runner {
        self.order.interrupts = interrupts.clone();
        self
    }

    /// As [`run`].
    ///
    /// # Errors
    /// Those of [`run`], and a file that cannot be written; [`Error::into_run`] has what was measured.
    pub fn run(&self, plan: &Plan) -> Result<Run, Error> {
        finish(library::run(plan, self.order.clone()))
    }

    /// As [`simulate`].
    ///
    /// # Errors
    /// Those of [`simulate`], and a file that cannot be written.
    pub fn simulate(&self, plan: &Plan, server: &Settings) -> Result<Run, Error> {
        finish(library::simulate(plan, server, self.order.clone()))
    }
}

fn finish(done: Result<Measured, Failed>) -> Result<Run, Error> {
    let Measured { run, records, failed } = done.map_err(|failed| Error::new(failed, None))?;
    let run = Run { sample: Sample::new(run.label.clone().unwrap_or_default().as_str(), run, &records) };
    match failed {
        None => Ok(run),
        Some(failed) => Err(Error::new(failed, Some(Box::new(run)))),
    }
}

impl Run {
    /// Loads a run file, and its records where they are beside it.
    ///
    /// # Errors
    /// What cannot be read, is no run file, or is one of a later tokload; the sentence says what to do.
    pub fn open(path: impl AsRef<Path>) -> Result<Run, Error> {
        let path = path.as_ref();
        let wrong = |error: &dyn fmt::Display| Error {
            kind: ErrorKind::Input,
            sentence: error.to_string(),
            run: None,
        };
        let loaded = Loaded::open(path).map_err(|error| wrong(&error))?;
        let sample = Sample::of(&path.display().to_string(), &loaded).map_err(|error| wrong(&error))?;
        Ok(Run { sample })
    }

    /// All of it, as it is stored.
    #[must_use]
    pub fn file(&self) -> &RunFile {
        &self.sample.run
    }

    /// What was measured of each load, in the order in which they were run.
    #[must_use]
    pub fn levels(&self) -> &[LevelBlock] {
        &self.file().levels
    }

    /// From which load on more brings no more throughput; `None` where the run is no sweep of three loads.
    #[must_use]
    pub fn knee(&self) -> Option<&KneeBlock> {
        self.file().knee.as_ref()
    }

    /// What a search for capacity has found; `None` where the run is none.
    #[must_use]
    pub fn capacity(&self) -> Option<&Found> {
        self.file().capacity.as_ref()
    }

    /// What the numbers are worth; `None` where they are another tool's.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        self.file().verdict
    }

    /// The text of its run file.
    #[must_use]
    pub fn to_json(&self) -> String {
        to_json(self.file())
    }
}

impl Error {
    fn new(failed: Failed, run: Option<Box<Run>>) -> Error {
        let Failed { kind, sentence } = failed;
        let kind = match kind {
            Kind::Input => ErrorKind::Input,
            Kind::Machine => ErrorKind::Machine,
            Kind::Unreachable => ErrorKind::Unreachable,
        };
        Error { kind, sentence, run }
    }

    /// Whose fault it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What was measured before it, if anything was begun.
    #[must_use]
    pub fn into_run(self) -> Option<Run> {
        self.run.map(|run| *run)
    }
}

impl Default for Runner {
    fn default() -> Runner {
        Runner::new()
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        // Nothing can fail that is written into memory.
        let _ = terminal::write(&View::new(self.file(), &[], None), Style::PLAIN, &mut text);
        f.write_str(String::from_utf8_lossy(&text).trim_end())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Error {}
