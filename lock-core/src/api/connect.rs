//! Makes a manager from the settings of a builder.

use std::sync::Arc;

use crate::api::builder::ManagerBuilder;
use crate::api::manager::LockManager;
use crate::api::url::redlock;
use crate::api::url::store_url::StoreUrl;
use crate::base::error::Error;
use crate::base::options::{MAX_TTL, checked_ttl};
use crate::base::settings::Settings;
use crate::engine::Engine;
#[cfg(feature = "postgres")]
use crate::store::{CellStore, PostgresCells};
use crate::store::{MOST_NODES, MemoryStore, QuorumNode};
#[cfg(feature = "redis")]
use crate::store::{RedisStore, ReplicaAcks};

/// The longest namespace on PostgreSQL. With the longest key, it has room in an entry of an index.
#[cfg(feature = "postgres")]
const LONGEST_NAMESPACE: usize = 1_000;

impl ManagerBuilder {
    /// Creates the manager, and waits until its store can be used.
    ///
    /// # Errors
    ///
    /// As [`LockManager::connect`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the attempt.
    pub async fn connect(self) -> Result<LockManager, Error> {
        let manager = self.connect_lazy()?;
        manager.ready().await?;
        Ok(manager)
    }

    /// Creates the manager without waiting for its store.
    ///
    /// # Errors
    ///
    /// `Invalid` for a URL that names no store, for a setting out of bounds, for `replica_acks` on a
    /// store without replicas, or for a named embedded store that has another clock. `Unavailable`
    /// if the operating system cannot start the manager's thread.
    pub fn connect_lazy(self) -> Result<LockManager, Error> {
        let Self {
            store_url,
            mut settings,
            ..
        } = self;
        let store_url = store_url?;
        #[cfg(any(feature = "tls-rustls", feature = "postgres-tls"))]
        let store_url = match &self.certificates {
            Some(certificates) => store_url.with_certificates(certificates)?,
            None => store_url,
        };
        settings.max_ttl = checked_ttl(settings.max_ttl, MAX_TTL)?;
        checked_ttl(settings.defaults.0, settings.max_ttl)?;
        if settings.operation_timeout.is_zero() {
            return Err(Error::invalid(
                "an operation_timeout of zero leaves no time for an answer",
            ));
        }
        #[cfg(any(feature = "redis", feature = "postgres"))]
        if settings.credentials.is_some() && store_url.has_embedded() {
            return Err(Error::invalid(
                "`credentials` are for servers, and the embedded store takes none",
            ));
        }
        if self.replica_acks > 0 && matches!(store_url, StoreUrl::Memory { .. }) {
            return Err(Error::invalid(
                "`replica_acks` needs a Redis server with replicas; the embedded store has none",
            ));
        }
        #[cfg(feature = "postgres")]
        if self.replica_acks > 0 && matches!(store_url, StoreUrl::Postgres(_)) {
            return Err(Error::invalid(
                "`replica_acks` is for Redis; on PostgreSQL set `synchronous_standby_names` of the server",
            ));
        }
        #[cfg(feature = "postgres")]
        if settings.namespace.len() > LONGEST_NAMESPACE
            && matches!(store_url, StoreUrl::Postgres(_))
        {
            return Err(Error::invalid(format!(
                "on PostgreSQL a namespace has {LONGEST_NAMESPACE} bytes at most, because an index has the key with it"
            )));
        }
        if self.replica_acks > 0 && matches!(store_url, StoreUrl::Quorum(_)) {
            return Err(Error::invalid(redlock::NO_REPLICAS));
        }
        let engine = match store_url {
            StoreUrl::Memory { name } => {
                let store = embedded(name, &settings)?;
                Engine::start(settings, Some(Arc::clone(&store)), |_, _| store)
            }
            #[cfg(feature = "redis")]
            StoreUrl::Redis(servers) => {
                let acks = ReplicaAcks::new(self.replica_acks, settings.operation_timeout);
                let store = RedisStore::new(*servers, &settings, acks)?;
                Engine::start(settings, None, |_, _| store)
            }
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(url) => {
                let (tls, of_store) = (url.tls()?, settings.clone());
                Engine::start(settings, None, |_, manager| {
                    let cells = PostgresCells::new(*url, tls, &of_store, manager);
                    Arc::new(CellStore::new(cells, manager))
                })
            }
            StoreUrl::Quorum(nodes) => {
                let nodes = quorum_nodes(nodes, &settings)?;
                Engine::start_quorum(nodes, settings)
            }
        };
        engine.map(LockManager::of)
    }
}

