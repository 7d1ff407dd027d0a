//! Statements that a test sends without the code under test.

use tokio::runtime::Builder;
use tokio_postgres::{NoTls, SimpleQueryMessage};

use super::SqlServer;

impl SqlServer {
    /// Runs statements on a connection of their own, and returns the rows of all. NULL is an empty text.
    ///
    /// # Panics
    ///
    /// When the server refuses one.
    #[track_caller]
    pub fn sql(&self, statements: &str) -> Vec<Vec<String>> {
        let rows = self.try_sql(statements);
        rows.unwrap_or_else(|error| panic!("{statements}: {error}"))
    }

    /// Returns the only value of the only row of [`sql`](Self::sql).
    ///
    /// # Panics
    ///
    /// As [`sql`](Self::sql), and when there are more values or none.
    #[track_caller]
    pub fn value(&self, statement: &str) -> String {
        let rows = self.sql(statement).concat();
        let one = <[String; 1]>::try_from(rows);
        let [value] = one.unwrap_or_else(|rows| panic!("{statement}: {rows:?}"));
        value
    }

    /// Runs statements as [`sql`](Self::sql) does.
    ///
    /// # Errors
    ///
    /// Has the text of the server, or of the connection.
    pub fn try_sql(&self, statements: &str) -> Result<Vec<Vec<String>>, String> {
        // The test's own runtime may stand still, and a runtime cannot wait inside another one.
        std::thread::scope(|scope| {
            let work = scope.spawn(|| {
                let runtime = Builder::new_current_thread().enable_all().build();
                runtime
                    .expect("a runtime")
                    .block_on(ask(&self.url, statements))
            });
            work.join().expect("no panic")
        })
    }
}

async fn ask(url: &str, statements: &str) -> Result<Vec<Vec<String>>, String> {
    let said = |error: tokio_postgres::Error| match error.as_db_error() {
        Some(refusal) => format!("{}: {}", refusal.code().code(), refusal.message()),
        None => error.to_string(),
    };
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.map_err(said)?;
    let running = tokio::spawn(connection);
    let messages = client.simple_query(statements).await.map_err(said)?;
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => {
            let values = (0..row.len()).map(|at| row.get(at).unwrap_or_default().to_owned());
            Some(values.collect())
        }
        _ => None,
    });
    let rows = rows.collect();
    drop(client);
    // The server has ended its side too, so a test that counts connections counts this one no more.
    let _ = running.await;
    Ok(rows)
}
