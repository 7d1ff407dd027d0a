//! Operations of two processes on the same cells.

use std::sync::Arc;
use std::time::Duration;

use super::test_cells::TestCells;
use super::{CellStore, PASSES};
use crate::base::sync::lock;
use crate::base::token::{Address, Token, TokenSource};
use crate::store::{
    AcquireAll, AcquireCommand, Ended, Extended, Extension, Operation, Outcome, Queueing, Raise,
    Release, Replaced, Swap,
};

const START: u64 = 1_700_000_000_000_000;
const TTL: Duration = Duration::from_secs(10);

struct Process {
    store: CellStore<TestCells>,
    tokens: TokenSource,
}

impl Process {
    fn token(&self) -> Token {
        self.tokens.fresh()
    }

    async fn acquires(&self, token: Token, queueing: Queueing) -> Outcome {
        let acquire = acquire(token, queueing);
        self.store.run(Operation::Acquire(acquire)).await
    }

    async fn releases(&self, token: Token, fence: Option<u64>) -> Outcome {
        let release = Release {
            key: "k".into(),
            token,
            ttl: TTL,
            fence: fence.and_then(crate::FencingToken::new),
            in_background: false,
        };
        self.store.run(Operation::Release(release)).await
    }

    fn trips(&self) -> usize {
        std::mem::take(&mut lock(&self.store.cells.shared).trips)
    }
}

fn acquire(token: Token, queueing: Queueing) -> AcquireCommand {
    AcquireCommand {
        key: "k".into(),
        token,
        ttl: TTL,
        queueing,
        replaces: None,
        repeated: false,
    }
}

/// Processes on the same cells, each of which believes the clock to be 3 ms behind.
fn processes<const COUNT: usize>() -> [Process; COUNT] {
    let cells = TestCells {
        behind: 3_000,
        ..TestCells::default()
    };
    lock(&cells.shared).micros = START;
    [(); COUNT].map(|()| {
        let manager = Address::random();
        Process {
            store: CellStore::new(cells.clone(), manager),
            tokens: TokenSource::new(manager),
        }
    })
}

fn later(process: &Process, span: Duration) {
    lock(&process.store.cells.shared).micros += u64::try_from(span.as_micros()).expect("short");
}

fn granted(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Granted(fence) => (*fence).into(),
        other => panic!("{other:?}"),
    }
}

fn is_busy(outcome: &Outcome, queued: bool) -> bool {
    matches!(outcome, Outcome::Busy(refusal) if refusal.queued == queued)
}

/// Three processes and their tokens: the first one owns the key, with this fencing token, and the others wait.
async fn an_owner_and_two_waiters() -> ([Process; 3], [Token; 3], u64) {
    let [one, two, three] = processes();
    let (first, second, third) = (one.token(), two.token(), three.token());
    let fence = granted(&one.acquires(first, Queueing::Never).await);
    for (process, token) in [(&two, second), (&three, third)] {
        let refused = process.acquires(token, Queueing::Always).await;
        assert!(is_busy(&refused, true));
    }
    ([one, two, three], [first, second, third], fence)
}

#[tokio::test]
async fn a_free_lock_and_its_release_are_one_trip_each_and_a_refusal_is_one() {
    let [one, two] = processes();
    let (first, second) = (one.token(), two.token());
    let fence = granted(&one.acquires(first, Queueing::Never).await);
    assert_eq!(one.trips(), 1);
    assert!(is_busy(&two.acquires(second, Queueing::Never).await, false));
    assert_eq!(one.trips(), 1);
    let released = one.releases(first, Some(fence)).await;
    assert!(matches!(released, Outcome::Released(Ended::Yes)));
    assert_eq!(one.trips(), 1);
    // What is over counts as absent.
    let next = granted(&two.acquires(second, Queueing::Never).await);
    assert_eq!(one.trips(), 1);
    assert!(next >= fence + PASSES, "{next} behind {fence}");
}

#[tokio::test]
async fn a_lease_lasts_its_ttl_from_the_write_on_and_no_longer() {
    let [one, two] = processes();
    granted(&one.acquires(one.token(), Queueing::Never).await);
    later(&one, TTL - Duration::from_millis(1));
    assert!(is_busy(
        &two.acquires(two.token(), Queueing::Never).await,
        false
    ));
    later(&one, Duration::from_millis(4));
    granted(&two.acquires(two.token(), Queueing::Never).await);
}

#[tokio::test]
async fn a_release_hands_over_to_the_first_waiter_that_listens() {
    let ([one, _, three], [first, second, third], fence) = an_owner_and_two_waiters().await;
    lock(&one.store.cells.shared).deaf = vec![second.address()];
    one.releases(first, Some(fence)).await;
    let told = std::mem::take(&mut lock(&one.store.cells.shared).told);
    assert_eq!(told, [(third.address(), "given")]);
    let again = granted(&three.acquires(third, Queueing::Always).await);
    assert!(again > fence);
}

