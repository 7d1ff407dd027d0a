//! Bytes of a cell as the keys of a Redis server, which a simulation judges.

use super::codec::decode;
use crate::base::clock::ServerTime;
use crate::protocol::scripts::Server;

/// Reads the cell of `lock` that was written as the number `revision` at this time in microseconds. `None`: it is no cell.
#[must_use]
pub fn read(lock: &str, bytes: &[u8], revision: u64, at: u64) -> Option<Server> {
    let cell = decode(bytes, revision, ServerTime(at))?;
    Some(Server::of(lock, cell.document))
}
