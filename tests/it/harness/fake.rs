use std::time::Duration;

use lock_tests::{Answer, FakeServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

async fn ask(stream: &mut TcpStream, request: &str) -> String {
    stream
        .write_all(request.as_bytes())
        .await
        .expect("an open connection");
    let mut bytes = vec![0; 1024];
    let length = stream.read(&mut bytes).await.expect("an open connection");
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

const HELLO: &str = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
const GET: &str = "*2\r\n$3\r\nget\r\n$1\r\na\r\n";

#[tokio::test]
async fn every_request_gets_the_same_answer_and_a_new_answer_counts_at_once() {
    let fake = FakeServer::start(Answer::Loading);
    let mut stream = TcpStream::connect(fake.address())
        .await
        .expect("a connection");
    assert!(ask(&mut stream, HELLO).await.starts_with("-LOADING "));
    fake.set(Answer::ReadOnly);
    assert!(ask(&mut stream, GET).await.starts_with("-READONLY "));
    fake.set(Answer::Garbage);
    assert!(ask(&mut stream, GET).await.starts_with("HTTP/1.1 400 "));
    fake.set(Answer::HangUp);
    assert_eq!(ask(&mut stream, GET).await, "");
    assert_eq!(fake.commands(), ["HELLO", "GET", "GET", "GET"]);
}

#[tokio::test]
async fn the_handshake_succeeds_when_asked_to() {
    let fake = FakeServer::after_handshake(Answer::Error("OOM full".to_owned()));
    let mut stream = TcpStream::connect(fake.address())
        .await
        .expect("a connection");
    assert!(
        ask(&mut stream, HELLO)
            .await
            .starts_with("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n")
    );
    assert_eq!(ask(&mut stream, GET).await, "-OOM full\r\n");
}

#[tokio::test]
async fn a_silent_server_keeps_the_connection_open_and_reads_all_requests() {
    let fake = FakeServer::start(Answer::Silence);
    let mut stream = TcpStream::connect(fake.address())
        .await
        .expect("a connection");
    let answer = timeout(Duration::from_millis(100), ask(&mut stream, GET)).await;
    answer.expect_err("no answer");
    // Other commands may be there too, because the port may have been another server's, whose
    // clients still look for it.
    assert!(fake.commands().contains(&"GET".to_owned()));
}

#[tokio::test]
async fn a_request_may_come_in_pieces_and_several_at_once() {
    let fake = FakeServer::start(Answer::Raw(b"+OK\r\n".to_vec()));
    let mut stream = TcpStream::connect(fake.address())
        .await
        .expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    for byte in GET.as_bytes() {
        stream
            .write_all(&[*byte])
            .await
            .expect("an open connection");
        tokio::task::yield_now().await;
    }
    stream
        .write_all(HELLO.as_bytes())
        .await
        .expect("an open connection");
    let mut both = [0; 10];
    stream.read_exact(&mut both).await.expect("two answers");
    assert_eq!(&both, b"+OK\r\n+OK\r\n");
    assert_eq!(fake.commands(), ["GET", "HELLO"]);
}
