//! Which answer a request gets. Pure.

use serde_json::{Value, json};

use super::ask::{self, Ask, Surface, Terms};
use super::face;
use super::reply::Reply;
use super::request::{Method, Request};

/// What a request gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Tokens.
    Generate(Ask),
    /// The numbers of `/metrics`.
    Metrics,
    /// This.
    Reply(Reply),
    /// Nothing, once the prefix cache is empty.
    ResetPrefixCache,
    /// The truth so far.
    Truth {
        /// With when each request came and was answered, as far as that is kept.
        requests: bool,
        /// And from now on anew.
        restart: bool,
    },
}

/// Whether the request is one that the faults count.
pub(super) fn is_generation(request: &Request) -> bool {
    request.head.method == Method::Post && Surface::of_path(&request.head.path).is_some()
}

/// Finds the answer. `created`: seconds since 1970.
pub(super) fn answer(request: &Request, terms: Terms<'_>, created: u64) -> Answer {
    let reads = matches!(request.head.method, Method::Get | Method::Head);
    let path = request.head.path.as_str();
    if let Some(surface) = Surface::of_path(path) {
        if request.head.method != Method::Post {
            return Answer::Reply(Reply::no_route(Some("POST")));
        }
        return match ask::read(surface, &request.body, terms) {
            Ok(ask) => Answer::Generate(ask),
            Err(denial) => Answer::Reply(Reply::error_of(surface, &denial)),
        };
    }
    let reply = match path {
        "/api/tags" | "/health" | "/metrics" | "/truth" | "/truth/requests" | "/v1/models" | "/version"
            if !reads =>
        {
            Reply::no_route(Some("GET"))
        }
        "/reset_prefix_cache" if request.head.method == Method::Post => return Answer::ResetPrefixCache,
        "/tokenize" if !terms.tokenizes => Reply::no_route(None),
        "/reset_prefix_cache" | "/tokenize" if request.head.method != Method::Post => {
            Reply::no_route(Some("POST"))
        }
        "/tokenize" => match ask::tokens_of(&request.body, terms) {
            Ok(body) => Reply::json(200, body),
            Err(denial) => Reply::error_of(Surface::Text, &denial),
        },
        "/api/tags" => Reply::json(200, tags(terms, created)),
        "/health" => Reply::empty(),
        "/metrics" => return Answer::Metrics,
        "/truth" | "/truth/requests" => {
            let restart = request.head.query.split('&').any(|key| key == "reset");
            return Answer::Truth { restart, requests: path == "/truth/requests" };
        }
        "/v1/models" => Reply::json(200, models(terms, created)),
        "/version" => Reply::json(200, json!({ "version": env!("CARGO_PKG_VERSION") }).to_string()),
        _ => Reply::no_route(None),
    };
    Answer::Reply(reply)
}

fn models(terms: Terms<'_>, created: u64) -> String {
    let Terms { model, adapters, max_model_len, .. } = terms;
    let entry = |id: &str, parent: Option<&str>| {
        json!({
            "id": id,
            "object": "model",
            "created": created,
            "owned_by": "tokload",
            "root": id,
            "parent": parent,
            "max_model_len": max_model_len,
            "permission": [],
        })
    };
    // As vLLM lists them: the model first, then those that rest on it.
    let adapters = adapters.iter().map(|adapter| entry(adapter, Some(model)));
    let all: Vec<Value> = std::iter::once(entry(model, None)).chain(adapters).collect();
    json!({ "object": "list", "data": all }).to_string()
}

