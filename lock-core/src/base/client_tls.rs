//! TLS by rustls with the certificates of the application.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::certificates::TlsCertificates;
use super::error::Error;

/// Returns settings of connections that check the certificate and the name of the server.
///
/// # Errors
///
/// `Invalid` for a certificate or a key that cannot be read.
pub(crate) fn config(certificates: &TlsCertificates) -> Result<ClientConfig, Error> {
    read(certificates).ok_or_else(|| {
        Error::invalid(
            "a certificate or key of `tls_certificates` cannot be read; they are in PEM format",
        )
    })
}

fn read(certificates: &TlsCertificates) -> Option<ClientConfig> {
    let chain = |pem: &[u8]| -> Option<Vec<_>> {
        let read: Result<_, _> = CertificateDer::pem_slice_iter(pem).collect();
        read.ok()
    };
    let mut roots = RootCertStore::empty();
    match &certificates.root {
        Some(pem) => chain(pem)?
            .into_iter()
            .try_for_each(|root| roots.add(root))
            .ok()?,
        None => {
            // A certificate of the system that cannot be read is of no server here.
            let system = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(system.certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .ok()?
        .with_root_certificates(roots);
    match &certificates.client {
        None => Some(config.with_no_client_auth()),
        Some((certificate, key)) => {
            let key = PrivateKeyDer::from_pem_slice(key).ok()?;
            config.with_client_auth_cert(chain(certificate)?, key).ok()
        }
    }
}
