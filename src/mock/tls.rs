//! The server's certificate and key, and what it asks of the client's.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

/// A certificate chain and its private key, both PEM.
#[derive(Clone)]
pub struct Identity {
    /// The chain, the server's own certificate first.
    pub certificate_pem: Vec<u8>,
    /// The key, PKCS#8, PKCS#1 or SEC1.
    pub key_pem: Vec<u8>,
}

impl Identity {
    /// A fresh certificate for these names and addresses that is signed by its own key.
    ///
    /// # Errors
    /// A name is none, or the system gives no random numbers.
    pub fn self_signed(names: &[String]) -> io::Result<Identity> {
        let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
        Ok(Identity {
            certificate_pem: made.cert.pem().into_bytes(),
            key_pem: made.signing_key.serialize_pem().into_bytes(),
        })
    }

    /// The settings of a server with this identity. It speaks HTTP/1.1 alone and says so (ALPN).
    pub(super) fn server_config(&self, asks: &Asks) -> io::Result<Arc<ServerConfig>> {
        let (chain, key) = self.parts()?;
        let provider = Arc::new(ring::default_provider());
        let versions: &[&SupportedProtocolVersion] = match asks.version {
            None => rustls::DEFAULT_VERSIONS,
            Some(Version::Tls12) => &[&rustls::version::TLS12],
            Some(Version::Tls13) => &[&rustls::version::TLS13],
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(io::Error::other)?;
        let builder = match &asks.client_ca {
            None => builder.with_no_client_auth(),
            Some(pem) => builder.with_client_cert_verifier(verifier(pem, provider)?),
        };
        let mut config =
            builder.with_single_cert(chain, key).map_err(|error| Unusable::Pair(error.to_string()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl Identity {
    fn parts(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Unusable> {
        let chain = certificates(&self.certificate_pem).map_err(Unusable::Certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key_pem).map_err(|error| {
            Unusable::Key(match error {
                pem::Error::NoItemsFound => "no private key in PEM form in it".to_owned(),
                error => error.to_string(),
            })
        })?;
        Ok((chain, key))
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|error| error.to_string())?;
    if all.is_empty() { Err("no certificate in PEM form in it".to_owned()) } else { Ok(all) }
}

/// Which of the texts that were given cannot be used, and why. [`Mock::start`](super::Mock::start) has it as the inner error
/// of one of invalid data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The server's certificate.
    Certificate(String),
    /// Its key.
    Key(String),
    /// The two together: the key is that of another certificate.
    Pair(String),
    /// The roots for certificates of clients.
    ClientCa(String),
}

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (what, why) = match self {
            Unusable::Certificate(why) => ("the certificate is", why),
            Unusable::Key(why) => ("the key is", why),
            Unusable::Pair(why) => ("certificate and key are", why),
            Unusable::ClientCa(why) => ("the root for clients is", why),
        };
        write!(f, "{what} not usable: {why}")
    }
}

impl std::error::Error for Unusable {}

impl From<Unusable> for io::Error {
    fn from(unusable: Unusable) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, unusable)
    }
}

/// What is asked of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asks {
    /// PEM of the roots that must vouch for the client's certificate; `None`: it shows none.
    pub client_ca: Option<Vec<u8>>,
    /// The only version that is spoken; `None`: both.
    pub version: Option<Version>,
    /// The answer to the client's first message is held back for so long.
    pub hold: Duration,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 1.2.
    Tls12,
    /// 1.3.
    Tls13,
}

fn verifier(pem: &[u8], provider: Arc<CryptoProvider>) -> io::Result<Arc<dyn ClientCertVerifier>> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem).map_err(Unusable::ClientCa)? {
        roots.add(certificate).map_err(|error| Unusable::ClientCa(error.to_string()))?;
    }
    let built = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    built.map_err(|error| Unusable::ClientCa(error.to_string()).into())
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the key.
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}
