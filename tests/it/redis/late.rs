//! Tests commands that arrive after newer ones.

use lock_tests::{RedisServer, needs};

use super::scripts::{ACQUIRE, NEXT, OURS, pttl, run, scripts};

const WITHDRAW: [&str; 4] = scripts!(
    "withdraw_first.lua",
    "one_server.lua",
    "common.lua",
    "withdraw.lua"
);
const EXTEND: [&str; 2] = scripts!("extend.lua", "extend_reply.lua");

/// Runs the acquire script and returns its answer, a line for each part.
fn acquire(server: &RedisServer, token: &str, ttl: &str, replaces: [&str; 2]) -> String {
    let [replaced, fence] = replaces;
    let arguments = [token, ttl, "2000", "1", replaced, "lockkit:!m:", fence];
    let keys = ["lockkit:k", "lockkit:!f", "lockkit:!q:{k}"];
    run(server, &ACQUIRE, &keys, &arguments)
}

fn extend(server: &RedisServer, ttl: &str) -> String {
    run(server, &EXTEND, &["lockkit:k"], &[OURS, ttl])
}

#[tokio::test]
async fn a_renewal_that_arrives_late_shortens_nothing() {
    needs!(redis);
    let server = RedisServer::start();
    server.cli(&["SET", "lockkit:k", OURS, "PX", "60000"]);
    assert_eq!(extend(&server, "1000"), "1");
    assert!(pttl(&server) > 1_000);
    extend(&server, "90000");
    assert!(pttl(&server) > 60_000);
}

#[tokio::test]
async fn a_renewal_cuts_a_lease_that_would_outlive_every_ttl() {
    needs!(redis);
    let server = RedisServer::start();
    // The ttl is that of a lease whose server's clock went back by two days.
    server.cli(&["SET", "lockkit:k", OURS, "PX", "172800000"]);
    extend(&server, "60000");
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
        let keys = ["lockkit:k", "lockkit:!q:{k}", "lockkit:!r"];
        let waiters = format!("{OURS} 2000 lockkit:!m:");
        run(&server, &WITHDRAW, &keys, &[&waiters, "", "7", up_to])
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
