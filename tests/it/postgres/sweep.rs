//! Tests the deletion of rows that are over.

use lock_tests::{SqlServer, needs, wait};

use super::{long, manager, once, taken};

#[tokio::test]
async fn rows_are_deleted_a_minute_after_their_end_and_no_others() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let locks = manager(server.url()).await;
    let guard = taken(&locks, "held", long()).await;
    once(&locks, "freed").await;
    // The held one was written long ago, and so was the old one.
    server.sql(
        "UPDATE lockkit.cell SET at = at - 120000000; \
         INSERT INTO lockkit.cell SELECT '\\x6f6c64'::bytea, rev, at, 0, NULL, doc FROM lockkit.cell LIMIT 1; \
         UPDATE lockkit.cell SET at = at + 120000000 WHERE key LIKE '%freed%'::bytea",
    );
    let keys = || {
        server
            .sql("SELECT convert_from(key, 'UTF8') FROM lockkit.cell ORDER BY key")
            .concat()
    };
    // Each manager looks at all rows as soon as it is connected, and the first one may do so only now.
    let _other = manager(server.url()).await;
    wait::eventually("the old row is deleted", async || {
        !keys().contains(&"old".to_owned())
    })
    .await;
    let kept = keys();
    for key in ["lockkit:held", "lockkit:freed"] {
        assert!(kept.contains(&key.to_owned()), "{kept:?}");
    }
    server.sql("UPDATE lockkit.cell SET at = at + 120000000 WHERE key LIKE '%held%'::bytea");
    guard.release().await.expect("held");
}
