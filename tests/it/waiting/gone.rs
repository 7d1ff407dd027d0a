//! Tests waiters that have gone.
//!
//! Their wait was over, they were given the lock and did not react, or they are dead. The waiters
//! behind them are served, and no key of them stays.

use lock_core::test_util::ManualClock;
use lock_core::{ErrorKind, LockManager, LockRequest, Wait};
use lock_tests::{RedisServer, needs, wait};

use super::{
    Waiter, its_turn, keys, long, manager, millis, on, others_run, process, queued, refused,
    served, served_both, server_of_parent,
};

fn request(locks: &LockManager) -> LockRequest {
    locks.lock("k").ttl(long()).wait(Wait::Forever)
}

async fn waits(server: &RedisServer, request: LockRequest, count: usize) -> Waiter {
    let waiter = tokio::spawn(request.acquire());
    queued(server, "k", count).await;
    waiter
}

async fn nothing_is_left(server: &RedisServer) {
    wait::eventually("no key is left", async || keys(server).is_empty()).await;
}

#[tokio::test]
async fn a_first_waiter_whose_wait_ends_leaves_the_queue_to_the_next() {
    needs!(redis);
    let server = RedisServer::start();
    let clock = ManualClock::new();
    let (owner, impatient, patient) = (
        manager(&server.url()).await,
        on(&clock, &server.url()).await,
        manager(&server.url()).await,
    );
    let guard = request(&owner).acquire().await.expect("free");
    let head = waits(&server, request(&impatient).wait(millis(500)), 1).await;
    let next = waits(&server, request(&patient), 2).await;
    clock.advance(millis(500));
    assert_eq!(refused(head).await, ErrorKind::Busy);
    queued(&server, "k", 1).await;
    guard.release().await.expect("held");
    its_turn(next).await.release().await.expect("held");
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn the_next_waiter_of_a_process_waits_on_when_the_first_one_gives_up() {
    needs!(redis);
    let server = RedisServer::start();
    let clock = ManualClock::new();
    let (owner, locks) = (
        manager(&server.url()).await,
        on(&clock, &server.url()).await,
    );
    let guard = request(&owner).acquire().await.expect("free");
    let first = waits(&server, request(&locks).wait(millis(500)), 1).await;
    let next = tokio::spawn(request(&locks).acquire());
    others_run().await;
    let place = server.cli(&["ZRANGE", "lockkit:!q:{k}", "0", "-1"]);
    clock.advance(millis(500));
    assert_eq!(refused(first).await, ErrorKind::Busy);
    wait::eventually("only the next waiter is queued", async || {
        let now = server.cli(&["ZRANGE", "lockkit:!q:{k}", "0", "-1"]);
        now.lines().count() == 1 && now != place
    })
    .await;
    guard.release().await.expect("held");
    its_turn(next).await.release().await.expect("held");
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn a_waiter_is_given_the_lock_for_at_most_its_short_ttl() {
    needs!(redis);
    let (server, owner, locks) = served_both().await;
    let guard = request(&owner).acquire().await.expect("free");
    let ttl = millis(1_200);
    let waiter = waits(&server, request(&locks).ttl(ttl), 1).await;
    guard.release().await.expect("held");
    // A dead waiter would keep the lock for this time.
    let given = server.time_to_live("lockkit:k");
    assert!(given.is_some_and(|given| given <= ttl), "{given:?}");
    its_turn(waiter).await.release().await.expect("held");
}

#[tokio::test]
async fn a_queue_expires_a_minute_after_its_lock() {
    needs!(redis);
    let (server, owner, locks) = served_both().await;
    let guard = request(&owner).acquire().await.expect("free");
    let waiter = waits(&server, request(&locks), 1).await;
    let queue = server
        .time_to_live("lockkit:!q:{k}")
        .expect("the queue expires");
    let lock = server.time_to_live("lockkit:k").expect("the lock expires");
    assert!(queue > lock && queue <= long() + long(), "{queue:?}");
    guard.release().await.expect("held");
    its_turn(waiter).await.release().await.expect("held");
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn waits_for_its_turn() {
    let Some(url) = server_of_parent() else {
        return;
    };
    let locks = manager(&url).await;
    let guard = request(&locks).acquire().await.expect("its turn");
    println!("\nits turn: {}", guard.is_valid());
    guard.release().await.expect("held");
    println!("\ndone");
}

#[tokio::test]
async fn a_process_that_was_stopped_at_its_hand_over_waits_again_when_it_continues() {
    needs!(redis);
    let (server, owner, locks) = served_both().await;
    let guard = request(&owner).acquire().await.expect("free");
    let stopped = process("gone::waits_for_its_turn", &server, &[]);
    queued(&server, "k", 1).await;
    let next = waits(&server, request(&locks), 2).await;
    stopped.stop();
    guard.release().await.expect("held");
    // Its grant ends, and the next waiter gets the lock.
    let guard = its_turn(next).await;
    stopped.cont();
    queued(&server, "k", 1).await;
    assert!(
        !stopped.output().contains("its turn"),
        "another owner has the lock"
    );
    assert!(guard.is_valid());
    guard.release().await.expect("held");
    stopped.says("its turn: true");
    stopped.says("done");
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn after_a_queue_of_dead_processes_the_lock_is_free_and_fencing_tokens_still_rise() {
    needs!(redis);
    let (server, owner) = served().await;
    let guard = request(&owner).acquire().await.expect("free");
    let before = guard.fencing_token();
    let connected = || server.info("clients").remove("connected_clients");
    let alone = connected();
    let mut dead = Vec::new();
    for count in 1..=3 {
        dead.push(process("gone::waits_for_its_turn", &server, &[]));
        queued(&server, "k", count).await;
    }
    dead.iter_mut().for_each(lock_tests::ChildProcess::kill);
    // The server knows that the processes are gone when it has closed their connections.
    wait::eventually("the killed processes are disconnected", async || {
        connected() == alone
    })
    .await;
    guard.release().await.expect("held");
    assert_eq!(keys(&server), [""; 0]);
    let guard = owner.lock("k").acquire().await.expect("free at once");
    assert!(guard.fencing_token() > before);
    guard.release().await.expect("held");
}
