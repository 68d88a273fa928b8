//! TLS settings: which roots are trusted, who we say that we are, whether sessions are taken up again.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// Whom the client trusts and who it is. By default it trusts the system's roots, shows no certificate, and takes
/// sessions up again.
#[derive(Clone, Copy, Default)]
#[expect(missing_debug_implementations, reason = "it holds a private key")]
pub struct Trust<'a> {
    /// Accepts every certificate.
    pub insecure: bool,
    /// A PEM text whose certificates replace the system's roots.
    pub cacert: Option<&'a [u8]>,
    /// The client's certificate chain and its private key, both PEM.
    pub identity: Option<(&'a [u8], &'a [u8])>,
    /// Every handshake begins anew.
    pub no_resumption: bool,
}

impl Trust<'_> {
    /// Whoever proves to have the key of the certificate that it shows.
    #[must_use]
    pub fn anyone() -> Trust<'static> {
        Trust { insecure: true, ..Trust::default() }
    }
}

/// Why there is no configuration: what of [`Trust`] cannot be used, and what is wrong with it.
#[derive(Debug)]
pub enum TrustError {
    /// The roots.
    Roots(io::Error),
    /// The client's certificate.
    Certificate(String),
    /// There is no key in the text that should have it.
    NoKey,
    /// Its key.
    Key(String),
}

/// A client configuration that speaks HTTP/1.1.
///
/// # Errors
/// [`TrustError`]: no root certificate, no client certificate, or no key that belongs to it.
pub fn config(trust: &Trust<'_>) -> Result<Arc<ClientConfig>, TrustError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| TrustError::Roots(io::Error::other(error)))?;
    let builder = if trust.insecure {
        let verifier = Arc::new(AnyCertificate(provider));
        builder.dangerous().with_custom_certificate_verifier(verifier)
    } else {
        builder.with_root_certificates(roots(trust.cacert).map_err(TrustError::Roots)?)
    };
    let mut config = match trust.identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let (chain, key) = (chain(certificate)?, private_key(key)?);
            builder.with_client_auth_cert(chain, key).map_err(|error| match error {
                rustls::Error::InvalidCertificate(_) => TrustError::Certificate(error.to_string()),
                error => TrustError::Key(error.to_string()),
            })?
        }
    };
    if trust.no_resumption {
        config.resumption = Resumption::disabled();
    }
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let chain = chain.map_err(|error| TrustError::Certificate(format!("{NO_PEM}: {error}")))?;
    if chain.is_empty() {
        return Err(TrustError::Certificate("no certificate in PEM form in it".to_owned()));
    }
    Ok(chain)
}

fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, TrustError> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| {
        let is_encrypted = pem.windows(ENCRYPTED.len()).any(|window| window == ENCRYPTED);
        match (error, is_encrypted) {
            (_, true) => TrustError::Key(
                "the key is encrypted; give it in the clear, from a file that only you can read".to_owned(),
            ),
            (pem::Error::NoItemsFound, false) => TrustError::NoKey,
            (error, false) => TrustError::Key(format!("{NO_PEM}: {error}")),
        }
    })
}

const NO_PEM: &str = "not PEM as it should be";

/// In the first line of an encrypted PKCS#8 key, and in the second of an older one.
const ENCRYPTED: &[u8] = b"ENCRYPTED";

impl fmt::Display for TrustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrustError::Roots(error) => error.fmt(f),
            TrustError::NoKey => f.write_str("no private key in PEM form in it"),
            TrustError::Certificate(wrong) | TrustError::Key(wrong) => f.write_str(wrong),
        }
    }
}

impl std::error::Error for TrustError {}

fn roots(cacert: Option<&[u8]>) -> io::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(pem) = cacert else {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            return Err(io::Error::other("the system has no root certificates; name a file with --cacert"));
        }
        return Ok(roots);
    };
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| io::Error::other(format!("{NO_PEM}: {error}")))?;
        roots.add(certificate).map_err(|error| io::Error::other(format!("no root certificate: {error}")))?;
    }
    if roots.is_empty() {
        return Err(io::Error::other("no certificate in PEM form in it"));
    }
    Ok(roots)
}

/// `--insecure`: the peer proves that it has the key of its certificate, which may be anybody's.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
