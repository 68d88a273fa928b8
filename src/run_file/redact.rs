//! Secrets out of command lines and of what servers say, before anything is written.
//!
//! Works on text alone and reads neither the environment nor the options' table: an argument is judged by its shape,
//! so that the spellings of other tools and a mistyped option are covered too. When in doubt it removes.

use serde_json::Value;

/// What stands in the place of a secret.
pub const REMOVED: &str = "<removed>";

/// The command line with its secrets replaced by [`REMOVED`]: values of key options (`--api-key x`, `--api-key=x`),
/// secret headers in any spelling (`-H "Authorization: x"`, `-HCookie=x`, a JSON object of headers), userinfo and
/// secret parameters of URLs, bearer tokens.
#[must_use]
pub fn command_line<S: AsRef<str>>(arguments: &[S]) -> Vec<String> {
    let mut secret_follows = false;
    arguments
        .iter()
        .map(|argument| {
            let argument = argument.as_ref();
            if std::mem::take(&mut secret_follows) {
                return REMOVED.to_owned();
            }
            secret_follows = is_secret_option(argument);
            one(argument)
        })
        .collect()
}

/// `text` with userinfo and secret parameters of the URLs in it replaced by [`REMOVED`].
#[must_use]
pub fn urls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + "://".len());
        out.push_str(before);
        let end = after.find(|c: char| c.is_whitespace() || "\"'<>".contains(c)).unwrap_or(after.len());
        let (url, tail) = after.split_at(end);
        out.push_str(&url_after_scheme(url));
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// `text` with each of `secrets` replaced by [`REMOVED`], for what a server echoes. Secrets shorter than four bytes
/// are left: they would take ordinary words with them.
#[must_use]
pub fn values<S: AsRef<str>>(text: &str, secrets: &[S]) -> String {
    let mut out = text.to_owned();
    for secret in secrets.iter().map(AsRef::as_ref).filter(|s| s.len() >= 4) {
        if out.contains(secret) {
            out = out.replace(secret, REMOVED);
        }
    }
    out
}

/// Whether a header, option, URL parameter or JSON key of this name holds a secret. Case, `_` and `-` do not matter.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let name = name.trim().trim_start_matches('-').to_ascii_lowercase().replace('_', "-");
    // A name such as `eos_token` means a token of the vocabulary.
    const TOKENS_OF_TEXT: [&str; 14] = [
        "audio", "bos", "cls", "end", "eos", "image", "mask", "pad", "sep", "special", "start", "stop",
        "unk", "video",
    ];
    const PARTS: [&str; 9] = [
        "authorization",
        "cookie",
        "api-key",
        "apikey",
        "access-key",
        "subscription-key",
        "secret",
        "password",
        "credential",
    ];
    if PARTS.iter().any(|part| name.contains(part)) || name == "token" {
        return true;
    }
    let of = name.strip_suffix("-token").map(|of| of.rsplit('-').next().unwrap_or(of));
    of.is_some_and(|of| !TOKENS_OF_TEXT.contains(&of))
}

/// An option that takes a secret as the next argument. A file's name is no secret, and `--x=y` has its value already.
fn is_secret_option(argument: &str) -> bool {
    argument.starts_with("--") && !argument.contains('=') && is_secret_name(argument)
}

fn one(argument: &str) -> String {
    if let Some(json) = json_object(argument) {
        return json;
    }
    if let Some((option, value)) = argument.split_once('=').filter(|(option, _)| option.starts_with("--")) {
        let value = if is_secret_name(option) { REMOVED.to_owned() } else { one(value) };
        return format!("{option}={value}");
    }
    // `-HAuthorization: x` and `-H=Authorization: x`.
    if let Some(value) = argument.strip_prefix("-H").filter(|value| !value.is_empty()) {
        let (equals, value) = value.strip_prefix('=').map_or(("", value), |value| ("=", value));
        return format!("-H{equals}{}", one(value));
    }
    pair(argument)
        .or_else(|| bearer(argument))
        .or_else(|| url(argument))
        .unwrap_or_else(|| userinfo(argument))
}

