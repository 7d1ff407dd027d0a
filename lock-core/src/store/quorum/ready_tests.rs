//! Tests of a manager that connects while its nodes come up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{QuorumNode, QuorumStore};
use crate::base::clock::Clock;
use crate::base::settings::Settings;
use crate::base::token::{Address, TokenSource};
use crate::store::{MemoryStore, Store};
use crate::timer::Timers;

/// So many that it looks in the very moment in which the last node comes up.
const ROUNDS: usize = 200_000;
/// Fewer, where the two threads share a core with others.
const ENOUGH: Duration = Duration::from_secs(2);

fn two_nodes() -> Arc<QuorumStore> {
    let clock = Clock::default();
    let node = |place: usize| QuorumNode {
        store: MemoryStore::new(clock.clone()),
        shown: place.to_string(),
    };
    let settings = Settings {
        max_ttl: Duration::from_secs(60),
        assume_fresh: true,
        operation_timeout: Duration::from_secs(1),
        ..Settings::default()
    };
    let timers = Timers::new(clock.clone());
    let names = TokenSource::new(Address::random());
    QuorumStore::new((0..2).map(node).collect(), settings, &timers, names)
}

#[test]
fn a_manager_is_ready_in_whichever_moment_its_nodes_come_up() {
    let store = two_nodes();
    let nodes = &store.quorum.nodes;
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    let (begun, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failed = std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1.. {
                if reached(&begun, round) == OVER {
                    return;
                }
                nodes.iter().for_each(|node| node.answered());
                ended.store(round, Ordering::Release);
            }
        });
        let clock = Clock::default();
        let over = clock.now() + ENOUGH;
        let rounds = (1..=ROUNDS).take_while(|_| clock.now() < over);
        let mut connects = rounds.map(|round| {
            nodes.iter().for_each(|node| node.is_not_known());
            begun.store(round, Ordering::Release);
            // A little later each time, to meet every moment.
            (0..round % 64).for_each(|_| std::hint::spin_loop());
            let ready = runtime.block_on(store.ready());
            reached(&ended, round);
            ready
        });
        let failed = connects.find_map(Result::err);
        begun.store(OVER, Ordering::Release);
        failed
    });
    assert!(
        failed.is_none(),
        "{:?}",
        failed.map(|failure| failure.error)
    );
}

const OVER: usize = usize::MAX;

/// Waits until the count is reached.
fn reached(count: &AtomicUsize, round: usize) -> usize {
    let mut looks = 0;
    loop {
        let now = count.load(Ordering::Acquire);
        if now >= round {
            return now;
        }
        looks += 1;
        if looks < 1_000 {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}
