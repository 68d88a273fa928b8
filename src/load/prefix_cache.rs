//! Emptying a server's prefix cache, where it has an endpoint for that.
//!
//! vLLM empties it on `POST /reset_prefix_cache`, which it only has in its development mode (`VLLM_SERVER_DEV_MODE=1`),
//! and SGLang on `POST /flush_cache`, which it refuses with 400 while requests run. Whether a cache was really emptied
//! only its hits can tell.

use std::time::Duration;

use crate::api::error_message;
use crate::load::fetch;
use crate::load::target::Route;
use crate::wire::json::Json;

/// How a wish to empty the cache was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reset {
    /// The server took it.
    Taken,
    /// The server knows none of the endpoints.
    Unknown,
    /// It was not done, for this reason.
    Failed(String),
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
pub(super) fn reset(route: &Route, prefix: &str) -> Reset {
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
