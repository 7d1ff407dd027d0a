//! Locks over several stores that hold, lose, refuse and hang on command.
#![cfg(feature = "test-util")]
#![allow(clippy::disallowed_methods, reason = "tests read the real clock")]

mod masks;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lock_core::test_util::TestStore;
use lock_core::{ErrorKind, LockGuard, LockManager, LockRequest, ManagerBuilder, Wait};

/// The nodes of one test, with a control for each.
struct Nodes {
    urls: Vec<String>,
    commands: Vec<TestStore>,
}

impl Nodes {
    fn new(count: usize) -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let test = LAST.fetch_add(1, Ordering::Relaxed);
        let urls: Vec<String> = (0..count)
            .map(|node| format!("memory:quorum-{test}-{node}"))
            .collect();
        let command = |url: &String| {
            let manager = LockManager::connect_lazy(url).expect("a store");
            manager.test_store().expect("an embedded store")
        };
        let commands = urls.iter().map(command).collect();
        Self { urls, commands }
    }

    fn builder(&self) -> ManagerBuilder {
        LockManager::quorum(&self.urls)
    }

    async fn manager(&self) -> LockManager {
        self.builder().connect().await.expect("a manager")
    }

    /// Returns the number of nodes that have a taken key.
    fn taken(&self) -> usize {
        self.commands.iter().filter(|node| node.taken() > 0).count()
    }
}

fn lock(locks: &LockManager) -> LockRequest {
    locks.lock("order:42").ttl(Duration::from_secs(60))
}

fn kind(result: Result<LockGuard, lock_core::Error>) -> ErrorKind {
    match result {
        Ok(_) => panic!("an error was expected"),
        Err(error) => error.kind(),
    }
}

