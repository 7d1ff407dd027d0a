//! The only place in the public interface that knows a version of the redis crate.
//!
//! A later version gets a module of its own beside this one, so that an upgrade changes no signature.

use redis::Client;

use super::redis_client::RedisClient;
use crate::store::Servers;

/// Takes a client of redis 1, which is re-exported as `lock_core::redis1`.
impl From<Client> for RedisClient {
    fn from(client: Client) -> Self {
        Self(Servers::Single(client.get_connection_info().clone()))
    }
}