#[tokio::test]
async fn a_process_that_hands_a_key_over_looks_at_the_end_of_the_grant_for_those_that_wait_behind()
{
    let ([one, two, _], [first, second, _], fence) = an_owner_and_two_waiters().await;
    one.releases(first, Some(fence)).await;
    assert!(one.store.handed_off.has("k"));
    // No waiter is behind the last one.
    two.releases(second, None).await;
    assert!(!two.store.handed_off.has("k"));
}

#[tokio::test]
async fn a_waiter_that_listens_again_during_a_release_keeps_its_place() {
    let [one, two] = processes();
    let (first, second) = (one.token(), two.token());
    let fence = granted(&one.acquires(first, Queueing::Never).await);
    assert!(is_busy(&two.acquires(second, Queueing::Always).await, true));
    {
        let mut shared = lock(&one.store.cells.shared);
        (shared.deaf, shared.come_back) = (vec![second.address()], true);
    }
    one.releases(first, Some(fence)).await;
    let told = std::mem::take(&mut lock(&one.store.cells.shared).told);
    assert_eq!(told, [(second.address(), "given")]);
}

#[tokio::test]
async fn a_release_is_answered_behind_its_messages() {
    let [one, two] = processes();
    let is_told = || std::mem::take(&mut lock(&one.store.cells.shared).told_of);
    let first = one.token();
    let fence = granted(&one.acquires(first, Queueing::Never).await);
    one.releases(first, Some(fence)).await;
    assert!(!is_told(), "there are no messages");
    let next = one.token();
    let fence = granted(&one.acquires(next, Queueing::Never).await);
    two.acquires(two.token(), Queueing::Always).await;
    one.releases(next, Some(fence)).await;
    assert!(is_told());
}

#[tokio::test]
async fn a_process_that_has_seen_a_later_time_takes_no_key_before_its_lease_is_over() {
    let [one, mut two] = processes();
    granted(&one.acquires(one.token(), Queueing::Never).await);
    // It knows the lease.
    two.acquires(two.token(), Queueing::Never).await;
    two.store.cells.behind = -20_000_000;
    let refused = two.acquires(two.token(), Queueing::Never).await;
    assert!(is_busy(&refused, false), "{refused:?}");
    later(&one, TTL + Duration::from_millis(10));
    granted(&two.acquires(two.token(), Queueing::Never).await);
}

#[tokio::test]
async fn a_repeated_acquire_has_the_same_fencing_token_and_a_ticket_keeps_it() {
    let [one, two] = processes();
    let (first, ticket) = (one.token(), two.token());
    let fence = granted(&one.acquires(first, Queueing::Never).await);
    later(&one, Duration::from_secs(1));
    assert_eq!(granted(&one.acquires(first, Queueing::Never).await), fence);
    let swap = Operation::Swap(Swap {
        key: "k".into(),
        from: first,
        to: ticket,
        ttl: TTL,
        fence: None,
    });
    for _ in 0..2 {
        let swapped = two.store.run(swap.clone()).await;
        assert!(matches!(swapped, Outcome::Swapped(Ended::Yes)));
    }
    assert_eq!(granted(&two.acquires(ticket, Queueing::Never).await), fence);
}

#[tokio::test]
async fn an_undo_writes_also_where_it_finds_nothing() {
    let [one, two] = processes();
    let undo = two.token();
    let before = one.releases(undo, None).await;
    assert!(matches!(before, Outcome::Released(Ended::Absent)));
    assert_eq!(
        lock(&one.store.cells.shared).rows.len(),
        1,
        "an insert that is on its way waits for this one, or is waited for"
    );
    let held = one.token();
    granted(&one.acquires(held, Queueing::Never).await);
    let revision = |process: &Process| {
        let shared = lock(&process.store.cells.shared);
        shared.rows["k"].stored.written.revision
    };
    let seen = revision(&one);
    let beside = two.releases(undo, None).await;
    assert!(matches!(beside, Outcome::Released(Ended::Other)));
    assert!(revision(&one) > seen, "a late write of the lease fails now");
    // The release of a lease that was granted needs no such proof.
    let seen = revision(&one);
    two.releases(undo, Some(64)).await;
    assert_eq!(revision(&one), seen);
}

#[tokio::test]
async fn a_queue_has_256_waiters_and_no_more() {
    let [one, two] = processes();
    granted(&one.acquires(one.token(), Queueing::Never).await);
    for place in 0..257 {
        let refused = two.acquires(two.token(), Queueing::Always).await;
        assert!(is_busy(&refused, place < 256), "{place}");
    }
}

