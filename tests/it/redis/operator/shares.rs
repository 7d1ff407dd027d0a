//! Tests what an operator sees and frees where several holders share a key. The data is written by raw commands.

use lock_core::operator::{Forced, HolderProcess, KeyState};
use lock_core::redis1 as redis;
use lock_tests::{RedisServer, needs};

use super::{LOCK, clock, forced, mark, operator, seen};

const SHARES: &str = "lockkit:!s:{k}";

/// Returns the token of a share, whose limit is 5.
fn share(number: u64) -> String {
    format!("0123456789abcdef/{number:032x}00000005")
}

/// Writes shares that end after so many seconds.
fn shared(server: &RedisServer, seconds: &[i64]) {
    let now = i64::try_from(clock(server) / 1_000).expect("milliseconds");
    let longest = seconds.iter().max().expect("a share");
    server.cli(&[
        "SET",
        LOCK,
        "shared/lockkit",
        "PX",
        &(longest * 1_000).to_string(),
    ]);
    for (number, seconds) in seconds.iter().enumerate() {
        let ends = (now + seconds * 1_000).to_string();
        server.cli(&["ZADD", SHARES, &ends, &share(number as u64)]);
    }
}

fn ttl(server: &RedisServer) -> u64 {
    let left = server.time_to_live(LOCK).expect("it ends");
    left.as_secs_f64().ceil() as u64
}

#[tokio::test]
async fn each_share_is_a_holder_with_an_end_of_its_own() {
    needs!(redis);
    let server = RedisServer::start();
    let operator = operator(&server).await;
    shared(&server, &[20, 60, -5]);
    let seen = seen(&operator).await;
    assert_eq!((seen.state(), seen.holder_count()), (KeyState::Held, 2));
    let mut ends: Vec<_> = seen
        .holders()
        .iter()
        .map(|it| {
            assert!(it.is_share());
            assert_eq!(it.process(), HolderProcess::Gone);
            it.remaining().expect("it ends").as_secs_f64().ceil() as u64
        })
        .collect();
    ends.sort_unstable();
    assert_eq!(ends, [20, 60], "the share that has ended is no holder");
}

#[tokio::test]
async fn one_share_alone_is_the_only_holder() {
    needs!(redis);
    let server = RedisServer::start();
    let operator = operator(&server).await;
    server.cli(&["SET", LOCK, &share(7), "PX", "60000"]);
    let alone = seen(&operator).await;
    assert!(alone.holders()[0].is_share());
    let answer = forced(&operator, &alone.holders()[0])
        .await
        .expect("an answer");
    assert_eq!(answer, Forced::Freed);
    assert_eq!(server.get(LOCK), None);
}

#[tokio::test]
async fn an_order_frees_one_share_and_leaves_the_others() {
    needs!(redis);
    let server = RedisServer::start();
    let operator = operator(&server).await;
    shared(&server, &[20, 60, 40]);
    let holders = seen(&operator).await.holders().to_vec();
    let longest = holders
        .iter()
        .max_by_key(|it| it.remaining())
        .expect("three");
    let before = clock(&server);
    assert_eq!(
        forced(&operator, longest).await.expect("an answer"),
        Forced::Freed
    );
    assert!(mark(&server) > before);
    assert_eq!(server.get(LOCK).as_deref(), Some("shared/lockkit"));
    assert_eq!(server.cli(&["ZCARD", SHARES]), "2");
    assert_eq!(ttl(&server), 40, "the end of the latest that is left");
    assert_eq!(
        forced(&operator, longest).await.expect("an answer"),
        Forced::Changed
    );
    for holder in seen(&operator).await.holders() {
        assert_eq!(
            forced(&operator, holder).await.expect("an answer"),
            Forced::Freed
        );
    }
    assert_eq!(
        (server.get(LOCK), server.cli(&["EXISTS", SHARES])),
        (None, "0".to_owned())
    );
}

#[tokio::test]
async fn the_share_of_a_process_that_listens_keeps_its_place_for_the_grace() {
    needs!(redis);
    let server = RedisServer::start();
    let operator = operator(&server).await;
    shared(&server, &[20, 60]);
    // A process that listens at the address of these shares.
    let client = redis::Client::open(server.url()).expect("a URL");
    let mut connection = client.get_connection().expect("a connection");
    let mut listener = connection.as_pubsub();
    listener
        .subscribe("lockkit:!m:0123456789abcdef")
        .expect("a channel");
    let holders = seen(&operator).await.holders().to_vec();
    let shortest = holders.iter().min_by_key(|it| it.remaining()).expect("two");
    assert_eq!(
        forced(&operator, shortest).await.expect("an answer"),
        Forced::Told
    );
    let order = format!("l {} {LOCK}", share(0));
    let mut next = || listener.get_message().expect("a message");
    let mut text = || next().get_payload::<String>().expect("text");
    // Questions come before.
    while text() != order {}
    let members = server.cli(&["ZRANGE", SHARES, "0", "-1"]);
    assert!(
        members.contains(&format!("cooling/{}", &share(0)[..49])),
        "{members}"
    );
    assert_eq!(
        server.cli(&["ZCARD", SHARES]),
        "2",
        "the place is not free yet"
    );
    let left = seen(&operator).await;
    assert_eq!((left.holders().len(), left.holder_count()), (1, 1));
    assert_eq!(left.state(), KeyState::Held);
}
