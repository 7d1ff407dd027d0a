//! Tests commands that arrive after newer ones.

use lock_tests::{RedisServer, needs};

const ONE_SERVER: &str = include_str!("../../../lock-core/src/scripts/one_server.lua");
const COMMON: &str = include_str!("../../../lock-core/src/scripts/common.lua");
const STAND_IN_LINE: &str = include_str!("../../../lock-core/src/scripts/stand_in_line.lua");
const ACQUIRE_FIRST: &str = include_str!("../../../lock-core/src/scripts/acquire_first.lua");
const ACQUIRE: &str = include_str!("../../../lock-core/src/scripts/acquire.lua");
const WITHDRAW_FIRST: &str = include_str!("../../../lock-core/src/scripts/withdraw_first.lua");
const WITHDRAW: &str = include_str!("../../../lock-core/src/scripts/withdraw.lua");
const EXTEND: &str = concat!(
    include_str!("../../../lock-core/src/scripts/extend.lua"),
    include_str!("../../../lock-core/src/scripts/extend_reply.lua")
);

const OURS: &str = "0123456789abcdef/0123456789abcdef0123456789abcdef";
const NEXT: &str = "0123456789abcdef/ffffffffffffffffffffffffffffffff";

fn pttl(server: &RedisServer) -> i64 {
    server
        .cli(&["PTTL", "lockkit:k"])
        .parse()
        .expect("a number")
}

/// Runs the acquire script and returns its answer, a line for each part.
fn acquire(server: &RedisServer, token: &str, ttl: &str, replaces: [&str; 2]) -> String {
    let script = format!("{STAND_IN_LINE}{ACQUIRE_FIRST}{ONE_SERVER}{COMMON}{ACQUIRE}");
    let keys = ["lockkit:k", "lockkit:!f", "lockkit:!q:{k}"];
    let [replaced, fence] = replaces;
    let arguments = [token, ttl, "2000", "1", replaced, "lockkit:!m:", fence];
    let command = [&["EVAL", &script, "3"], &keys[..], &arguments[..]].concat();
    server.cli(&command)
}

#[tokio::test]
async fn a_renewal_that_arrives_late_shortens_nothing() {
    needs!(redis);
    let server = RedisServer::start();
    server.cli(&["SET", "lockkit:k", OURS, "PX", "60000"]);
    let answer = server.cli(&["EVAL", EXTEND, "1", "lockkit:k", OURS, "1000"]);
    assert_eq!(answer, "1");
    assert!(pttl(&server) > 1_000);
    server.cli(&["EVAL", EXTEND, "1", "lockkit:k", OURS, "90000"]);
    assert!(pttl(&server) > 60_000);
}

#[tokio::test]
async fn a_renewal_cuts_a_lease_that_would_outlive_every_ttl() {
    needs!(redis);
    let server = RedisServer::start();
    // The ttl is that of a lease whose server's clock went back by two days.
    server.cli(&["SET", "lockkit:k", OURS, "PX", "172800000"]);
    server.cli(&["EVAL", EXTEND, "1", "lockkit:k", OURS, "60000"]);
    assert!(pttl(&server) <= 60_000);
}

#[tokio::test]
async fn an_acquire_that_arrives_late_shortens_nothing() {
    needs!(redis);
    let server = RedisServer::start();
    server.cli(&["SET", "lockkit:k", OURS, "PX", "60000"]);
    let answer = acquire(&server, OURS, "1000", ["", ""]);
    assert!(answer.starts_with('1'), "granted again: {answer}");
    assert!(pttl(&server) > 1_000);
}

#[tokio::test]
async fn an_acquire_that_supersedes_a_release_gets_a_higher_fencing_token() {
    needs!(redis);
    let server = RedisServer::start();
    server.cli(&["SET", "lockkit:k", OURS, "PX", "60000"]);
    // The token was granted when the server's clock was a century later.
    let used = "5000000000000000";
    let answer = acquire(&server, NEXT, "60000", [OURS, used]);
    assert!(answer.ends_with("5000000000000001"), "{answer}");
}

#[tokio::test]
async fn a_late_duplicate_of_a_withdrawal_does_not_remove_a_newer_vote_of_its_lease() {
    needs!(redis);
    let server = RedisServer::start();
    let withdraw = |up_to: &str| {
        let script = format!("{WITHDRAW_FIRST}{ONE_SERVER}{COMMON}{WITHDRAW}");
        let keys = ["lockkit:k", "lockkit:!q:{k}", "lockkit:!r"];
        let waiters = format!("{OURS} 2000 lockkit:!m:");
        let arguments = [waiters.as_str(), "", "7", up_to];
        server.cli(&[&["EVAL", &script, "3"], &keys[..], &arguments[..]].concat())
    };
    server.cli(&["SET", "lockkit:k", OURS, "PX", "60000"]);
    let accepted = format!("1700000000000200{OURS}");
    server.cli(&["HSET", "lockkit:!r", "7", &accepted]);
    assert_eq!(withdraw("1700000000000100"), "2");
    assert_eq!(server.get("lockkit:k").as_deref(), Some(OURS));
    assert_eq!(withdraw("1700000000000200"), "1");
    assert_eq!(server.get("lockkit:k"), None);
    // Another lease has used the register since, so the register says nothing about the vote.
    server.cli(&["SET", "lockkit:k", OURS, "PX", "60000"]);
    server.cli(&[
        "HSET",
        "lockkit:!r",
        "7",
        &format!("1700000000000300{NEXT}"),
    ]);
    assert_eq!(withdraw("1700000000000100"), "1");
}
