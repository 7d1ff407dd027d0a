//! Tests a ping of several servers: a majority decides.

use std::time::Duration;

use lock_core::ErrorKind;
use lock_tests::{RedisServer, needs, wait};

use super::{Nodes, kind};

#[tokio::test]
async fn a_majority_that_answers_is_enough_and_a_minority_is_not() {
    needs!(redis);
    let nodes = Nodes::start(5);
    let builder = nodes.builder();
    let builder = builder.operation_timeout(Duration::from_secs(1));
    let locks = nodes.acquainted_by(builder).await;
    nodes.0[0].kill();
    nodes.0[1].stop();
    locks.ping().await.expect("three of five answer");
    nodes.0[2].kill();
    assert_eq!(kind(locks.ping().await), ErrorKind::Unavailable);
    nodes.0[1].cont();
    wait::eventually("three of five answer again", async || {
        locks.ping().await.is_ok()
    })
    .await;
    nodes.0[3].stop();
    assert_eq!(kind(locks.ping().await), ErrorKind::Unavailable);
    nodes.0[3].cont();
}

#[tokio::test]
async fn servers_that_answer_and_do_not_vote_do_not_count() {
    needs!(redis);
    let nodes = Nodes::start(3);
    let locks = nodes.acquainted().await;
    nodes.0[..2].iter().for_each(RedisServer::kill);
    assert_eq!(kind(locks.ping().await), ErrorKind::Unavailable);
    nodes.0[..2].iter().for_each(RedisServer::start_again);
    let what = "the manager knows that two servers came without their data";
    wait::eventually(what, async || {
        let error = locks.ping().await.expect_err("one server votes");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        error.to_string().contains("does not vote")
    })
    .await;
}
