//! Tests fencing tokens when the server's clock is behind the high-water mark.
//!
//! The server was not told the end of the leases.
//!
//! The clock has gone back, so the end of a lease proves nothing about the tokens.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::{LockManager, Wait};
use lock_tests::{Proxy, RedisServer, needs, wait};

use super::{its_turn, keys, long, manager, served, served_both, waits, warm};

fn ttl() -> Duration {
    Duration::from_millis(1_200)
}

/// Starts a server whose clock went back by a day.
fn behind() -> RedisServer {
    let server = RedisServer::start();
    goes_back(&server);
    server
}

/// Sets the mark as if the server's clock had been ahead by a day.
///
/// Returns the highest token of that time.
pub(super) fn goes_back(server: &RedisServer) -> u64 {
    let now = server.cli(&["EVAL", "return redis.call('TIME')[1]", "0"]);
    let seconds: u64 = now.parse().expect("a number");
    let ahead = (seconds + 86_400) * 1_000_000;
    server.cli(&["SET", "lockkit:!f", &ahead.to_string()]);
    ahead
}

/// Starts tasks that pass a lock on until none of them gets it any more.
///
/// Returns their tokens in order.
fn tasks(locks: &LockManager, count: usize) -> Arc<Mutex<Vec<u64>>> {
    let tokens = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..count {
        let (locks, tokens) = (locks.clone(), Arc::clone(&tokens));
        tokio::spawn(async move {
            let request = || locks.lock("k").ttl(ttl()).wait(Wait::Forever);
            while let Ok(guard) = request().acquire().await {
                if guard.is_valid() {
                    let token = u64::from(guard.fencing_token());
                    tokens.lock().expect("no panic").push(token);
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
    tokens
}

/// Checks the next token after a lease that ran out.
///
/// The tasks are cut off from the server, so that their last lease runs out.
async fn the_next_token_is_higher(server: &RedisServer, proxy: &Proxy, tokens: &Mutex<Vec<u64>>) {
    proxy.black_hole();
    wait::eventually("the lease has run out", async || {
        server.get("lockkit:k").is_none()
    })
    .await;
    let other = manager(&server.url()).await;
    let next = other.lock("k").ttl(long()).wait(long()).acquire().await;
    let next = next.expect("the lease ran out");
    let had = tokens.lock().expect("no panic").clone();
    let highest = had.iter().copied().max().expect("the lock was held");
    assert!(
        u64::from(next.fencing_token()) > highest,
        "{next:?} {highest}"
    );
    assert!(had.is_sorted_by(|one, next| one < next), "{had:?}");
}

/// Returns the length of the longest run of consecutive tokens, which are of one lease.
fn in_a_row(tokens: &Mutex<Vec<u64>>) -> usize {
    let tokens = tokens.lock().expect("no panic");
    let ends = tokens
        .windows(2)
        .rev()
        .take_while(|pair| pair[1] == pair[0] + 1);
    ends.count()
}

#[tokio::test]
async fn a_lease_that_stayed_in_its_process_and_ran_out_is_followed_by_a_higher_token() {
    needs!(redis);
    let server = behind();
    let proxy = Proxy::to(server.address());
    let locks = warm(&proxy, Duration::from_secs(5)).await;
    let tokens = tasks(&locks, 8);
    wait::eventually("the lease is passed on more than 64 times", async || {
        in_a_row(&tokens) > 64
    })
    .await;
    the_next_token_is_higher(&server, &proxy, &tokens).await;
}

#[tokio::test]
async fn the_mark_does_not_overtake_a_clock_that_is_right() {
    needs!(redis);
    let (server, locks) = served().await;
    let tokens = tasks(&locks, 8);
    wait::eventually("the lease is passed on more than 64 times", async || {
        in_a_row(&tokens) > 64
    })
    .await;
    assert!(locks.drain(wait::PATIENCE).await.is_complete());
    assert!(keys(&server).is_empty());
    let mark: u64 = server
        .get("lockkit:!f")
        .expect("a mark")
        .parse()
        .expect("a number");
    let highest = tokens.lock().expect("no panic").iter().copied().max();
    assert!(Some(mark) <= highest, "{mark} {highest:?}");
}

#[tokio::test]
async fn a_release_leaves_the_mark_at_the_token_it_used() {
    needs!(redis);
    let (server, locks) = served().await;
    for _ in 0..2 {
        let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
        let used = guard.fencing_token().to_string();
        guard.release().await.expect("held");
        assert_eq!(server.get("lockkit:!f"), Some(used));
    }
}

#[tokio::test]
async fn a_hand_over_leaves_the_mark_at_the_token_it_used_too() {
    needs!(redis);
    let (server, owner, locks) = served_both().await;
    for _ in 0..2 {
        let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
        let used = guard.fencing_token();
        let waiter = waits(&server, &locks, "k", 1).await;
        guard.release().await.expect("held");
        assert_eq!(server.get("lockkit:!f"), Some(used.to_string()));
        let next = its_turn(waiter).await;
        assert!(next.fencing_token() > used);
        next.release().await.expect("held");
    }
}
