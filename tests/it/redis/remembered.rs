//! A process that is killed inside a run of an `#[idempotent]` function.

use lock_core::{Error, LockManager, idempotent};
use lock_tests::{needs, wait};
use tokio::time::timeout;

use super::processes::{parent, process};
use super::served;

#[idempotent(key = "charge", ttl = "1s", remember = "1h", manager = locks)]
async fn charge_and_hang(locks: &LockManager) -> Result<u64, Error> {
    println!("\ncharged");
    std::future::pending().await
}

#[idempotent(key = "charge", ttl = "1s", remember = "1h", wait = forever, manager = locks)]
async fn charge(locks: &LockManager) -> Result<u64, Error> {
    Ok(2)
}

#[idempotent(key = "charge", ttl = "1s", remember = "1h", manager = locks)]
async fn charged(locks: &LockManager) -> Result<u64, Error> {
    panic!("the effect is done")
}

#[tokio::test]
#[ignore = "a process that other tests start"]
async fn is_killed_after_its_effect() {
    let Some(locks) = parent().await else { return };
    let _ = charge_and_hang(&locks).await;
}

/// In Redis an effect happens at least once after a crash, as the attribute's page says. In the transaction of the effect it
/// happens exactly once.
#[tokio::test]
async fn a_call_whose_process_was_killed_between_effect_and_release_runs_again() {
    needs!(redis);
    let (server, locks) = served().await;
    let mut killed = process("redis::remembered::is_killed_after_its_effect", &server);
    killed.says("charged");
    killed.kill();
    let again = timeout(wait::PATIENCE, charge(&locks)).await;
    assert_eq!(again.expect("in time").expect("free"), 2);
    assert_eq!(charged(&locks).await.expect("kept"), 2);
}
