//! Tests a manager that drains while its tasks wait. A ticket left behind would get the lock, and block all
//! others for a grant.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lock_core::redis1::cmd;
use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};

use super::{
    drains, long, manager, millis, others_run, process, queued, refused, served_both,
    server_of_parent,
};

#[tokio::test]
async fn a_manager_that_has_drained_is_in_no_queue() {
    needs!(redis);
    let (server, owner, locks) = served_both().await;
    let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
    let waiting = || locks.lock("k").ttl(long()).wait(Wait::Forever).acquire();
    let waiters = [tokio::spawn(waiting()), tokio::spawn(waiting())];
    queued(&server, "k", 1).await;
    drains(&locks).await;
    assert_eq!(server.cli(&["ZCARD", "lockkit:!q:{k}"]), "0");
    guard.release().await.expect("held");
    assert_eq!(server.get("lockkit:k"), None, "the lock goes to no waiter");
    for waiter in waiters {
        assert_eq!(refused(waiter).await, ErrorKind::Unavailable);
    }
}

#[tokio::test]
async fn a_drain_waits_for_requests_under_way_and_undoes_them() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let locks = manager(&proxy.redis_url()).await;
    super::all_is_answered(&locks).await;
    proxy.set(Direction::Requests, Flow::Hold);
    let asking = tokio::spawn(locks.lock("k").ttl(long()).acquire());
    others_run().await;
    let left = locks.drain(millis(20)).await;
    assert!(left.held() == 0 && left.releasing() > 0, "{left:?}");
    proxy.pass();
    drains(&locks).await;
    assert_eq!(server.get("lockkit:k"), None);
    assert_eq!(refused(asking).await, ErrorKind::Unavailable);
}

const FOLDER: &str = "LOCK_TESTS_DRAINED";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process that other tests start"]
async fn drains_while_its_tasks_wait() {
    let (Some(url), Ok(folder)) = (server_of_parent(), std::env::var(FOLDER)) else {
        return;
    };
    let locks = LockManager::connect(&url).await.expect("a manager");
    for _ in 0..8 {
        let locks = locks.clone();
        tokio::spawn(async move {
            // The loop ends when the manager is drained.
            while let Ok(guard) = locks.lock("k").wait(Wait::Forever).acquire().await {
                drop(guard.release().await);
            }
        });
    }
    println!("\ngoing");
    let over = Path::new(&folder).join("over");
    while !over.exists() {
        tokio::time::sleep(millis(1)).await;
    }
    let left = locks.drain(wait::PATIENCE).await;
    println!("\ndrained: {}", left.is_complete());
    // The process exits at once, with all its connections open.
    std::process::exit(0);
}

/// Locks as other libraries do: `SET NX PX`, and a script that compares and deletes.
fn stranger(server: &RedisServer, over: &Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    let client = lock_core::redis1::Client::open(server.url()).expect("a URL");
    let over = Arc::clone(over);
    let delete =
        "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end";
    std::thread::spawn(move || {
        let mut connection = client.get_connection().expect("a connection");
        while !over.load(Ordering::SeqCst) {
            let mut set = cmd("SET");
            set.arg("lockkit:k")
                .arg("stranger")
                .arg("NX")
                .arg("PX")
                .arg(60_000);
            let set: Option<String> = set.query(&mut connection).expect("an answer");
            if set.is_some() {
                let mut eval = cmd("EVAL");
                eval.arg(delete).arg(1).arg("lockkit:k").arg("stranger");
                eval.exec(&mut connection).expect("an answer");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    })
}

#[tokio::test]
async fn processes_that_drain_at_once_leave_the_key_free() {
    needs!(redis);
    let server = RedisServer::start();
    for round in 0..5 {
        let folder = tempfile::tempdir().expect("a folder");
        let environment = [(FOLDER, folder.path().to_str().expect("a name"))];
        let role = "drained::drains_while_its_tasks_wait";
        let mut processes = [(); 3].map(|()| process(role, &server, &environment));
        let over = Arc::new(AtomicBool::new(false));
        let stranger = stranger(&server, &over);
        for process in &processes {
            process.says("going");
        }
        tokio::time::sleep(millis(50)).await;
        fs::write(folder.path().join("over"), "").expect("a folder");
        for process in &mut processes {
            let ended = process.wait(wait::PATIENCE);
            assert!(ended.is_some_and(|it| it.success()), "{}", process.output());
            process.says("drained: true");
        }
        over.store(true, Ordering::SeqCst);
        stranger.join().expect("no panic");
        assert_eq!(server.get("lockkit:k"), None, "in round {round}");
        assert_eq!(server.cli(&["ZCARD", "lockkit:!q:{k}"]), "0");
    }
}
