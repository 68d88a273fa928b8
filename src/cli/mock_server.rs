//! `mock-server`: a server with known times, until it is told to stop.

use std::time::Duration;

use crate::cli::args::MockServerArgs;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::{print, say, value};
use crate::mock::{Mock, Role, Settings};
use crate::pace::Mode;
use crate::plan::Error;
use crate::sys::signals::Interrupts;

/// How often the wish to stop is looked for.
const LOOK: Duration = Duration::from_millis(50);

pub(super) fn main(args: &MockServerArgs) -> Result<Exit, Failure> {
    let settings = settings(args).map_err(Failure::bad)?;
    let interrupts = Interrupts::listen().map_err(Failure::own)?;
    let place = format!("{}:{}", settings.host, settings.port);
    let mock = Mock::start(settings).map_err(|error| {
        Failure::bad(format!("cannot listen on {place}: {error}; choose another --port, or 0 for a free one"))
    })?;
    say(&format!("mock server on http://{}, stop it with Ctrl-C", mock.address()));
    while interrupts.count() == 0 {
        std::thread::sleep(LOOK);
    }
    let truth = mock.stop().map_err(Failure::own)?;
    let text = serde_json::to_string_pretty(&serde_json::json!({
        "connections": truth.connections,
        "requests": truth.requests,
        "completed": truth.completed,
        "broken": truth.broken,
        "events": truth.events,
        "tokens": truth.tokens,
        "lateness": truth.lateness(),
        "ttft": truth.ttft(),
        "itl": truth.itl(),
    }));
    print(&text.map_err(Failure::own)?)?;
    Ok(Exit::Done)
}

fn settings(args: &MockServerArgs) -> Result<Settings, Error> {
    let mut settings =
        Settings { port: 8000, model: "mock".to_owned(), max_tokens: 64, ..Settings::default() };
    if let Some(host) = &args.host {
        settings.host.clone_from(host);
    }
    set(&mut settings.port, "--port", args.port.as_deref(), value::integer)?;
    set(&mut settings.ttft, "--ttft", args.ttft.as_deref(), milliseconds)?;
    set(&mut settings.itl, "--itl", args.itl.as_deref(), milliseconds)?;
    set(&mut settings.ttft_jitter, "--ttft-jitter", args.ttft_jitter.as_deref(), milliseconds)?;
    set(&mut settings.itl_jitter, "--itl-jitter", args.itl_jitter.as_deref(), milliseconds)?;
    set(
        &mut settings.tokens_per_chunk,
        "--tokens-per-chunk",
        args.tokens_per_chunk.as_deref(),
        value::integer,
    )?;
    set(&mut settings.max_tokens, "--max-tokens", args.max_tokens.as_deref(), value::integer)?;
    set(&mut settings.workers, "--workers", args.workers.as_deref(), value::integer)?;
    set(&mut settings.seed, "--seed", args.seed.as_deref(), value::integer)?;
    set(&mut settings.role, "--role", args.role.as_deref(), role)?;
    set(&mut settings.timer, "--timer", args.timer.as_deref(), timer)?;
    if let Some(model) = &args.model {
        settings.model.clone_from(model);
    }
    settings.usage = !args.no_usage;
    Ok(settings)
}

fn set<T>(
    to: &mut T,
    option: &str,
    text: Option<&str>,
    read: impl FnOnce(&str, &str) -> Result<T, Error>,
) -> Result<(), Error> {
    if let Some(text) = text {
        *to = read(option, text)?;
    }
    Ok(())
}

fn milliseconds(option: &str, text: &str) -> Result<Duration, Error> {
    let ms = value::number(option, text)?;
    let span = Duration::try_from_secs_f64(ms / 1e3);
    span.map_err(|_| Error::new(option, format!("{text} is no span of time"), "give milliseconds, 0 or more"))
}

fn role(option: &str, text: &str) -> Result<Role, Error> {
    match text {
        "first" => Ok(Role::First),
        "early" => Ok(Role::Early),
        "none" => Ok(Role::None),
        _ => Err(Error::new(option, format!("{text} is unknown"), "give first, early or none")),
    }
}

fn timer(option: &str, text: &str) -> Result<Mode, Error> {
    match text {
        "fd" => Ok(Mode::Sleep),
        "busy" => Ok(Mode::Busy),
        _ => Err(Error::new(option, format!("{text} is unknown"), "give fd or busy")),
    }
}
