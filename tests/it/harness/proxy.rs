use std::io;
use std::time::{Duration, Instant};

use lock_tests::{Direction, Flow, Proxy, RedisServer, needs, wait};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const SET: &[u8] = b"SET a 1\r\n";
const PING: &[u8] = b"PING\r\n";
const PONG: &str = "+PONG\r\n";

async fn connect(proxy: &Proxy) -> TcpStream {
    TcpStream::connect(proxy.address())
        .await
        .expect("a connection")
}

async fn read(stream: &mut TcpStream, length: usize) -> io::Result<String> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn ping(stream: &mut TcpStream) -> io::Result<String> {
    stream.write_all(PING).await?;
    read(stream, PONG.len()).await
}

#[tokio::test]
async fn bytes_pass_in_both_directions_and_are_counted() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let mut stream = connect(&proxy).await;
    assert_eq!(ping(&mut stream).await.expect("an answer"), PONG);
    assert_eq!(proxy.bytes(Direction::Requests), PING.len() as u64);
    assert_eq!(proxy.bytes(Direction::Replies), PONG.len() as u64);
    assert_eq!(proxy.connections(), 1);
    drop(stream);
    wait::until("the connection has ended", || proxy.connections() == 0);
}

#[tokio::test]
async fn what_follows_held_bytes_on_their_connection_is_held_too() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let mut stream = connect(&proxy).await;
    proxy.set(Direction::Requests, Flow::HoldFrom(b"SET a".to_vec()));
    assert_eq!(ping(&mut stream).await.expect("an answer"), PONG);
    assert!(!proxy.has_met(Direction::Requests));

    stream.write_all(SET).await.expect("the proxy takes it");
    wait::until("the request is held", || proxy.has_met(Direction::Requests));
    assert_eq!(proxy.held(Direction::Requests), SET.len() as u64);
    stream.write_all(PING).await.expect("the proxy takes it");
    wait::until("what follows is held", || {
        proxy.held(Direction::Requests) == (SET.len() + PING.len()) as u64
    });
    let mut other = connect(&proxy).await;
    assert_eq!(ping(&mut other).await.expect("an answer"), PONG);
    assert_eq!(server.get("a"), None);

    proxy.pass();
    let answers = read(&mut stream, "+OK\r\n".len() + PONG.len()).await;
    assert_eq!(answers.expect("both answers"), format!("+OK\r\n{PONG}"));
}

#[tokio::test]
async fn held_requests_arrive_when_they_pass_again() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let mut stream = connect(&proxy).await;
    ping(&mut stream).await.expect("an answer");

    proxy.black_hole();
    stream.write_all(SET).await.expect("the proxy takes it");
    wait::until("the request is held", || {
        proxy.held(Direction::Requests) == SET.len() as u64
    });
    // The client gives up. Neither its bytes nor its end pass the proxy.
    drop(stream);
    assert_eq!(server.get("a"), None);
    assert_eq!(proxy.connections(), 1);

    proxy.pass();
    wait::until("the late command has its effect", || {
        server.get("a").is_some()
    });
    wait::until("the late end has its effect", || proxy.connections() == 0);
    assert_eq!(proxy.held(Direction::Requests), 0);
}

#[tokio::test]
async fn held_replies_leave_the_command_its_effect() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let mut stream = connect(&proxy).await;

    proxy.set(Direction::Replies, Flow::Hold);
    stream.write_all(SET).await.expect("the proxy takes it");
    wait::until("the reply is held", || proxy.held(Direction::Replies) > 0);
    assert_eq!(server.get("a").as_deref(), Some("1"));
    assert_eq!(proxy.bytes(Direction::Replies), 0);

    proxy.pass();
    assert_eq!(
        read(&mut stream, 5).await.expect("the late reply"),
        "+OK\r\n"
    );
}

#[tokio::test]
async fn a_black_hole_takes_new_connections_too() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    proxy.black_hole();
    let mut stream = connect(&proxy).await;
    stream.write_all(PING).await.expect("the proxy takes it");
    wait::until("the request is held", || {
        proxy.held(Direction::Requests) == PING.len() as u64
    });
    proxy.pass();
    assert_eq!(
        read(&mut stream, PONG.len()).await.expect("an answer"),
        PONG
    );
}

#[tokio::test]
async fn a_reply_is_held_after_the_given_number_of_bytes() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let mut stream = connect(&proxy).await;
    proxy.set(Direction::Replies, Flow::HoldAfter(3));
    stream.write_all(PING).await.expect("the proxy takes it");
    assert_eq!(
        read(&mut stream, 3).await.expect("the beginning"),
        PONG[..3]
    );
    wait::until("the rest is held", || proxy.held(Direction::Replies) == 4);
    assert_eq!(proxy.bytes(Direction::Replies), 3);
    proxy.pass();
    assert_eq!(read(&mut stream, 4).await.expect("the rest"), PONG[3..]);
}

