//! `quick`: find a local server, or start the mock, and say within a minute and a half how many users it serves well.
//!
//! Owns the order of things and the time that each may take. Which loads are tried is the search's
//! (`strategy::capacity`), how long each lasts `strategy::budget`'s, and the words of the answer `report::view`'s.

use std::time::Duration;

use crate::cli::aliases::Tool;
use crate::cli::args::{QuickArgs, RunArgs};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::plan_from_args::{self, Order, Surroundings};
use crate::cli::run::{Gate, conclude, fresh_seed, linger, show_with};
use crate::cli::script::ScriptBlocks;
use crate::cli::session::{Files, Finished, Session};
use crate::cli::{next, ranks, say, target, value};
use crate::load::probe;
use crate::mock::{Mock, Settings};
use crate::model::{self, Batching, Cost, Serving};
use crate::plan::{Endpoint, Error, Limits, Plan, Secrets};
use crate::run_file::redact;
use crate::strategy::{Ending, first_look};
use crate::sys::clock::RunClock;
use crate::time::Stamp;

mod candidates;
mod discover;
mod hardware;
mod shape;

/// From the start of the program to its end, s, unless the user says otherwise, and at least.
const ALL_S: f64 = 90.0;
const ALL_S_MIN: f64 = 15.0;
/// What the measurement takes of that at most, and what the rest needs: a pause, a warm-up, what is written in the end.
const LOOK_SHARE: f64 = 75.0 / 90.0;
const REST_S: f64 = 5.0;
/// Less is no measurement.
const LOOK_S_MIN: f64 = 5.0;
/// What the first short request may take of it, for which a model may have to be loaded, and any other.
const FIRST_SHARE: f64 = 1.0 / 3.0;
const REQUEST_SHARE: f64 = 0.25;
/// Time to say no; Ctrl-C then simply ends the program, since nothing is measured yet.
const PAUSE: Duration = Duration::from_secs(2);
/// Words of a prompt.
const PROMPT_WORDS: &str = "128";

/// Whom to ask.
struct Chosen {
    url: String,
    model: Option<String>,
    backend: Option<&'static str>,
    /// Lives as long as the run; it stops when it is dropped.
    mock: Option<Mock>,
}

pub(super) fn main(args: &QuickArgs, typed: Vec<String>) -> Result<Exit, Failure> {
    let began = RunClock::start();
    ranks::alone("quick", None, &|name| std::env::var(name).ok()).map_err(Failure::bad)?;
    let all_s = all_s(args.max_time.as_deref()).map_err(Failure::bad)?;
    let chosen = choose(args)?;
    let Order { mut plan, secrets, output, .. } = order(args, &chosen, &began)?;
    plan.limits = limits(all_s * FIRST_SHARE);
    let files = Files::open(&output, &began)?;
    choose_model(&mut plan, &secrets);
    let ready = target::ready(&mut plan, None, &secrets, Duration::ZERO)?;
    plan.limits = limits(all_s * REQUEST_SHARE);
    let left_s = |spent_s: f64| (all_s * LOOK_SHARE).min(all_s - REST_S - spent_s).max(LOOK_S_MIN);
    let before = left_s((began.now() - Stamp::ZERO).as_secs_f64());
    let shaped = shape::shape(&mut plan, ready, !args.goodput.is_empty(), before)?;
    let spent_s = (began.now() - Stamp::ZERO).as_secs_f64() + shaped.answer.as_secs_f64();
    let within_s = left_s(spent_s);
    first_look::set(&mut plan, shaped.answer.as_secs_f64() * 1e3, within_s);
    plan.validate().map_err(Failure::bad)?;
    if !output.quiet {
        shaped.notes.iter().for_each(|note| say(note));
        announce(&plan, within_s);
        std::thread::sleep(PAUSE);
    }
    // The plan is ours, and what is to be said of it stands in the report.
    let session = Session {
        clock: RunClock::start(),
        output,
        secrets,
        typed,
        warnings: Vec::new(),
        blocks: ScriptBlocks::default(),
        ends_within_s: f64::INFINITY,
        earlier: Vec::new(),
        library: None,
        agreed: None,
        clock_offset: None,
    };
    let mut finished = session.run(&plan, &shaped.ready, files)?;
    show_with(&session, &finished, &next_commands(&session.typed, &plan, &finished, chosen.mock.is_some()))?;
    linger(finished.lingering.take(), session.output.quiet);
    exit_of(finished)
}

