//! Two processes whose locks know nothing of one another.

use lock_tests::{Direction, needs};

use super::{CLAIMED, PATH, Stage, answer, assert_busy, assert_replayed};
use crate::payments::service::pay;

#[tokio::test]
async fn two_processes_without_redis() {
    needs!(postgres);
    let stage = Stage::start();
    let request = stage.held_at(Direction::Replies, CLAIMED, 7).await;
    for service in [&stage.first, &stage.second] {
        assert_busy(pay(service.address(), PATH, 7).await);
    }
    stage.proxy.pass();
    let first = answer(request.await.expect("no panic"));
    for service in [&stage.first, &stage.second] {
        let again = answer(pay(service.address(), PATH, 7).await);
        assert_replayed(&again);
        assert_eq!(again.body, first.body);
    }
    stage.assert_paid_once(7).await;
}