/// An argument with a URL in it. One that is a URL as a whole is taken so: a password typed as it is may hold what
/// would end a URL in running text.
fn url(argument: &str) -> Option<String> {
    let (scheme, rest) = argument.split_once("://")?;
    if scheme.contains(char::is_whitespace) {
        return Some(urls(argument));
    }
    Some(format!("{scheme}://{}", url_after_scheme(rest)))
}

/// `name: value` or `name=value` with a secret name.
fn pair(argument: &str) -> Option<String> {
    let at = argument.find([':', '='])?;
    let (name, rest) = argument.split_at(at);
    let name = name.trim_matches(['"', '\'', ' ']);
    let separator = if rest.starts_with(':') { ": " } else { "=" };
    (!rest.starts_with("://") && is_secret_name(name)).then(|| format!("{name}{separator}{REMOVED}"))
}

fn bearer(argument: &str) -> Option<String> {
    let (scheme, _) = argument.trim_start().split_once(' ')?;
    let known = ["bearer", "basic", "token"].iter().any(|name| scheme.eq_ignore_ascii_case(name));
    known.then(|| format!("{scheme} {REMOVED}"))
}

/// `user:password@host` without a scheme, as accepted for base URLs.
fn userinfo(argument: &str) -> String {
    let authority = &argument[..argument.find(['/', '?', ' ']).unwrap_or(argument.len())];
    match authority.rfind('@') {
        Some(at) if authority[..at].contains(':') => {
            format!("{REMOVED}{}", &argument[at..])
        }
        _ => argument.to_owned(),
    }
}

fn url_after_scheme(url: &str) -> String {
    let (authority, path) = url.split_at(url.find(['/', '?', '#']).unwrap_or(url.len()));
    let host = match authority.rfind('@') {
        Some(at) => format!("{REMOVED}{}", &authority[at..]),
        None => authority.to_owned(),
    };
    let Some((path, query)) = path.split_once('?') else { return host + path };
    let parameters = query.split('&').map(|parameter| match parameter.split_once('=') {
        Some((name, _)) if is_secret_name(name) || name.eq_ignore_ascii_case("key") => {
            format!("{name}={REMOVED}")
        }
        _ => parameter.to_owned(),
    });
    format!("{host}{path}?{}", parameters.collect::<Vec<_>>().join("&"))
}

/// A JSON object with the values of secret keys removed; as it was typed if it holds none. `None` if it is no object.
fn json_object(argument: &str) -> Option<String> {
    let mut value: Value = serde_json::from_str(argument).ok().filter(Value::is_object)?;
    Some(if json(&mut value) { value.to_string() } else { argument.to_owned() })
}

/// Removes the secrets from the member `name` of a JSON object; whether there were any.
pub(super) fn member(name: &str, value: &mut Value) -> bool {
    if is_secret_name(name) && !value.is_null() {
        *value = Value::String(REMOVED.to_owned());
        return true;
    }
    json(value)
}

