//! What is sent but never stored, logged or printed: API keys, Authorization, cookies.
//!
//! Owns the rule which headers are secret. It is no part of the plan and cannot be serialised.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A text that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps `text`.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The text itself, to be sent and for nothing else.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The secret request headers of a run, in the order in which they were given.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    headers: Vec<(String, Secret)>,
}

impl Secrets {
    /// Sends `Authorization: Bearer key`.
    pub fn set_bearer(&mut self, key: &str) {
        self.insert("Authorization", Secret(format!("Bearer {key}")));
    }

    /// Sends `Authorization: Basic` with `userinfo` (`user:password`).
    pub fn set_basic(&mut self, userinfo: &Secret) {
        self.insert("Authorization", Secret(format!("Basic {}", STANDARD.encode(userinfo.reveal()))));
    }

    /// Sends the header `name` with `value`.
    pub fn insert(&mut self, name: impl Into<String>, value: Secret) {
        self.headers.push((name.into(), value));
    }

    /// Whether a header `name` is among them, whatever its case.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name))
    }

    /// Names and values, to be sent and for nothing else.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.reveal()))
    }

    /// `text` with every secret in it replaced: what a server says about a refused key may repeat it.
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for bare in self.texts().filter(|bare| text_is_telling(bare)).collect::<Vec<_>>() {
            if text.contains(bare) {
                text = Cow::Owned(text.replace(bare, REDACTED));
            }
        }
        text
    }

    /// The texts that must not be written, as a server may repeat them: values without the scheme word (`Bearer`),
    /// and those of single cookies. Longer ones come before what they contain.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.headers.iter().flat_map(|(name, value)| {
            let value = value.reveal();
            let whole = match value.split_once(' ') {
                Some((_, rest)) if name.to_ascii_lowercase().contains("authorization") => rest,
                _ => value,
            };
            let crumbs = name.eq_ignore_ascii_case("cookie").then(|| value.split(';')).into_iter().flatten();
            let crumbs = crumbs.filter_map(|crumb| crumb.split_once('=')).map(|(_, text)| text.trim());
            std::iter::once(whole).chain(crumbs)
        })
    }

    /// Whether the value of a header `name` is to be kept secret.
    #[must_use]
    pub fn covers(name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        SECRET_PARTS.iter().any(|part| name.contains(part))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

/// Whether a text is long enough to be sought: shorter ones would take ordinary words with them.
fn text_is_telling(text: &str) -> bool {
    text.len() >= TELLING_BYTES
}

const TELLING_BYTES: usize = 4;

/// Stands where a secret was.
pub(crate) const REDACTED: &str = "[secret]";

/// A header is secret if its name contains one of these: `Authorization`, `Proxy-Authorization`, `X-Auth-Token`,
/// `Cookie`, `Api-Key`, `X-Goog-Api-Key`, `Ocp-Apim-Subscription-Key`, `X-Amz-Security-Token`, and their like. Better
/// one too many: it is still sent.
const SECRET_PARTS: [&str; 8] =
    ["auth", "cookie", "token", "secret", "password", "credential", "signature", "key"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing() {
        let mut secrets = Secrets::default();
        secrets.set_bearer("sk-very-secret");
        secrets.insert("X-Api-Key", Secret::new("hunter2"));
        let shown = format!("{secrets:?} {:?}", Secret::new("hunter2"));
        assert!(!shown.contains("sk-") && !shown.contains("hunter2") && !shown.contains("Bearer"), "{shown}");
    }

    #[test]
    fn basic_is_the_example_of_rfc_7617() {
        let mut secrets = Secrets::default();
        secrets.set_basic(&Secret::new("Aladdin:open sesame"));
        assert_eq!(
            secrets.headers().collect::<Vec<_>>(),
            [("Authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")]
        );
    }

    #[test]
    fn a_server_that_repeats_the_key_is_redacted() {
        let mut secrets = Secrets::default();
        secrets.set_bearer("sk-1234");
        assert_eq!(secrets.redact("incorrect API key: sk-1234."), "incorrect API key: [secret].");
        assert!(matches!(secrets.redact("model not found"), Cow::Borrowed(_)));
        secrets.insert("Cookie", Secret::new("id=3141592; theme=dark"));
        secrets.insert("X-Api-Key", Secret::new("two words"));
        assert_eq!(secrets.redact("no session 3141592"), "no session [secret]");
        assert_eq!(secrets.redact("got id=3141592; theme=dark"), "got [secret]");
        assert_eq!(secrets.redact("two words, not words"), "[secret], not words");
    }

    #[test]
    fn which_headers_are_secret() {
        for name in ["Authorization", "proxy-authorization", "Cookie", "X-API-Key", "api-key", "X-Auth-Token"]
        {
            assert!(Secrets::covers(name), "{name}");
        }
        for name in ["X-Request-Id", "Content-Type", "X-Session-ID", "User-Agent", "X-Tenant"] {
            assert!(!Secrets::covers(name), "{name}");
        }
    }
}
