//! A PostgreSQL of its own, by deadpool-postgres.

use std::net::SocketAddr;

use deadpool_postgres::{Config, Pool};
use lock_core::once::{self, Database};
use lock_tests::{Proxy, SqlServer};
use tokio_postgres::NoTls;

use super::suite::Fixture;

lock_core::once_deadpool!(
    /// The adapter under test.
    pub(crate) struct Postgres
);

/// A server with the table, and a table of effects.
pub(crate) struct Fresh {
    // The connections end before the server, which waits for them.
    db: Postgres,
    server: SqlServer,
}

impl Fresh {
    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns a pool behind a proxy.
    pub(crate) fn through(&self, proxy: &Proxy) -> Postgres {
        pool(&self.server.url_through(proxy))
    }

    /// Returns a pool of this user, who needs no password.
    pub(crate) fn of_user(&self, user: &str) -> Postgres {
        pool(&self.server.url().replace("locks@", &format!("{user}@")))
    }
}

impl Fixture for Fresh {
    type Db = Postgres;

    async fn start() -> Self {
        let server = SqlServer::postgres();
        let db = pool(server.url());
        once::create_table(&db).await.expect("a new table");
        let fresh = Self { db, server };
        fresh.sql("CREATE TABLE effects (name text UNIQUE)").await;
        fresh
    }

    fn db(&self) -> Postgres {
        self.db.clone()
    }

    fn other(&self) -> Postgres {
        pool(self.server.url())
    }

    async fn execute(
        connection: &mut <Postgres as Database>::Connection,
        sql: &'static str,
    ) -> Result<(), String> {
        let done = connection.batch_execute(sql).await;
        done.map_err(|error| error.to_string())
    }
}

fn pool(url: &str) -> Postgres {
    let mut config = Config::new();
    config.url = Some(url.to_owned());
    let pool: Pool = config.create_pool(None, NoTls).expect("a valid URL");
    Postgres(pool)
}
