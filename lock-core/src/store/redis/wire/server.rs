//! One server: its address, its settings, and the only place that opens connections to it.

use std::sync::Arc;

use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, ProtocolVersion, RedisError};

use super::connection::UNACKNOWLEDGED;
use super::login::{Login, with_credentials};
use super::send_error::{is_login_refused, not_connected};
use crate::base::credentials::Credentials;
use crate::base::error::Error;
use crate::base::machine::{self, RedisConnection};
use crate::store::Failure;

#[derive(Clone)]
pub(in crate::store::redis) struct Server {
    client: Client,
    /// Replaces the user and the password of the client's settings.
    login: Option<Arc<Login>>,
}

impl Server {
    /// A server with the connection settings that a lock needs.
    pub(in crate::store::redis) fn new(
        info: ConnectionInfo,
        login: Option<Arc<Login>>,
    ) -> Result<Self, Error> {
        #[cfg(feature = "tls-rustls")]
        if super::tls::is_spoken(&info) {
            super::tls::choose_cryptography();
        }
        let keepalive = TcpKeepalive::new()
            .with_time(UNACKNOWLEDGED)
            .with_interval(std::time::Duration::from_secs(1));
        let tcp = TcpSettings::default()
            .set_nodelay(true)
            .set_keepalive(keepalive);
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let tcp = tcp.set_user_timeout(UNACKNOWLEDGED);
        let settings = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP3);
        let info = info.set_tcp_settings(tcp).set_redis_settings(settings);
        let client = Client::open(info).map_err(|error| super::send_error::failure(error).error)?;
        Ok(Self { client, login })
    }

    pub(in crate::store::redis) fn login(&self) -> Option<&Login> {
        self.login.as_deref()
    }

    /// The address, without user and password.
    pub(in crate::store::redis) fn address(&self) -> String {
        self.info().addr().to_string()
    }

    pub(in crate::store::redis) fn info(&self) -> &ConnectionInfo {
        self.client.get_connection_info()
    }

    /// Connects. `attempt` makes the settings of one attempt, and what belongs to its connection.
    ///
    /// It sets no timer, so that it works in a runtime without any. The caller bounds it.
    pub(in crate::store::redis) async fn connect<T>(
        &self,
        attempt: impl Fn() -> (AsyncConnectionConfig, T),
    ) -> Result<(Arc<RedisConnection>, T), Failure> {
        let Some(login) = &self.login else {
            let opened = open(&self.client, attempt()).await;
            return opened.map_err(not_connected);
        };
        loop {
            let known = login.credentials().await?;
            match self.open_as(&known.credentials, &attempt).await {
                Ok(opened) => {
                    login.note(&opened.0, &known);
                    return Ok(opened);
                }
                Err(error) if is_login_refused(&error) => login.refused(&known)?,
                Err(error) => return Err(not_connected(error)),
            }
        }
    }

    async fn open_as<T>(
        &self,
        credentials: &Credentials,
        attempt: impl Fn() -> (AsyncConnectionConfig, T),
    ) -> Result<(Arc<RedisConnection>, T), RedisError> {
        let info = self.info().clone();
        let settings = with_credentials(info.redis_settings(), credentials);
        let client = Client::open(info.set_redis_settings(settings))?;
        open(&client, attempt()).await
    }
}

async fn open<T>(
    client: &Client,
    (config, with): (AsyncConnectionConfig, T),
) -> Result<(Arc<RedisConnection>, T), RedisError> {
    let opening = machine::connect(client, &config);
    Ok((Arc::new(opening.await?), with))
}
