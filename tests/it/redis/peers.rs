//! Tests peers that are no correct server: they fail in time, and nothing is granted by a
//! guess.

use std::time::Duration;

use lock_core::{ErrorKind, LockManager, Wait};
use lock_tests::{Answer, Direction, FakeServer, Flow, Proxy, RedisServer, needs, wait};
use tokio::time::timeout;

use super::{keys, kind, warm};

async fn unavailable(url: &str) {
    let builder = LockManager::builder(url).connect_timeout(Duration::from_millis(300));
    let builder = builder.operation_timeout(Duration::from_millis(100));
    let locks = builder.connect_lazy().expect("a URL");
    for wait in [
        Wait::None,
        Wait::For(Duration::from_millis(20)),
        Wait::Forever,
    ] {
        let answer = timeout(wait::PATIENCE, locks.lock("k").wait(wait).acquire()).await;
        assert_eq!(kind(answer.expect("bounded")), ErrorKind::Unavailable);
    }
    let connecting = LockManager::builder(url).connect_timeout(Duration::from_millis(300));
    assert_eq!(kind(connecting.connect().await), ErrorKind::Unavailable);
    assert!(locks.held().is_empty());
}

/// Tests all peers at once, because each takes its time.
async fn all_are_unavailable<const N: usize>(peers: [FakeServer; N]) {
    let asked = peers.map(|peer| {
        tokio::spawn(async move {
            unavailable(&peer.url()).await;
        })
    });
    for (index, asked) in asked.into_iter().enumerate() {
        assert!(asked.await.is_ok(), "answer number {index}");
    }
}

#[tokio::test]
async fn a_peer_that_answers_no_greeting_is_unavailable() {
    all_are_unavailable(
        [
            Answer::Silence,
            Answer::Loading,
            Answer::Garbage,
            Answer::HangUp,
            Answer::Raw(b"+OK\r\n".to_vec()),
            Answer::Raw(b":1\r\n".to_vec()),
            Answer::Raw(b"$-1\r\n".to_vec()),
        ]
        .map(FakeServer::start),
    )
    .await;
}

#[tokio::test]
async fn a_peer_that_answers_no_request_is_unavailable() {
    all_are_unavailable(
        [
            Answer::Silence,
            Answer::Loading,
            Answer::ReadOnly,
            Answer::Garbage,
            Answer::HangUp,
            Answer::Error("BUSY Redis is busy running a script".to_owned()),
            Answer::Error("MASTERDOWN Link with MASTER is down".to_owned()),
            Answer::Error("CLUSTERDOWN The cluster is down".to_owned()),
            Answer::Error("TRYAGAIN Multiple keys request during rehashing of slot".to_owned()),
            Answer::Error("ERR something new".to_owned()),
            Answer::Error(String::new()),
        ]
        .map(FakeServer::after_handshake),
    )
    .await;
}

#[tokio::test]
async fn an_answer_of_the_wrong_shape_is_no_grant() {
    let answers = [
        "+OK\r\n",
        "+QUEUED\r\n",
        ":1\r\n",
        ":0\r\n",
        ":-1\r\n",
        "$-1\r\n",
        "_\r\n",
        "$0\r\n\r\n",
        "$2\r\nOK\r\n",
        "*0\r\n",
        "*-1\r\n",
        "*1\r\n:1\r\n",
        "*2\r\n:1\r\n:0\r\n",
        "*2\r\n:1\r\n$1\r\n-\r\n",
        "*2\r\n:1\r\n$17\r\n90071992547409920\r\n",
        "*3\r\n:1\r\n:2\r\n:3\r\n",
        "*2\r\n:3\r\n:5\r\n",
        "#t\r\n",
        ",1.5\r\n",
        "%0\r\n",
        "(12345\r\n",
    ];
    let raw = |answer: &str| Answer::Raw(answer.as_bytes().to_vec());
    all_are_unavailable(answers.map(|answer| FakeServer::after_handshake(raw(answer)))).await;
}

#[tokio::test]
async fn a_server_that_is_one_node_of_a_cluster_is_misconfigured() {
    for answer in [
        "MOVED 3999 127.0.0.1:1",
        "CROSSSLOT Keys in request don't hash to the same slot",
    ] {
        let peer = FakeServer::after_handshake(Answer::Error(answer.to_owned()));
        let locks = LockManager::connect_lazy(&peer.url()).expect("a URL");
        let answer = timeout(wait::PATIENCE, locks.lock("k").acquire()).await;
        assert_eq!(kind(answer.expect("at once")), ErrorKind::Misconfigured);
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_anywhere_is_no_grant_and_is_undone() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    // The answer of a grant has about eighty bytes.
    for bytes in (0..90).step_by(6) {
        let locks = warm(&proxy, Duration::from_millis(500)).await;
        proxy.set(Direction::Replies, Flow::HoldAfter(bytes));
        let answer = locks.lock("k").ttl(super::long()).acquire().await;
        proxy.pass();
        match answer {
            Ok(guard) => guard.release().await.expect("held"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable),
        }
        wait::eventually("the acquire is undone", async || keys(&server).is_empty()).await;
    }
}
