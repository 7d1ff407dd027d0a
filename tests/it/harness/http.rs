use std::io;

use lock_tests::http;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Answers one request with `answer`; returns the port, and later the request.
async fn answering(answer: &'static str) -> (u16, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("a bound listener").port();
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).await.expect("a request");
        stream
            .write_all(answer.as_bytes())
            .await
            .expect("a client that reads");
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    (port, asked)
}

#[tokio::test]
async fn a_complete_request_is_sent_and_its_answer_is_read() {
    let (port, asked) =
        answering("HTTP/1.1 409 Conflict\r\nRetry-After: 2\r\nContent-Length: 4\r\n\r\nbusy").await;
    let answer = http::post(port, "/orders", &[("x-user-id", "7")], "{}")
        .await
        .expect("whole");
    assert_eq!((answer.status, answer.body.as_str()), (409, "busy"));
    assert_eq!(answer.headers["retry-after"], "2");
    let asked = asked.await.expect("a request");
    assert!(asked.starts_with("POST /orders HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains("\r\nx-user-id: 7\r\n"), "{asked}");
    assert!(asked.ends_with("\r\n\r\n{}"), "{asked}");
}

#[tokio::test]
async fn chunks_are_joined() {
    let answer =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let (port, _asked) = answering(answer).await;
    assert_eq!(
        http::get(port, "/").await.expect("a complete answer").body,
        "abcde"
    );
}

#[tokio::test]
async fn half_an_answer_is_an_error() {
    let halves = [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200",
        "",
    ];
    for half in halves {
        let (port, _asked) = answering(half).await;
        let error = http::get(port, "/").await.expect_err(half);
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{half}");
    }
}
