//! Tests the PostgreSQL of the harness, its standby and its pooler.

use std::net::TcpStream;
use std::time::Duration;

use lock_tests::{Pooler, SqlServer, needs, wait};
use tokio_postgres::SimpleQueryMessage;

#[test]
fn a_killed_server_is_down_and_has_its_data_when_it_is_started_again() {
    needs!(postgres);
    let mut server = SqlServer::postgres();
    server.sql("CREATE TABLE t (n int); INSERT INTO t VALUES (7)");
    server.kill();
    TcpStream::connect(server.address()).expect_err("no process listens");
    server.start_again();
    assert_eq!(server.value("SELECT n FROM t"), "7");
}

#[test]
fn a_frozen_server_answers_nothing_until_it_goes_on() {
    needs!(postgres);
    let server = SqlServer::postgres();
    server.stop();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| server.value("SELECT 1"));
        // A test cannot prove that a frozen process never answers, so it watches for a while.
        assert!(!wait::holds_within(Duration::from_millis(200), || asked.is_finished()));
        server.cont();
        assert_eq!(asked.join().expect("an answer"), "1");
    });
}

#[test]
fn a_frozen_server_and_a_killed_one_leave_no_process() {
    needs!(postgres);
    let (frozen, mut killed) = (SqlServer::postgres(), SqlServer::postgres());
    frozen.stop();
    killed.kill();
    for server in [frozen, killed] {
        let address = server.address();
        drop(server);
        TcpStream::connect(address).expect_err("no process listens");
    }
}

#[test]
fn a_refused_statement_is_an_error_with_its_code() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let error = server
        .try_sql("SELECT * FROM nowhere")
        .expect_err("no table");
    assert!(error.starts_with("42P01"), "{error}");
}

#[test]
fn a_synchronous_standby_has_all_commits_and_takes_writes_once_promoted() {
    needs!(postgres);
    let mut server = SqlServer::postgres();
    let standby = server.standby(server.address(), &["fsync=off"]);
    server.waits_for_a_standby();
    server.sql("CREATE TABLE t (n int); INSERT INTO t VALUES (7)");
    let refused = standby.try_sql("INSERT INTO t VALUES (8)");
    assert!(refused.expect_err("a standby").starts_with("25006"));
    server.kill();
    standby.promote();
    standby.sql("INSERT INTO t VALUES (8)");
    assert_eq!(standby.value("SELECT sum(n) FROM t"), "15");
}

#[test]
fn a_pooler_gives_each_transaction_a_connection() {
    needs!(postgres);
    needs!(pgbouncer);
    let server = SqlServer::postgres();
    let pooler = Pooler::start(&server, 1);
    let url = pooler.url();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let backends = runtime.block_on(async {
        let mut backends = Vec::new();
        let mut clients = Vec::new();
        for _ in 0..2 {
            let connected = tokio_postgres::connect(&url, tokio_postgres::NoTls).await;
            let (client, connection) = connected.expect("a pooler");
            tokio::spawn(connection);
            let said = client.simple_query("SELECT pg_backend_pid()").await;
            let said = said.expect("an answer");
            backends.extend(said.iter().find_map(|message| match message {
                SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                _ => None,
            }));
            clients.push(client);
        }
        backends
    });
    assert_eq!(backends[0], backends[1], "one connection for both clients");
}