async fn eventually(what: &str, mut state: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(20), async {
        while !state() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    waited
        .await
        .unwrap_or_else(|_| panic!("timeout while waiting until {what}"));
}

#[tokio::test]
async fn a_lock_over_several_servers_is_used_like_any_other() {
    let nodes = Nodes::new(5);
    let locks = nodes.manager().await;
    let guard = lock(&locks).acquire().await.expect("free");
    eventually("all have agreed", || guard.acks().granted() == 5).await;
    assert_eq!(
        (
            guard.acks().of(),
            guard.acks().quorum(),
            guard.acks().spare()
        ),
        (5, 3, 2)
    );
    let other = nodes.manager().await;
    assert_eq!(kind(lock(&other).acquire().await), ErrorKind::Busy);
    let waiter = tokio::spawn(lock(&other).wait(Wait::Forever).acquire());
    let token = guard.fencing_token();
    guard.release().await.expect("held");
    let next = waiter.await.expect("no panic").expect("free");
    assert!(next.fencing_token() > token);
    let handle = next.handle();
    next.release().await.expect("held");
    assert_eq!(handle.acks().granted(), 0);
    eventually("all have given it back", || nodes.taken() == 0).await;
}

#[tokio::test]
async fn nodes_that_hang_do_not_delay_a_majority() {
    let nodes = Nodes::new(5);
    // With an operation timeout of an hour, the test would hang if it waited for these nodes.
    let builder = nodes.builder().operation_timeout(Duration::from_secs(3600));
    let locks = builder.connect().await.expect("a manager");
    nodes.commands[1].hang();
    nodes.commands[4].hang();
    for _ in 0..3 {
        let guard = lock(&locks).acquire().await.expect("a majority is free");
        assert_eq!(guard.acks().granted(), 3);
        guard.release().await.expect("held");
    }
    // A late vote belongs to a lease that is over, so it is undone.
    nodes.commands[1].recover();
    nodes.commands[4].recover();
    eventually("what came late is undone", || nodes.taken() == 0).await;
}

#[tokio::test]
async fn a_late_vote_counts_while_the_lock_is_held() {
    let nodes = Nodes::new(3);
    let locks = nodes.manager().await;
    nodes.commands[2].hang();
    let guard = lock(&locks).acquire().await.expect("a majority is free");
    assert_eq!(guard.acks().granted(), 2);
    nodes.commands[2].recover();
    eventually("the third has agreed", || guard.acks().granted() == 3).await;
    guard.release().await.expect("held");
    eventually("all have given it back", || nodes.taken() == 0).await;
}

#[tokio::test]
async fn a_renewal_counts_the_nodes_that_still_agree() {
    let nodes = Nodes::new(5);
    let locks = nodes.manager().await;
    let request = locks.lock("order:42").ttl(Duration::from_millis(1200));
    let guard = request.acquire().await.expect("free");
    eventually("all have agreed", || guard.acks().granted() == 5).await;
    nodes.commands[3].seize("order:42", Duration::from_secs(60));
    eventually("a renewal has found out", || guard.acks().granted() == 4).await;
    assert!(guard.is_valid());
    assert_eq!(guard.acks().spare(), 1);
    for node in [1, 2] {
        nodes.commands[node].seize("order:42", Duration::from_secs(60));
    }
    guard.lost().await;
    assert_eq!(guard.acks().granted(), 0);
    // The votes of a lost lease on other nodes are released at once, and not when they expire.
    eventually("the rest is given back", || nodes.taken() == 3).await;
}

#[tokio::test]
async fn a_node_that_does_not_answer_a_renewal_does_not_count_until_it_answers() {
    let nodes = Nodes::new(5);
    let locks = nodes.manager().await;
    let request = locks.lock("order:42").ttl(Duration::from_millis(1200));
    let guard = request.acquire().await.expect("free");
    eventually("all have agreed", || guard.acks().granted() == 5).await;
    nodes.commands[0].fail(ErrorKind::Unavailable);
    nodes.commands[1].hang();
    eventually("a renewal has found out", || guard.acks().granted() == 3).await;
    assert_eq!(guard.acks().spare(), 0);
    nodes.commands[0].recover();
    nodes.commands[1].recover();
    eventually("they have it again", || guard.acks().granted() == 5).await;
    guard.release().await.expect("held");
    eventually("nothing is left", || nodes.taken() == 0).await;
}

#[tokio::test]
async fn nodes_that_lack_a_held_lock_get_it_again() {
    let nodes = Nodes::new(5);
    let locks = nodes.manager().await;
    nodes.commands[4].fail(ErrorKind::Unavailable);
    let request = locks.lock("order:42").ttl(Duration::from_millis(1200));
    let guard = request.acquire().await.expect("a majority is free");
    eventually("all that are up have agreed", || {
        guard.acks().granted() == 4
    })
    .await;
    nodes.commands[4].recover();
    eventually("all have agreed", || guard.acks().granted() == 5).await;
    for node in [0, 1] {
        nodes.commands[node].lose("order:42");
    }
    let taken = || nodes.commands.iter().all(|node| node.taken() == 1);
    eventually("they have taken it again", taken).await;
    // The nodes that have the lock now are worth as much as the nodes that had it before.
    for node in [2, 3] {
        nodes.commands[node].seize("order:42", Duration::from_secs(60));
    }
    eventually("a renewal has found out", || guard.acks().granted() == 3).await;
    let (held_for, ttl) = (guard.held_for(), Duration::from_millis(1200));
    eventually("they were renewed", || guard.held_for() > held_for + ttl).await;
    assert!(guard.is_valid());
    guard.release().await.expect("held");
    eventually("nothing is left of it", || nodes.taken() == 2).await;
}

#[tokio::test]
async fn a_release_reports_a_lock_that_a_majority_has_lost() {
    let nodes = Nodes::new(3);
    let locks = nodes.manager().await;
    let guard = lock(&locks).acquire().await.expect("free");
    eventually("all have agreed", || guard.acks().granted() == 3).await;
    nodes.commands[0].lose("order:42");
    nodes.commands[1].lose("order:42");
    let error = guard.release().await.expect_err("lost");
    assert_eq!(error.kind(), ErrorKind::Lost);
    eventually("nothing is left", || nodes.taken() == 0).await;
}

#[tokio::test]
async fn a_lock_on_a_dead_node_is_released_when_the_node_returns() {
    let nodes = Nodes::new(3);
    let locks = nodes.manager().await;
    let guard = lock(&locks).acquire().await.expect("free");
    eventually("all have agreed", || guard.acks().granted() == 3).await;
    nodes.commands[0].fail(ErrorKind::Unavailable);
    guard
        .release()
        .await
        .expect("a majority has released the lock");
    assert_eq!(nodes.commands[0].taken(), 1);
    nodes.commands[0].recover();
    eventually("all have given it back", || nodes.taken() == 0).await;
}

#[tokio::test]
async fn a_ttl_or_cooldown_above_max_ttl_is_invalid() {
    let nodes = Nodes::new(3);
    let builder = nodes.builder().max_ttl(Duration::from_secs(45));
    let locks = builder.connect().await.expect("a manager");
    assert_eq!(kind(lock(&locks).acquire().await), ErrorKind::Invalid);
    let cooling = locks.lock("order:42").cooldown(Duration::from_secs(46));
    assert_eq!(kind(cooling.acquire().await), ErrorKind::Invalid);
    let longest = locks.lock("order:42").ttl(Duration::from_secs(45));
    let guard = longest.acquire().await.expect("free");
    guard.cooldown(Duration::from_secs(3600));
    guard.release().await.expect("held");
    let cooling = locks.lock("order:42").acquire().await.expect_err("cooling");
    assert!(
        cooling.retry_after() <= Some(Duration::from_secs(45)),
        "{cooling:?}"
    );
    let short = nodes.builder().max_ttl(Duration::from_secs(10));
    let error = short.connect_lazy().expect_err("the default ttl is 30 s");
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[test]
fn a_node_has_one_vote() {
    let twice = LockManager::quorum(["memory:a", "memory:b", "memory:a"]);
    assert_eq!(
        twice.connect_lazy().expect_err("twice").kind(),
        ErrorKind::Invalid
    );
    let none = LockManager::quorum([""; 0]).connect_lazy();
    assert_eq!(none.expect_err("none").kind(), ErrorKind::Invalid);
    let many = LockManager::quorum(["memory:"; 16]).connect_lazy();
    assert_eq!(many.expect_err("too many").kind(), ErrorKind::Invalid);
    let nested = LockManager::quorum(["memory:a", "redlock://a,b,c"]).connect_lazy();
    assert_eq!(nested.expect_err("nested").kind(), ErrorKind::Invalid);
    assert!(LockManager::quorum(["memory:"; 15]).connect_lazy().is_ok());
}

#[tokio::test]
async fn without_a_majority_connecting_fails() {
    let nodes = Nodes::new(3);
    nodes.commands[0].fail(ErrorKind::Unavailable);
    assert!(nodes.builder().connect().await.is_ok());
    nodes.commands[1].fail(ErrorKind::Unavailable);
    let error = nodes.builder().connect().await.expect_err("one of three");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    nodes.commands[0].fail(ErrorKind::Misconfigured);
    nodes.commands[1].fail(ErrorKind::Misconfigured);
    let error = nodes.builder().connect().await.expect_err("one of three");
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
}
