//! Makes certificates, and options for servers that use them.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use tempfile::TempDir;

use crate::folder;

/// A certificate authority, which clients trust only if a test says so.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate and its key, in PEM format.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// The certificate.
    pub pem: String,
    /// Its key.
    pub key: String,
}

impl Authority {
    /// Makes an authority with a key of its own.
    ///
    /// # Panics
    ///
    /// When no certificate can be made, which is not expected.
    pub fn new() -> Authority {
        // Two authorities of one name would be confused, and the signatures of one would look
        // forged.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("authority {}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Authority {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// Returns the authority's own certificate, for the peers that are to trust it.
    pub fn pem(&self) -> Vec<u8> {
        self.pem.clone().into_bytes()
    }

    /// Makes a certificate for a host, or for an address such as `"127.0.0.1"`.
    pub fn certificate(&self, host: &str) -> Certificate {
        self.sign(params(host))
    }

    /// Makes a certificate that expired long ago.
    pub fn expired_certificate(&self, host: &str) -> Certificate {
        let mut params = params(host);
        params.not_before = date_time_ymd(2001, 1, 1);
        params.not_after = date_time_ymd(2002, 1, 1);
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> Certificate {
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.issuer);
        Certificate {
            pem: signed.expect("a certificate").pem(),
            key: key.serialize_pem(),
        }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Authority::new()
    }
}

fn params(host: &str) -> CertificateParams {
    CertificateParams::new([host.to_owned()]).expect("a name")
}

/// The TLS settings of a server.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The folder of the files.
    folder: Arc<TempDir>,
    asks_clients: bool,
}

impl Tls {
    /// Shows this certificate, and trusts peers whose certificate this authority has signed.
    ///
    /// # Panics
    ///
    /// When the files cannot be written.
    pub fn of(authority: &Authority, certificate: &Certificate) -> Tls {
        let folder = folder::temporary();
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).expect("a folder to write in");
        };
        write("authority.pem", &authority.pem);
        write("certificate.pem", &certificate.pem);
        write("key.pem", &certificate.key);
        Tls {
            folder: Arc::new(folder),
            asks_clients: false,
        }
    }

    /// Admits only clients that show a certificate too.
    #[must_use]
    pub fn asking_clients(self) -> Self {
        Tls {
            asks_clients: true,
            ..self
        }
    }

    pub(super) fn arguments(&self) -> Vec<String> {
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        let asks = if self.asks_clients { "yes" } else { "no" };
        let arguments = [
            ("--tls-ca-cert-file", file("authority.pem")),
            ("--tls-cert-file", file("certificate.pem")),
            ("--tls-key-file", file("key.pem")),
            ("--tls-auth-clients", asks.to_owned()),
            ("--tls-replication", "yes".to_owned()),
            ("--tls-cluster", "yes".to_owned()),
        ];
        let arguments = arguments.into_iter();
        arguments
            .flat_map(|(name, value)| [name.to_owned(), value])
            .collect()
    }
}
