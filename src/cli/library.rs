//! What the commands do, for [`crate::harness`]: typed values in, values out, nothing printed and no signal taken.

use std::sync::Arc;
use std::time::Duration;

use super::exit::Exit;
use super::failure::Failure;
use super::plan_from_args::Output;
use super::script::{self, ScriptBlocks};
use super::session::{Files, Finished, Session};
use super::simulate::{self, NOBODY, SIMULATED};
use super::{check, target, tokens};
use crate::compare::Sample;
use crate::gate::{Report, Thresholds};
use crate::metrics::Record;
use crate::model::Settings;
use crate::plan::{Endpoint, Plan, Secrets};
use crate::run_file::RunFile;
use crate::run_file::schema::SIMULATED_SERVER;
use crate::sys::clock::RunClock;
use crate::sys::signals::Interrupts;

/// How a run is to be made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Order {
    pub(crate) secrets: Secrets,
    /// How long a server that is not ready is waited for.
    pub(crate) wait: Duration,
    /// Where it is saved; `None`: nowhere.
    pub(crate) file: Option<String>,
    pub(crate) force: bool,
    pub(crate) label: Option<String>,
    pub(crate) metadata: Vec<(String, String)>,
    pub(crate) interrupts: Interrupts,
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) run: RunFile,
    /// Those of each level, where the plan keeps them.
    pub(crate) records: Vec<Option<Vec<Record>>>,
    /// Why it ended early, or could not be saved.
    pub(crate) failed: Option<Failed>,
}

/// Why there is no run, or only a part of one.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) kind: Kind,
    pub(crate) sentence: String,
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Input,
    Machine,
    Unreachable,
}

/// Runs `plan` on its server.
pub(crate) fn run(plan: &Plan, order: Order) -> Result<Measured, Failed> {
    measure(plan, order).map_err(Failed::from)
}

/// Runs `plan` on a modelled server in virtual time, whoever its endpoint is.
pub(crate) fn simulate(plan: &Plan, model: &Settings, order: Order) -> Result<Measured, Failed> {
    pretend(plan, model, order).map_err(Failed::from)
}

/// Holds a run against its baselines.
pub(crate) fn compared(
    baselines: &[Sample],
    candidate: &Sample,
    thresholds: &Thresholds,
) -> Result<Report, Failed> {
    check::compared(baselines, candidate, thresholds).map_err(|error| Failed::from(Failure::bad(error)))
}

fn measure(plan: &Plan, order: Order) -> Result<Measured, Failure> {
    let mut plan = plan.clone();
    let clock = RunClock::start();
    plan.validate().map_err(Failure::bad)?;
    let script = script::look(&plan)?;
    let (secrets, wait) = (order.secrets.clone(), order.wait);
    let (session, files) = session(order, clock, ScriptBlocks::of(script.as_ref()))?;
    let ready = target::ready(&mut plan, script, &secrets, wait)?;
    session.run(&plan, &ready, files).map(Measured::from)
}

fn pretend(plan: &Plan, model: &Settings, mut order: Order) -> Result<Measured, Failure> {
    let mut plan = plan.clone();
    plan.target.endpoints = vec![Endpoint { url: NOBODY.to_owned() }];
    plan.target.models = vec![SIMULATED.to_owned()];
    (plan.target.model_weights, plan.target.headers) = (Vec::new(), Vec::new());
    plan.validate().map_err(Failure::bad)?;
    simulate::come_to_an_end(&plan, model).map_err(Failure::bad)?;
    tokens::by_tokenizer(&mut plan, false)?;
    let script = script::look(&plan)?;
    let server = vec![simulate::engine::server(model, None)?];
    if let Ok(text) = serde_json::to_string(model) {
        order.metadata.push((SIMULATED_SERVER.to_owned(), text));
    }
    let (session, files) = session(order, RunClock::start(), ScriptBlocks::of(script.as_ref()))?;
    let target = Arc::new(simulate::engine::target(&plan, script)?);
    session.simulate(&plan, target, server, files).map(Measured::from)
}

fn session(order: Order, clock: RunClock, blocks: ScriptBlocks) -> Result<(Session, Files), Failure> {
    let Order { secrets, file, force, label, metadata, interrupts, .. } = order;
    let no_save = file.is_none();
    let output = Output { file, no_save, force, label, metadata, quiet: true, ..Output::default() };
    let files = Files::open(&output, &clock)?;
    let session = Session {
        clock,
        output,
        secrets,
        typed: Vec::new(),
        warnings: Vec::new(),
        blocks,
        ends_within_s: f64::INFINITY,
        earlier: Vec::new(),
        library: Some(interrupts),
        agreed: None,
        clock_offset: None,
    };
    Ok((session, files))
}

impl From<Finished> for Measured {
    fn from(finished: Finished) -> Measured {
        let Finished { run, records, failed, .. } = finished;
        Measured { run, records, failed: failed.map(Failed::from) }
    }
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Failed {
        let kind = match failure.exit {
            Exit::Unreachable => Kind::Unreachable,
            Exit::OwnFault => Kind::Machine,
            _ => Kind::Input,
        };
        Failed { kind, sentence: failure.to_string() }
    }
}
