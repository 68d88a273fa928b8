//! From the plan's endpoints to a target that can be loaded: resolved, ready, with a model, probed.

pub(super) mod trust;

use std::sync::Arc;
use std::time::Duration;

use crate::api::{Framing, Text};
use crate::cli::failure::Failure;
use crate::cli::proxies;
use crate::cli::tokens::{self, Asked};
use crate::load::probe::{self, ProbeError, ServerFacts};
use crate::load::{Route, RouteError, RouteParts, Target, Way};
use crate::plan::{Endpoint, Plan, Secrets};
use crate::run_file::schema::TargetBlock;
use crate::sys::clock::RunClock;
use crate::time::Stamp;
use crate::workload::{Content, Mix, Routing, Script};

/// A target that has answered.
pub(super) struct Ready {
    pub(super) target: Arc<Target>,
    pub(super) facts: TargetBlock,
    /// What the user should know, one line each.
    pub(super) notes: Vec<String>,
}

/// Makes the plan's target ready; fills in the model and switches off options that the server refuses.
///
/// `script` is the file of its requests, if it has one.
pub(super) fn ready(
    plan: &mut Plan,
    script: Option<Script>,
    secrets: &Secrets,
    wait: Duration,
) -> Result<Ready, Failure> {
    let was_found = plan.workload.tokens.as_ref().is_some_and(|tokens| tokens.found.is_some());
    let mut notes: Vec<String> = tokens::by_tokenizer(plan, true)?.into_iter().collect();
    let routes = routes(plan, secrets)?;
    let clock = RunClock::start();
    let left = || wait.saturating_sub(clock.now() - Stamp::ZERO);
    let up = servers_up(plan, &routes, secrets, &left)?;
    notes.extend(up.notes);
    let facts = up.facts;
    choose_model(plan, &facts)?;
    let before = plan.workload.options.dropped.len();
    let mut words = None;
    // One request is enough to learn what a fleet refuses; that each of it answers was asked above.
    if let Some(place) = up.first {
        let (route, endpoint) = (&routes[place], &plan.target.endpoints[place]);
        let model = plan.target.models[0].clone();
        let probed = probe::request(route, plan, &model, left()).map_err(|error| {
            redacted(&named(plan, endpoint), &with_models(error, &model, &facts), secrets)
        })?;
        plan.workload.options = probed.options;
        let prefix = endpoint.address().map_err(Failure::bad)?.prefix;
        let asked = Asked { route, prefix: &prefix, model: &model, tells_tokens: facts.tells_tokens() };
        let hello = (probe::hello(plan), probed.exchange.record().prompt_tokens);
        let told = tokens::by_server(plan, asked, hello, was_found)?;
        notes.extend(told.notes);
        words = told.words;
    }
    for field in &plan.workload.options.dropped[before..] {
        notes.push(format!("the server refuses {field}: requests go without it"));
    }
    let addresses = routes.iter().flat_map(|route| &route.addresses).map(ToString::to_string).collect();
    let routes_here = routes.iter().any(Route::is_on_this_host);
    notes.extend(proxies::note(plan).filter(|_| !routes_here));
    let target = of(plan, routes, script)?;
    let facts = TargetBlock {
        kind: Some(facts.kind().to_owned()),
        context_tokens: facts.context_of(&plan.target.models),
        version: facts.version,
        server_header: Some(facts.header).filter(|header| !header.is_empty()),
        models: facts.models,
        addresses,
        on_client_host: Some(routes_here),
        words,
        via: Some(facts.via).filter(|via| !via.is_empty()),
        ..TargetBlock::default()
    };
    Ok(Ready { target: Arc::new(target), facts, notes })
}

/// The servers that answer.
struct Up {
    /// The place of the first of them.
    first: Option<usize>,
    /// What it says of itself.
    facts: ServerFacts,
    /// Which others do not answer, one line each.
    notes: Vec<String>,
}

/// Asks every server for its models. One of several that does not answer does not keep the others from being measured: its
/// requests fail, and count.
fn servers_up(
    plan: &Plan,
    routes: &[Route],
    secrets: &Secrets,
    left: &dyn Fn() -> Duration,
) -> Result<Up, Failure> {
    let mut up = Up { first: None, facts: ServerFacts::default(), notes: Vec::new() };
    let mut silent = None;
    for (place, (route, endpoint)) in routes.iter().zip(&plan.target.endpoints).enumerate() {
        match probe::server(route, &models_path(plan, endpoint)?, &plan.limits, left()) {
            Ok(facts) if up.first.is_none() => (up.first, up.facts) = (Some(place), facts),
            Ok(_) => {}
            Err(error @ ProbeError::Refused(_)) => {
                return Err(redacted(&named(plan, endpoint), &error, secrets));
            }
            Err(error) => {
                let sentence = secrets.redact(&error.to_string()).into_owned();
                up.notes.push(format!(
                    "{}: {sentence}: the run goes on with the other servers, and requests to this one may fail",
                    named(plan, endpoint)
                ));
                silent.get_or_insert_with(|| redacted(&named(plan, endpoint), &error, secrets));
            }
        }
    }
    match silent {
        Some(failure) if up.first.is_none() => Err(failure),
        _ => Ok(up),
    }
}

/// What the plan sends to `routes`, those of its endpoints; `script` is the file of its requests, if there is one.
pub(super) fn of(plan: &Plan, routes: Vec<Route>, script: Option<Script>) -> Result<Target, Failure> {
    let templates = plan.target.models.iter().map(|model| plan.template(model)).collect::<Result<_, _>>();
    Ok(Target {
        templates: templates.map_err(Failure::bad)?,
        mix: Mix::new(&plan.target),
        routing: Routing::new(&plan.target),
        routes,
        content: content(plan, script)?,
    })
}

