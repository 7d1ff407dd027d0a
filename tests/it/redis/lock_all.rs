//! Tests locks of several keys on a real server: their commands, its refusals, and many processes.

use std::time::Duration;

use lock_core::{ErrorKind, LockManager, LockRequest, Wait};
use lock_tests::{Direction, Flow, RedisServer, needs, wait};
use tokio::time::timeout;

use super::{asked, its_turn, keys, kind, long, manager, proxied, served, served_both, taken};

fn all(locks: &LockManager, keys: &[&str]) -> LockRequest {
    locks.lock_all(keys.iter().copied()).ttl(long())
}

/// Takes some keys once, because the server may have to be sent the script as a whole.
async fn knows_the_script(locks: &LockManager) {
    let guard = all(locks, &["x", "y"]).acquire().await.expect("free");
    guard.release().await.expect("held");
}

#[tokio::test]
async fn two_free_keys_are_one_script_and_their_release_one_short_script_each() {
    needs!(redis);
    let (server, locks) = served().await;
    knows_the_script(&locks).await;
    server.reset_stats();
    let guard = all(&locks, &["a", "b"]).acquire().await.expect("free");
    let acquire = asked(&server);
    assert_eq!(acquire.get("evalsha"), Some(&1), "{acquire:?}");
    assert_eq!(acquire.get("set"), Some(&2), "{acquire:?}");
    server.reset_stats();
    guard.release().await.expect("held");
    let release = asked(&server);
    assert_eq!(release.get("evalsha"), Some(&2), "{release:?}");
    assert_eq!((release.get("eval"), release.get("time")), (None, None));
    assert!(keys(&server).is_empty());
}

#[tokio::test]
async fn two_free_keys_and_their_release_are_one_round_trip_each() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    knows_the_script(&locks).await;
    let start = proxy.bytes(Direction::Requests);
    proxy.set(Direction::Replies, Flow::Hold);
    let acquiring = tokio::spawn(all(&locks, &["a", "b"]).acquire());
    wait::eventually("both keys are taken before any answer", async || {
        server.get("lockkit:a").is_some() && server.get("lockkit:b").is_some()
    })
    .await;
    let sent = proxy.bytes(Direction::Requests) - start;
    proxy.pass();
    let guard = acquiring.await.expect("no panic").expect("free");
    assert_eq!(proxy.bytes(Direction::Requests) - start, sent);

    let start = proxy.bytes(Direction::Requests);
    proxy.set(Direction::Replies, Flow::Hold);
    let releasing = tokio::spawn(guard.release());
    wait::eventually("both keys are released before any answer", async || {
        keys(&server).is_empty()
    })
    .await;
    let sent = proxy.bytes(Direction::Requests) - start;
    proxy.pass();
    releasing.await.expect("no panic").expect("held");
    assert_eq!(proxy.bytes(Direction::Requests) - start, sent);
}

#[tokio::test]
async fn a_key_of_another_type_among_several_is_a_mistake_and_no_key_is_taken() {
    needs!(redis);
    let (server, locks) = served().await;
    server.cli(&["RPUSH", "lockkit:b", "data"]);
    for wait in [Wait::None, Wait::For(long())] {
        let request = all(&locks, &["a", "b", "c"]).wait(wait);
        let answer = timeout(wait::PATIENCE, request.acquire()).await;
        assert_eq!(kind(answer.expect("at once")), ErrorKind::Misconfigured);
        assert_eq!(keys(&server), ["lockkit:b"]);
    }
    assert_eq!(server.cli(&["LRANGE", "lockkit:b", "0", "-1"]), "data");
    locks.drain(wait::PATIENCE).await;
}

