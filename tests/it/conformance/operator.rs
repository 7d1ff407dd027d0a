//! Tests what an operator sees of locks, on every store.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_core::operator::{HolderProcess, Inspection, KeyState, Operator};
use lock_core::test_util::ManualClock;
use lock_core::{LockManager, Wait};
use lock_tests::wait;

use super::{Fixture, long};

pub(super) const NAME: &str = "ops@example";

/// Returns an operator whose manager has met all parts of the store.
pub(super) async fn operator(store: &Fixture) -> Operator {
    store.manager().await.operator(NAME)
}

pub(super) async fn seen(operator: &Operator, key: &str) -> Inspection {
    let look = sent(operator.inspect(key));
    look.await.expect("the store answers")
}

/// Requires that a future can be sent to another thread.
fn sent<F: Future + Send>(future: F) -> F {
    future
}

pub(super) async fn a_holder_is_seen_with_its_process_its_label_its_time_and_its_fencing_token(
    store: &Fixture,
) {
    let locks = store.manager_with(|it| it.label("check out, 7")).await;
    let operator = operator(store).await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    store.is_everywhere().await;
    // A process on a busy machine may take longer to answer than an operator waits.
    wait::eventually("the holder answers", async || {
        let seen = seen(&operator, "k").await;
        seen.holders()[0].process() == HolderProcess::Holds
    })
    .await;
    let seen = seen(&operator, "k").await;
    assert_eq!((seen.key(), seen.state()), ("k", KeyState::Held));
    assert_eq!((seen.holder_count(), seen.waiter_count()), (1, 0));
    let [holder] = seen.holders() else {
        panic!("{seen:?}");
    };
    assert!(!holder.is_share());
    let left = holder.remaining().expect("a lease ends");
    assert!(left <= longest(long()) && left > long() / 3, "{left:?}");
    let identity = holder.identity().expect("named");
    assert_eq!(identity.pid(), std::process::id());
    assert_eq!(identity.label(), Some("check out, 7"));
    assert!(!identity.host().is_empty());
    if holder.process() == HolderProcess::Holds {
        assert_eq!(holder.fencing_token(), Some(guard.fencing_token()));
        assert!(holder.held_for().expect("it answers") <= long());
    }
    let shown = format!("{seen:?} {holder:?} {operator:?}");
    assert!(!shown.contains("\"k\"") && !shown.contains(&holder.id()));
    guard.release().await.expect("held");
}

/// The longest time until the store frees a key that was just taken for so long. A store that counts microseconds keeps it to the
/// end of the last millisecond.
fn longest(taken: Duration) -> Duration {
    taken + Duration::from_millis(1)
}

pub(super) async fn a_key_without_a_holder_says_why_it_is_taken(store: &Fixture) {
    let locks = store.manager().await;
    let operator = operator(store).await;
    let free = seen(&operator, "k").await;
    assert_eq!((free.state(), free.remaining()), (KeyState::Free, None));
    for (cools, state) in [(true, KeyState::CoolingDown), (false, KeyState::Recorded)] {
        let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
        match cools {
            true => guard.handle().cooldown(long() / 2),
            false => guard.remember("7", long() / 2).expect("in bounds"),
        }
        guard.release().await.expect("held");
        let taken = seen(&operator, "k").await;
        assert_eq!((taken.state(), taken.holders().len()), (state, 0));
        let left = taken.remaining().expect("it ends");
        assert!(left <= longest(long() / 2) && left > long() / 4, "{left:?}");
        locks.forget("k").await.expect("no fault");
    }
    store.is_left_clean().await;
}

pub(super) async fn the_processes_that_wait_are_counted_and_named(store: &Fixture) {
    let locks = store.manager().await;
    let other = store.manager_with(|it| it.label("patient")).await;
    let operator = operator(store).await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    let waiting = other.lock("k").ttl(long()).wait(Wait::Forever).acquire();
    let waiter = tokio::spawn(waiting);
    wait::eventually("the waiter is seen", async || {
        seen(&operator, "k").await.waiter_count() == 1
    })
    .await;
    let seen = seen(&operator, "k").await;
    let [waits] = seen.waiters() else {
        panic!("{seen:?}");
    };
    assert_eq!(waits.identity().and_then(|it| it.label()), Some("patient"));
    assert!(waits.waiting_for() < long());
    guard.release().await.expect("held");
    let guard = waiter.await.expect("no panic").expect("its turn");
    guard.release().await.expect("held");
}

