//! Fencing tokens of leases whose end nobody has told the server, while its clock stands behind the
//! mark: it has gone back, and the end of a lease proves nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::{LockManager, Wait};
use lock_tests::{Proxy, RedisServer, needs, wait};

use super::pushes::queued;
use super::{its_turn, keys, long, manager, warm};

fn ttl() -> Duration {
    Duration::from_millis(1_200)
}

/// A server whose clock went back by a day.
fn behind() -> RedisServer {
    let server = RedisServer::start();
    goes_back(&server);
    server
}

/// As if the server's clock had been ahead by a day until now. Answers the highest token of that time.
pub(super) fn goes_back(server: &RedisServer) -> u64 {
    let now = server.cli(&["EVAL", "return redis.call('TIME')[1]", "0"]);
    let seconds: u64 = now.parse().expect("a number");
    let ahead = (seconds + 86_400) * 1_000_000;
    server.cli(&["SET", "lockkit:!f", &ahead.to_string()]);
    ahead
}

/// Tasks that pass a lock on among them until none of them gets it any more, and the tokens they
/// had, in their order.
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

/// The server hears nothing more of them: the last lease runs out.
async fn the_next_token_is_higher(server: &RedisServer, proxy: &Proxy, tokens: &Mutex<Vec<u64>>) {
    proxy.black_hole();
    wait::eventually("it has run out", async || server.get("lockkit:k").is_none()).await;
    let other = manager(&server.url()).await;
    let next = other.lock("k").ttl(long()).wait(long()).acquire().await;
    let next = next.expect("it ran out");
    let had = tokens.lock().expect("no panic").clone();
    let highest = had.iter().copied().max().expect("it was held");
    assert!(
        u64::from(next.fencing_token()) > highest,
        "{next:?} {highest}"
    );
    assert!(had.is_sorted_by(|one, next| one < next), "{had:?}");
}

/// So many tokens of one lease in a row.
fn in_a_row(tokens: &Mutex<Vec<u64>>) -> usize {
    let tokens = tokens.lock().expect("no panic");
    let ends = tokens
        .windows(2)
        .rev()
        .take_while(|pair| pair[1] == pair[0] + 1);
    ends.count()
}

#[tokio::test]
async fn a_lease_that_went_from_task_to_task_and_ran_out_is_followed_by_a_higher_token() {
    needs!(redis);
    // The last lease was asked for, or was given.
    for given in [false, true] {
        let server = behind();
        let proxy = Proxy::to(server.address());
        let locks = warm(&proxy, Duration::from_secs(5)).await;
        let owner = manager(&server.url()).await;
        let first = owner.lock("k").ttl(long()).acquire().await.expect("free");
        if !given {
            first.release().await.expect("held");
            let tokens = tasks(&locks, 4);
            wait::eventually("passed on", async || in_a_row(&tokens) > 2).await;
            the_next_token_is_higher(&server, &proxy, &tokens).await;
            continue;
        }
        let tokens = tasks(&locks, 4);
        wait::eventually("they wait", async || {
            server.cli(&["ZCARD", "lockkit:!q:{k}"]) == "1"
        })
        .await;
        first.release().await.expect("held");
        wait::eventually("passed on", async || in_a_row(&tokens) > 2).await;
        the_next_token_is_higher(&server, &proxy, &tokens).await;
    }
}

#[tokio::test]
async fn a_lease_that_stayed_in_its_process_and_ran_out_is_followed_by_a_higher_token() {
    needs!(redis);
    let server = behind();
    let proxy = Proxy::to(server.address());
    let locks = warm(&proxy, Duration::from_secs(5)).await;
    let tokens = tasks(&locks, 8);
    wait::eventually("beyond two counts", async || in_a_row(&tokens) > 64).await;
    the_next_token_is_higher(&server, &proxy, &tokens).await;
}

#[tokio::test]
async fn a_clock_that_is_right_is_not_overtaken_by_the_mark() {
    needs!(redis);
    let server = RedisServer::start();
    let locks = manager(&server.url()).await;
    let tokens = tasks(&locks, 8);
    wait::eventually("beyond two counts", async || in_a_row(&tokens) > 64).await;
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
    let server = RedisServer::start();
    let locks = manager(&server.url()).await;
    for _ in 0..2 {
        let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
        let used = guard.fencing_token().to_string();
        guard.release().await.expect("held");
        assert_eq!(server.get("lockkit:!f"), Some(used));
    }
}

#[tokio::test]
async fn a_release_that_gives_the_lock_away_leaves_the_mark_there_too() {
    needs!(redis);
    let server = RedisServer::start();
    let (owner, locks) = (manager(&server.url()).await, manager(&server.url()).await);
    for _ in 0..2 {
        let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
        let used = guard.fencing_token();
        let waiter = tokio::spawn(locks.lock("k").ttl(long()).wait(Wait::Forever).acquire());
        queued(&server, "k", "1").await;
        guard.release().await.expect("held");
        assert_eq!(server.get("lockkit:!f"), Some(used.to_string()));
        let next = its_turn(waiter).await;
        assert!(next.fencing_token() > used);
        next.release().await.expect("held");
    }
}
