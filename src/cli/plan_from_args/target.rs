//! Whom to ask: endpoints, API, headers and the key. Models are `behaviour`'s.
//!
//! Owns the parting of what is stored from what is secret.

use super::{RunArgs, value};
use crate::api::{Dialect, Raw};
use crate::plan::{Address, Endpoint, Error, Header, Secret, Secrets, Target, UrlStrategy};

pub(super) mod connections;
mod fleet;

/// Sets everything in `target` that the options give. What is secret in them goes to `secrets`.
pub(super) fn set(args: &RunArgs, target: &mut Target, secrets: &mut Secrets) -> Result<(), Error> {
    let named = endpoints(args, target, secrets)?;
    api(args, named, target)?;
    raw(args, target)?;
    if args.streaming && args.no_streaming {
        return Err(Error::new("--no-streaming", "contradicts --streaming", "give one of them"));
    }
    if args.streaming && !target.dialect.streams() {
        let wrong = format!("answers of the API {} are not streamed", target.dialect.name());
        return Err(Error::new("--streaming", wrong, "leave it out"));
    }
    target.stream = args.streaming || (!args.no_streaming && target.stream);
    connections::set(args, target)?;
    target.reset_prefix_cache |= args.reset_prefix_cache;
    target.all_addresses |= args.all_addresses;
    if let Some(name) = &args.replica_header {
        target.replica_header = Some(name.trim().to_ascii_lowercase());
    }
    headers(args, &mut target.headers, secrets)
}

/// Sets the endpoints; returns the API and path that their URLs name.
fn endpoints(
    args: &RunArgs,
    target: &mut Target,
    secrets: &mut Secrets,
) -> Result<Option<(Dialect, String)>, Error> {
    let (mut urls, weights) = fleet::servers(args)?;
    if urls.is_empty() && target.endpoints.is_empty() && args.unix_socket.is_some() {
        // The name is only what `Host` says.
        urls.push("http://localhost".to_owned());
    }
    let addresses = urls.iter().map(|url| Endpoint::parse(url)).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = addresses.first() else {
        return fleet::strategy(args, weights, target).map(|()| None);
    };
    // One password for some servers would be shown to all.
    if addresses.iter().any(|address| address.userinfo != first.userinfo) {
        let remedy = "give one --header 'Authorization: ...' for all, or run them apart";
        return Err(Error::new("--base-url", "the URLs hold different passwords", remedy));
    }
    if addresses.iter().any(|address| address.request != first.request) {
        let remedy = "give base URLs, and the path by --endpoint";
        return Err(Error::new("--base-url", "the URLs have different paths", remedy));
    }
    if let Some(userinfo) = &first.userinfo {
        secrets.set_basic(userinfo);
    }
    target.endpoints = addresses.iter().map(Address::endpoint).collect();
    // What the file has are weights of its own endpoints.
    target.url_weights.clear();
    if target.url_strategy == UrlStrategy::Weighted {
        target.url_strategy = UrlStrategy::default();
    }
    fleet::strategy(args, weights, target)?;
    Ok(first.request.clone())
}

/// Sets dialect and path from what the URLs `named`, `--backend` and `--endpoint`.
fn api(args: &RunArgs, named: Option<(Dialect, String)>, target: &mut Target) -> Result<(), Error> {
    let asked = args.backend.as_deref().map(|text| value::backend("--backend", text)).transpose()?;
    if let Some((dialect, path)) = named {
        if asked.is_some_and(|asked| asked != dialect) {
            let remedy = "leave out one of the two, or give the path by --endpoint";
            return Err(Error::new("--backend", format!("the URL's path {path} is of another API"), remedy));
        }
        target.dialect = dialect;
        target.path = Some(path).filter(|path| path != dialect.path());
    }
    if let Some(dialect) = asked.filter(|dialect| *dialect != target.dialect) {
        target.dialect = dialect;
        // The file's path was that of the file's API.
        target.path = None;
    }
    match args.endpoint.as_deref() {
        // No paths: so servebench names the two APIs that it speaks.
        Some(name @ ("chat" | "completions")) => {
            let dialect = value::backend("--endpoint", name)?;
            if asked.is_some_and(|asked| asked != dialect) {
                let wrong = format!("{name} is another API than --backend");
                return Err(Error::new("--endpoint", wrong, "leave out one of the two"));
            }
            (target.dialect, target.path) = (dialect, None);
            Ok(())
        }
        Some(path) => endpoint_path(path, asked.is_some(), target),
        None => Ok(()),
    }
}

/// The user's own API. What the options leave out is the file's.
fn raw(args: &RunArgs, target: &mut Target) -> Result<(), Error> {
    let places = [&args.raw_content, &args.raw_finish, &args.raw_prompt_tokens, &args.raw_output_tokens];
    if args.raw_body.is_none() && places.iter().all(|place| place.is_none()) && !args.raw_cumulative {
        if target.dialect != Dialect::Raw && args.backend.is_some() {
            // The file's is of another API now.
            target.raw = None;
        }
        return Ok(());
    }
    if target.dialect != Dialect::Raw {
        let wrong = format!("means nothing to the API {}", target.dialect.name());
        return Err(Error::new("--raw-body and the like", wrong, "give --backend raw"));
    }
    let raw = target.raw.get_or_insert_with(|| Raw { content: "/text".to_owned(), ..Raw::default() });
    if let Some(body) = &args.raw_body {
        raw.body.clone_from(body);
    }
    if let Some(content) = &args.raw_content {
        raw.content.clone_from(content);
    }
    raw.cumulative |= args.raw_cumulative;
    for (place, given) in [
        (&mut raw.finish, &args.raw_finish),
        (&mut raw.prompt_tokens, &args.raw_prompt_tokens),
        (&mut raw.output_tokens, &args.raw_output_tokens),
    ] {
        if given.is_some() {
            place.clone_from(given);
        }
    }
    Ok(())
}

