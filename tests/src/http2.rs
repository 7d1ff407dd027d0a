//! Speaks HTTP/2 with prior knowledge: many requests on one connection, each stream controlled by the
//! test.

use std::collections::BTreeMap;
use std::io;
use std::net::Shutdown;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
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
            let stream = self.begin(method, path, headers, Body::None).await?;
            return stream.answer().await?.whole().await;
        }
        let mut stream = self.begin(method, path, headers, Body::ToCome).await?;
        // A server may answer before it has read the whole request and reject the rest. The answer
        // decides.
        let sent = stream.send(body, true);
        match stream.answer().await {
            Ok(answer) => answer.whole().await,
            Err(error) => Err(sent.err().unwrap_or(error)),
        }
    }

    /// Sends the head of a request; without a body, that is the whole request.
    ///
    /// # Errors
    ///
    /// If the connection has ended.
    pub async fn begin(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Body,
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
        let is_whole = body == Body::None;
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

/// Says whether a body follows the head of a request.
///
/// No body differs from an empty last part: before that part arrives, the server may have answered and
/// ended the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// No body follows.
    None,
    /// The test sends the body in parts.
    ToCome,
}

/// A request under way, which is reset if it is dropped before its answer has come.
#[derive(Debug)]
pub struct Stream {
    answer: ResponseFuture,
    body: SendStream<Bytes>,
}

impl Stream {
    /// Sends a part of the request's body, which may be the last one.
    ///
    /// # Errors
    ///
    /// If the stream has ended.
    pub fn send(&mut self, part: &str, last: bool) -> io::Result<()> {
        let part = Bytes::copy_from_slice(part.as_bytes());
        self.body.send_data(part, last).map_err(failed)
    }

    /// Sends RST_STREAM with CANCEL, as a browser does when its user leaves the page.
    pub fn reset(mut self) {
        self.body.send_reset(Reason::CANCEL);
    }

    /// Waits for the head of the answer.
    ///
    /// # Errors
    ///
    /// If the stream was reset, or the connection has ended.
    pub async fn answer(self) -> io::Result<Answer> {
        let (head, body) = self.answer.await.map_err(failed)?.into_parts();
        Ok(Answer {
            status: head.status.as_u16(),
            headers: text(&head.headers),
            body,
            reset: self.body,
        })
    }
}

/// An answer whose body is still to come. Its stream is reset if the answer is dropped before that.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The headers, with names in lower case; of a repeated header, the last value.
    pub headers: BTreeMap<String, String>,
    body: RecvStream,
    reset: SendStream<Bytes>,
}

impl Answer {
    /// Waits for the next piece of the body; `None` at its end.
    ///
    /// # Errors
    ///
    /// If the stream was reset, or the connection has ended.
    pub async fn piece(&mut self) -> io::Result<Option<String>> {
        let Some(piece) = self.body.data().await else {
            return Ok(None);
        };
        let piece = piece.map_err(failed)?;
        self.body
            .flow_control()
            .release_capacity(piece.len())
            .map_err(failed)?;
        Ok(Some(String::from_utf8_lossy(&piece).into_owned()))
    }

    /// Waits for the complete answer.
    ///
    /// # Errors
    ///
    /// As [`Answer::piece`].
    pub async fn whole(mut self) -> io::Result<Response> {
        let mut body = String::new();
        while let Some(piece) = self.piece().await? {
            body.push_str(&piece);
        }
        Ok(Response {
            status: self.status,
            headers: self.headers,
            body,
        })
    }

    /// Sends RST_STREAM with CANCEL in the middle of the body.
    pub fn reset(mut self) {
        self.reset.send_reset(Reason::CANCEL);
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
