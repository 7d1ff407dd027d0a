//! How a transaction ends, and what it leaves.

use std::time::Duration;

use lock_core::once::{Claimed, Database as _, Tx, peek};

use super::{Fixture, claim, effect, expire};

/// Claims a key until it is granted: a connection that was dropped ends in the background.
async fn granted<F: Fixture>(fixture: &F, key: &str) -> Tx<F::Db> {
    loop {
        let mut tx = Tx::begin(&fixture.other()).await.expect("a transaction");
        match tx.claim(&claim(key)).await.expect("an answer") {
            Claimed::Granted => return tx,
            Claimed::Busy => tokio::time::sleep(Duration::from_millis(5)).await,
            other => panic!("{other:?}"),
        }
    }
}

pub(crate) async fn a_dropped_transaction_frees_the_key<F: Fixture>() {
    let fixture = F::start().await;
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    let own = claim("k");
    tx.claim(&own).await.expect("an answer");
    effect::<F>(&mut tx).await;
    tx.complete(&own, Some(b"answer")).await.expect("its own");
    drop(tx);
    drop(granted(&fixture, "k").await);
    assert_eq!((fixture.effects().await, fixture.records().await), (0, 0));
    // The pool gives nobody the connection with the transaction.
    let mut next = Tx::begin(&fixture.db()).await.expect("a transaction");
    assert_ne!(
        next.claim(&claim("l")).await.expect("an answer"),
        Claimed::Busy
    );
}

pub(crate) async fn a_rolled_back_transaction_frees_the_key<F: Fixture>() {
    let fixture = F::start().await;
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    tx.claim(&claim("k")).await.expect("an answer");
    effect::<F>(&mut tx).await;
    tx.rollback().await.expect("an answer");
    drop(granted(&fixture, "k").await);
    assert_eq!(fixture.effects().await, 0);
}

pub(crate) async fn complete_finds_only_its_own_claim<F: Fixture>() {
    let fixture = F::start().await;
    for (key, record) in [("k", Some(&b"x"[..])), ("k", None), ("l", None)] {
        let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
        tx.claim(&claim("k")).await.expect("an answer");
        let strange = tx.complete(&claim(key), record).await;
        assert!(strange.expect_err("the claim of another run").is_invalid());
        tx.rollback().await.expect("an answer");
    }
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    tx.claim(&claim("k")).await.expect("an answer");
    let strange = tx.withdraw(&claim("k")).await;
    assert!(strange.expect_err("the claim of another run").is_invalid());
}

pub(crate) async fn a_commit_with_an_open_claim_is_refused<F: Fixture>() {
    let fixture = F::start().await;
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    tx.claim(&claim("k")).await.expect("an answer");
    effect::<F>(&mut tx).await;
    let refused = tx.commit().await.expect_err("the claim is open");
    assert!(refused.is_invalid() && !refused.is_outcome_unknown());
    drop(granted(&fixture, "k").await);
    assert_eq!((fixture.effects().await, fixture.records().await), (0, 0));
}

pub(crate) async fn a_withdrawn_claim_leaves_the_effect_and_no_record<F: Fixture>() {
    let fixture = F::start().await;
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    let own = claim("k");
    tx.claim(&own).await.expect("an answer");
    effect::<F>(&mut tx).await;
    tx.withdraw(&own).await.expect("its own");
    tx.commit().await.expect("an answer");
    let found = peek(&fixture.db(), own.operation()).await;
    assert_eq!(found.expect("an answer"), None);
    assert_eq!(fixture.effects().await, 1);
}

pub(crate) async fn a_dropped_claim_lets_nothing_be_committed<F: Fixture>() {
    let fixture = F::start().await;
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    effect::<F>(&mut tx).await;
    {
        let own = claim("k");
        let claiming = tx.claim(&own);
        let mut claiming = std::pin::pin!(claiming);
        // It is polled once, and dropped: the database may have granted it.
        let _ = std::future::poll_fn(|context| {
            let _ = claiming.as_mut().poll(context);
            std::task::Poll::Ready(())
        })
        .await;
    }
    assert!(tx.commit().await.is_err(), "the claim may be granted");
    assert_eq!(fixture.effects().await, 0);
}

pub(crate) async fn a_completion_and_its_commit_are_found_by_the_next_claim<F: Fixture>() {
    let fixture = F::start().await;
    for (key, record) in [("k", Some(&b"answer"[..])), ("l", None)] {
        let own = claim(key);
        let begun = Tx::begin_and_claim(&fixture.db(), &own).await;
        let (mut tx, claimed) = begun.expect("an answer");
        assert_eq!(claimed, Claimed::Granted);
        effect::<F>(&mut tx).await;
        let ended = tx.complete_and_commit(&own, record).await;
        ended.expect("its own");
        let begun = Tx::begin_and_claim(&fixture.other(), &claim(key)).await;
        let (tx, claimed) = begun.expect("an answer");
        match claimed {
            Claimed::Recorded(found) => {
                assert!(found.is_of(&own));
                assert_eq!(found.record.as_deref(), record);
            }
            claimed => panic!("{claimed:?}"),
        }
        tx.commit().await.expect("nothing is open");
    }
    assert_eq!((fixture.effects().await, fixture.records().await), (2, 2));
}

pub(crate) async fn a_claim_that_is_gone_lets_nothing_be_committed<F: Fixture>() {
    let fixture = F::start().await;
    for record in [Some(&b"answer"[..]), None] {
        let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
        effect::<F>(&mut tx).await;
        // The transaction has not claimed it, or not any more.
        let gone = tx.complete_and_commit(&claim("k"), record).await;
        let gone = gone.expect_err("no claim");
        assert!(gone.is_invalid() && !gone.is_outcome_unknown(), "{gone}");
        assert_eq!((fixture.effects().await, fixture.records().await), (0, 0));
    }
}

/// The work can take longer than the record lives.
pub(crate) async fn a_record_that_ends_before_its_completion_begins_a_new_life<F: Fixture>() {
    let fixture = F::start().await;
    let ended = expire(fixture.db().dialect());
    for (key, record) in [("k", Some(&b"answer"[..])), ("l", None)] {
        let own = claim(key);
        let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
        tx.claim(&own).await.expect("an answer");
        effect::<F>(&mut tx).await;
        F::execute(&mut tx, ended).await.expect("its own row");
        tx.complete_and_commit(&own, record).await.expect("its own");
        let found = peek(&fixture.db(), own.operation()).await;
        assert!(found.expect("an answer").expect("a record").is_of(&own));
    }
}
