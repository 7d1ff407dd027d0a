//! Makes clients of both versions of HTTP, and the ways in which they go away.

use std::io;
use std::net::Shutdown;

use lock_tests::http::{self, Response};
use lock_tests::{http2, wait};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Server;

#[derive(Clone, Copy, Debug)]
pub(super) enum Version {
    Http1,
    Http2,
}

pub(super) const VERSIONS: [Version; 2] = [Version::Http1, Version::Http2];

impl Version {
    /// Sends a request on a connection of its own and returns the answer.
    pub(super) async fn request(
        self,
        server: &Server,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        self.request_at(server.port(), method, path, headers, body)
            .await
            .unwrap_or_else(|error| panic!("no answer to {method} {path}: {error}"))
    }

    /// Sends a request to any port.
    pub(super) async fn request_at(
        self,
        port: u16,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<Response> {
        let answer = async {
            match self {
                Version::Http1 => http::request(port, method, path, headers, body).await,
                Version::Http2 => {
                    let connection = http2::Connection::open(port).await?;
                    connection.request(method, path, headers, body).await
                }
            }
        };
        let answer = timeout(wait::PATIENCE, answer).await;
        answer.unwrap_or_else(|_| panic!("{method} {path} is not answered: {self:?}"))
    }

    /// Sends one user's click on "place the order".
    pub(super) async fn click(self, server: &Server, user: &str) -> Response {
        self.post(server, &[("x-user-id", user)]).await
    }

    pub(super) async fn post(self, server: &Server, headers: &[(&str, &str)]) -> Response {
        self.request(server, "POST", "/orders", headers, "").await
    }
}

/// The ways in which a client goes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    WithFin,
    WithReset,
    /// The client sends nothing more and still listens, as `nc` does at the end of its input.
    HalfClosed,
    /// The client sends RST_STREAM, and the connection stays.
    ResettingItsStream,
    /// The client sends FIN under an HTTP/2 connection.
    ClosingHttp2,
}

pub(super) const WAYS: [Leaves; 5] = [
    Leaves::WithFin,
    Leaves::WithReset,
    Leaves::HalfClosed,
    Leaves::ResettingItsStream,
    Leaves::ClosingHttp2,
];

/// A request whose client can go away.
pub(super) struct Leaver {
    how: Leaves,
    wire: Wire,
}

enum Wire {
    Http1(TcpStream),
    Http2(http2::Connection, http2::Stream),
}

impl Leaves {
    /// Sends a complete click.
    pub(super) async fn click(self, server: &Server, user: &str) -> Leaver {
        self.begin(server, "/orders", &[("x-user-id", user)], "", 0)
            .await
    }

    /// Sends the beginning of a request whose body has the announced length.
    pub(super) async fn begin(
        self,
        server: &Server,
        path: &str,
        headers: &[(&str, &str)],
        part: &str,
        length: usize,
    ) -> Leaver {
        let port = server.port();
        let wire = match self {
            Leaves::WithFin | Leaves::WithReset | Leaves::HalfClosed => {
                let address = ("127.0.0.1", port);
                let mut stream = TcpStream::connect(address)
                    .await
                    .expect("the server listens");
                let text = http::encode(port, "POST", path, headers, &" ".repeat(length));
                let head = text.len() - length;
                let text = format!("{}{part}", &text[..head]);
                stream
                    .write_all(text.as_bytes())
                    .await
                    .expect("the server reads");
                Wire::Http1(stream)
            }
            Leaves::ResettingItsStream | Leaves::ClosingHttp2 => {
                let connection = http2::Connection::open(port)
                    .await
                    .expect("the server listens");
                let body = match length {
                    0 => http2::Body::None,
                    _ => http2::Body::ToCome,
                };
                let begun = connection.begin("POST", path, headers, body).await;
                let mut stream = begun.expect("the server reads");
                if body == http2::Body::ToCome {
                    stream
                        .send(part, part.len() == length)
                        .expect("the server reads");
                }
                Wire::Http2(connection, stream)
            }
        };
        Leaver { how: self, wire }
    }
}

/// The part of a client that is left after it went away.
pub(super) enum Rest {
    Nothing,
    Listens(TcpStream),
    Connection { _open: http2::Connection },
}

impl Leaver {
    pub(super) fn leave(self) -> Rest {
        match (self.wire, self.how) {
            (Wire::Http1(stream), Leaves::HalfClosed) => {
                let stream = stream.into_std().expect("a socket");
                stream.shutdown(Shutdown::Write).expect("connected");
                Rest::Listens(TcpStream::from_std(stream).expect("a runtime"))
            }
            (Wire::Http1(stream), how) => {
                if how == Leaves::WithReset {
                    stream.set_zero_linger().expect("a socket");
                }
                Rest::Nothing
            }
            (Wire::Http2(connection, stream), Leaves::ClosingHttp2) => {
                connection.close();
                drop(stream);
                Rest::Nothing
            }
            (Wire::Http2(connection, stream), _) => {
                stream.reset();
                Rest::Connection { _open: connection }
            }
        }
    }
}