fn embedded(name: Option<String>, settings: &Settings) -> Result<Arc<MemoryStore>, Error> {
    match name {
        None => Ok(MemoryStore::new(settings.store_clock.clone())),
        Some(name) => MemoryStore::named(&name, &settings.store_clock),
    }
}

/// Opens a store for each node.
#[cfg_attr(
    not(feature = "redis"),
    allow(unused_variables, reason = "the embedded store does not use them")
)]
fn quorum_nodes(store_urls: Vec<StoreUrl>, settings: &Settings) -> Result<Vec<QuorumNode>, Error> {
    if store_urls.is_empty() || store_urls.len() > MOST_NODES {
        return Err(Error::invalid(format!(
            "a quorum has 1 to {MOST_NODES} nodes; use an odd number, such as 3 or 5"
        )));
    }
    let mut nodes: Vec<QuorumNode> = Vec::with_capacity(store_urls.len());
    for (index, store_url) in store_urls.into_iter().enumerate() {
        let node = match store_url {
            StoreUrl::Memory { name } => QuorumNode {
                // Each embedded store without a name is separate.
                shown: name.as_ref().map_or(format!("memory: ({index})"), |name| {
                    format!("memory:{name}")
                }),
                store: embedded(name, settings)?,
            },
            #[cfg(feature = "redis")]
            StoreUrl::Redis(servers) => QuorumNode {
                shown: servers.single_address().ok_or_else(|| {
                    Error::invalid(
                        "each node of a quorum is a single server, not a set of sentinels or a cluster",
                    )
                })?,
                store: RedisStore::new(*servers, settings, None)?,
            },
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(_) => {
                return Err(Error::invalid(
                    "a node of a quorum is a Redis server; for PostgreSQL write the URL of the database alone, with a \
                     synchronous standby",
                ));
            }
            StoreUrl::Quorum(_) => {
                return Err(Error::invalid(
                    "each node of a quorum is a single server, not another quorum",
                ));
            }
        };
        if nodes.iter().any(|other| other.shown == node.shown) {
            return Err(Error::invalid(format!(
                "the node {} is listed twice; a server has one vote, even if the databases differ",
                node.shown
            )));
        }
        nodes.push(node);
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ErrorKind;

    #[test]
    fn settings_out_of_bounds_are_refused() {
        let builder = LockManager::builder("memory:").default_ttl(Duration::ZERO);
        assert_eq!(
            builder.connect_lazy().unwrap_err().kind(),
            ErrorKind::Invalid
        );
        let builder = LockManager::builder("memory:").operation_timeout(Duration::ZERO);
        assert_eq!(
            builder.connect_lazy().unwrap_err().kind(),
            ErrorKind::Invalid
        );
    }

    #[cfg(feature = "postgres")]
    #[tokio::test]
    async fn a_namespace_that_no_index_of_postgresql_takes_is_refused() {
        let lazily = |url: &str, length| {
            let builder = LockManager::builder(url).namespace("n".repeat(length));
            builder.connect_lazy().map(drop)
        };
        let server = "postgres://locks@127.0.0.1:1/locks";
        let refused = lazily(server, 1_001).expect_err("too long");
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        lazily(server, 1_000).expect("short enough");
        lazily("memory:", 1_001).expect("no server");
    }
}