#[tokio::test]
async fn a_full_server_takes_none_of_several_keys() {
    needs!(redis);
    let (server, locks) = served().await;
    let held = all(&locks, &["held:a", "held:b"])
        .acquire()
        .await
        .expect("free");
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    for wait in [Wait::None, Wait::For(Duration::from_millis(50))] {
        let refused = all(&locks, &["a", "b"]).wait(wait).acquire().await;
        assert_eq!(kind(refused), ErrorKind::Unavailable);
    }
    held.release().await.expect("a release needs no memory");
    wait::eventually("nothing is left", async || keys(&server).is_empty()).await;
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    let guard = all(&locks, &["a", "b"]).acquire().await.expect("free");
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_user_who_may_not_set_the_last_of_several_keys_leaves_none_behind() {
    needs!(redis_7);
    let server = RedisServer::start();
    let rights = ["ACL", "SETUSER", "alice", "on", ">sesame", "+@all", "&*"];
    let patterns = [
        "~lockkit:!*",
        "~lockkit:may:*",
        "~lockkit:warm",
        "%R~lockkit:*",
    ];
    server.cli(&[&rights[..], &patterns].concat());
    let url = format!("redis://alice:sesame@{}", server.address());
    let locks = manager(&url).await;
    let refused = all(&locks, &["may:a", "may:b", "no"]).acquire().await;
    assert_eq!(kind(refused), ErrorKind::Misconfigured);
    wait::eventually("no key is left", async || keys(&server).is_empty()).await;
}

/// Runs the script in a server whose second `SET` fails.
#[test]
fn a_key_that_the_server_refuses_to_set_leaves_none_of_those_before_it() {
    needs!(redis);
    let server = RedisServer::start();
    let script = include_str!("../../../lock-core/src/scripts/all.lua");
    let failing = "
        local sets = 0
        local redis = setmetatable({
          pcall = function(command, ...)
            sets = sets + (command == 'SET' and 1 or 0)
            if command == 'SET' and sets == 2 then return {err = 'ERR refused'} end
            return redis.pcall(command, ...)
          end
        }, {__index = redis})";
    let script = format!(
        "{failing}\nlocal function all() {script} end\nlocal reply = all()\nreturn reply.err or reply"
    );
    let names = ["lockkit:!f", "lockkit:a", "lockkit:b", "lockkit:c"];
    let arguments = ["60000", "one", "two", "three"];
    let call = [&["EVAL", &script, "4"], &names[..], &arguments].concat();
    assert!(server.cli(&call).contains("refused"));
    assert!(keys(&server).is_empty());
    // The lock of an earlier send stays, because its owner may count on it.
    server.cli(&["SET", "lockkit:a", "one", "PX", "60000"]);
    assert!(server.cli(&call).contains("refused"));
    assert_eq!(keys(&server), ["lockkit:a"]);
}

#[tokio::test]
async fn the_clock_of_a_server_that_went_back_gives_several_keys_a_higher_token() {
    needs!(redis);
    let (server, locks) = served().await;
    let ahead = super::fencing::goes_back(&server);
    let guard = all(&locks, &["a", "b"]).acquire().await.expect("free");
    assert!(u64::from(guard.fencing_token()) > ahead);
    let mark: u64 = server
        .get("lockkit:!f")
        .expect("a mark")
        .parse()
        .expect("a number");
    // A task of this process may have the next tokens, and the process may then crash.
    assert!(mark >= u64::from(guard.fencing_token()) + 32);
    guard.release().await.expect("held");
    let after = taken(&locks, "b", long()).await;
    assert!(u64::from(after.fencing_token()) > mark);
    after.release().await.expect("held");
}

#[tokio::test]
async fn a_grant_of_several_keys_whose_answer_is_lost_is_granted_again() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    knows_the_script(&locks).await;
    for round in 0..5 {
        proxy.set(Direction::Replies, Flow::Hold);
        let acquiring = tokio::spawn(all(&locks, &["a", "b"]).acquire());
        wait::eventually("the server has granted", async || {
            server.get("lockkit:b").is_some()
        })
        .await;
        let tokens = [server.get("lockkit:a"), server.get("lockkit:b")];
        proxy.cut();
        proxy.pass();
        let guard = timeout(wait::PATIENCE, acquiring).await.expect("an answer");
        let guard = guard.expect("no panic").expect("its own");
        assert_eq!(
            [server.get("lockkit:a"), server.get("lockkit:b")],
            tokens,
            "{round}"
        );
        guard.release().await.expect("held");
        wait::eventually("both are released", async || keys(&server).is_empty()).await;
    }
}

#[tokio::test]
async fn a_request_for_several_keys_that_is_given_up_in_flight_is_undone() {
    needs!(redis);
    let (server, proxy, locks) = proxied(Duration::from_secs(5)).await;
    knows_the_script(&locks).await;
    proxy.set(Direction::Replies, Flow::Hold);
    let acquiring = tokio::spawn(all(&locks, &["a", "b"]).acquire());
    wait::eventually("the server has granted", async || {
        server.get("lockkit:b").is_some()
    })
    .await;
    acquiring.abort();
    wait::eventually("both are given back", async || keys(&server).is_empty()).await;
    proxy.pass();
}

#[tokio::test]
async fn a_lower_key_that_is_deleted_while_its_owner_waits_for_a_higher_one_is_taken_again() {
    needs!(redis);
    let (server, locks, other) = served_both().await;
    let (first, last) = (
        taken(&locks, "a", long()).await,
        taken(&locks, "c", long()).await,
    );
    let request = other.lock_all(["a", "b", "c"]).ttl(Duration::from_secs(2));
    let waiter = tokio::spawn(request.wait(Wait::Forever).acquire());
    let queued = async |queue: &str| server.keys().contains(&format!("lockkit:!q:{{{queue}}}"));
    wait::eventually("the waiter waits for the first key", async || {
        queued("a").await
    })
    .await;
    first.release().await.expect("held");
    wait::eventually(
        "it holds the lower keys and waits for the last one",
        async || server.get("lockkit:b").is_some() && queued("c").await,
    )
    .await;
    let before = server.get("lockkit:a").expect("the waiter's");
    server.cli(&["DEL", "lockkit:a"]);
    // It notices at its next renewal, gives back what it has, and begins anew. It waits for the last key alone, or for each
    // in order, if the second one is still being given back.
    wait::eventually("it has begun anew", async || {
        let has_a_new_one = |value| value != before;
        server.get("lockkit:b").is_none() || server.get("lockkit:a").is_some_and(has_a_new_one)
    })
    .await;
    last.release().await.expect("held");
    let guard = its_turn(waiter).await;
    let values = ["a", "b", "c"].map(|key| server.get(&format!("lockkit:{key}")));
    assert!(values.iter().all(Option::is_some), "{values:?}");
    assert!(
        !values.contains(&Some(before)),
        "a fresh token for each attempt"
    );
    assert!(guard.is_valid());
    guard.release().await.expect("held");
    wait::eventually("nothing is left", async || keys(&server).is_empty()).await;
}
