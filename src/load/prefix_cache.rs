//! Emptying a server's prefix cache, where it has an endpoint for that.
//!
//! vLLM empties it on `POST /reset_prefix_cache`, which it only has in its development mode (`VLLM_SERVER_DEV_MODE=1`),
//! and SGLang on `POST /flush_cache`, which it refuses with 400 while requests run. Whether a cache was really emptied
//! only its hits can tell.

use std::time::Duration;

use crate::api::error_message;
use crate::load::fetch;
use crate::load::target::Route;
use crate::plan::Endpoint;
use crate::wire::json::Json;

/// What became of the wishes of one run.
#[derive(Debug, Default)]
pub(super) struct Resets {
    all_taken: Option<bool>,
    /// Endpoints whose server cannot do it, by their places; they are not asked again.
    hopeless: Vec<usize>,
}

/// How a wish to empty the cache was met.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reset {
    /// The server took it.
    Taken,
    /// The server knows none of the endpoints.
    Unknown,
    /// It was not done, for this reason.
    Failed(String),
}

impl Resets {
    /// Whether every server took it before every level so far; `None` before the first.
    pub(super) fn all_taken(&self) -> Option<bool> {
        self.all_taken
    }

    /// Asks every server, `routes` being the ways to `endpoints`, and says to `note` what was not done. Nothing is in
    /// flight, and a server that cannot do it is measured all the same.
    pub(super) fn before_level(
        &mut self,
        endpoints: &[Endpoint],
        routes: &[Route],
        note: &mut dyn FnMut(&str),
    ) {
        let mut all_taken = true;
        for (place, (route, endpoint)) in routes.iter().zip(endpoints).enumerate() {
            if self.hopeless.contains(&place) {
                continue;
            }
            let prefix = endpoint.address().map_or_else(|_| String::new(), |address| address.prefix);
            match reset(route, &prefix) {
                Reset::Taken => {}
                Reset::Unknown => {
                    self.hopeless.push(place);
                    note(&format!(
                        "{}: the server has no endpoint that empties its prefix cache (vLLM has one with \
                         VLLM_SERVER_DEV_MODE=1): the run goes on without",
                        endpoint.url
                    ));
                }
                Reset::Failed(why) => {
                    all_taken = false;
                    note(&format!("{}: the prefix cache was not emptied: {why}", endpoint.url));
                }
            }
        }
        all_taken &= self.hopeless.is_empty();
        self.all_taken = Some(all_taken && self.all_taken.unwrap_or(true));
    }
}

/// Where servers take the wish, in the order in which they are asked.
const PATHS: [&str; 2] = ["/reset_prefix_cache", "/flush_cache"];
/// The server has this long to answer.
const LIMIT: Duration = Duration::from_secs(10);
/// A server that still works on requests that were given up may refuse at first.
const TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(200);

/// Asks the server behind `route`, whose endpoints are below `prefix`, to empty its prefix cache. Blocks for as long as
/// that takes, some seconds at most where it answers.
#[must_use]
fn reset(route: &Route, prefix: &str) -> Reset {
    for path in PATHS {
        match ask(route, &format!("{prefix}{path}")) {
            Reset::Unknown => {}
            other => return other,
        }
    }
    Reset::Unknown
}

fn ask(route: &Route, path: &str) -> Reset {
    let mut refusal = String::new();
    for attempt in 0..TRIES {
        if attempt > 0 {
            std::thread::sleep(PAUSE);
        }
        let answer = match fetch::post_nothing(route, path, LIMIT) {
            Ok(answer) => answer,
            Err(error) => return Reset::Failed(format!("POST {path}: {error}")),
        };
        match answer.status {
            200..=299 => return Reset::Taken,
            404 | 405 | 501 => return Reset::Unknown,
            status => {
                let said = error_message(&mut Json::new(), &answer.body);
                let said = said.map_or_else(String::new, |said| format!(": {said}"));
                refusal = format!("POST {path} is answered by HTTP {status}{said}");
                if matches!(status, 401 | 403) {
                    break;
                }
            }
        }
    }
    Reset::Failed(refusal)
}
