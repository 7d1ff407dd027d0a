//! TLS by rustls.

use std::error::Error as _;
use std::io;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, Error as TlsError, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::base::certificates::TlsCertificates;
use crate::base::error::Error;

/// Makes TLS connections that check the certificate and the name of the server.
///
/// # Errors
///
/// `Invalid` for a certificate or a key that cannot be read.
pub(super) fn connector(certificates: &TlsCertificates) -> Result<MakeRustlsConnect, Error> {
    let config = config(certificates).ok_or_else(|| {
        Error::invalid(
            "a certificate or key of `tls_certificates` cannot be read; they are in PEM format",
        )
    });
    config.map(MakeRustlsConnect::new)
}

fn config(certificates: &TlsCertificates) -> Option<ClientConfig> {
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

/// Advice about a connection that failed because of TLS; `None`: it failed otherwise.
pub(super) fn refusal(error: &tokio_postgres::Error) -> Option<&'static str> {
    let source = error.source()?.downcast_ref::<io::Error>()?;
    let tls = source.get_ref()?.downcast_ref::<TlsError>()?;
    Some(match tls {
        TlsError::InvalidCertificate(_) => {
            "the certificate of the PostgreSQL server is not trusted here, or is for another name; give the authority \
             that signed it to `ManagerBuilder::tls_certificates`, or write `sslmode=disable` where the network is safe"
        }
        _ => "the PostgreSQL server and this client found no common way of TLS",
    })
}
