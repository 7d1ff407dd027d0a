//! The client that an application already has.

use std::fmt;

use crate::store::Servers;

/// Holds the address and the settings of a client of the redis crate.
///
/// [`LockManager::from_client`](crate::LockManager::from_client) takes it. A client of redis 1 converts into it. The
/// type keeps the version of that crate out of the kit's interface.
pub struct RedisClient(pub(super) Servers);

impl fmt::Debug for RedisClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisClient").finish_non_exhaustive()
    }
}
