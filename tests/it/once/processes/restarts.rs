//! A PostgreSQL that crashes and is started again.

use lock_tests::{Direction, needs};

use super::{CLAIMED, COMMIT, PATH, Stage, answer, assert_replayed};
use crate::payments::books::Books;
use crate::payments::service::pay;

#[tokio::test]
async fn postgres_restarts() {
    needs!(postgres);
    let mut stage = Stage::start();
    let before = answer(pay(stage.first.address(), PATH, 1).await);

    // An open transaction ends.
    let request = stage.held_at(Direction::Replies, CLAIMED, 2).await;
    stage.crash();
    let refused = request.await.expect("no panic").expect("an answer");
    assert_eq!(refused.status, 503, "{refused:?}");
    let payment = stage.assert_paid_once(2).await;
    assert_eq!(payment.process, stage.second.process.pid());

    // A commit stays, although its answer is lost.
    let request = stage.held_at(Direction::Replies, COMMIT, 3).await;
    stage.crash();
    let got = request.await.expect("no panic").expect("an answer");
    assert!([201, 503].contains(&got.status), "{got:?}");
    let payment = stage.assert_paid_once(3).await;
    assert_eq!(payment.process, stage.first.process.pid());

    stage.assert_paid_once(1).await;
    let again = answer(pay(stage.second.address(), PATH, 1).await);
    assert_replayed(&again);
    assert_eq!(again.body, before.body);
}

impl Stage {
    /// Has the server crash, and the proxy lose what it holds. Later connections pass.
    fn crash(&mut self) {
        let Books::Postgres(server) = &mut self.books else {
            unreachable!("a PostgreSQL");
        };
        server.crash();
        self.proxy.cut();
        self.proxy.pass();
    }
}
