//! What a plan says of TLS, with what it only names: files and variables of the environment.

use std::sync::Arc;

use crate::cli::failure::Failure;
use crate::load::tls::{self, Trust, TrustError};
use crate::plan::{Target, Tls};

/// The TLS settings of all endpoints.
pub(super) fn config(target: &Target) -> Result<Arc<rustls::ClientConfig>, Failure> {
    let settings = &target.tls;
    let read =
        |option: &str, place: &Option<String>| place.as_deref().map(|place| pem(option, place)).transpose();
    let cacert = read("--cacert", &settings.cacert)?;
    let certificate = read("--cert", &settings.cert)?;
    let key = read("--key", &settings.key)?;
    let needs_tls = target.endpoints.iter().any(|endpoint| endpoint.url.starts_with("https"));
    let trust = Trust {
        // Without https nothing is verified, and a machine without root certificates may still load a plain server.
        insecure: settings.insecure || !needs_tls,
        cacert: cacert.as_deref(),
        // Both may be in one file.
        identity: certificate.as_deref().map(|chain| (chain, key.as_deref().unwrap_or(chain))),
        no_resumption: !settings.resumption,
    };
    tls::config(&trust).map_err(|error| Failure::bad(said(&error, settings)))
}

/// Those of a page of metrics, which shows no certificate of ours: it may be anybody's.
pub(in crate::cli) fn of_page(settings: &Tls, is_plain: bool) -> Result<Arc<rustls::ClientConfig>, Failure> {
    let cacert = settings.cacert.as_deref().map(|place| pem("--cacert", place)).transpose()?;
    let insecure = settings.insecure || is_plain;
    let trust = Trust { insecure, cacert: cacert.as_deref(), ..Trust::default() };
    tls::config(&trust).map_err(|error| Failure::bad(said(&error, settings)))
}

/// What is wrong, in which of the places that were given, and what is to be there.
fn said(error: &TrustError, settings: &Tls) -> String {
    let (option, place, wanted) = match error {
        TrustError::Roots(_) => ("--cacert", &settings.cacert, ROOTS),
        TrustError::Certificate(_) => ("--cert", &settings.cert, CERTIFICATE),
        TrustError::NoKey if settings.key.is_none() => {
            let cert = settings.cert.as_deref().unwrap_or_default();
            return format!(
                "--key is missing: --cert {cert} has no private key beside its certificate; give the key's PEM file, or env:NAME, \
                 with --key"
            );
        }
        TrustError::NoKey | TrustError::Key(_) if settings.key.is_some() => ("--key", &settings.key, KEY),
        // Both are in one file.
        TrustError::NoKey | TrustError::Key(_) => ("--cert", &settings.cert, KEY),
    };
    match place {
        Some(place) => format!("{option} {place}: {error}; {wanted}"),
        // The system's roots, which have their remedy.
        None => format!("{option}: {error}"),
    }
}

const ROOTS: &str = "give a PEM file whose parts begin with -----BEGIN CERTIFICATE-----, or env:NAME for a variable with that text";
const CERTIFICATE: &str = "give a PEM text that begins with -----BEGIN CERTIFICATE-----, the client's own first: a file, or env:NAME \
                           for a variable with that text";
const KEY: &str = "give the private key of the certificate in --cert, a PEM text that begins with -----BEGIN PRIVATE KEY-----: a file, \
                   or env:NAME for a variable with that text";

/// What is in a file, or in the variable of the environment that `env:NAME` names.
fn pem(option: &str, place: &str) -> Result<Vec<u8>, Failure> {
    if let Some(name) = place.strip_prefix(ENVIRONMENT) {
        return match std::env::var(name) {
            Ok(text) if !text.trim().is_empty() => Ok(text.into_bytes()),
            _ => Err(Failure::bad(format!(
                "{option} {place}: the environment has no text under that name; set it"
            ))),
        };
    }
    std::fs::read(place).map_err(|error| {
        Failure::bad(format!("{option} {place}: {error}; name a readable PEM file, or env:NAME"))
    })
}

