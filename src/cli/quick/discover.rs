//! Finds servers on this machine: asks all candidates at once for their models, each for no longer than a second or so.

use std::time::Duration;

use super::candidates::Candidate;
use crate::load::probe::{self, ProbeError, ServerFacts};
use crate::load::{Route, RouteParts, tls};
use crate::plan::{Endpoint, Limits};

/// A server that was found.
pub(super) struct Found {
    pub(super) url: String,
    pub(super) facts: ServerFacts,
    /// The API to ask it in, as in `--backend`; `None`: OpenAI's.
    pub(super) backend: Option<&'static str>,
    /// The model to ask for.
    pub(super) model: String,
}

/// What was found at one address.
enum Seen {
    Server(Box<Found>),
    /// Something that wants a key.
    Locked(String),
}

/// The servers among `candidates` that list a model that generates, in that order; and what is said of others.
pub(super) fn servers(candidates: &[Candidate]) -> (Vec<Found>, Vec<String>) {
    let seen: Vec<Option<Seen>> = std::thread::scope(|scope| {
        let asked: Vec<_> =
            candidates.iter().map(|candidate| scope.spawn(|| look_at(&candidate.url))).collect();
        // A thread that panicked has found nothing.
        asked.into_iter().map(|thread| thread.join().unwrap_or(None)).collect()
    });
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    for seen in seen.into_iter().flatten() {
        match seen {
            Seen::Server(server) => found.push(*server),
            Seen::Locked(url) => notes.push(format!(
                "what listens at {url} wants a key: give it by --api-key with --base-url {url}"
            )),
        }
    }
    (found, notes)
}

fn look_at(url: &str) -> Option<Seen> {
    let address = Endpoint::parse(url).ok()?;
    let parts = RouteParts {
        address: &address,
        path: "/v1/models".to_owned(),
        headers: Vec::new(),
        tls: tls::config(&tls::Trust::anyone()).ok()?,
    };
    let route = Route::new(parts).ok()?;
    let prefix = &address.prefix;
    // The paths of the two lists of models, and the API that goes with each.
    for (path, backend) in [("/v1/models", None), ("/api/tags", Some("ollama"))] {
        match probe::server(&route, &format!("{prefix}{path}"), &PATIENCE, Duration::ZERO) {
            Ok(facts) => {
                if let Some(model) = model(&route, prefix, &facts) {
                    return Some(Seen::Server(Box::new(Found {
                        url: url.to_owned(),
                        facts,
                        backend,
                        model,
                    })));
                }
            }
            Err(ProbeError::Refused(_)) => return Some(Seen::Locked(url.to_owned())),
            Err(ProbeError::NotReady(_)) => return None,
        }
    }
    None
}

/// The model to ask for: one that is in memory already, else the first that is not for embeddings alone.
pub(super) fn model(route: &Route, prefix: &str, facts: &ServerFacts) -> Option<String> {
    let loaded = if facts.models.len() > 1 && facts.kind() == "Ollama" {
        probe::models(route, &format!("{prefix}/api/ps"), &PATIENCE)
    } else {
        Vec::new()
    };
    let generates = |name: &&String| !is_for_embeddings(name);
    let is_loaded = |name: &&String| loaded.contains(name);
    let listed = || facts.models.iter().filter(generates);
    listed().find(is_loaded).or_else(|| listed().next()).cloned()
}

fn is_for_embeddings(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["embed", "rerank", "bge-", "minilm", "whisper"].iter().any(|part| name.contains(part))
}

/// Servers on this machine answer at once; what does not is none.
pub(super) const PATIENCE: Limits = Limits { connect_s: 1.0, first_s: 1.0, gap_s: 1.0, total_s: 1.0 };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_that_do_not_generate_are_passed_over() {
        let names = ["nomic-embed-text:latest", "BGE-M3", "all-minilm", "llama3.2:1b"];
        assert_eq!(names.map(is_for_embeddings), [true, true, true, false]);
    }
}
