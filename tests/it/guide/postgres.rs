//! Checks the SQL of the page about PostgreSQL.

use std::time::Duration;

use lock_core::{ErrorKind, LockManager, POSTGRES_SCHEMA};
use lock_tests::{SqlServer, needs};

use super::{blocks, page};

const PAGE: &str = "lock-core/src/docs/guide/postgres.md";

#[test]
fn the_page_has_the_sql_of_the_kit() {
    let page = page(PAGE);
    assert_eq!(blocks(&page, "sql")[0].trim(), POSTGRES_SCHEMA.trim());
}

/// Each right of the page is needed, too.
#[tokio::test]
async fn a_user_with_the_rights_of_the_page_takes_locks_and_one_with_less_does_not() {
    needs!(postgres);
    let page = page(PAGE);
    let [schema, rights] = blocks(&page, "sql")[..] else {
        panic!("the page has two blocks of SQL");
    };
    let server = SqlServer::postgres();
    server.sql(schema);
    server.sql("CREATE ROLE app LOGIN");
    let rights: Vec<_> = rights.lines().collect();
    for missing in 0..=rights.len() {
        let mut granted = rights.clone();
        let without = (missing < rights.len()).then(|| granted.remove(missing));
        server.sql(&granted.join("\n"));
        let takes = async {
            let locks = LockManager::builder(&server.url_of("app"))
                // The machine is busy with other tests.
                .operation_timeout(Duration::from_secs(5))
                .connect()
                .await?;
            let guard = locks.lock("k").acquire().await?;
            guard.release().await
        };
        match (takes.await, without) {
            (Ok(()), None) => {}
            (Err(error), Some(_)) => assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}"),
            (other, without) => panic!("without {without:?}: {other:?}"),
        }
        server.sql(
            "REVOKE ALL ON ALL TABLES IN SCHEMA lockkit FROM app; \
             REVOKE ALL ON ALL SEQUENCES IN SCHEMA lockkit FROM app; REVOKE ALL ON SCHEMA lockkit FROM app",
        );
    }
}