#[tokio::test]
async fn renewals_go_together_and_never_create_a_lease() {
    let [one, two] = processes();
    let (held, gone) = (one.token(), two.token());
    granted(&one.acquires(held, Queueing::Never).await);
    one.trips();
    let extend = |token| Extension {
        key: "k".into(),
        token,
        ttl: TTL,
    };
    let extended = one.store.run(Operation::Extend(vec![extend(held)])).await;
    assert!(matches!(extended, Outcome::Extended(it) if it == [Extended::Yes]));
    assert_eq!(one.trips(), 1);
    later(&one, TTL + Duration::from_secs(1));
    let extended = one
        .store
        .run(Operation::Extend(vec![extend(held), extend(gone)]))
        .await;
    assert!(matches!(extended, Outcome::Extended(it) if it == [Extended::NotOurs; 2]));
}

#[tokio::test]
async fn a_renewal_and_a_ticket_that_arrive_behind_the_end_of_the_lease_make_no_new_one() {
    let [one, _] = processes();
    let held = one.token();
    granted(&one.acquires(held, Queueing::Never).await);
    let written = || {
        let shared = lock(&one.store.cells.shared);
        shared.rows["k"].stored.written.revision
    };
    let last = written();
    // This process believes that the lease has 1 ms left.
    later(&one, TTL + Duration::from_millis(2));
    let renewal = Extension {
        key: "k".into(),
        token: held,
        ttl: TTL,
    };
    let extended = one.store.run(Operation::Extend(vec![renewal])).await;
    assert!(matches!(extended, Outcome::Extended(it) if it == [Extended::NotOurs]));
    let swap = Operation::Swap(Swap {
        key: "k".into(),
        from: held,
        to: one.token(),
        ttl: TTL,
        fence: None,
    });
    let swapped = one.store.run(swap).await;
    assert!(!matches!(swapped, Outcome::Swapped(Ended::Yes)));
    assert_eq!(written(), last);
}

#[tokio::test]
async fn several_keys_are_taken_together_with_one_fencing_token_or_not_at_all() {
    let [one, two] = processes();
    let all = |process: &Process, keys: [&str; 2]| {
        Operation::AcquireAll(AcquireAll {
            leases: keys.map(|key| (key.into(), process.token())).to_vec(),
            ttl: TTL,
        })
    };
    let first = granted(&one.store.run(all(&one, ["a", "b"])).await);
    assert_eq!(one.trips(), 1);
    let refused = two.store.run(all(&two, ["b", "c"])).await;
    assert!(matches!(refused, Outcome::BusyAt(0, _)), "{refused:?}");
    let free = two.store.run(all(&two, ["c", "d"])).await;
    assert!(granted(&free) > first);
    let shared = lock(&one.store.cells.shared);
    let fences = ["a", "b"].map(|key| shared.rows[key].stored.written.revision * PASSES);
    assert_eq!(fences, [first; 2]);
}

#[tokio::test]
async fn a_waiter_of_the_own_process_comes_before_the_next_owner_of_it() {
    let [one, two] = processes();
    let (first, next, waiter) = (one.token(), one.token(), two.token());
    let fence = granted(&one.acquires(first, Queueing::Never).await);
    assert!(is_busy(&two.acquires(waiter, Queueing::Always).await, true));
    let replaces = Replaced {
        token: first,
        fence: crate::FencingToken::new(fence),
    };
    let over = AcquireCommand {
        replaces: Some(replaces),
        ..acquire(next, Queueing::Always)
    };
    let refused = one.store.run(Operation::Acquire(over)).await;
    assert!(is_busy(&refused, true), "{refused:?}");
    let key: Arc<str> = "k".into();
    assert!(one.store.guess(&key).cell.fence_of(waiter) > Some(fence));
}

#[tokio::test]
async fn a_raised_lease_is_renewed_and_has_the_first_token_of_a_write_in_its_row() {
    let [one, other] = processes();
    let (held, lost) = (one.token(), other.token());
    let fence = granted(&one.acquires(held, Queueing::Never).await);
    later(&one, TTL / 2);
    let raise = |token| {
        Operation::Raise(Raise {
            key: "k".into(),
            token,
            ttl: TTL,
            fence: crate::FencingToken::new(fence + 3 * PASSES + 5).expect("a token"),
        })
    };
    one.trips();
    let raised = one.store.run(raise(held)).await;
    assert!(matches!(raised, Outcome::Raised), "{raised:?}");
    assert_eq!(one.trips(), 1);
    let refused = one.store.run(raise(lost)).await;
    assert!(matches!(refused, Outcome::Failed(_)), "{refused:?}");
    later(&one, TTL - Duration::from_millis(10));
    assert!(is_busy(&other.acquires(lost, Queueing::Never).await, false));
    let of = |process: &Process| process.store.guess("k").cell.fence_of(held);
    assert_eq!(
        [of(&one), of(&other)],
        [Some(fence + 3 * PASSES); 2],
        "without the passes"
    );
}
