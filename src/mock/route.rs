//! Which answer a request gets. Pure.

use serde_json::json;

use super::ask::{self, Ask, Terms};
use super::reply::Reply;
use super::request::{Method, Request};
use crate::api::Dialect;

/// What a request gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Tokens.
    Generate(Ask),
    /// This.
    Reply(Reply),
}

/// Whether the request is one that the faults count.
pub(super) fn is_generation(request: &Request) -> bool {
    request.head.method == Method::Post && dialect_of(&request.head.path).is_some()
}

/// Finds the answer. `created`: seconds since 1970.
pub(super) fn answer(request: &Request, terms: Terms<'_>, created: u64) -> Answer {
    let reads = matches!(request.head.method, Method::Get | Method::Head);
    let path = request.head.path.as_str();
    if let Some(dialect) = dialect_of(path) {
        if request.head.method != Method::Post {
            return Answer::Reply(Reply::no_route(Some("POST")));
        }
        return match ask::read(dialect, &request.body, terms) {
            Ok(ask) => Answer::Generate(ask),
            Err(denial) => Answer::Reply(Reply::error(&denial)),
        };
    }
    let reply = match path {
        "/v1/models" | "/health" | "/version" if !reads => Reply::no_route(Some("GET")),
        "/v1/models" => Reply::json(200, models(terms, created)),
        "/health" => Reply::empty(),
        "/version" => Reply::json(200, json!({ "version": env!("CARGO_PKG_VERSION") }).to_string()),
        _ => Reply::no_route(None),
    };
    Answer::Reply(reply)
}

fn dialect_of(path: &str) -> Option<Dialect> {
    match path {
        "/v1/chat/completions" => Some(Dialect::OpenaiChat),
        "/v1/completions" => Some(Dialect::Openai),
        _ => None,
    }
}

fn models(terms: Terms<'_>, created: u64) -> String {
    let Terms { model, max_model_len, .. } = terms;
    json!({
        "object": "list",
        "data": [{
            "id": model,
            "object": "model",
            "created": created,
            "owned_by": "tokload",
            "root": model,
            "parent": null,
            "max_model_len": max_model_len,
            "permission": [],
        }],
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::request::Head;

    fn ask_for(method: Method, path: &str) -> Reply {
        let head = Head { method, path: path.to_owned(), chunks: true, keep_alive: true };
        let request = Request { head, body: b"{\"messages\":[]}".to_vec() };
        let terms = Terms { model: "m", max_model_len: 9, max_tokens: 1, refused_fields: &[] };
        match answer(&request, terms, 7) {
            Answer::Reply(reply) => reply,
            Answer::Generate(_) => panic!("{path} generates"),
        }
    }

    #[test]
    fn each_path_has_its_methods() {
        let status = |method, path| ask_for(method, path).status;
        for path in ["/v1/models", "/health", "/version"] {
            assert_eq!(status(Method::Get, path), 200, "{path}");
            assert_eq!(status(Method::Head, path), 200, "{path}");
            assert_eq!(status(Method::Post, path), 405, "{path}");
        }
        assert_eq!(status(Method::Get, "/v1/chat/completions"), 405);
        assert_eq!(status(Method::Other, "/v1/completions"), 405);
        for path in ["/", "/v1/chat/completions/", "/v1/embeddings", ""] {
            assert_eq!(status(Method::Post, path), 404, "{path}");
        }
    }

    #[test]
    fn the_model_is_listed_with_its_length() {
        let models: serde_json::Value =
            serde_json::from_slice(&ask_for(Method::Get, "/v1/models").body).unwrap();
        assert_eq!(models["data"][0]["id"], "m");
        assert_eq!(models["data"][0]["max_model_len"], 9);
        assert_eq!(models["data"][0]["created"], 7);
    }
}