const ENVIRONMENT: &str = "env:";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Endpoint;

    fn wrong(tls: Tls) -> String {
        let endpoints = vec![Endpoint { url: "https://h:443".to_owned() }];
        config(&Target { endpoints, tls, ..Target::default() }).expect_err("nothing usable").to_string()
    }

    #[test]
    fn what_cannot_be_read_or_used_is_named() {
        let insecure = || Tls { insecure: true, ..Tls::default() };
        let absent = wrong(Tls { cert: Some("env:TOKLOAD_NO_SUCH".to_owned()), ..insecure() });
        assert!(absent.contains("--cert env:TOKLOAD_NO_SUCH") && absent.contains("set it"), "{absent}");
        let absent = wrong(Tls { cacert: Some("/no/such/file".to_owned()), ..insecure() });
        assert!(absent.contains("--cacert /no/such/file"), "{absent}");
        for (place, remedy) in [("/no/such/file", "a readable PEM file"), ("env:TOKLOAD_NO_SUCH", "set it")] {
            let settings = Tls { cacert: Some(place.to_owned()), ..Tls::default() };
            for is_plain in [false, true] {
                let absent = of_page(&settings, is_plain).expect_err("nothing there").to_string();
                assert!(
                    absent.contains(&format!("--cacert {place}: ")) && absent.contains(remedy),
                    "{absent}"
                );
            }
        }
        let directory = std::env::temp_dir().join(format!("tokload-trust-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let made = crate::mock::Identity::self_signed(&["h".to_owned()]).unwrap();
        let certificate = file("cert", std::str::from_utf8(&made.certificate_pem).unwrap());
        let key = file("key", std::str::from_utf8(&made.key_pem).unwrap());
        let sealed = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        let sealed = file("sealed", sealed);
        let with = |cert: &str, key: Option<&str>| {
            wrong(Tls { cert: Some(cert.to_owned()), key: key.map(str::to_owned), ..insecure() })
        };
        let says = |said: &str, parts: &[&str]| {
            parts.iter().for_each(|part| assert!(said.contains(part), "{part}: {said}"));
        };
        says(&with(&key, None), &[&format!("--cert {key}: no certificate"), "BEGIN CERTIFICATE"]);
        says(
            &with(&certificate, None),
            &["--key is missing", &format!("--cert {certificate}"), "with --key"],
        );
        says(&with(&certificate, Some(&sealed)), &[&format!("--key {sealed}: the key is encrypted")]);
        let (text, torn) = (file("text", "hello"), file("torn", "-----BEGIN CERTIFICATE-----\n!!\n"));
        says(
            &with(&certificate, Some(&text)),
            &[&format!("--key {text}: no private key"), "BEGIN PRIVATE KEY"],
        );
        says(&with(&torn, Some(&key)), &[&format!("--cert {torn}: "), "env:NAME"]);
        for wrong_roots in [&text, &torn] {
            let said = wrong(Tls { cacert: Some(wrong_roots.clone()), ..Tls::default() });
            says(&said, &[&format!("--cacert {wrong_roots}: "), "BEGIN CERTIFICATE"]);
            let settings = Tls { cacert: Some(wrong_roots.clone()), ..Tls::default() };
            let said = of_page(&settings, false).expect_err("nothing usable").to_string();
            says(&said, &[&format!("--cacert {wrong_roots}: "), "BEGIN CERTIFICATE"]);
        }
        let other = crate::mock::Identity::self_signed(&["h".to_owned()]).unwrap();
        let other = file("other", std::str::from_utf8(&other.key_pem).unwrap());
        says(
            &with(&certificate, Some(&other)),
            &[&format!("--key {other}: "), "of the certificate in --cert"],
        );
        let both = format!(
            "{}{}",
            std::str::from_utf8(&made.certificate_pem).unwrap(),
            std::str::from_utf8(&made.key_pem).unwrap()
        );
        let tls = Tls { cert: Some(file("both", &both)), ..insecure() };
        let endpoints = vec![Endpoint { url: "https://h:443".to_owned() }];
        assert!(config(&Target { endpoints, tls, ..Target::default() }).is_ok());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