/// A whole request may take so long, and each of its steps no longer than usual.
fn limits(total_s: f64) -> Limits {
    Limits { connect_s: total_s.min(5.0), first_s: total_s, gap_s: total_s.min(15.0), total_s }
}

/// How long all of it may take, s.
fn all_s(typed: Option<&str>) -> Result<f64, Error> {
    let Some(typed) = typed else { return Ok(ALL_S) };
    let all_s = value::seconds("--max-time", typed)?;
    if all_s.is_finite() && all_s >= ALL_S_MIN {
        return Ok(all_s);
    }
    let wrong = format!("{typed} is too short for a look at anything");
    Err(Error::new("--max-time", wrong, format!("give {ALL_S_MIN} s or more")))
}

/// The server to ask: the one named, the first one found, or the mock.
fn choose(args: &QuickArgs) -> Result<Chosen, Failure> {
    let talk = |line: &str| {
        if !args.quiet {
            say(line);
        }
    };
    if let Some(url) = &args.base_url {
        return Ok(Chosen { url: url.clone(), model: args.model.clone(), backend: None, mock: None });
    }
    let (candidates, notes) = candidates::all(|name| std::env::var(name).ok());
    notes.iter().for_each(|note| talk(note));
    let (found, notes) = discover::servers(&candidates);
    notes.iter().for_each(|note| talk(note));
    for (place, server) in found.iter().enumerate() {
        let version =
            server.facts.version.as_deref().map_or_else(String::new, |version| format!(" {version}"));
        let taken = if place == 0 { "" } else { "; not used: name it with --base-url" };
        let (kind, url, models) = (server.facts.kind(), &server.url, listed(&server.facts.models));
        talk(&format!("found {kind}{version} at {url} ({models}){taken}"));
    }
    if let Some(machine) = hardware::in_words() {
        talk(&format!("on this machine: {machine}"));
    }
    if let Some(first) = found.into_iter().next() {
        let model = args.model.clone().or(Some(first.model));
        return Ok(Chosen { url: first.url, model, backend: first.backend, mock: None });
    }
    let mock = Mock::start(example()).map_err(Failure::own)?;
    talk(
        "no server answers on the usual local ports: this measures the built-in mock server, which has 4 slots and made-up \
         speeds and is no model; name a server with --base-url",
    );
    let url = format!("http://{}", mock.address());
    Ok(Chosen { url, model: Some("mock".to_owned()), backend: None, mock: Some(mock) })
}

/// At most three names.
fn listed(models: &[String]) -> String {
    match models {
        [_, _, _, rest @ ..] if !rest.is_empty() => {
            format!("{} and {} more", models[..3].join(", "), rest.len())
        }
        models => models.join(", "),
    }
}

/// A mock with something to find: four slots, tokens that get a little slower with each, prompts that take their time.
fn example() -> Settings {
    let cost = Cost { base_ms: 8.0, per_sequence_ms: 0.5, per_prefill_token_ms: 0.1 };
    let serving = Serving::Batching(Batching { slots: 4, cost, ..Batching::default() });
    Settings { model: "mock".to_owned(), serving: model::Settings::serving(serving), ..Settings::default() }
}

