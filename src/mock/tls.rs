//! The server's certificate and key.

use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

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
    pub(super) fn server_config(&self) -> io::Result<Arc<ServerConfig>> {
        let bad = |error: &dyn std::fmt::Display, what: &str| {
            io::Error::new(io::ErrorKind::InvalidData, format!("the {what} is not usable: {error}"))
        };
        let chain = CertificateDer::pem_slice_iter(&self.certificate_pem)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| bad(&error, "certificate"))?;
        let key = PrivateKeyDer::from_pem_slice(&self.key_pem).map_err(|error| bad(&error, "key"))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| bad(&error, "certificate"))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the key.
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}
