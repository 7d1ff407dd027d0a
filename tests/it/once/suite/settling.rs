//! What became of a COMMIT that was not answered.

use lock_core::once::{Settled, Tx};

use super::{Fixture, claim, done, effect};

pub(crate) async fn a_commit_that_arrived_is_committed<F: Fixture>() {
    let fixture = F::start().await;
    let own = claim("k");
    done::<F>(&fixture.db(), &own, Some(b"answer"))
        .await
        .expect("granted");
    let settled = own.settle(&fixture.other()).await.expect("an answer");
    assert_eq!(settled, Settled::Committed);
}

pub(crate) async fn a_transaction_that_was_rolled_back_is_found_rolled_back<F: Fixture>() {
    let fixture = F::start().await;
    let own = claim("k");
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    tx.claim(&own).await.expect("an answer");
    effect::<F>(&mut tx).await;
    tx.rollback().await.expect("an answer");
    let settled = own.settle(&fixture.other()).await.expect("an answer");
    assert_eq!(settled, Settled::RolledBack);
}

pub(crate) async fn a_record_of_another_run_is_found<F: Fixture>() {
    let fixture = F::start().await;
    done::<F>(&fixture.db(), &claim("k"), Some(b"theirs"))
        .await
        .expect("granted");
    let settled = claim("k")
        .settle(&fixture.other())
        .await
        .expect("an answer");
    let Settled::Recorded(found) = settled else {
        panic!("{settled:?}");
    };
    assert_eq!(found.record.as_deref(), Some(&b"theirs"[..]));
}

pub(crate) async fn a_settlement_leaves_nothing_behind<F: Fixture>() {
    let fixture = F::start().await;
    for _ in 0..2 {
        let settled = claim("k").settle(&fixture.db()).await.expect("an answer");
        assert_eq!(settled, Settled::RolledBack);
    }
    assert_eq!(fixture.records().await, 0);
}
