//! Commits whose answer is lost, and a commit that arrives late.

use lock_tests::{Direction, needs, wait};

use super::{COMMIT, PATH, Stage, answer, assert_busy, assert_replayed};
use crate::payments::service::pay;

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_resolved() {
    needs!(postgres);
    let stage = Stage::start();
    let request = stage.held_at(Direction::Replies, COMMIT, 7).await;
    assert_eq!(stage.payments(7).await.len(), 1, "it is committed");
    // The answer is lost, and later connections pass.
    stage.proxy.cut();
    let first = answer(request.await.expect("no panic"));
    assert_eq!(first.headers.get("idempotency-replayed"), None);
    let again = answer(pay(stage.second.address(), PATH, 7).await);
    assert_replayed(&again);
    assert_eq!(again.body, first.body);
    let payment = stage.assert_paid_once(7).await;
    assert_eq!(payment.process, stage.first.process.pid());
}

#[tokio::test]
async fn a_commit_that_is_lost_itself_is_resolved() {
    needs!(postgres);
    let stage = Stage::start();
    let request = stage.held_at(Direction::Requests, COMMIT, 7).await;
    stage.proxy.cut();
    let refused = request.await.expect("no panic").expect("an answer");
    // `lock_unavailable`, or `lock_outcome_unknown` if the server has not noticed the end of the connection yet.
    assert_eq!(refused.status, 503, "{refused:?}");
    stage.proxy.pass();
    let payment = stage.assert_paid_once(7).await;
    assert_eq!(payment.process, stage.second.process.pid());
}

#[tokio::test]
async fn a_commit_that_arrives_late_is_a_409_and_then_a_replay() {
    needs!(postgres);
    let mut stage = Stage::start();
    let request = stage.held_at(Direction::Requests, COMMIT, 7).await;
    let dead = stage.first.process.pid();
    stage.first.process.kill();
    assert!(request.await.expect("no panic").is_err(), "no answer");
    // A read would find nothing now, and the commit is on its way.
    assert_eq!(stage.payments(7).await, []);
    for _ in 0..3 {
        assert_busy(pay(stage.second.address(), PATH, 7).await);
    }

    stage.proxy.pass();
    wait::eventually("the commit of the dead process arrives", async || {
        !stage.payments(7).await.is_empty()
    })
    .await;
    let payment = stage.assert_paid_once(7).await;
    assert_eq!(payment.process, dead);
    let again = answer(pay(stage.second.address(), PATH, 7).await);
    assert_replayed(&again);
}

#[tokio::test]
async fn a_commit_that_is_still_under_way_is_unknown_and_then_a_replay() {
    needs!(postgres);
    let stage = Stage::start();
    let request = stage.held_at(Direction::Requests, COMMIT, 7).await;
    // The connection ends for the process, and not for the server.
    stage.proxy.outlive_clients();
    let unknown = request.await.expect("no panic").expect("an answer");
    assert_eq!(unknown.status, 503, "{unknown:?}");
    assert!(unknown.body.contains("lock_outcome_unknown"), "{unknown:?}");
    assert_busy(pay(stage.second.address(), PATH, 7).await);

    stage.proxy.pass();
    stage.proxy.thaw();
    let payment = stage.assert_paid_once(7).await;
    assert_eq!(payment.process, stage.first.process.pid());
}
