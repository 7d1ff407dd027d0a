//! The certificates of TLS, as the application gives them.

use std::fmt;

/// Holds the certificates for TLS, in PEM format.
///
/// [`ManagerBuilder::tls_certificates`](crate::ManagerBuilder::tls_certificates) takes them. `Debug` shows none.
///
/// # Examples
///
/// ```
/// use lock_core::TlsCertificates;
///
/// # fn read(_: &str) -> Vec<u8> { Vec::new() }
/// let certificates = TlsCertificates::new()
///     .root_certificate(read("authority.pem"))
///     .client_certificate(read("shop.pem"), read("shop.key"));
/// # drop(certificates);
/// ```
#[derive(Clone, Default)]
#[must_use = "certificates do nothing until a builder takes them"]
pub struct TlsCertificates {
    pub(crate) root: Option<Vec<u8>>,
    /// The certificate and its key.
    pub(crate) client: Option<(Vec<u8>, Vec<u8>)>,
}

impl TlsCertificates {
    /// Creates a set without certificates.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the authorities that the client trusts *instead* of the system's.
    pub fn root_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.root = Some(pem.into());
        self
    }

    /// Sets the certificate of this client and its key.
    ///
    /// A Redis server requires them unless it is configured with `tls-auth-clients no`.
    pub fn client_certificate(
        mut self,
        certificate: impl Into<Vec<u8>>,
        key: impl Into<Vec<u8>>,
    ) -> Self {
        self.client = Some((certificate.into(), key.into()));
        self
    }
}

impl fmt::Debug for TlsCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsCertificates").finish_non_exhaustive()
    }
}
