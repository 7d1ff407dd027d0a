//! Tests a full disk.

use lock_core::ErrorKind;
use lock_tests::{SqlServer, needs, wait};

use super::{is_refused, long, manager, once, table, taken};

/// A row that belongs to no lock, of the size of a lock's.
const ROW: &str = "'\\x00'::bytea || int8send(i), 1, 1, 9223372036854775807, NULL, decode(repeat('00', 50), 'hex')";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_full_disk_no_lock_is_granted_none_is_busy_and_releases_work() {
    needs!(postgres);
    let server = SqlServer::postgres_on_a_small_disk();
    let locks = manager(server.url()).await;
    let (first, second) = (
        taken(&locks, "first", long()).await,
        taken(&locks, "second", long()).await,
    );
    server.fills_its_disk("lockkit.cell", ROW);

    for attempt in 0..3 {
        let request = locks.lock(format!("new:{attempt}")).ttl(long());
        let error = request.try_acquire().await.expect_err("no room");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("full"), "{error}");
    }
    // A key that has a row needs no more room, and nothing is lost.
    assert!(first.is_valid() && second.is_valid());
    is_refused(&locks, "second").await;
    first.release().await.expect("held");
    once(&locks, "first").await;
    second.release().await.expect("held");
    table(&server).is_clean().await;

    server.sql("DELETE FROM lockkit.cell WHERE substr(key, 1, 1) = '\\x00'::bytea");
    server.sql("VACUUM lockkit.cell");
    wait::eventually("there is room again", async || {
        let acquired = locks.lock("new").ttl(long()).acquire().await;
        acquired.map(drop).is_ok()
    })
    .await;
}
