//! Locks in plain SQL, without leases, queues and fencing tokens.

use std::sync::Arc;
use std::time::Instant;

use lock_tests::SqlServer;
use tokio::sync::Mutex;
use tokio_postgres::{Client, NoTls, Statement};

use super::CONNECTIONS;

/// The way with the fewest effects: two round trips.
pub(super) const FLOOR: &str = "two SELECT";

/// The rows that a lock of a row needs beforehand.
const KEYS: usize = 64;

/// A way to take and to free a key, on one connection or on several.
#[derive(Clone)]
pub(super) struct Raw {
    name: &'static str,
    connections: Vec<Arc<Mutex<Connection>>>,
    /// Whether a task has a connection for itself while it has a key.
    exclusive: bool,
}

struct Connection {
    client: Arc<Client>,
    /// The statements that take a key, and the one that frees it.
    takes: Vec<Statement>,
    frees: Statement,
}

/// Makes the tables.
pub(super) fn prepare(server: &SqlServer) {
    server.sql(
        "CREATE TABLE held (key bigint PRIMARY KEY); \
         CREATE TABLE shedlock (name bigint PRIMARY KEY, lock_until timestamp NOT NULL, \
         locked_at timestamp NOT NULL, locked_by text NOT NULL)",
    );
    server.sql(&format!(
        "INSERT INTO held SELECT generate_series(0, {KEYS})"
    ));
}

/// Each takes and frees the key `$1`.
const WAYS: [(&str, bool, &[&str], &str); 4] = [
    (FLOOR, false, &["SELECT $1::bigint"], "SELECT $1::bigint"),
    (
        "session advisory lock",
        true,
        &["SELECT pg_advisory_lock($1::bigint)"],
        "SELECT pg_advisory_unlock($1::bigint)",
    ),
    (
        "row FOR UPDATE in a transaction",
        true,
        &[
            "BEGIN",
            "SELECT key FROM held WHERE key = $1::bigint FOR UPDATE",
        ],
        "COMMIT",
    ),
    (
        "the statements of ShedLock 7.9",
        false,
        &[
            "INSERT INTO shedlock AS l (name, lock_until, locked_at, locked_by) \
           VALUES ($1::bigint, timezone('utc', CURRENT_TIMESTAMP) + interval '30 s', timezone('utc', CURRENT_TIMESTAMP), 'host') \
           ON CONFLICT (name) DO UPDATE SET lock_until = excluded.lock_until, locked_at = excluded.locked_at, locked_by = excluded.locked_by \
           WHERE l.lock_until <= timezone('utc', CURRENT_TIMESTAMP)",
        ],
        "UPDATE shedlock SET lock_until = timezone('utc', CURRENT_TIMESTAMP) WHERE name = $1::bigint AND locked_by = 'host'",
    ),
];

impl Raw {
    pub(super) async fn all(url: &str) -> Vec<Raw> {
        let mut all = Vec::new();
        for (name, exclusive, takes, frees) in WAYS {
            let mut connections = Vec::new();
            for _ in 0..CONNECTIONS {
                let connection = Connection::new(url, takes, frees).await;
                connections.push(Arc::new(Mutex::new(connection)));
            }
            all.push(Raw {
                name,
                connections,
                exclusive,
            });
        }
        all
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) async fn pairs(self, task: usize, end: Instant) -> u32 {
        let connection = &self.connections[task % CONNECTIONS];
        let key = i64::try_from(task).expect("a small number");
        let mut pairs = 0;
        while Instant::now() < end {
            let connection = connection.lock().await;
            if self.exclusive {
                connection.pair(key).await;
            } else {
                // Requests of several tasks follow each other on the connection without waiting for answers.
                let shared = connection.shared();
                drop(connection);
                shared.pair(key).await;
            }
            pairs += 1;
        }
        pairs
    }
}

impl Connection {
    async fn new(url: &str, takes: &[&str], frees: &str) -> Connection {
        let connected = tokio_postgres::connect(url, NoTls).await;
        let (client, connection) = connected.expect("a server");
        tokio::spawn(connection);
        let mut prepared = Vec::new();
        for take in takes {
            prepared.push(client.prepare(take).await.expect("a statement"));
        }
        Connection {
            frees: client.prepare(frees).await.expect("a statement"),
            takes: prepared,
            client: Arc::new(client),
        }
    }

    fn shared(&self) -> Connection {
        Connection {
            client: Arc::clone(&self.client),
            takes: self.takes.clone(),
            frees: self.frees.clone(),
        }
    }

    async fn pair(&self, key: i64) {
        for statement in self.takes.iter().chain([&self.frees]) {
            let asked = match statement.params().is_empty() {
                true => self.client.query(statement, &[]).await,
                false => self.client.query(statement, &[&key]).await,
            };
            asked.expect("an answer");
        }
    }
}