/// The models in Ollama's shape.
fn tags(terms: Terms<'_>, created: u64) -> String {
    json!({
        "models": [{
            "name": terms.model,
            "model": terms.model,
            "modified_at": face::utc(created),
            "size": 0,
            "digest": "",
            "details": { "format": "mock", "family": "mock", "parameter_size": "0", "quantization_level": "" },
        }],
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::request::Head;

    fn ask_for(method: Method, target: &str) -> Answer {
        ask_with(method, target, "{\"messages\":[]}")
    }

    fn ask_with(method: Method, target: &str, body: &str) -> Answer {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (path, query) = (path.to_owned(), query.to_owned());
        let head = Head { method, path, query, chunks: true, keep_alive: true };
        let request = Request { head, body: body.as_bytes().to_vec() };
        let terms = Terms {
            model: "m",
            adapters: &[],
            max_model_len: 9,
            beside: ask::Beside::default(),
            tokenizes: true,
            max_tokens: 1,
            eos_after: None,
            reasoning: 0,
            tool_call: false,
            refused_fields: &[],
        };
        answer(&request, terms, 7)
    }

    fn reply(method: Method, target: &str) -> Reply {
        match ask_for(method, target) {
            Answer::Reply(reply) => reply,
            other => panic!("{target} gives {other:?}"),
        }
    }

    #[test]
    fn each_path_has_its_methods() {
        let status = |method, path| reply(method, path).status;
        for path in ["/api/tags", "/v1/models", "/health", "/version"] {
            assert_eq!(status(Method::Get, path), 200, "{path}");
            assert_eq!(status(Method::Head, path), 200, "{path}");
            assert_eq!(status(Method::Post, path), 405, "{path}");
        }
        for path in [
            "/v1/chat/completions",
            "/api/chat",
            "/v1/completions",
            "/api/generate",
            "/completion",
            "/generate",
            "/v1/embeddings",
            "/v1/messages",
            "/v1/responses",
        ] {
            assert_eq!(status(Method::Get, path), 405);
            assert_eq!(status(Method::Other, path), 405);
        }
        assert_eq!((status(Method::Post, "/metrics"), status(Method::Post, "/truth")), (405, 405));
        for path in ["/", "/v1/chat/completions/", "/v1/rerank", ""] {
            assert_eq!(status(Method::Post, path), 404, "{path}");
        }
    }

    #[test]
    fn the_truth_is_read_and_restarted() {
        let truth = |target| ask_for(Method::Get, target);
        let told = |restart, requests| Answer::Truth { restart, requests };
        assert_eq!(truth("/truth"), told(false, false));
        assert_eq!(truth("/truth?resets"), told(false, false));
        assert_eq!(truth("/truth?reset"), told(true, false));
        assert_eq!(truth("/truth/requests?reset"), told(true, true));
        assert_eq!(truth("/metrics"), Answer::Metrics);
        assert_eq!(ask_for(Method::Post, "/reset_prefix_cache"), Answer::ResetPrefixCache);
        assert_eq!(reply(Method::Get, "/reset_prefix_cache").status, 405);
    }

    #[test]
    fn errors_have_the_shape_of_the_api() {
        let error = |path| -> serde_json::Value {
            match ask_with(Method::Post, path, "{\"model\":\"other\"}") {
                Answer::Reply(Reply { status: 404, body, .. }) => serde_json::from_slice(&body).unwrap(),
                other => panic!("{path} gives {other:?}"),
            }
        };
        assert!(error("/api/generate")["error"].is_string());
        assert!(error("/v1/completions")["error"]["message"].is_string());
        assert_eq!(error("/v1/messages")["type"], "error");
        assert_eq!(error("/v1/messages")["error"]["type"], "not_found_error");
    }

    #[test]
    fn the_model_is_listed_with_its_length() {
        let json =
            |path| -> serde_json::Value { serde_json::from_slice(&reply(Method::Get, path).body).unwrap() };
        let models = json("/v1/models");
        assert_eq!(models["data"][0]["id"], "m");
        assert_eq!(models["data"][0]["max_model_len"], 9);
        assert_eq!(models["data"][0]["created"], 7);
        let tags = json("/api/tags");
        assert_eq!(tags["models"][0]["name"], "m");
        assert_eq!(tags["models"][0]["modified_at"], "1970-01-01T00:00:07Z");
    }
}
