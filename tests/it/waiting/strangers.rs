//! Tests clients of other libraries that poll the plain key, beside waiters in the queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lock_core::{Interop, LockManager, Wait};
use lock_tests::{RedisServer, needs, wait};

use super::{its_turn, long, manager, others_run, queued};

/// Sends `SET key value NX PX` as often as the server answers.
fn polling(
    server: &RedisServer,
    over: &Arc<AtomicBool>,
    tries: &Arc<AtomicU64>,
) -> std::thread::JoinHandle<u64> {
    let client = lock_core::redis1::Client::open(server.url()).expect("a URL");
    let (over, tries) = (Arc::clone(over), Arc::clone(tries));
    std::thread::spawn(move || {
        let mut connection = client.get_connection().expect("a connection");
        let mut taken = 0;
        while !over.load(Ordering::SeqCst) {
            let mut set = lock_core::redis1::cmd("SET");
            set.arg("lockkit:k")
                .arg("stranger")
                .arg("NX")
                .arg("PX")
                .arg(60_000);
            let answer: Option<String> = set.query(&mut connection).expect("an answer");
            taken += u64::from(answer.is_some());
            tries.fetch_add(1, Ordering::SeqCst);
        }
        taken
    })
}

#[tokio::test]
async fn a_foreign_client_that_polls_never_gets_in_between_two_queued_waiters() {
    needs!(redis);
    let server = RedisServer::start();
    let managers = [manager(&server.url()).await, manager(&server.url()).await];
    let request = |turn: usize| {
        let request = managers[turn % 2].lock("k").ttl(long());
        request.wait(Wait::Forever).acquire()
    };
    let mut guard = request(0).await.expect("free");
    let (over, tries) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let stranger = polling(&server, &over, &tries);
    for turn in 1..40 {
        let waiter = tokio::spawn(request(turn));
        queued(&server, "k", 1).await;
        let before = tries.load(Ordering::SeqCst);
        wait::eventually("the foreign client tries", async || {
            tries.load(Ordering::SeqCst) > before
        })
        .await;
        guard.release().await.expect("held");
        guard = its_turn(waiter).await;
    }
    over.store(true, Ordering::SeqCst);
    assert_eq!(stranger.join().expect("no panic"), 0);
    assert_eq!(
        server
            .try_cli(&["SET", "lockkit:k", "stranger", "NX"])
            .as_deref(),
        Ok("(nil)")
    );
    guard.release().await.expect("held");
    // No waiter is left, so the foreign client gets the lock like any other client.
    assert_eq!(server.cli(&["SET", "lockkit:k", "stranger", "NX"]), "OK");
}

/// The longest time for which one or two processes may keep out a foreign client that asks every 40
/// ms.
const LONGEST: Duration = Duration::from_secs(10);

/// Sends `SET NX` every 40 ms until it succeeds, and then a compare-and-delete.
fn takes_once(server: &RedisServer, had: &Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    let client = lock_core::redis1::Client::open(server.url()).expect("a URL");
    let had = Arc::clone(had);
    std::thread::spawn(move || {
        let mut connection = client.get_connection().expect("a connection");
        let set = "return redis.call('SET', 'lockkit:k', 'stranger', 'NX', 'PX', 60000)";
        let delete = "if redis.call('GET', 'lockkit:k') == 'stranger' then \
             return redis.call('DEL', 'lockkit:k') end";
        let mut eval = |script: &str| -> Option<lock_core::redis1::Value> {
            let mut eval = lock_core::redis1::cmd("EVAL");
            eval.arg(script).arg(0);
            let answer = eval.query(&mut connection).expect("an answer");
            (answer != lock_core::redis1::Value::Nil).then_some(answer)
        };
        let begun = Instant::now();
        let mut taken = false;
        while !taken && begun.elapsed() < LONGEST {
            std::thread::sleep(Duration::from_millis(40));
            taken = eval(set).is_some();
        }
        had.store(taken, Ordering::SeqCst);
        eval(delete);
    })
}

/// Passes the lock from waiter to waiter of these managers until a foreign client has had it. One of
/// the managers waits at each release.
async fn a_stranger_gets_in(server: &RedisServer, managers: &[LockManager]) {
    let request = |turn: usize| {
        let request = managers[turn % managers.len()].lock("k").ttl(long());
        request.wait(Wait::Forever).interop(Interop::On).acquire()
    };
    let had = Arc::new(AtomicBool::new(false));
    let mut guard = request(0).await.expect("free");
    let stranger = takes_once(server, &had);
    let mut turn = 0;
    while !stranger.is_finished() {
        turn += 1;
        let waiter = tokio::spawn(request(turn));
        if managers.len() > 1 {
            queued(server, "k", 1).await;
        } else {
            others_run().await;
        }
        guard.release().await.expect("held");
        guard = its_turn(waiter).await;
    }
    assert!(
        had.load(Ordering::SeqCst),
        "the foreign client got the lock not once in {turn} turns"
    );
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_foreign_client_that_polls_gets_in_when_two_processes_leave_gaps() {
    needs!(redis);
    let server = RedisServer::start();
    let managers = [manager(&server.url()).await, manager(&server.url()).await];
    a_stranger_gets_in(&server, &managers).await;
}

#[tokio::test]
async fn a_foreign_client_that_polls_gets_in_when_the_tasks_of_a_process_leave_gaps() {
    needs!(redis);
    let server = RedisServer::start();
    a_stranger_gets_in(&server, &[manager(&server.url()).await]).await;
}
