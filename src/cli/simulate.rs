//! `simulate`: a plan against a modelled server in virtual time, and the model of a measured server.
//!
//! Owns what the words of the command mean: a plan whose target is nobody, and the server in its place. `fit` finds
//! such a server in a saved run, `engine` runs the plan.

pub(super) mod engine;
pub mod fit;

use std::path::Path;

use super::aliases::Tool;
use super::args::{FindCapacityArgs, RunArgs, SimulateArgs, SimulateWords};
use super::exit::Exit;
use super::failure::Failure;
use super::model_options::ModelArgs;
use super::plan_from_args::{self, Order, Surroundings, search};
use super::report::for_reading;
use super::run::{config, with_files};
use super::{dry_run, print, say, script, tokens, value};
use crate::model::{Serving, Settings};
use crate::plan::{Error, Level, Plan, to_toml};

pub use crate::plan::NOBODY;

/// A simulation as it was ordered.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordered {
    /// The plan and what becomes of its result. The plan's only endpoint is [`NOBODY`] and its only model
    /// [`SIMULATED`]; there are no secrets.
    pub order: Order,
    /// The server, its seed being the plan's.
    pub model: Settings,
    /// Its longest context, tokens, at least 1; `None` for no limit.
    pub max_model_len: Option<u32>,
    /// Say in words why the numbers are as they are.
    pub explain: bool,
    /// Instead of all that, find the server of this saved run.
    pub fit: Option<String>,
}

/// The model of a simulated plan.
pub const SIMULATED: &str = "simulated";

pub(super) fn main(words: &SimulateWords, typed: Vec<String>) -> Result<Exit, Failure> {
    let config = config(&words.plan)?;
    let file = config.as_ref().map(|(name, text)| (*name, text.as_str()));
    let words = &SimulateWords { plan: with_files(&words.plan)?, ..words.clone() };
    let mut ordered = order(words, file).map_err(Failure::bad)?;
    if let Some(path) = &ordered.fit {
        let estimate = fit::Estimate::of_file(Path::new(path)).map_err(Failure::bad)?;
        return print(estimate.text(path).trim_end()).map(|()| Exit::Done);
    }
    let Ordered { order, model, .. } = &mut ordered;
    if !order.output.quiet {
        order.notes.iter().for_each(|note| say(note));
    }
    if order.print_config {
        return print(order.plan.to_toml().trim_end()).map(|()| Exit::Done);
    }
    if let Some(note) = tokens::by_tokenizer(&mut order.plan, false)?.filter(|_| !order.output.quiet) {
        say(&note);
    }
    let script = script::look(&order.plan)?;
    if let Some(script) = script.as_ref().filter(|_| !order.output.quiet) {
        script::notes(&order.plan, script).iter().for_each(|note| say(note));
    }
    if order.dry_run {
        let requests = dry_run::text(&order.plan, script.as_ref())?;
        return print(&format!("{requests}\n{}", commented(model))).map(|()| Exit::Done);
    }
    engine::sim_run(ordered, script, typed)
}

/// The simulation that `words` order; `config` is the name and the text of the file of `--config`.
///
/// # Errors
/// What [`plan_from_args::order`] and [`ModelArgs::settings`] refuse, `--fit` beside anything else, `--explain` where
/// the output is not for reading, and levels that would never end.
pub fn order(words: &SimulateWords, config: Option<(&str, &str)>) -> Result<Ordered, Error> {
    let SimulateWords { own, server, search, plan } = words;
    if own.fit.is_some() {
        fits_alone(words)?;
    }
    let plan = &if own.find_capacity {
        if search.resume.is_some() {
            let remedy = "leave it out: a simulation is quick, and repeats its numbers";
            return Err(Error::new("--resume", "goes on with a search on a real server", remedy));
        }
        search::prepared(search, plan, false)?
    } else {
        if *search != FindCapacityArgs::default() {
            let remedy = "give --find-capacity as well";
            return Err(Error::new("--vary and the like", "belong to a search", remedy));
        }
        plan.clone()
    };
    let args = RunArgs {
        base_url: endpoints(server, plan)?,
        model: vec![SIMULATED.to_owned()],
        seed: own.seed.clone(),
        ..plan.clone()
    };
    // Nobody is asked, so no key is looked for.
    let around = Surroundings {
        tool: Tool::Tokload,
        fresh_seed: 0,
        config,
        env: &|_| None,
        read: &crate::cli::text_file::read,
    };
    let mut order = plan_from_args::order(&args, &around)?;
    if own.find_capacity {
        search::set(search, &mut order.plan)?;
    }
    if config.is_some() {
        order.notes.push("nobody is asked in a simulation: the target in --config is left out".to_owned());
    }
    if own.explain {
        for_reading("--explain", order.output.format)?;
    }
    let model = server.settings(order.plan.seed, &Settings::course())?;
    come_to_an_end(&order.plan, &model)?;
    let context = own.max_model_len.as_deref().map(max_model_len).transpose()?;
    Ok(Ordered { order, model, max_model_len: context, explain: own.explain, fit: own.fit.clone() })
}

fn max_model_len(text: &str) -> Result<u32, Error> {
    let option = "--max-model-len";
    match value::integer(option, text)? {
        0 => Err(Error::new(
            option,
            "no prompt fits into 0 tokens",
            "give 1 or more, or leave it out for no limit",
        )),
        tokens => Ok(tokens),
    }
}