/// What the requests of the plan say; `script` is the file that they are in, if they are in one.
pub(super) fn content(plan: &Plan, script: Option<Script>) -> Result<Content, Failure> {
    let content = Content::new(plan).with_script(script);
    let wants_ids = plan.workload.tokens.as_ref().is_some_and(|tokens| tokens.ids);
    if wants_ids && !content.writes_ids() {
        let wrong = "--tokenize-prompt: the ids of the words are not known, or not those of these words";
        return Err(Failure::bad(format!(
            "{wrong}; give --tokenizer, or --calibrate and a server that has /tokenize"
        )));
    }
    Ok(content)
}

/// Resolves every endpoint of the plan.
pub(super) fn routes(plan: &Plan, secrets: &Secrets) -> Result<Vec<Route>, Failure> {
    let config = trust::config(&plan.target)?;
    let way = Way { connections: Some(&plan.target.connections), sni: plan.target.tls.sni.as_deref() };
    let mut routes = Vec::new();
    for endpoint in &plan.target.endpoints {
        let address = endpoint.address().map_err(Failure::bad)?;
        let (fixed, filled) = headers(plan, secrets)?;
        let parts = RouteParts {
            path: format!("{}{}", address.prefix, plan.target.request_path()),
            address: &address,
            headers: fixed,
            tls: Arc::clone(&config),
        };
        let url = named(plan, endpoint);
        let route = Route::along(parts, way).and_then(|route| route.with_filled(filled));
        routes.push(route.map_err(|error| match error {
            RouteError::Resolve(_) => {
                Failure::unreachable(format!("{url}: {error}; check the host in --base-url and --connect-to"))
            }
            RouteError::Head(_) | RouteError::ServerName | RouteError::ConnectTo(_) => {
                Failure::bad(format!("{url}: {error}"))
            }
        })?);
    }
    Ok(routes)
}

/// An endpoint in sentences: its URL, and where connections really go, if that is elsewhere.
fn named(plan: &Plan, endpoint: &Endpoint) -> String {
    let url = &endpoint.url;
    let detour = endpoint.address().ok().and_then(|address| plan.target.connections.detour(&address));
    detour.map_or_else(|| url.clone(), |detour| format!("{url} ({detour})"))
}

/// Where an endpoint lists its models.
fn models_path(plan: &Plan, endpoint: &Endpoint) -> Result<String, Failure> {
    let prefix = endpoint.address().map_err(Failure::bad)?.prefix;
    Ok(format!("{prefix}{}", plan.target.models_path()))
}

/// Headers that are the same in every request, and those that differ.
type Headers = (Vec<(String, String)>, Vec<(String, Text)>);

/// Headers of every request: ours unless the user gives others, then the plan's, then the secret ones.
fn headers(plan: &Plan, secrets: &Secrets) -> Result<Headers, Failure> {
    let accept = match (plan.target.stream, plan.target.dialect.framing()) {
        (false, _) => "application/json",
        (true, Framing::Events) => "text/event-stream",
        (true, Framing::Lines) => "application/x-ndjson",
    };
    let own = [
        ("Content-Type", "application/json"),
        ("Accept", accept),
        ("User-Agent", concat!("tokload/", env!("CARGO_PKG_VERSION"))),
    ];
    let given = |name: &str| plan.target.headers.iter().any(|header| header.name.eq_ignore_ascii_case(name));
    let own = own.into_iter().chain(plan.target.dialect.headers().iter().copied());
    let own = own.filter(|(name, _)| !given(name));
    let mut fixed: Vec<(String, String)> =
        own.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut filled = Vec::new();
    for header in &plan.target.headers {
        let text = header.text().map_err(Failure::bad)?;
        match text.as_fixed() {
            Some(value) => fixed.push((header.name.clone(), value.to_owned())),
            None => filled.push((header.name.clone(), text)),
        }
    }
    fixed.extend(secrets.headers().map(|(name, value)| (name.to_owned(), value.to_owned())));
    Ok((fixed, filled))
}

fn choose_model(plan: &mut Plan, facts: &ServerFacts) -> Result<(), Failure> {
    if plan.target.models.is_empty() {
        match facts.models.as_slice() {
            [only] => plan.target.models.push(only.clone()),
            [] => {
                let endpoint = &plan.target.endpoints[0];
                return Err(Failure::bad(format!(
                    "{}: {} lists no model (HTTP {}); check --base-url, or name the model with --model",
                    named(plan, endpoint),
                    models_path(plan, endpoint)?,
                    facts.models_status
                )));
            }
            several => {
                let list = several.join(", ");
                return Err(Failure::bad(format!(
                    "the server has several models, choose one with --model: {list}"
                )));
            }
        }
        return Ok(());
    }
    Ok(())
}

/// A refusal of a model that the server does not list, with those that it does.
fn with_models(error: ProbeError, model: &str, facts: &ServerFacts) -> ProbeError {
    match error {
        ProbeError::Refused(sentence)
            if !facts.models.is_empty() && !facts.models.iter().any(|m| m == model) =>
        {
            ProbeError::Refused(format!("{sentence}; it lists: {}", facts.models.join(", ")))
        }
        other => other,
    }
}

/// A failed probe, without secrets that the server repeated.
fn redacted(url: &str, error: &ProbeError, secrets: &Secrets) -> Failure {
    let clean = |sentence: &String| secrets.redact(sentence).into_owned();
    let error = match error {
        ProbeError::NotReady(sentence) => ProbeError::NotReady(clean(sentence)),
        ProbeError::Refused(sentence) => ProbeError::Refused(clean(sentence)),
    };
    Failure::of_probe(url, &error)
}
