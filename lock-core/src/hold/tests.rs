//! A lease that the keeper does not look after: it may be late, or was stopped with its process.

use std::time::Duration;

use super::Hold;
use crate::LockManager;
use crate::fence::FencingToken;
use crate::lease::Terms;
use crate::test_util::ManualClock;

#[tokio::test]
async fn a_lease_that_is_over_is_not_valid_though_the_keeper_has_not_looked() {
    let clock = ManualClock::new();
    let builder = LockManager::builder("memory:").clock(clock.clone());
    let locks = builder.connect().await.expect("a manager");
    let core = locks.core();
    let ttl = Duration::from_secs(10);
    let terms = Terms::new(ttl, true, None);
    let hold = Hold::new(core, &"k".into(), terms, core.tokens.manager());
    let sent = core.keeper.clock.now();
    hold.ask(sent + ttl);
    assert!(hold.grant(sent, FencingToken::new(1).expect("a token")));
    assert!(hold.is_valid());
    // The keeper was never told of it.
    clock.advance(ttl);
    assert!(!hold.is_valid());
}