/// Whom a simulation pretends to ask: one server, with a router in front of its replicas if it has some, or, where the
/// client is to spread the requests itself, each replica.
fn endpoints(server: &ModelArgs, plan: &RunArgs) -> Result<Vec<String>, Error> {
    let subject = match (&plan.url_strategy, &plan.url_weights) {
        (Some(_), _) => "--url-strategy",
        (None, Some(_)) => "--url-weights",
        (None, None) => return Ok(vec![NOBODY.to_owned()]),
    };
    let remedy = "give --replicas 4 or more, each of which is then an endpoint of its own";
    let Serving::Batching(batching) = server.settings(0, &Settings::course())?.serving else {
        return Err(Error::new(
            subject,
            "spreads requests over servers, and this one has no replicas",
            remedy,
        ));
    };
    match batching.replicas {
        0 | 1 => Err(Error::new(subject, "spreads requests over servers, and there is one", remedy)),
        _ if server.router.is_some() => {
            let remedy = "leave out one of the two";
            Err(Error::new(
                "--router",
                format!("stands in front of the replicas, and {subject} in its place"),
                remedy,
            ))
        }
        n => Ok((1..=n).map(|place| format!("http://replica-{place}.simulation.invalid:80")).collect()),
    }
}

/// Why `option`, one of those of `run`, is not for a simulation, and what to do instead.
#[must_use]
pub fn refusal(option: &str) -> Option<(&'static str, &'static str)> {
    REFUSED.iter().find(|(options, ..)| options.contains(&option)).map(|(_, wrong, remedy)| (*wrong, *remedy))
}

/// A fit that left other options unread would seem to have obeyed them.
fn fits_alone(words: &SimulateWords) -> Result<(), Error> {
    let alone = SimulateWords {
        own: SimulateArgs { fit: words.own.fit.clone(), ..SimulateArgs::default() },
        server: ModelArgs::default(),
        search: FindCapacityArgs::default(),
        plan: RunArgs { quiet: words.plan.quiet, ..RunArgs::default() },
    };
    if *words == alone {
        return Ok(());
    }
    let remedy = "give it alone, and further options to the command that it prints";
    Err(Error::new("--fit", "estimates a server and simulates nothing", remedy))
}

/// Refuses users who have no more than a duration to stop them, and answers that take no time: in virtual time no
/// second would ever pass. (A step of a server with slots is never that short.)
pub(super) fn come_to_an_end(plan: &Plan, model: &Settings) -> Result<(), Error> {
    let Serving::Fixed(fixed) = &model.serving else { return Ok(()) };
    let gaps = (plan.workload.output_tokens.mean() / f64::from(model.tokens_per_step)).ceil() - 1.0;
    // A draw evenly about zero that is cut off there is a quarter of its width on average.
    let first_ms = fixed.ttft_ms + fixed.ttft_per_in_flight_ms + fixed.ttft_jitter_ms / 4.0;
    let answer_ms = first_ms + gaps * (fixed.itl_ms + fixed.itl_jitter_ms / 4.0);
    let is_endless = |level: &Level| {
        let unbounded = level.load.users.is_some() && level.stop.units.is_none();
        unbounded && answer_ms + level.load.think_s * 1e3 < CYCLE_MS_MIN
    };
    if !plan.levels.iter().any(is_endless) {
        return Ok(());
    }
    let wrong = "users whose answers take no time never come to the end of it";
    Err(Error::new(
        "--duration",
        wrong,
        "give --num-prompts beside it, a --think-time, or times above 0 to --ttft or --itl",
    ))
}

/// From one request of a user to the next, ms: a microsecond, as the shortest step of a server with slots.
const CYCLE_MS_MIN: f64 = 1e-3;

/// The server in the form of a plan file, as comments: it is no part of a plan.
fn commented(model: &Settings) -> String {
    let text = to_toml(model).unwrap_or_default();
    let lines = text.lines().map(|line| format!("# {line}").trim_end().to_owned());
    std::iter::once("# the server".to_owned()).chain(lines).collect::<Vec<_>>().join("\n")
}

/// Options of `run` with the reason why they are not taken.
const REFUSED: [(&[&str], &str, &str); 6] = [
    (
        &[
            "--gpu-index",
            "--gpu-telemetry",
            "--no-gpu-telemetry",
            "--no-server-metrics",
            "--server-metrics",
            "--server-metrics-match",
            "--telemetry-interval",
        ],
        "is about what servers say while they work, and there is none",
        "leave it out: --explain tells what the modelled server did",
    ),
    (
        &[
            "--api-key",
            "--base-url",
            "--base-url-file",
            "--cacert",
            "--calibrate",
            "--endpoint",
            "--header",
            "--host",
            "--insecure",
            "--lora-assignment",
            "--lora-modules",
            "--model",
            "--model-selection-strategy",
            "--model-weights",
            "--port",
            "--reset-prefix-cache",
            "--served-model-name",
        ],
        "says whom to ask, and a simulation asks nobody",
        "leave it out, and describe the server by --slots, --base-ms and the like",
    ),
    (
        &["--cpu-affinity", "--driver", "--no-cpu-affinity", "--workers"],
        "is about the threads that send, and a simulation has none",
        "leave it out",
    ),
    (
        &["--share-timeout", "--start-at"],
        "is about processes that begin together, and a simulation has its own time",
        "leave it out: shares are simulated one after another",
    ),
    (
        &[
            "--all-addresses",
            "--cert",
            "--connect-timeout",
            "--connect-to",
            "--connection-reuse-strategy",
            "--key",
            "--max-connection-age",
            "--max-connections",
            "--max-requests-per-connection",
            "--prewarm-connections",
            "--ready-check-timeout-sec",
            "--replica-header",
            "--tls-session-resumption",
            "--tls-sni",
            "--unix-socket",
        ],
        "is about a connection, and a simulation has none",
        "leave it out; --cold-start lets the server refuse at the beginning",
    ),
    (
        &["--fresh-server", "--no-fresh-server", "--same-as-production", "--no-same-as-production"],
        "is about a real server, and a simulation has none",
        "leave it out",
    ),
];
