//! Who is granted a claim.

use lock_core::once::Database as _;
use lock_core::once::{Claimed, Dialect, Tx, peek};

use super::{Fixture, claim, done, effect};

pub(crate) async fn a_claim_is_granted_once<F: Fixture>() {
    let fixture = F::start().await;
    let (first, second) = (claim("k"), claim("k"));
    done::<F>(&fixture.db(), &first, Some(b"answer"))
        .await
        .expect("granted");

    let mut tx = Tx::begin(&fixture.other()).await.expect("a transaction");
    let claimed = tx.claim(&second).await.expect("an answer");
    assert!(matches!(claimed, Claimed::Recorded(_)), "{claimed:?}");
    assert_eq!(fixture.effects().await, 1);
}

pub(crate) async fn a_second_claim_is_not_granted_while_the_first_is_open<F: Fixture>() {
    let fixture = F::start().await;
    let mut first = Tx::begin(&fixture.db()).await.expect("a transaction");
    assert_eq!(
        first.claim(&claim("k")).await.expect("an answer"),
        Claimed::Granted
    );

    if fixture.db().dialect() == Dialect::Postgres {
        let mut second = Tx::begin(&fixture.other()).await.expect("a transaction");
        assert_eq!(
            second.claim(&claim("k")).await.expect("an answer"),
            Claimed::Busy
        );
        // Another operation is free.
        assert_eq!(
            second.claim(&claim("l")).await.expect("an answer"),
            Claimed::Granted
        );
    }
    // No reader sees a claim.
    let found = peek(&fixture.other(), claim("k").operation()).await;
    assert_eq!(found.expect("an answer"), None);

    let other = fixture.other();
    let second = async move {
        let mut second = Tx::begin(&other).await.expect("a transaction");
        second.claim(&claim("k")).await.expect("an answer")
    };
    // SQLite's other writers wait for the end of the first transaction. On PostgreSQL they are busy until then.
    let second = match fixture.db().dialect() == Dialect::Postgres {
        true => {
            first.rollback().await.expect("an answer");
            tokio::spawn(second)
        }
        false => {
            let second = tokio::spawn(second);
            first.rollback().await.expect("an answer");
            second
        }
    };
    assert_ne!(second.await.expect("no panic"), Claimed::Busy);
}

pub(crate) async fn a_record_is_read_by_the_next_claim<F: Fixture>() {
    let fixture = F::start().await;
    let first = claim("k");
    let record: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    done::<F>(&fixture.db(), &first, Some(&record))
        .await
        .expect("granted");

    let peeked = peek(&fixture.other(), first.operation()).await;
    let peeked = peeked.expect("an answer").expect("a record");
    assert!(peeked.is_of(&first) && !peeked.is_of(&claim("k")));
    assert_eq!(peeked.record.as_deref(), Some(&*record));
    let mut tx = Tx::begin(&fixture.other()).await.expect("a transaction");
    let claimed = tx.claim(&claim("k")).await.expect("an answer");
    assert_eq!(claimed, Claimed::Recorded(peeked));
}

pub(crate) async fn a_row_without_an_answer_is_done<F: Fixture>() {
    let fixture = F::start().await;
    done::<F>(&fixture.db(), &claim("none"), None)
        .await
        .expect("granted");
    done::<F>(&fixture.db(), &claim("empty"), Some(&[]))
        .await
        .expect("granted");
    for (key, record) in [("none", None), ("empty", Some(Vec::new()))] {
        let found = peek(&fixture.db(), claim(key).operation()).await;
        assert_eq!(found.expect("an answer").expect("a row").record, record);
    }
}

pub(crate) async fn an_expired_record_is_taken_over_by_one_of_two_claims<F: Fixture>() {
    let fixture = F::start().await;
    done::<F>(&fixture.db(), &claim("k"), Some(b"old"))
        .await
        .expect("granted");
    fixture.expire().await;
    let operation = claim("k").operation();
    let found = peek(&fixture.db(), operation).await;
    assert_eq!(found.expect("an answer"), None);

    let mut tasks = tokio::task::JoinSet::new();
    for db in [fixture.db(), fixture.other()] {
        tasks.spawn(async move {
            let mut tx = Tx::begin(&db).await.expect("a transaction");
            let new = claim("k");
            let granted = tx.claim(&new).await.expect("an answer") == Claimed::Granted;
            if granted {
                tx.complete(&new, Some(b"new")).await.expect("its own");
                tx.commit().await.expect("an answer");
            }
            granted
        });
    }
    let granted = tasks.join_all().await;
    assert_eq!(granted.iter().filter(|granted| **granted).count(), 1);
    let found = peek(&fixture.db(), operation).await;
    let record = found.expect("an answer").expect("a record").record;
    assert_eq!(record.as_deref(), Some(&b"new"[..]));
}

pub(crate) async fn two_claims_of_one_transaction_commit_together<F: Fixture>() {
    let fixture = F::start().await;
    let (first, second) = (claim("k"), claim("l"));
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    for claim in [&first, &second] {
        assert_eq!(tx.claim(claim).await.expect("an answer"), Claimed::Granted);
    }
    tx.complete(&second, Some(b"2")).await.expect("its own");
    tx.complete(&first, Some(b"1")).await.expect("its own");
    assert_eq!(
        peek(&fixture.other(), first.operation())
            .await
            .expect("an answer"),
        None
    );
    tx.commit().await.expect("an answer");
    assert_eq!(fixture.records().await, 2);
}

pub(crate) async fn a_nested_call_with_the_same_key_is_invalid<F: Fixture>() {
    let fixture = F::start().await;
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    tx.claim(&claim("k")).await.expect("an answer");
    let nested = tx
        .claim(&claim("k"))
        .await
        .expect_err("it would wait for itself");
    assert!(nested.is_invalid(), "{nested}");
}

pub(crate) async fn a_claim_after_its_own_completion_finds_the_record<F: Fixture>() {
    let fixture = F::start().await;
    let mut tx = Tx::begin(&fixture.db()).await.expect("a transaction");
    let first = claim("k");
    tx.claim(&first).await.expect("an answer");
    tx.complete(&first, Some(b"1")).await.expect("its own");
    let Claimed::Recorded(found) = tx.claim(&claim("k")).await.expect("an answer") else {
        panic!("one transaction has done the operation twice");
    };
    assert!(found.is_of(&first));
    tx.commit().await.expect("all claims are completed");
}

pub(crate) async fn twenty_tasks_have_one_effect<F: Fixture>() {
    let fixture = F::start().await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..20_u8 {
        let db = if number % 2 == 0 {
            fixture.db()
        } else {
            fixture.other()
        };
        tasks.spawn(async move {
            loop {
                let mut tx = Tx::begin(&db).await.expect("a transaction");
                let own = claim("k");
                match tx.claim(&own).await.expect("an answer") {
                    Claimed::Granted => {
                        effect::<F>(&mut tx).await;
                        tx.complete(&own, Some(&[number])).await.expect("its own");
                        tx.commit().await.expect("an answer");
                        return vec![number];
                    }
                    Claimed::Recorded(found) => return found.record.expect("a record"),
                    _ => drop(tx.rollback().await),
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        });
    }
    let answers = tasks.join_all().await;
    assert!(
        answers.iter().all(|answer| *answer == answers[0]),
        "{answers:?}"
    );
    assert_eq!(fixture.effects().await, 1);
}