fn order(args: &QuickArgs, chosen: &Chosen, clock: &RunClock) -> Result<Order, Failure> {
    let run = RunArgs {
        base_url: vec![chosen.url.clone()],
        backend: chosen.backend.map(str::to_owned),
        model: chosen.model.clone().into_iter().collect(),
        api_key: args.api_key.clone(),
        insecure: args.insecure,
        cacert: args.cacert.clone(),
        max_concurrency: Some("1".to_owned()),
        random_input_len: Some(PROMPT_WORDS.to_owned()),
        random_output_len: Some(first_look::TOKENS_MIN.to_string()),
        goodput: args.goodput.clone(),
        output_file: args.output_file.clone(),
        no_save: args.no_save,
        force: args.force,
        format: args.format.clone(),
        quiet: args.quiet,
        ui: args.ui.clone(),
        metrics_listen: args.metrics_listen.clone(),
        metrics_linger: args.metrics_linger.clone(),
        ..RunArgs::default()
    };
    let around = Surroundings {
        tool: Tool::Tokload,
        fresh_seed: fresh_seed(clock),
        config: None,
        env: &|name| std::env::var(name).ok(),
        read: &crate::cli::text_file::read,
    };
    plan_from_args::order(&run, &around).map_err(Failure::bad)
}

/// Of several models of a named server the one that a found one would be asked for. What goes wrong here is said when the
/// server is made ready.
fn choose_model(plan: &mut Plan, secrets: &Secrets) {
    let (true, Ok(routes)) = (plan.target.models.is_empty(), target::routes(plan, secrets)) else { return };
    let address = plan.target.endpoints.first().map(Endpoint::address);
    let (Some(route), Some(Ok(address))) = (routes.first(), address) else { return };
    let path = format!("{}{}", address.prefix, plan.target.models_path());
    if let Ok(facts) = probe::server(route, &path, &plan.limits, Duration::ZERO) {
        plan.target.models.extend(discover::model(route, &address.prefix, &facts));
    }
}

fn announce(plan: &Plan, within_s: f64) {
    let (model, url) = (&plan.target.models[0], &plan.target.endpoints[0].url);
    say(&format!(
        "loading {model} at {url} with one user, then with more and more, for {within_s:.0} s at most; Ctrl-C within 2 s to \
         leave it, later to stop and see what was measured"
    ));
}

/// What a user would probably do next.
fn next_commands(typed: &[String], plan: &Plan, finished: &Finished, is_mock: bool) -> Vec<String> {
    // Its address is gone when the program ends.
    if is_mock {
        return vec!["tokload quick --base-url http://HOST:PORT".to_owned()];
    }
    let (url, model) = (&plan.target.endpoints[0].url, &plan.target.models[0]);
    let limits: Vec<String> =
        [("ttft", plan.slo.ttft_ms), ("tpot", plan.slo.tpot_ms), ("e2e", plan.slo.e2e_ms)]
            .into_iter()
            .filter_map(|(name, limit)| Some(format!("{name}:{}", limit?)))
            .collect();
    let typed = redact::command_line(typed);
    let access = next::kept(&typed, |option| ["--api-key", "--insecure", "--cacert"].contains(&option));
    let access: String = access.iter().map(|word| format!(" {}", next::quoted(word))).collect();
    let mut next = vec![format!(
        "tokload find-capacity --base-url {url} --model {}{access} --goodput {} --random-output-len 256",
        next::quoted(model),
        limits.join(" ")
    )];
    if let Some(saved) = &finished.saved {
        next.push(format!("tokload report {} --explain", saved.display()));
    }
    next
}

/// A search that had no time to show anything is no gate that failed: one user was measured.
fn exit_of(finished: Finished) -> Result<Exit, Failure> {
    let too_few = finished.run.capacity.as_ref().is_some_and(|found| found.answer.ending == Ending::TooFew);
    match conclude(finished, Gate::default())? {
        Exit::GateFailed if too_few => Ok(Exit::Done),
        exit => Ok(exit),
    }
}
