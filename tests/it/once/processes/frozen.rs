//! A process that is frozen inside of its transaction.

use lock_tests::{Direction, needs};

use super::{CLAIMED, PATH, Stage, answer, assert_busy, assert_replayed};
use crate::payments::service::pay;

#[tokio::test]
async fn a_frozen_process_keeps_the_key_until_it_wakes() {
    needs!(postgres);
    let stage = Stage::start();
    let request = stage.held_at(Direction::Replies, CLAIMED, 7).await;
    stage.first.process.stop();
    stage.proxy.pass();
    for _ in 0..3 {
        assert_busy(pay(stage.second.address(), PATH, 7).await);
    }
    stage.first.process.cont();
    let first = answer(request.await.expect("no panic"));
    let again = answer(pay(stage.second.address(), PATH, 7).await);
    assert_replayed(&again);
    assert_eq!(again.body, first.body);
    stage.assert_paid_once(7).await;
}

#[tokio::test]
async fn a_frozen_process_keeps_the_key_until_the_server_ends_it() {
    needs!(postgres);
    let mut stage = Stage::start();
    let limit = "ALTER ROLE locks SET idle_in_transaction_session_timeout = '3s'";
    stage.books.execute(limit).await;
    // Later connections have the limit.
    stage.first.kill();
    let request = stage.held_at(Direction::Replies, CLAIMED, 7).await;
    stage.first.process.stop();
    stage.proxy.pass();
    // It takes the payment as soon as the server has ended the transaction of the frozen process.
    let payment = stage.assert_paid_once(7).await;
    assert_eq!(payment.process, stage.second.process.pid());

    stage.first.process.cont();
    let late = request.await.expect("no panic").expect("an answer");
    // Its next statement fails, because its transaction has ended.
    assert_eq!(late.status, 503, "{late:?}");
    let again = answer(pay(stage.first.address(), PATH, 7).await);
    assert_replayed(&again);
    stage.assert_paid_once(7).await;
}