/// The path of `--endpoint`. Where it ends like that of an API and none was named, it names that API, as vLLM's users
/// write `--endpoint /v1/chat/completions`.
fn endpoint_path(path: &str, api_named: bool, target: &mut Target) -> Result<(), Error> {
    let bare = path.split('?').next().unwrap_or(path);
    let of_path = Endpoint::parse(&format!("http://h{bare}")).ok().and_then(|address| address.request);
    if let Some((dialect, _)) = of_path {
        if target.dialect == Dialect::Raw {
            target.path = Some(path.to_owned());
            return Ok(());
        }
        if api_named && dialect != target.dialect {
            let wrong = format!("the path {path} is of another API than --backend");
            let remedy = format!("give --backend {}", dialect.name());
            return Err(Error::new("--endpoint", wrong, remedy));
        }
        target.dialect = dialect;
    }
    target.path = Some(path.to_owned()).filter(|path| path != target.dialect.path());
    Ok(())
}

/// Headers of the options win over those of the file that have the same name; secret ones go apart.
fn headers(args: &RunArgs, headers: &mut Vec<Header>, secrets: &mut Secrets) -> Result<(), Error> {
    let from_file = headers.len();
    for text in &args.header {
        for (name, value) in header_pairs(text)? {
            let twice = |name: &str| {
                Error::new(
                    "--header",
                    format!("{name} is set twice"),
                    "give it once, by one option or in the URL",
                )
            };
            if Secrets::covers(&name) {
                if secrets.contains(&name) {
                    return Err(twice(&name));
                }
                plausible_secret("--header", &name, &value)?;
                if value.contains("{{") {
                    // What is drawn from it could not be told from other text, and so not be kept out of a result.
                    let wrong = format!("{name} is a secret, in which no placeholders are filled");
                    return Err(Error::new("--header", wrong, "give one value for all requests"));
                }
                secrets.insert(name, Secret::new(value));
                continue;
            }
            if headers.iter().skip(from_file).any(|header| header.name.eq_ignore_ascii_case(&name)) {
                return Err(twice(&name));
            }
            match headers.iter_mut().take(from_file).find(|header| header.name.eq_ignore_ascii_case(&name)) {
                Some(header) => header.value = value,
                None => headers.push(Header { name, value }),
            }
        }
    }
    Ok(())
}

/// One header, or aiperf's JSON object of several.
fn header_pairs(text: &str) -> Result<Vec<(String, String)>, Error> {
    if !text.trim_start().starts_with('{') {
        return value::header("--header", text).map(|pair| vec![pair]);
    }
    let bad = || Error::new("--header", "is not a JSON object of texts", "give 'Name: value' in quotes");
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).map_err(|_| bad())?;
    object.into_iter().map(|(name, value)| Ok((name, value.as_str().ok_or_else(bad)?.to_owned()))).collect()
}

/// Sends the key of `--api-key`, or that of the environment unless something else authorises already.
pub(super) fn api_key(
    given: Option<&str>,
    env: &dyn Fn(&str) -> Option<String>,
    secrets: &mut Secrets,
) -> Result<(), Error> {
    let Some(given) = given else {
        if !KEY_HEADERS.iter().any(|name| secrets.contains(name))
            && let Some(key) = env(KEY_VARIABLE).filter(|key| !key.trim().is_empty())
        {
            plausible_secret("--api-key", KEY_VARIABLE, key.trim())?;
            secrets.set_bearer(key.trim());
        }
        return Ok(());
    };
    if secrets.contains("Authorization") {
        let remedy = "give the key once: by --api-key, by --header or in the URL";
        return Err(Error::new("--api-key", "Authorization is set twice", remedy));
    }
    let key = match env(given) {
        Some(key) => key,
        None if given.ends_with("_KEY") || given.ends_with("_TOKEN") => {
            let wrong = format!("the environment has no variable {given}");
            return Err(Error::new("--api-key", wrong, "set it, or give the key itself"));
        }
        None => given.to_owned(),
    };
    let key = key.trim();
    if key.is_empty() {
        return Err(Error::new("--api-key", "is empty", "leave it out where the server needs none"));
    }
    plausible_secret("--api-key", "the key", key)?;
    secrets.set_bearer(key);
    Ok(())
}

/// Refuses what cannot stand in a header, without repeating it.
fn plausible_secret(option: &str, name: &str, value: &str) -> Result<(), Error> {
    let legal = |b: u8| b == b'\t' || (b >= b' ' && b != 0x7f);
    match value.bytes().all(legal) {
        true => Ok(()),
        false => Err(Error::new(option, format!("{name} has a control character"), "give it in one line")),
    }
}

/// Headers that authorise, each with some servers.
const KEY_HEADERS: [&str; 3] = ["Authorization", "x-api-key", "api-key"];
/// Where the key is looked for when none is given.
const KEY_VARIABLE: &str = "OPENAI_API_KEY";
