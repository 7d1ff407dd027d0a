//! Tests a server that is killed and started again. It keeps what it has committed.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::{ErrorKind, LockManager, ReleaseMode, Wait};
use lock_tests::{SqlServer, needs, wait};
use tokio::time::timeout;

use super::table::row;
use super::{DEFAULT, drains, its_turn, long, manager, table, taken};

/// Returns a limit that is longer than a request may stay unanswered, with time for a busy machine.
fn bounded() -> Duration {
    Duration::from_secs(10)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_keeps_the_lock_which_is_renewed_there() {
    needs!(postgres);
    let mut server = SqlServer::postgres();
    let locks = manager(server.url()).await;
    let guard = taken(&locks, "k", Duration::from_secs(9)).await;
    server.kill();
    server.start_again();
    let table = table(&server);
    let ends = table.ends("k").expect("kept");
    wait::eventually("the lock is renewed again", async || {
        table.ends("k").expect("kept") > ends
    })
    .await;
    assert!(guard.is_valid());
    guard.release().await.expect("held");
    table.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_survive_a_restart() {
    needs!(postgres);
    let mut server = SqlServer::postgres();
    let (locks, other) = (manager(server.url()).await, manager(server.url()).await);
    let guard = taken(&locks, "k", long()).await;
    let waiter = tokio::spawn(other.lock("k").wait(Wait::Forever).acquire());
    table(&server).queued(1).await;
    server.kill();
    server.start_again();
    wait::eventually("both managers listen", async || {
        server.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == "2"
    })
    .await;
    guard.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_under_load_is_unavailable_and_never_busy() {
    needs!(postgres);
    let mut server = SqlServer::postgres();
    let locks = LockManager::connect(server.url()).await.expect("a manager");
    let over = Arc::new(AtomicBool::new(false));
    let (granted, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let released = Arc::new(Mutex::new(HashSet::new()));
    let tasks: Vec<_> = (0..32)
        .map(|task| {
            let (locks, over) = (locks.clone(), Arc::clone(&over));
            let (granted, refused) = (Arc::clone(&granted), Arc::clone(&refused));
            let released = Arc::clone(&released);
            tokio::spawn(async move {
                for round in 0.. {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    // The server keeps a lock whose grant was not answered until it is undone, so each key is a new one.
                    let key = format!("k{task}:{round}");
                    let request = locks.lock(&key).ttl(long());
                    let answer = timeout(bounded(), request.acquire()).await;
                    match answer.expect("bounded") {
                        Ok(guard) => {
                            granted.fetch_add(1, Ordering::Relaxed);
                            // The server may be gone. The lock is then released in the background.
                            if guard.release().await.is_ok() {
                                released.lock().expect("no panic").insert(key);
                            }
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
                            refused.fetch_add(1, Ordering::Relaxed);
                            tokio::time::sleep(Duration::from_millis(1)).await;
                        }
                    }
                }
            })
        })
        .collect();
    let before = granted.load(Ordering::Relaxed);
    let work = async || granted.load(Ordering::Relaxed) > before + 200;
    wait::eventually("there is load", work).await;
    server.kill();
    let before = refused.load(Ordering::Relaxed);
    let out = async || refused.load(Ordering::Relaxed) > before + 200;
    wait::eventually("every task has its error", out).await;
    server.start_again();
    let before = granted.load(Ordering::Relaxed);
    let back = async || granted.load(Ordering::Relaxed) > before;
    wait::eventually("locks are granted again", back).await;
    over.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.expect("no panic");
    }
    drains(&locks).await;
    // A release does not wait for the disk, so the server may have forgotten those of its last moments. Acquires that were not
    // answered, and releases that were sent again, leave nothing.
    let released = released.lock().expect("no panic");
    let left = table(&server).taken_keys();
    let left: Vec<_> = left.iter().filter(|key| !released.contains(*key)).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(table(&server).waiting(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_is_done_when_the_server_dies_keeps_its_result() {
    needs!(postgres);
    for release in [ReleaseMode::Await, ReleaseMode::Background] {
        let mut server = SqlServer::postgres();
        let locks = LockManager::connect(server.url()).await.expect("a manager");
        let request = locks.lock("k").ttl(long()).release(release);
        let body = async {
            server.kill();
            "done"
        };
        let outcome = timeout(bounded(), request.run(body)).await;
        assert_eq!(outcome.expect("bounded").expect("the body ran"), "done");
    }
}

/// A crash may lose the release of a permit, and the number of that write with it. SQL does here what such a crash does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permit_stays_whose_write_has_the_number_of_one_that_a_crash_has_lost() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let (locks, other) = (manager(server.url()).await, manager(server.url()).await);
    let permit = |of: &LockManager| of.lock("k").ttl(long()).permits(3);
    let [kept, released] = [
        permit(&locks).acquire().await,
        permit(&locks).acquire().await,
    ];
    let key = row(DEFAULT, "k");
    server.sql("CREATE TABLE before AS SELECT * FROM lockkit.cell");
    released.expect("free").release().await.expect("held");
    let number = server.value(&format!("SELECT rev FROM lockkit.cell WHERE key = {key}"));
    server.sql(&format!(
        "UPDATE lockkit.cell c SET rev = b.rev, at = b.at, ends = b.ends, doc = b.doc FROM before b \
         WHERE c.key = b.key AND c.key = {key}; SELECT setval('lockkit.revision', {number} - 1)"
    ));
    let theirs = permit(&other).acquire().await.expect("the third permit");
    let again = server.value(&format!("SELECT rev FROM lockkit.cell WHERE key = {key}"));
    assert_eq!(again, number, "the number is given again");
    kept.expect("free").release().await.expect("held");
    let _last = permit(&locks)
        .acquire()
        .await
        .expect("the one that was released");
    let more = permit(&locks).try_acquire().await.expect("an answer");
    assert!(more.is_none(), "four owners have three permits");
    theirs
        .release()
        .await
        .expect("its owner has it all the time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_an_earlier_time_gives_no_lower_token() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let locks = manager(server.url()).await;
    let token = async |locks: &LockManager| {
        let guard = taken(locks, "k", long()).await;
        let token = guard.fencing_token();
        guard.release().await.expect("held");
        token
    };
    let before = token(&locks).await;
    // As in a dump of the time before.
    server.sql("SELECT setval('lockkit.revision', 1)");
    assert!(token(&manager(server.url()).await).await > before);
}