#[tokio::test]
async fn a_delay_is_added_to_each_direction_and_ends_at_once() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let mut stream = connect(&proxy).await;
    let delay = Duration::from_millis(30);
    proxy.set(Direction::Requests, Flow::Delay(delay));
    proxy.set(Direction::Replies, Flow::Delay(delay));
    let start = Instant::now();
    ping(&mut stream).await.expect("an answer");
    assert!(start.elapsed() >= 2 * delay);

    proxy.set(Direction::Requests, Flow::Delay(Duration::from_secs(3600)));
    stream.write_all(PING).await.expect("the proxy takes it");
    wait::until("the request is delayed", || {
        proxy.held(Direction::Requests) == PING.len() as u64
    });
    proxy.pass();
    assert_eq!(
        read(&mut stream, PONG.len()).await.expect("an answer"),
        PONG
    );
}

#[tokio::test]
async fn a_cut_resets_live_connections_and_new_ones_work() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let mut stream = connect(&proxy).await;
    ping(&mut stream).await.expect("an answer");
    proxy.cut();
    let error = read(&mut stream, 1)
        .await
        .expect_err("the connection is gone");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(proxy.connections(), 0);
    assert_eq!(
        ping(&mut connect(&proxy).await).await.expect("an answer"),
        PONG
    );
}

#[tokio::test]
async fn held_bytes_are_lost_in_a_cut() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let mut stream = connect(&proxy).await;
    proxy.black_hole();
    stream.write_all(SET).await.expect("the proxy takes it");
    wait::until("the request is held", || {
        proxy.held(Direction::Requests) > 0
    });
    proxy.cut();
    proxy.pass();
    assert_eq!(
        ping(&mut connect(&proxy).await).await.expect("an answer"),
        PONG
    );
    assert_eq!(server.get("a"), None);
    assert_eq!(proxy.held(Direction::Requests), 0);
}

#[tokio::test]
async fn refused_connections_leave_live_ones_alone() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let mut stream = connect(&proxy).await;
    ping(&mut stream).await.expect("an answer");
    proxy.refuse();
    let refused = TcpStream::connect(proxy.address())
        .await
        .expect_err("a closed port");
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    assert_eq!(ping(&mut stream).await.expect("an answer"), PONG);
    proxy.accept();
    assert_eq!(
        ping(&mut connect(&proxy).await).await.expect("an answer"),
        PONG
    );
}

#[tokio::test]
async fn replies_are_replaced_by_garbage() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let mut stream = connect(&proxy).await;
    proxy.set(Direction::Replies, Flow::Replace(b"garbage".to_vec()));
    stream.write_all(PING).await.expect("the proxy takes it");
    assert_eq!(read(&mut stream, 7).await.expect("something"), "garbage");
}

#[tokio::test]
async fn a_dead_upstream_resets_the_client() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let mut stream = connect(&proxy).await;
    ping(&mut stream).await.expect("an answer");
    server.kill();
    read(&mut stream, 1).await.expect_err("no more answers");
    // The connection is accepted and dropped at once. Depending on the moment, the client sees
    // that in one call or another.
    let answer = async { ping(&mut TcpStream::connect(proxy.address()).await?).await };
    answer.await.expect_err("no server behind the proxy");
    server.start_again();
    assert_eq!(
        ping(&mut connect(&proxy).await).await.expect("an answer"),
        PONG
    );
}

#[tokio::test]
async fn large_amounts_pass_whole_and_in_order() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let mut stream = connect(&proxy).await;
    let value: String = (0..2_000_000)
        .map(|i| char::from(b'a' + (i % 26) as u8))
        .collect();
    let request = format!("*2\r\n$4\r\nECHO\r\n$2000000\r\n{value}\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .expect("the proxy takes it");
    let reply = read(&mut stream, "$2000000\r\n".len() + value.len() + 2).await;
    assert!(reply.expect("the echo") == format!("$2000000\r\n{value}\r\n"));
}

#[tokio::test]
async fn the_bytes_of_a_frozen_connection_arrive_after_those_of_newer_ones() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let mut old = connect(&proxy).await;
    ping(&mut old).await.expect("an answer");
    proxy.freeze();
    old.write_all(SET).await.expect("the proxy takes it");
    // The client gives up, like one that has waited long enough.
    drop(old);
    let mut new = connect(&proxy).await;
    ping(&mut new).await.expect("an answer");
    assert_eq!(server.get("a"), None);
    proxy.thaw();
    wait::until("the late command has its effect", || {
        server.get("a").is_some()
    });
    assert_eq!(ping(&mut new).await.expect("an answer"), PONG);
}

#[tokio::test]
async fn bytes_held_by_a_proxy_that_outlives_its_clients_arrive_when_it_thaws() {
    needs!(redis);
    let server = RedisServer::start();
    let proxy = Proxy::to(server.address());
    let mut stream = connect(&proxy).await;
    ping(&mut stream).await.expect("an answer");
    proxy.freeze();
    stream.write_all(SET).await.expect("the proxy takes it");
    wait::until("the request is held", || {
        proxy.held(Direction::Requests) == SET.len() as u64
    });
    proxy.outlive_clients();
    assert_eq!(stream.read(&mut [0]).await.expect("an end"), 0);
    // A later connection is not affected.
    let mut later = connect(&proxy).await;
    assert_eq!(ping(&mut later).await.expect("an answer"), PONG);
    assert_eq!(server.get("a"), None);
    proxy.thaw();
    wait::until("the request has arrived", || {
        server.get("a").as_deref() == Some("1")
    });
}