fn json(value: &mut Value) -> bool {
    let mut found = false;
    match value {
        Value::Object(map) => map.iter_mut().for_each(|(name, value)| found |= member(name, value)),
        Value::Array(values) => values.iter_mut().for_each(|value| found |= json(value)),
        Value::String(text) => {
            let clean = urls(text);
            found = clean != *text;
            *text = clean;
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "hush";

    fn redacted(arguments: &[&str]) -> String {
        command_line(arguments).join(" | ")
    }

    #[test]
    fn keys_go_in_every_spelling() {
        for option in
            ["--api-key", "--api_key", "--API-KEY", "--openai-api-key", "--hf-token", "--token", "--password"]
        {
            assert_eq!(redacted(&[option, SECRET, "-m", "x"]), format!("{option} | {REMOVED} | -m | x"));
            assert_eq!(redacted(&[&format!("{option}={SECRET}")]), format!("{option}={REMOVED}"));
        }
        assert_eq!(redacted(&["--api-key", "-dash"]), format!("--api-key | {REMOVED}"));
    }

    #[test]
    fn secret_headers_keep_their_names_only() {
        let headers = [
            "Authorization: Bearer hush",
            "authorization:hush",
            "Authorization=Bearer hush",
            "COOKIE: a=hush; b=hush",
            "x-api-key: hush",
            "X-Api-Key=hush",
            "api-key: hush",
            "Proxy-Authorization: Basic hush",
            "Ocp-Apim-Subscription-Key: hush",
            "X-Auth-Token: hush",
        ];
        for header in headers {
            let joined = ["--header=", "--headers=", "-H", "-H="].map(|option| format!("{option}{header}"));
            let apart = ["--header", "-H", "--headers"].map(|option| redacted(&[option, header]));
            for out in joined.iter().map(|j| redacted(&[j])).chain(apart) {
                assert!(!out.contains(SECRET) && out.contains(REMOVED), "{header}: {out}");
                let name = &header[..header.find([':', '=']).unwrap()];
                assert!(out.contains(name), "{header}: {out}");
            }
        }
        // vLLM's --header takes several values.
        let several = redacted(&["--header", "x-team=a", "x-api-key=hush"]);
        assert_eq!(several, format!("--header | x-team=a | x-api-key={REMOVED}"));
    }

    #[test]
    fn url_secrets_go_and_hosts_stay() {
        let cases = [
            ("http://me:hush@host:8000/v1", "http://<removed>@host:8000/v1"),
            ("--base-url=https://hush@host/v1?x=1", "--base-url=https://<removed>@host/v1?x=1"),
            ("http://host/v1?api_key=hush&x=1", "http://host/v1?api_key=<removed>&x=1"),
            ("http://host?key=hush", "http://host?key=<removed>"),
            ("http://me:<hu'sh>@host/v1", "http://<removed>@host/v1"),
            ("me:hush@host:8000", "<removed>@host:8000"),
            ("me:hush@host/path", "<removed>@host/path"),
        ];
        for (typed, kept) in cases {
            assert_eq!(redacted(&[typed]), kept);
        }
        assert_eq!(urls("see http://a:hush@b/c and https://d/e"), "see http://<removed>@b/c and https://d/e");
    }

    #[test]
    fn json_and_bearer_arguments_are_searched() {
        let out = redacted(&["--extra-body", r#"{"user":{"api_key":"hush","n":1},"top_k":3}"#]);
        assert_eq!(out, r#"--extra-body | {"top_k":3,"user":{"api_key":"<removed>","n":1}}"#);
        let out = redacted(&[r#"--headers={"Authorization":"Bearer hush"}"#]);
        assert_eq!(out, r#"--headers={"Authorization":"<removed>"}"#);
        assert_eq!(redacted(&["Bearer hush"]), format!("Bearer {REMOVED}"));
    }

    #[test]
    fn ordinary_arguments_are_left_alone() {
        let plain = [
            "run",
            "--base-url",
            "http://127.0.0.1:8000/v1",
            "--max-tokens=64",
            "--tokenizer=org/name",
            "--goodput",
            "ttft:500 tpot:50",
            "-H",
            "X-Team: core",
            "--extra-body",
            "{\"top_k\": 3}",
            "--metadata",
            "who=me@example.org",
            "--key",
            "client.pem",
            "{\"eos_token\": 2}",
            "--stop-token",
            "x",
            "http://[::1]:8000",
        ];
        assert_eq!(command_line(&plain), plain);
    }

    #[test]
    fn redacting_again_changes_nothing() {
        let typed = ["--api-key", "hush", "-H", "Cookie: hush", "http://me:hush@h/?token=hush", "me:hush@h"];
        let once = command_line(&typed);
        assert_eq!(command_line(&once), once);
    }

    #[test]
    fn known_secrets_go_from_any_text() {
        let said = "incorrect key sk-12345 for me";
        assert_eq!(values(said, &["sk-12345"]), "incorrect key <removed> for me");
        assert_eq!(values(said, &["me"]), said);
    }
}
