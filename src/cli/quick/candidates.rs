//! Where a local server may be listening: what the environment says, then the usual ports.
//!
//! Pure: reads no environment and asks nobody. Only this machine is looked at unasked: whoever has `OPENAI_BASE_URL` set to
//! a service that bills tokens does not mean to load it.

use crate::plan::Endpoint;

/// An address worth asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// `http://127.0.0.1:8080`, with a prefix where the environment has one.
    pub(super) url: String,
}

/// Where servers listen unless they are told otherwise: Ollama, llama.cpp (and LocalAI), vLLM, SGLang, LM Studio, Jan,
/// KoboldCpp, text-generation-webui, LMDeploy.
const USUAL_PORTS: [u16; 9] = [11434, 8080, 8000, 30000, 1234, 1337, 5001, 5000, 23333];
const OLLAMA_PORT: u16 = 11434;
const LLAMA_PORT: u16 = 8080;

/// All of them, each once, those of the environment first; and what is said of variables that are not followed.
pub(super) fn all(env: impl Fn(&str) -> Option<String>) -> (Vec<Candidate>, Vec<String>) {
    let (mut urls, mut notes) = (Vec::new(), Vec::new());
    let set = |name: &str| env(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    if let Some(host) = set("OLLAMA_HOST") {
        add(&mut urls, &mut notes, "OLLAMA_HOST", &with_port(&host, OLLAMA_PORT));
    }
    if set("LLAMA_ARG_HOST").or(set("LLAMA_ARG_PORT")).is_some() {
        let host = set("LLAMA_ARG_HOST").unwrap_or_else(|| "127.0.0.1".to_owned());
        let port = set("LLAMA_ARG_PORT").and_then(|port| port.parse().ok()).unwrap_or(LLAMA_PORT);
        add(&mut urls, &mut notes, "LLAMA_ARG_HOST", &with_port(&host, port));
    }
    for name in ["OPENAI_BASE_URL", "OPENAI_API_BASE"] {
        if let Some(url) = set(name) {
            add(&mut urls, &mut notes, name, &url);
        }
    }
    urls.extend(USUAL_PORTS.map(|port| format!("http://127.0.0.1:{port}")));
    let mut candidates: Vec<Candidate> = Vec::new();
    for url in urls {
        if !candidates.iter().any(|known| known.url == url) {
            candidates.push(Candidate { url });
        }
    }
    (candidates, notes)
}

/// Adds what `variable` names, if it is on this machine.
fn add(urls: &mut Vec<String>, notes: &mut Vec<String>, variable: &str, text: &str) {
    let Ok(mut address) = Endpoint::parse(text) else {
        notes.push(format!("{variable} is no address of a server and is passed over"));
        return;
    };
    // To be listened on, these mean every address; to be asked, this machine.
    if ["0.0.0.0", "::"].contains(&address.host.as_str()) {
        "127.0.0.1".clone_into(&mut address.host);
    }
    let is_here = address.host == "localhost"
        || address.host.parse::<core::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    if is_here {
        urls.push(address.endpoint().url.replace("//localhost:", "//127.0.0.1:"));
    } else {
        let url = address.endpoint().url;
        notes.push(format!(
            "{variable} names {url}, which is another machine: it is left alone unless you name it by --base-url"
        ));
    }
}

/// `host` with `port` unless it has one: `OLLAMA_HOST` may be `:11434`, a host, a host and a port, or a URL.
fn with_port(host: &str, port: u16) -> String {
    let (scheme, rest) = host.split_once("://").map_or(("http", host), |(scheme, rest)| (scheme, rest));
    let rest = if rest.starts_with(':') && !rest.starts_with("::") {
        format!("127.0.0.1{rest}")
    } else {
        rest.to_owned()
    };
    // Colons in an address of IPv6 are none before a port.
    let bare_v6 = rest.matches(':').count() > 1 && !rest.starts_with('[');
    let rest = if bare_v6 { format!("[{rest}]") } else { rest };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let has_port =
        authority.rsplit_once(':').is_some_and(|(before, _)| before.ends_with(']') || !before.contains(':'));
    match has_port {
        true => format!("{scheme}://{rest}"),
        false => format!("{scheme}://{authority}:{port}{}", &rest[authority.len()..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(env: &[(&str, &str)]) -> Vec<String> {
        let get = |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        all(get).0.into_iter().map(|candidate| candidate.url).collect()
    }

    #[test]
    fn without_an_environment_the_usual_ports_are_asked() {
        let urls = urls(&[]);
        assert_eq!(urls.len(), USUAL_PORTS.len());
        assert_eq!(urls[0], "http://127.0.0.1:11434");
    }

    #[test]
    fn what_the_environment_names_comes_first_and_once() {
        for (value, url) in [
            ("127.0.0.1:11500", "http://127.0.0.1:11500"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            ("0.0.0.0:1", "http://127.0.0.1:1"),
            (":7000", "http://127.0.0.1:7000"),
            ("localhost", "http://127.0.0.1:11434"),
            ("http://localhost:99/", "http://127.0.0.1:99"),
            ("::", "http://127.0.0.1:11434"),
            ("[::1]:5", "http://[::1]:5"),
        ] {
            let urls = urls(&[("OLLAMA_HOST", value)]);
            assert_eq!(urls[0], url, "{value}");
            assert_eq!(urls.iter().filter(|one| *one == url).count(), 1);
        }
        let urls = urls(&[("LLAMA_ARG_PORT", "9001"), ("OPENAI_BASE_URL", "http://localhost:8000/v1")]);
        assert_eq!(urls[..2], ["http://127.0.0.1:9001", "http://127.0.0.1:8000"]);
        assert_eq!(urls.len(), USUAL_PORTS.len() + 1);
    }

    #[test]
    fn another_machine_is_left_alone_and_that_is_said() {
        let env = |name: &str| (name == "OPENAI_BASE_URL").then(|| "https://api.example.com/v1".to_owned());
        let (candidates, notes) = all(env);
        assert_eq!(candidates.len(), USUAL_PORTS.len());
        assert!(
            notes[0].contains("https://api.example.com:443") && notes[0].contains("--base-url"),
            "{notes:?}"
        );
        let (_, notes) = all(|name| (name == "OLLAMA_HOST").then(|| "ftp://x".to_owned()));
        assert_eq!(notes.len(), 1, "{notes:?}");
    }
}
