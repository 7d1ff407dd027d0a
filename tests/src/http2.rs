//! Speaks HTTP/2 with prior knowledge: many requests on one connection, each stream controlled by the
//! test.

use std::collections::BTreeMap;
use std::io;
use std::net::Shutdown;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use http::{HeaderMap, Request};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::http::Response;

/// A connection; its socket closes when this is dropped.
#[derive(Debug)]
pub struct Connection {
    requests: SendRequest<Bytes>,
    /// The same socket, so that a test can close the connection below HTTP/2.
    socket: std::net::TcpStream,
    driver: JoinHandle<()>,
    authority: String,
}

impl Connection {
    /// Connects to 127.0.0.1:`port`.
    ///
    /// # Errors
    ///
    /// If there is no connection, or the server does not speak HTTP/2.
    pub async fn open(port: u16) -> io::Result<Connection> {
        Connection::on(TcpStream::connect(("127.0.0.1", port)).await?).await
    }

    /// Speaks HTTP/2 on a socket that the test has connected.
    ///
    /// # Errors
    ///
    /// If the server does not speak HTTP/2.
    pub async fn on(stream: TcpStream) -> io::Result<Connection> {
        let port = stream.peer_addr()?.port();
        stream.set_nodelay(true)?;
        let socket = stream.into_std()?;
        let stream = TcpStream::from_std(socket.try_clone()?)?;
        let (requests, connection) = h2::client::handshake(stream).await.map_err(failed)?;
        Ok(Connection {
            requests,
            socket,
            driver: tokio::spawn(async move {
                // Tests notice the end of the connection by the answers that do not come.
                let _ = connection.await;
            }),
            authority: format!("127.0.0.1:{port}"),
        })
    }

    /// Sends a complete request and returns its complete answer.
    ///
    /// # Errors
    ///
    /// If there is no complete answer.
    pub async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<Response> {
        if body.is_empty() {
            return self.begin(method, path, headers).await?.answer().await;
        }
        let mut stream = self.send_head(method, path, headers, false).await?;
        // A server may answer before it has read the whole request and reject the rest. The answer
        // decides.
        let body = Bytes::copy_from_slice(body.as_bytes());
        let sent = stream.body.send_data(body, true).map_err(failed);
        let answer = stream.answer().await;
        answer.map_err(|error| sent.err().unwrap_or(error))
    }

    /// Sends a whole request without a body, and does not wait for the answer.
    ///
    /// # Errors
    ///
    /// If the connection has ended.
    pub async fn begin(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> io::Result<Stream> {
        self.send_head(method, path, headers, true).await
    }

    /// Sends the head of a request.
    ///
    /// No body differs from an empty last part: before that part arrives, the server may have answered and
    /// ended the stream.
    async fn send_head(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        is_whole: bool,
    ) -> io::Result<Stream> {
        let mut head = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.authority));
        for (name, value) in headers {
            head = head.header(*name, *value);
        }
        let head = head
            .body(())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let mut requests = self.requests.clone().ready().await.map_err(failed)?;
        let (answer, body) = requests.send_request(head, is_whole).map_err(failed)?;
        Ok(Stream { answer, body })
    }

    /// Ends the connection under all its streams with a FIN and without an HTTP/2 message.
    pub fn close(&self) {
        self.driver.abort();
        // The call fails only when the server has closed the socket first.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A request under way, which is reset if it is dropped before its answer has come.
#[derive(Debug)]
pub struct Stream {
    answer: ResponseFuture,
    body: SendStream<Bytes>,
}

impl Stream {
    /// Sends RST_STREAM with CANCEL, as a browser does when its user leaves the page.
    pub fn reset(mut self) {
        self.body.send_reset(Reason::CANCEL);
    }

    /// Waits for the complete answer.
    ///
    /// # Errors
    ///
    /// If the stream was reset, or the connection has ended.
    pub async fn answer(self) -> io::Result<Response> {
        let (head, mut answer) = self.answer.await.map_err(failed)?.into_parts();
        let mut body = String::new();
        while let Some(piece) = answer.data().await {
            let piece = piece.map_err(failed)?;
            let capacity = answer.flow_control().release_capacity(piece.len());
            capacity.map_err(failed)?;
            body.push_str(&String::from_utf8_lossy(&piece));
        }
        Ok(Response {
            status: head.status.as_u16(),
            headers: text(&head.headers),
            body,
        })
    }
}

fn text(headers: &HeaderMap) -> BTreeMap<String, String> {
    let text = headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    text.collect()
}

fn failed(error: h2::Error) -> io::Error {
    io::Error::other(error)
}
