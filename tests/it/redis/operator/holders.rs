//! Tests holders that are separate processes, which are killed or stopped.

use std::io::Write;
use std::time::Duration;

use lock_core::operator::{Forced, HolderProcess};
use lock_core::{LockManager, Wait};
use lock_tests::{needs, wait};
use tokio::time::timeout;

use super::super::processes::{SERVER, process};
use super::{
    LOCK, answers, clock, forced, holder, its_turn, long, mark, operator, seen, served, taken,
};

/// Holds the lock for a long ttl, and prints when it is lost.
#[tokio::test]
#[ignore = "a process that other tests start"]
async fn holds_long() {
    let Ok(url) = std::env::var(SERVER) else {
        return;
    };
    let locks = LockManager::builder(&url).label("a worker");
    let locks = locks.connect().await.expect("a manager");
    let guard = taken(&locks, "k", long()).await;
    println!("\nholding");
    guard.lost().await;
    println!("\nlost with {}", guard.fencing_token());
    std::io::stdout().flush().expect("a pipe");
    std::future::pending::<()>().await;
}

const HOLDS: &str = "redis::operator::holders::holds_long";

#[tokio::test]
async fn a_killed_holder_is_still_named_and_its_key_goes_to_the_first_waiter_at_once() {
    needs!(redis);
    let (server, locks) = served().await;
    let operator = operator(&server).await;
    let mut owner = process(HOLDS, &server);
    owner.says("holding");
    let waiter = tokio::spawn(locks.lock("k").ttl(long()).wait(Wait::Forever).acquire());
    wait::eventually("the waiter is seen", async || {
        seen(&operator).await.waiter_count() == 1
    })
    .await;
    let pid = owner.pid();
    owner.kill();
    wait::eventually("the server knows that it is gone", async || {
        holder(&operator).await.process() == HolderProcess::Gone
    })
    .await;
    let gone = holder(&operator).await;
    let identity = gone.identity().expect("its card outlives it");
    assert_eq!((identity.pid(), identity.label()), (pid, Some("a worker")));
    assert_eq!((gone.held_for(), gone.fencing_token()), (None, None));
    let answer = forced(&operator, &gone).await.expect("an answer");
    assert_eq!(answer, Forced::Freed);
    its_turn(waiter).await.release().await.expect("held");
}

#[tokio::test]
async fn a_stopped_holder_is_silent_and_its_token_is_below_that_of_the_next_owner() {
    needs!(redis);
    let (server, locks) = served().await;
    let operator = operator(&server).await;
    let owner = process(HOLDS, &server);
    owner.says("holding");
    answers(&operator).await;
    let token = holder(&operator)
        .await
        .fencing_token()
        .expect("it answered");
    owner.stop();
    let stopped = holder(&operator).await;
    assert_eq!(stopped.process(), HolderProcess::Silent);
    assert_eq!(stopped.identity().map(|it| it.pid()), Some(owner.pid()));
    assert_eq!(stopped.fencing_token(), None);
    let before = clock(&server);
    let answer = forced(&operator, &stopped).await.expect("an answer");
    assert_eq!(answer, Forced::Told, "its connection is still open");
    assert!(mark(&server) > before, "above each token that it may use");
    let request = locks.lock("k").ttl(long()).wait(long());
    let next = request.acquire().await.expect("after the grace");
    assert!(u64::from(next.fencing_token()) >= u64::from(token) + 32);
    owner.cont();
    owner.says(&format!("lost with {token}"));
    assert!(
        next.is_valid(),
        "the late commands of the holder find another token"
    );
    next.release().await.expect("still held");
}

#[tokio::test]
async fn a_holder_whose_connection_was_replaced_is_named_and_answers_and_is_told() {
    needs!(redis);
    let (server, locks) = served().await;
    let operator = operator(&server).await;
    let guard = taken(&locks, "k", long()).await;
    let token = server.get(LOCK).expect("held");
    let runtime = &token[..16];
    // The manager connects again by itself, and its runtime with the next request only. Its identity has ended.
    server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    server.cli(&["DEL", &format!("lockkit:!h:{runtime}")]);
    answers(&operator).await;
    let channel = format!("lockkit:!m:{runtime}");
    assert_eq!(server.cli(&["PUBSUB", "CHANNELS", &channel]), "");
    let found = holder(&operator).await;
    assert_eq!(
        found.identity().map(|it| it.pid()),
        Some(std::process::id())
    );
    let answer = forced(&operator, &found).await.expect("an answer");
    assert_eq!(answer, Forced::Told);
    let lost = timeout(Duration::from_secs(8), guard.lost()).await;
    lost.expect("long before the first renewal");
    let error = guard.release().await.expect_err("lost");
    assert!(error.to_string().contains("operator"), "{error}");
}
