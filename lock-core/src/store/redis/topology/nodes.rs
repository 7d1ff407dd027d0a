//! The servers of a topology, numbered as they become known.

use std::sync::{Arc, Mutex};

use redis::{ConnectionAddr, ConnectionInfo};

use crate::base::error::Error;
use crate::base::sync::lock;
use crate::store::redis::wire::login::Login;
use crate::store::redis::wire::server::Server;

/// The number of a server, which tells its connections from those of others. An address always has the same
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::store::redis) struct ServerId(pub(in crate::store::redis) u32);

impl ServerId {
    pub(in crate::store::redis) const ONLY: ServerId = ServerId(0);
}

/// The addresses of these servers.
pub(super) fn addresses(servers: impl Iterator<Item = Server>) -> String {
    let addresses: Vec<_> = servers.map(|server| server.address()).collect();
    addresses.join(",")
}

pub(super) struct ServerList {
    /// User, password, database and TLS of all servers.
    settings: ConnectionInfo,
    login: Option<Arc<Login>>,
    /// With their hosts and ports.
    known: Mutex<Vec<((String, u16), Server)>>,
}

impl ServerList {
    /// Servers that share the settings, whatever their addresses.
    pub(super) fn new(settings: ConnectionInfo, login: Option<Arc<Login>>) -> Self {
        Self {
            settings,
            login,
            known: Mutex::default(),
        }
    }

    /// The server at an address.
    pub(super) fn at(&self, host: &str, port: u16) -> Result<ServerId, Error> {
        let mut known = lock(&self.known);
        let found = known
            .iter()
            .position(|((known_host, known_port), _)| known_host == host && *known_port == port);
        let index = match found {
            Some(index) => index,
            None => {
                let info = at(&self.settings, host, port);
                let server = Server::new(info, self.login.clone())?;
                known.push(((host.to_owned(), port), server));
                known.len() - 1
            }
        };
        Ok(ServerId(u32::try_from(index).unwrap_or(u32::MAX)))
    }

    pub(super) fn login(&self) -> Option<&Login> {
        self.login.as_deref()
    }

    // These two panic for a node of another topology.

    pub(super) fn server(&self, node: ServerId) -> Server {
        lock(&self.known)[node.0 as usize].1.clone()
    }

    pub(super) fn host(&self, node: ServerId) -> String {
        lock(&self.known)[node.0 as usize].0.0.clone()
    }
}

/// The same settings for another address.
fn at(settings: &ConnectionInfo, host: &str, port: u16) -> ConnectionInfo {
    let address = match settings.addr().clone() {
        ConnectionAddr::TcpTls {
            insecure,
            tls_params,
            ..
        } => ConnectionAddr::TcpTls {
            host: host.to_owned(),
            port,
            insecure,
            tls_params,
        },
        _ => ConnectionAddr::Tcp(host.to_owned(), port),
    };
    settings.clone().set_addr(address)
}
