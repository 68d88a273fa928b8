//! `quick`: find a local server, or start the mock, and show within half a minute what it can do.

use std::time::Duration;

use crate::cli::aliases::Tool;
use crate::cli::args::{QuickArgs, RunArgs};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::plan_from_args::{self, Order, Surroundings};
use crate::cli::run::{Gate, conclude, fresh_seed, show, show_with};
use crate::cli::script::ScriptBlocks;
use crate::cli::session::{Files, Session};
use crate::cli::{say, target};
use crate::load::probe::{self, ServerFacts};
use crate::load::{Route, RouteParts, tls};
use crate::mock::{Mock, Settings};
use crate::model;
use crate::plan::{Endpoint, Level, Limits, Load, Stop};
use crate::sys::clock::RunClock;

/// Where local servers usually listen, with the one that usually does.
const USUAL: [(u16, &str); 5] =
    [(11434, "Ollama"), (8080, "llama.cpp"), (1234, "LM Studio"), (8000, "vLLM"), (30000, "SGLang")];
/// Users of the levels.
const USERS: [u32; 5] = [1, 2, 4, 8, 16];
/// Planned length of a level, and how long its open requests are followed, s.
const LEVEL_S: f64 = 3.0;
const GRACE_S: f64 = 6.0;
/// The whole takes no longer, s.
const ALL_S: f64 = 28.0;
const WARMUPS: u32 = 2;
/// Time to say no; Ctrl-C then simply ends the program, since nothing is measured yet.
const PAUSE: Duration = Duration::from_secs(2);

/// A server that was found.
struct Found {
    url: String,
    facts: ServerFacts,
}

pub(super) fn main(args: &QuickArgs, typed: Vec<String>) -> Result<Exit, Failure> {
    // The mock lives as long as the run; it stops when it is dropped.
    let (url, model, mock) = choose(args)?;
    let clock = RunClock::start();
    let Order { mut plan, secrets, output, .. } = order(args, &url, model, &clock)?;
    plan.levels = USERS.map(level).to_vec();
    let files = Files::open(&output, &clock)?;
    let ready = target::ready(&mut plan, None, &secrets, Duration::ZERO)?;
    if !output.quiet {
        ready.notes.iter().for_each(|note| say(note));
        announce(&url, &plan.target.models[0]);
        std::thread::sleep(PAUSE);
    }
    // The half minute begins here.
    let clock = RunClock::start();
    // The plan is ours, and what is to be said of it stands in the report.
    let session = Session {
        clock,
        output,
        secrets,
        typed,
        warnings: Vec::new(),
        blocks: ScriptBlocks::default(),
        ends_within_s: ALL_S,
        earlier: Vec::new(),
        library: None,
    };
    let finished = session.run(&plan, &ready, files)?;
    match mock {
        None => show(&session, &finished)?,
        // Its address is gone when the program ends.
        Some(_) => show_with(&session, &finished, &["tokload quick --base-url http://HOST:PORT".to_owned()])?,
    }
    conclude(finished, Gate::default())
}

/// The server to ask: the one named, the first one found, or the mock.
fn choose(args: &QuickArgs) -> Result<(String, Option<String>, Option<Mock>), Failure> {
    let talks = |line: &str| {
        if !args.quiet {
            say(line);
        }
    };
    if let Some(url) = &args.base_url {
        return Ok((url.clone(), args.model.clone(), None));
    }
    let found = look_around();
    for (place, server) in found.iter().enumerate() {
        let Found { url, facts } = server;
        let version = facts.version.as_deref().map_or_else(String::new, |version| format!(" {version}"));
        let taken = if place == 0 { "" } else { " (not used: name it with --base-url)" };
        talks(&format!("found {}{version} at {url}: {}{taken}", facts.kind(), facts.models.join(", ")));
    }
    if let Some(first) = found.into_iter().next() {
        let model = args.model.clone().or_else(|| first.facts.models.first().cloned());
        return Ok((first.url, model, None));
    }
    let settings = Settings {
        model: "mock".to_owned(),
        serving: model::Settings::fixed(50.0, 10.0),
        ..Settings::default()
    };
    let mock = Mock::start(settings).map_err(Failure::own)?;
    talks(
        "no server answers on the usual local ports: this measures the built-in mock server (TTFT 50 ms, ITL 10 ms), \
         not a model; name a server with --base-url",
    );
    Ok((format!("http://{}", mock.address()), Some("mock".to_owned()), Some(mock)))
}

/// The servers on the usual local ports that list at least one model.
fn look_around() -> Vec<Found> {
    let mut found = Vec::new();
    for (port, _) in USUAL {
        let url = format!("http://127.0.0.1:{port}");
        let Ok(address) = Endpoint::parse(&url) else { continue };
        let Ok(config) = tls::config(true, None) else { continue };
        let parts =
            RouteParts { address: &address, path: "/v1/models".to_owned(), headers: Vec::new(), tls: config };
        let Ok(route) = Route::new(parts) else { continue };
        if let Ok(facts) = probe::server(&route, "/v1/models", &Limits::default(), Duration::ZERO)
            && !facts.models.is_empty()
        {
            found.push(Found { url, facts });
        }
    }
    found
}

fn order(args: &QuickArgs, url: &str, model: Option<String>, clock: &RunClock) -> Result<Order, Failure> {
    let run = RunArgs {
        base_url: vec![url.to_owned()],
        model: model.into_iter().collect(),
        api_key: args.api_key.clone(),
        insecure: args.insecure,
        cacert: args.cacert.clone(),
        max_concurrency: Some("1".to_owned()),
        output_file: args.output_file.clone(),
        no_save: args.no_save,
        force: args.force,
        format: args.format.clone(),
        quiet: args.quiet,
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

/// Eight requests per user, but not longer than planned.
fn level(users: u32) -> Level {
    let stop = Stop { units: Some(requests(users)), duration_s: Some(LEVEL_S), grace_s: GRACE_S };
    Level { load: Load::closed(users), stop, warmups: WARMUPS, decide: None }
}

fn requests(users: u32) -> u64 {
    16.max(8 * u64::from(users))
}

fn announce(url: &str, model: &str) {
    let most: u64 = USERS.iter().map(|users| requests(*users) + u64::from(WARMUPS)).sum();
    say(&format!(
        "sending at most {most} requests to {model} at {url}, with 1 to 16 users, within half a minute; \
         Ctrl-C within 2 s to leave it"
    ));
}
