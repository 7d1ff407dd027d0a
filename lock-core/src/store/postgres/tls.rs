//! TLS by rustls, where it is built in.

#[cfg(feature = "tls-rustls")]
pub(crate) use self::with_rustls::Tls;
#[cfg(feature = "tls-rustls")]
pub(super) use self::with_rustls::refusal;
#[cfg(not(feature = "tls-rustls"))]
pub(crate) use self::without::Tls;
#[cfg(not(feature = "tls-rustls"))]
pub(super) use self::without::refusal;

pub(super) const IS_BUILT_IN: bool = cfg!(feature = "tls-rustls");

#[cfg(not(feature = "tls-rustls"))]
mod without {
    pub(crate) type Tls = tokio_postgres::NoTls;

    pub(in crate::store::postgres) fn refusal(_: &tokio_postgres::Error) -> Option<&'static str> {
        None
    }
}

#[cfg(feature = "tls-rustls")]
mod with_rustls {
    use std::error::Error as _;
    use std::future::Future;
    use std::io;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll};

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use rustls::{ClientConfig, Error as TlsError, RootCertStore};
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
    use tokio_postgres::Socket;
    use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
    use tokio_rustls::TlsConnector;
    use tokio_rustls::client;

    use crate::base::certificates::TlsCertificates;
    use crate::base::error::Error;

    /// Makes TLS connections that check the certificate and the name of the server.
    #[derive(Clone)]
    pub(crate) struct Tls(Arc<ClientConfig>);

    impl Tls {
        /// # Errors
        ///
        /// `Invalid` for a certificate or a key that cannot be read.
        pub(in crate::store::postgres) fn new(
            certificates: Option<&TlsCertificates>,
        ) -> Result<Self, Error> {
            let unreadable = |_| {
                Error::invalid(
                    "a certificate or key of `tls_certificates` cannot be read; they are in PEM format",
                )
            };
            let mut roots = RootCertStore::empty();
            match certificates.and_then(|it| it.root.as_deref()) {
                Some(pem) => {
                    for root in CertificateDer::pem_slice_iter(pem) {
                        let added = roots.add(root.map_err(unreadable)?);
                        added
                            .map_err(|_| unreadable(rustls::pki_types::pem::Error::NoItemsFound))?;
                    }
                }
                None => {
                    // A certificate of the system that cannot be read is of no server here.
                    let system = rustls_native_certs::load_native_certs();
                    roots.add_parsable_certificates(system.certs);
                }
            }
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .map_err(|_| Error::invalid("TLS cannot be set up"))?
                .with_root_certificates(roots);
            let config = match certificates.and_then(|it| it.client.as_ref()) {
                None => config.with_no_client_auth(),
                Some((certificate, key)) => {
                    let chain: Result<Vec<_>, _> =
                        CertificateDer::pem_slice_iter(certificate).collect();
                    let key = PrivateKeyDer::from_pem_slice(key).map_err(unreadable)?;
                    let config = config.with_client_auth_cert(chain.map_err(unreadable)?, key);
                    config.map_err(|_| unreadable(rustls::pki_types::pem::Error::NoItemsFound))?
                }
            };
            Ok(Self(Arc::new(config)))
        }
    }

    impl MakeTlsConnect<Socket> for Tls {
        type Stream = Stream;
        type TlsConnect = Connect;
        type Error = io::Error;

        fn make_tls_connect(&mut self, domain: &str) -> io::Result<Connect> {
            let name = ServerName::try_from(domain.to_owned());
            let name = name.map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
            Ok(Connect(TlsConnector::from(Arc::clone(&self.0)), name))
        }
    }

    pub(crate) struct Connect(TlsConnector, ServerName<'static>);

    impl TlsConnect<Socket> for Connect {
        type Stream = Stream;
        type Error = io::Error;
        type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

        fn connect(self, socket: Socket) -> Self::Future {
            let connected = self.0.connect(self.1, socket);
            Box::pin(async move { Ok(Stream(Box::new(connected.await?))) })
        }
    }

    pub(crate) struct Stream(Box<client::TlsStream<Socket>>);

    impl TlsStream for Stream {
        fn channel_binding(&self) -> ChannelBinding {
            ChannelBinding::none()
        }
    }

    impl AsyncRead for Stream {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut *self.0).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for Stream {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut *self.0).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut *self.0).poll_flush(context)
        }

        fn poll_shutdown(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut *self.0).poll_shutdown(context)
        }
    }

    /// Advice about a connection that failed because of TLS; `None`: it failed otherwise.
    pub(in crate::store::postgres) fn refusal(
        error: &tokio_postgres::Error,
    ) -> Option<&'static str> {
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
}
