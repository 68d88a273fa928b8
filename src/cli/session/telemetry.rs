//! Whom the plan has asked about servers and GPUs: pages as routes, and the GPUs of this machine where they are a server's.

use std::time::Duration;

use crate::cli::failure::Failure;
use crate::cli::target::{Ready, trust};
use crate::load::{Route, RouteParts};
use crate::plan::{Nvml, Plan, Secrets, Telemetry as Wished};
use crate::summary::telemetry::{CLIENT, LOCAL_GPUS};
use crate::sys::clock::RunClock;
use crate::telemetry::{Ask, Library, Page, Setup, Telemetry, Whom};

/// How long the last answers are waited for when the run is over.
pub(super) const PATIENCE: Duration = Duration::from_millis(500);
/// How long an answer may take: a page of a large server takes tens of milliseconds.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// Begins to ask everybody.
///
/// # Errors
/// A page that was named leads nowhere, or what it is to be trusted by cannot be read.
pub(super) fn start(plan: &Plan, ready: &Ready, clock: RunClock) -> Result<Telemetry, Failure> {
    let wished = &plan.telemetry;
    let mut asks = Vec::new();
    let mut add = |ask: Ask| {
        // One page twice would count its server twice.
        if !asks.iter().any(|other: &Ask| other.name == ask.name) {
            asks.push(ask);
        }
    };
    let page = |route: Route, path: String| Page {
        route,
        path,
        patterns: wished.server_metrics_match.clone(),
        limit: ANSWER_LIMIT,
    };
    for url in &wished.server_metrics {
        let (name, route, path) = named("--server-metrics", url, plan)?;
        add(Ask { name, whom: Whom::Server(page(route, path)), quietly: false });
    }
    if wished.own_metrics {
        for (endpoint, route) in plan.target.endpoints.iter().zip(&ready.target.routes) {
            let path = format!("{}/metrics", endpoint.address().map_err(Failure::bad)?.prefix);
            let root = endpoint.url.find("://").map_or(0, |place| place + 3);
            let host = if endpoint.url.starts_with("unix:") {
                endpoint.url.as_str()
            } else {
                endpoint.url[root..]
                    .find('/')
                    .map_or(endpoint.url.as_str(), |end| &endpoint.url[..root + end])
            };
            let whom = Whom::Server(page(route.clone(), path.clone()));
            add(Ask { name: format!("{host}{path}"), whom, quietly: true });
        }
    }
    for url in &wished.dcgm {
        let (name, route, path) = named("--gpu-telemetry", url, plan)?;
        add(Ask { name, whom: Whom::Dcgm(page(route, path)), quietly: false });
    }
    let is_here = ready.facts.on_client_host == Some(true);
    if wished.nvml == Nvml::On || wished.nvml == Nvml::Auto && is_here {
        let library = Library { path: wished.nvml_library.clone(), indices: wished.gpu_index.clone() };
        let quietly = wished.nvml == Nvml::Auto && wished.gpu_index.is_empty();
        add(Ask { name: LOCAL_GPUS.to_owned(), whom: Whom::Gpus(library), quietly });
    }
    add(Ask { name: CLIENT.to_owned(), whom: Whom::Host, quietly: true });
    let interval = Duration::try_from_secs_f64(wished.interval_s).unwrap_or(Duration::from_secs(1));
    Ok(Telemetry::start(Setup { clock, interval, asks }))
}

/// A page by its URL: what it is called, and the way there.
fn named(option: &str, url: &str, plan: &Plan) -> Result<(String, Route, String), Failure> {
    let (address, path) = Wished::page(option, url).map_err(Failure::bad)?;
    let name = format!("{}{path}", address.endpoint().url);
    let mut secrets = Secrets::default();
    address.userinfo.iter().for_each(|userinfo| secrets.set_basic(userinfo));
    let own = [("Accept", "text/plain"), ("User-Agent", concat!("tokload/", env!("CARGO_PKG_VERSION")))];
    let headers = own.into_iter().chain(secrets.headers());
    let is_plain = !address.endpoint().url.starts_with("https");
    let parts = RouteParts {
        address: &address,
        path: path.clone(),
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        tls: trust::of_page(&plan.target.tls, is_plain)?,
    };
    let route = Route::new(parts)
        .map_err(|error| Failure::bad(format!("{option} {name}: {error}; check the URL, or leave it out")))?;
    Ok((name, route, path))
}
