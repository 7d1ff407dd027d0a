use std::sync::Arc;
use std::time::Duration;

use super::MemoryStore;
use crate::base::clock::Clock;
use crate::base::holder_token::HolderToken;
use crate::base::token::{Address, TokenSource};
use crate::store::{
    AcquireCommand, Force, Forced, Lane, Operation, OperatorOperation, OperatorOutcome, Outcome,
    Queueing, Store,
};

const TTL: Duration = Duration::from_secs(60);

async fn force(store: &Arc<MemoryStore>, holder: HolderToken) -> Forced {
    let force = OperatorOperation::Force(Force {
        key: "k".into(),
        holder,
        fence: None,
        grace: TTL,
        register: None,
    });
    let answer = store
        .execute(Operation::Operator(force), Lane::KEEPER)
        .await;
    match answer {
        Outcome::Operator(OperatorOutcome::Forced(forced)) => forced,
        other => panic!("{other:?}"),
    }
}

fn acquire(source: &TokenSource) -> AcquireCommand {
    AcquireCommand {
        key: "k".into(),
        token: source.fresh(),
        ttl: TTL,
        queueing: Queueing::Never,
        replaces: None,
        repeated: false,
    }
}

#[tokio::test]
async fn the_next_token_is_above_all_that_a_forced_holder_may_use() {
    let store = MemoryStore::new(Clock::default());
    let source = TokenSource::new(Address::random());
    let mut last = 0;
    for _ in 0..10 {
        let acquire = acquire(&source);
        let operation = Operation::Acquire(acquire.clone());
        let Outcome::Granted(fence) = store.execute(operation, Lane::KEEPER).await else {
            panic!("free");
        };
        let fence = u64::from(fence);
        assert!(fence > last, "{fence} after {last}");
        // The process passes its lease from task to task, each with a token of its own.
        last = fence + u64::from(crate::lease::cohort::MOST);
        // No manager listens, so the key is free at once.
        assert_eq!(force(&store, acquire.token.into()).await, Forced::Freed);
    }
}

#[tokio::test]
async fn a_waiter_for_which_a_key_is_kept_is_no_holder() {
    let store = MemoryStore::new(Clock::default());
    let source = TokenSource::new(Address::random());
    assert_eq!(force(&store, source.fresh().into()).await, Forced::Changed);
}
