use std::net::TcpStream;
use std::time::Duration;

use lock_tests::{RedisServer, needs, wait};

#[test]
fn a_server_answers_and_has_its_own_data() {
    needs!(redis);
    let one = RedisServer::start();
    let other = RedisServer::start();
    assert_eq!(one.cli(&["SET", "a", "1"]), "OK");
    assert_eq!(one.get("a").as_deref(), Some("1"));
    assert_eq!(other.get("a"), None);
    assert_eq!(one.keys(), ["a"]);
    assert_eq!(one.time_to_live("a"), None);
    one.cli(&["PEXPIRE", "a", "60000"]);
    assert!(
        one.time_to_live("a")
            .is_some_and(|left| left > Duration::from_secs(30))
    );
    assert_eq!(
        one.try_cli(&["INCR", "a", "b"])
            .expect_err("an error")
            .get(..3),
        Some("ERR")
    );
}

#[test]
fn a_dropped_server_no_longer_listens() {
    needs!(redis);
    let server = RedisServer::start();
    let address = server.address();
    drop(server);
    TcpStream::connect(address).expect_err("no process listens");
}

#[test]
fn a_restarted_server_has_lost_its_data_and_kept_its_port() {
    needs!(redis);
    let server = RedisServer::start();
    let (port, pid) = (server.port(), server.pid());
    server.cli(&["SET", "a", "1"]);
    server.restart();
    assert_eq!(server.get("a"), None);
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), pid);
}

#[test]
fn an_append_only_server_keeps_its_data_over_a_kill_and_not_over_an_empty_restart() {
    needs!(redis);
    let server = RedisServer::options().append_only().start();
    server.cli(&["SET", "a", "1"]);
    server.restart();
    assert_eq!(server.get("a").as_deref(), Some("1"));
    server.restart_empty();
    assert_eq!(server.get("a"), None);
}

#[test]
fn a_killed_server_is_down_until_it_is_started_again() {
    needs!(redis);
    let server = RedisServer::start();
    server.kill();
    TcpStream::connect(server.address()).expect_err("no process listens");
    server.start_again();
    assert_eq!(server.cli(&["PING"]), "PONG");
}

#[test]
fn a_frozen_server_answers_nothing_until_it_goes_on() {
    needs!(redis);
    let server = RedisServer::start();
    server.stop();
    std::thread::scope(|scope| {
        let ping = scope.spawn(|| server.cli(&["PING"]));
        // A test cannot prove that a frozen process never answers, so it watches for a while.
        assert!(!wait::holds_within(Duration::from_millis(200), || ping.is_finished()));
        server.cont();
        assert_eq!(ping.join().expect("an answer"), "PONG");
    });
}

#[test]
fn a_server_with_a_password_requires_it_and_has_it_in_its_url() {
    needs!(redis);
    let server = RedisServer::options().password("secret1").start();
    assert_eq!(server.cli(&["PING"]), "PONG");
    assert_eq!(
        server.url(),
        format!("redis://:secret1@127.0.0.1:{}", server.port())
    );
    assert_eq!(
        server.cli(&["CONFIG", "GET", "requirepass"]),
        "requirepass\nsecret1"
    );
}

#[test]
fn a_full_server_refuses_writes() {
    needs!(redis);
    let server = RedisServer::options().max_memory("1").start();
    assert_eq!(
        server
            .try_cli(&["SET", "a", "1"])
            .expect_err("full")
            .get(..3),
        Some("OOM")
    );
}

#[test]
fn commands_are_counted_from_the_last_reset() {
    needs!(redis);
    let server = RedisServer::start();
    server.cli(&["SET", "a", "1"]);
    server.reset_stats();
    server.cli(&["GET", "a"]);
    server.cli(&["GET", "a"]);
    let stats = server.commandstats();
    assert_eq!(stats.get("get"), Some(&2));
    assert_eq!(stats.get("set"), None);
}

#[test]
fn the_socket_of_the_url_is_there() {
    needs!(redis);
    let server = RedisServer::start();
    let url = server.socket_url();
    let path = url.strip_prefix("unix://").expect("a socket's url");
    std::os::unix::net::UnixStream::connect(path).expect("the server listens");
}
