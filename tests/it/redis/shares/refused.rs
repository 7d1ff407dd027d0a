//! Tests the script of shares by itself, where the server refuses one of its commands.

use lock_tests::{RedisServer, needs};

use super::{LOCK, MARK, QUEUE, READER, SHARE, SHARES, inside, is_granted, share, token};

/// Asks for a share that the server refuses to write. Returns its error.
fn refused(server: &RedisServer, token: &str) -> String {
    refused_to(server, "ask", token)
}

fn refused_to(server: &RedisServer, verb: &str, token: &str) -> String {
    let script = SHARE.concat();
    let keys = ["EVAL", script.as_str(), "4", LOCK, MARK, QUEUE, SHARES];
    let arguments = [verb, token, "60000", "2000", "lockkit:!m:", ""];
    let answer = server.try_cli(&[&keys[..], &arguments[..]].concat());
    answer.expect_err("a refusal")
}

#[tokio::test]
async fn a_full_server_grants_no_share_again_that_it_does_not_lengthen() {
    needs!(redis);
    let server = RedisServer::start();
    let [first, second] = [1, 2].map(|number| token(number, READER));
    for one in [&first, &second] {
        assert!(is_granted(&share(&server, "ask", one, "30000")));
    }
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = refused(&server, &second);
    assert!(error.contains("OOM"), "{error}");
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    assert!(is_granted(&share(&server, "ask", &second, "60000")));
}

#[tokio::test]
async fn a_share_that_may_not_be_set_beside_another_leaves_no_set() {
    needs!(redis);
    let server = RedisServer::start();
    let [first, second] = [1, 2].map(|number| token(number, READER));
    assert!(is_granted(&share(&server, "ask", &first, "60000")));
    server.cli(&["ACL", "SETUSER", "default", "-set"]);
    refused(&server, &second);
    assert_eq!(inside(&server), Vec::<String>::new());
    assert_eq!(server.get(LOCK).as_deref(), Some(&*first));
}

#[tokio::test]
async fn a_share_that_may_not_lengthen_the_key_is_not_inside() {
    needs!(redis);
    let server = RedisServer::start();
    let [first, second, third] = [1, 2, 3].map(|number| token(number, READER));
    assert!(is_granted(&share(&server, "ask", &first, "30000")));
    server.cli(&["ACL", "SETUSER", "default", "-pexpireat"]);
    refused(&server, &second);
    assert_eq!(inside(&server), Vec::<String>::new());
    server.cli(&["ACL", "SETUSER", "default", "+pexpireat"]);
    assert!(is_granted(&share(&server, "ask", &second, "30000")));
    server.cli(&["ACL", "SETUSER", "default", "-pexpireat"]);
    refused(&server, &third);
    assert_eq!(inside(&server).len(), 2);
}

#[tokio::test]
async fn a_waiter_that_may_neither_be_told_nor_be_taken_out_stays_in_line_beside_a_free_key() {
    needs!(redis);
    let server = RedisServer::start();
    let [first, second] = [1, 2].map(|number| token(number, READER));
    let waiter = format!("{second} 2000");
    server.cli(&["ZADD", QUEUE, "1", &waiter]);
    server.cli(&["ACL", "SETUSER", "default", "-publish", "-del"]);
    assert_eq!(share(&server, "leave", &first, "60000"), "7");
    assert_eq!(server.cli(&["ZRANGE", QUEUE, "0", "-1"]), waiter);
    assert_eq!(server.get(LOCK), None);
}

#[tokio::test]
async fn the_last_share_that_may_not_delete_the_key_is_still_inside() {
    needs!(redis);
    let server = RedisServer::start();
    let [first, second] = [1, 2].map(|number| token(number, READER));
    assert!(is_granted(&share(&server, "ask", &first, "60000")));
    assert!(is_granted(&share(&server, "ask", &second, "60000")));
    assert_eq!(share(&server, "free", &first, "60000"), "1");
    server.cli(&["ACL", "SETUSER", "default", "-del"]);
    refused_to(&server, "free", &second);
    assert_eq!(inside(&server), std::slice::from_ref(&second));
    server.cli(&["ACL", "SETUSER", "default", "+del"]);
    assert_eq!(share(&server, "free", &second, "60000"), "1");
    assert_eq!(server.keys(), Vec::<String>::new());
}
