//! The HTTP client of the tests of several examples.

use std::net::SocketAddr;

use axum::body::Bytes;
use axum::http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// The parts of an answer that the tests compare: status, `Retry-After` and text.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<String>,
    pub(crate) text: String,
}

/// Sends a `POST` without a body, on a connection of its own.
pub(crate) async fn post(server: SocketAddr, path: &str, user: Option<&str>) -> Answer {
    let mut request = Request::post(path).header("host", server.to_string());
    if let Some(user) = user {
        request = request.header("x-user-id", user);
    }
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let socket = TokioIo::new(TcpStream::connect(server).await.unwrap());
    let (mut client, connection) = http1::handshake(socket).await.unwrap();
    tokio::spawn(connection);
    let response = client.send_request(request).await.unwrap();
    let retry_after = response.headers().get("retry-after");
    let retry_after = retry_after.map(|value| value.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    let text = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(text.to_vec()).unwrap();
    Answer {
        status,
        retry_after,
        text,
    }
}

/// Sends a `POST` and returns the connection, whose end is the end of the client.
pub(crate) async fn post_without_reading(server: SocketAddr, path: &str) -> TcpStream {
    let mut socket = TcpStream::connect(server).await.unwrap();
    // The end of the connection is a reset, which tells the server at once that no client reads the answer.
    socket.set_zero_linger().unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {server}\r\nx-user-id: ada\r\ncontent-length: 0\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket
}