pub(super) async fn an_anonymous_manager_is_seen_without_a_name(store: &Fixture) {
    let locks = store.manager_with(|it| it.anonymous()).await;
    let operator = operator(store).await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    wait::eventually("the holder answers", async || {
        let seen = seen(&operator, "k").await;
        seen.holders()[0].fencing_token() == Some(guard.fencing_token())
    })
    .await;
    assert_eq!(seen(&operator, "k").await.holders()[0].identity(), None);
    guard.release().await.expect("held");
}

pub(super) async fn a_process_that_has_given_up_its_lock_says_so(store: &Fixture) {
    let clock = ManualClock::new();
    let locks = store.manager_by(&clock).await;
    let operator = operator(store).await;
    let guard = locks.lock("k").ttl(long()).acquire().await.expect("free");
    store.is_everywhere().await;
    clock.advance(long() * 2);
    guard.lost().await;
    wait::eventually("the process says that it has no such lock", async || {
        let seen = seen(&operator, "k").await;
        seen.holders().first().map(|it| it.process()) == Some(HolderProcess::Ended)
    })
    .await;
    let seen = seen(&operator, "k").await;
    assert_eq!(seen.holders()[0].fencing_token(), None);
    drop(guard);
}

pub(super) async fn a_process_that_has_crashed_is_gone(store: &Fixture) {
    let operator = operator(store).await;
    if !store.has_a_dead_holder("k") {
        return;
    }
    let seen = seen(&operator, "k").await;
    let process = seen.holders()[0].process();
    let wanted = match store.counts_receivers() {
        true => HolderProcess::Gone,
        false => HolderProcess::Silent,
    };
    assert_eq!(process, wanted);
    assert_eq!(seen.holders()[0].identity(), None);
    store.delete("k");
}

pub(super) async fn a_client_of_another_library_is_seen(store: &Fixture) {
    let operator = operator(store).await;
    store.overwrite("k");
    let seen = seen(&operator, "k").await;
    let [holder] = seen.holders() else {
        panic!("{seen:?}");
    };
    assert_eq!(holder.process(), HolderProcess::Foreign);
    assert_eq!((holder.identity(), holder.fencing_token()), (None, None));
    assert!(holder.remaining() <= Some(Duration::from_secs(60)));
}

/// Returns the keys of a list, and how many pages it had.
async fn listed(operator: &Operator, pattern: &str) -> (Vec<String>, usize) {
    let (mut keys, mut pages) = (Vec::new(), 0);
    let mut list = operator.list(pattern);
    // A service lists locks in tasks that move from thread to thread.
    while let Some(page) = sent(list.next_page()).await.expect("the store answers") {
        pages += 1;
        assert!(page.len() <= 100);
        keys.extend(page.iter().map(|seen| seen.key().to_owned()));
    }
    (keys, pages)
}

async fn held(locks: &LockManager, keys: &[&str]) -> Vec<lock_core::LockGuard> {
    let mut guards = Vec::new();
    for key in keys {
        let request = locks.lock(*key).ttl(long()).acquire();
        guards.push(request.await.expect("free"));
    }
    guards
}

pub(super) async fn a_list_names_the_locks_of_a_pattern_and_no_others(store: &Fixture) {
    let locks = store.manager().await;
    let operator = operator(store).await;
    let keys = ["a:1", "a:?", "a:[1]", "a:*", "ab", "b:a:1", "a:\\"];
    let guards = held(&locks, &keys).await;
    for (pattern, wanted) in [
        ("a:*", &["a:*", "a:1", "a:?", "a:[1]", "a:\\"][..]),
        ("a:?", &["a:?"]),
        ("a:[1]", &["a:[1]"]),
        ("*:1", &["a:1", "b:a:1"]),
        ("a:\\", &["a:\\"]),
        ("ab", &["ab"]),
        ("A*", &[]),
        ("", &[]),
    ] {
        let (mut keys, _) = listed(&operator, pattern).await;
        keys.sort();
        assert_eq!(keys, wanted, "{pattern}");
    }
    for guard in guards {
        guard.release().await.expect("held");
    }
}

pub(super) async fn a_list_names_no_lock_twice_and_comes_to_its_end(store: &Fixture) {
    let locks = store.manager().await;
    let operator = operator(store).await;
    let names: Vec<_> = (0..150).map(|number| format!("many:{number}")).collect();
    let keys: Vec<_> = names.iter().map(String::as_str).collect();
    let guards = held(&locks, &keys).await;
    let (keys, pages) = listed(&operator, "*").await;
    assert!(pages > 1);
    assert_eq!(keys.len(), 150);
    let different: BTreeSet<_> = keys.iter().collect();
    assert_eq!(different, names.iter().collect());
    for guard in guards {
        guard.release().await.expect("held");
    }
}
