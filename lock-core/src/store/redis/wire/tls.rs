//! TLS: the certificates to use, and the messages when a handshake fails.
//!
//! A TLS feature of the redis crate that the application turned on itself is used, but its errors are not
//! understood here.

use redis::{ConnectionAddr, ConnectionInfo, RedisError};

pub(in crate::store::redis) fn is_spoken(info: &ConnectionInfo) -> bool {
    matches!(info.addr(), ConnectionAddr::TcpTls { .. })
}

/// Advice about a connection that failed because of TLS; `None`: it failed otherwise.
pub(in crate::store::redis) fn refusal(error: &RedisError) -> Option<&'static str> {
    #[cfg(feature = "tls-rustls")]
    return with_rustls::refusal(error);
    #[cfg(not(feature = "tls-rustls"))]
    {
        let _ = error;
        None
    }
}

/// Returns whether a connection failed because of TLS.
pub(in crate::store::redis) fn is_refusal(failure: &crate::store::Failure) -> bool {
    let source = std::error::Error::source(&failure.error);
    let source = source.and_then(|source| source.downcast_ref::<RedisError>());
    source.is_some_and(|error| refusal(error).is_some())
}

#[cfg(feature = "tls-rustls")]
pub(in crate::store::redis) use with_rustls::{choose_cryptography, with_certificates};

#[cfg(feature = "tls-rustls")]
mod with_rustls {
    use std::error::Error as StdError;
    use std::io;
    use std::sync::Arc;

    use redis::{Client, ClientTlsConfig, ConnectionInfo, RedisError};
    use rustls::Error as TlsError;
    use rustls::crypto::{CryptoProvider, ring};

    use crate::base::certificates::TlsCertificates;
    use crate::base::error::Error;
    use crate::base::tls_refusal;

    /// Chooses one kind of cryptography. An application may have several built in by other libraries. Then
    /// rustls does not choose one, and panics when a connection is made.
    pub(in crate::store::redis) fn choose_cryptography() {
        if CryptoProvider::get_default().is_none() {
            // If other code has chosen one meanwhile, that one is used.
            let _ = ring::default_provider().install_default();
        }
    }

    /// The same server with these certificates.
    pub(in crate::store::redis) fn with_certificates(
        info: ConnectionInfo,
        certificates: &TlsCertificates,
    ) -> Result<ConnectionInfo, Error> {
        if !super::is_spoken(&info) {
            return Err(Error::invalid(
                "`tls_certificates` are for servers that are spoken to by TLS; write rediss://host:port, \
                 rediss-sentinel://…, rediss-cluster://… or redlocks://…",
            ));
        }
        choose_cryptography();
        let client_tls = certificates.client.clone();
        let certificates = redis::TlsCertificates {
            root_cert: certificates.root.clone(),
            client_tls: client_tls.map(|(client_cert, client_key)| ClientTlsConfig {
                client_cert,
                client_key,
            }),
        };
        match Client::build_with_tls(info, certificates) {
            Ok(client) => Ok(client.get_connection_info().clone()),
            // The error about a key is not passed on, because it might quote the key.
            Err(_) => Err(Error::invalid(
                "a certificate or key of `tls_certificates` cannot be read; they are in PEM format",
            )),
        }
    }

    pub(in crate::store::redis) fn refusal(error: &RedisError) -> Option<&'static str> {
        match tls_error(error)? {
            TlsError::InvalidMessage(_) => Some(
                "the server does not speak TLS at this port; write redis:// without the second `s`, or \
                 the port that it has for TLS",
            ),
            error => tls_refusal::of(error),
        }
    }

    /// It is in an error of the operating system's kind, inside one of the redis crate.
    fn tls_error(error: &RedisError) -> Option<&TlsError> {
        let source = error.source()?;
        let io = source.downcast_ref::<io::Error>().or_else(|| {
            let shared = source.downcast_ref::<Arc<dyn StdError + Send + Sync>>()?;
            shared.downcast_ref::<io::Error>()
        })?;
        io.get_ref()?.downcast_ref::<TlsError>()
    }

    #[cfg(test)]
    mod tests {
        use rustls::CertificateError;

        use super::*;

        #[test]
        fn an_error_of_tls_is_told_from_any_other() {
            let tls = TlsError::InvalidCertificate(CertificateError::UnknownIssuer);
            let error = RedisError::from(io::Error::new(io::ErrorKind::InvalidData, tls));
            assert!(refusal(&error).expect("TLS").contains("SSL_CERT_FILE"));
            let garbled = RedisError::from(io::Error::other(TlsError::DecryptError));
            assert!(
                refusal(&garbled).is_none(),
                "on the way, not at the beginning"
            );
            let reset = RedisError::from(io::Error::from(io::ErrorKind::ConnectionReset));
            assert!(refusal(&reset).is_none());
        }
    }
}
