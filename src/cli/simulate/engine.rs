//! The run of an ordered simulation.

use std::sync::Arc;

use super::{Ordered, SIMULATED};
use crate::cli::aliases::Tool;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::run::{Gate, conclude, linger, show};
use crate::cli::script::ScriptBlocks;
use crate::cli::session::{Files, Session};
use crate::cli::target::content;
use crate::cli::{lint, report};
use crate::load::{Route, Target};
use crate::mock::{Paper, Settings};
use crate::model::{self, Serving};
use crate::plan::lint::Surroundings;
use crate::plan::{Plan, Secrets};
use crate::rng;
use crate::run_file::schema::SIMULATED_SERVER;
use crate::sys::clock::RunClock;
use crate::time::Stamp;
use crate::workload::{Mix, Routing, Script};

/// Runs the levels in virtual time, shows the table and saves the run.
pub(super) fn sim_run(ordered: Ordered, script: Option<Script>, typed: Vec<String>) -> Result<Exit, Failure> {
    let Ordered { order, model, max_model_len, explain, .. } = ordered;
    let clock = RunClock::start();
    let files = Files::open(&order.output, &clock)?;
    let servers = servers(&order.plan, &model, max_model_len)?;
    let blocks = ScriptBlocks::of(script.as_ref());
    let target = Arc::new(target(&order.plan, script)?);
    let gate = Gate { failed_share_max: order.failed_share_max, strict: order.strict };
    let warnings = {
        let around =
            Surroundings { simulated: true, context_tokens: max_model_len, ..Surroundings::default() };
        lint::warnings(&order.plan, &around, Tool::Tokload)
    };
    let mut output = order.output;
    if let Ok(text) = serde_json::to_string(&model) {
        output.metadata.push((SIMULATED_SERVER.to_owned(), text));
    }
    let secrets = Secrets::default();
    let session = Session {
        clock,
        output,
        secrets,
        typed,
        warnings,
        blocks,
        ends_within_s: f64::INFINITY,
        earlier: Vec::new(),
        library: None,
        agreed: None,
        clock_offset: None,
    };
    let mut finished = session.simulate(&order.plan, target, servers, files)?;
    show(&session, &finished)?;
    if explain {
        report::explain(&finished.run)?;
    }
    linger(finished.lingering.take(), session.output.quiet);
    conclude(finished, gate)
}

/// A server for each endpoint of the plan: the modelled one, or each of its replicas alone.
fn servers(plan: &Plan, model: &model::Settings, max_model_len: Option<u32>) -> Result<Vec<Paper>, Failure> {
    (0..plan.target.endpoints.len())
        .map(|place| server(&alone(model, place, plan.target.endpoints.len()), max_model_len))
        .collect()
}

/// The replica at `place` of the model without the others, where each of its `endpoints` replicas is one.
fn alone(model: &model::Settings, place: usize, endpoints: usize) -> model::Settings {
    let mut own = model.clone();
    if let (Serving::Batching(batching), true) = (&mut own.serving, endpoints > 1) {
        batching.replicas = 1;
        batching.speeds = batching.speeds.get(place).copied().into_iter().collect();
        // Equal seeds would have all of them draw the same noise.
        own.seed = rng::mixed(model.seed ^ place as u64) & i64::MAX as u64;
    }
    own
}

/// The modelled server, which answers to [`SIMULATED`].
///
/// `max_model_len` is the longest context in tokens; `None` for no limit.
pub(in crate::cli) fn server(model: &model::Settings, max_model_len: Option<u32>) -> Result<Paper, Failure> {
    let settings = Settings {
        model: SIMULATED.to_owned(),
        max_model_len: max_model_len.unwrap_or(u32::MAX),
        serving: model.clone(),
        ..Settings::default()
    };
    Paper::new(settings, Stamp::ZERO).map_err(Failure::bad)
}

/// Bodies as they are sent to a server, for a route that leads nowhere.
pub(in crate::cli) fn target(plan: &Plan, script: Option<Script>) -> Result<Target, Failure> {
    let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
    let route = Route::nowhere("simulated", plan.target.request_path(), headers).map_err(Failure::bad)?;
    Ok(Target {
        routes: vec![route; plan.target.endpoints.len().max(1)],
        templates: vec![plan.template(SIMULATED).map_err(Failure::bad)?],
        mix: Mix::equal(1),
        routing: Routing::new(&plan.target),
        content: content(plan, script)?,
    })
}
