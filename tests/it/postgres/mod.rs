//! Tests the effects that only a real PostgreSQL has on a lock: its commits, its standbys, its rights, its notifications, and
//! what a user's own transaction knows of a lock.

mod audit;
mod batches;
mod check;
mod copies;
mod covered;
mod credentials;
mod differential;
mod disk;
mod failover;
mod frozen;
mod hand_over;
mod isolation;
mod keys;
mod layer;
mod pooler;
mod restarts;
mod rights;
mod standby;
mod stopped;
mod sweep;
mod table;
mod tls;
mod trips;
mod waiting;

pub(crate) use table::Table;

use lock_tests::{Proxy, SqlServer};
use tokio_postgres::{Client, NoTls};

use crate::steps::{drains, is_refused, its_turn, kind, long, manager, once, taken};

/// The namespace of managers that set none.
const DEFAULT: &str = "lockkit:";

/// Returns what a test sees of the locks of a server.
fn table(server: &SqlServer) -> Table<'_> {
    Table::new(server, DEFAULT)
}

/// Returns a URL whose statements go to the server, and whose listening connection goes through the proxy.
fn listening_through(server: &SqlServer, proxy: &Proxy) -> String {
    format!("{}?listen={}", server.url(), server.url_through(proxy))
}

/// Connects the user of a server.
async fn client(server: &SqlServer) -> Client {
    let connected = tokio_postgres::connect(server.url(), NoTls).await;
    let (client, connection) = connected.expect("a server");
    tokio::spawn(connection);
    client
}

/// Returns a number from the environment, or its default.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |number| number.parse().expect("a number"))
}
