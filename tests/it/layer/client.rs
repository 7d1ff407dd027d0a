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
    /// Sends one user's click on "place the order".
    pub(super) async fn click(self, server: &Server, user: &str) -> Response {
        let user_id = [("x-user-id", user)];
        let answer = self.post(server.port(), "/orders", &user_id).await;
        answer.unwrap_or_else(|error| panic!("no answer for {user}: {error}"))
    }

    /// Sends a request without a body on a connection of its own, and returns the answer.
    pub(super) async fn post(
        self,
        port: u16,
        path: &str,
        headers: &[(&str, &str)],
    ) -> io::Result<Response> {
        let answer = async {
            match self {
                Version::Http1 => http::post(port, path, headers, "").await,
                Version::Http2 => {
                    let connection = http2::Connection::open(port).await?;
                    connection.request("POST", path, headers, "").await
                }
            }
        };
        let answer = timeout(wait::PATIENCE, answer).await;
        answer.unwrap_or_else(|_| panic!("{path} is not answered: {self:?}"))
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
    /// Sends one user's click, and does not wait for the answer.
    pub(super) async fn click(self, server: &Server, user: &str) -> Leaver {
        let (port, headers) = (server.port(), [("x-user-id", user)]);
        let wire = match self {
            Leaves::WithFin | Leaves::WithReset | Leaves::HalfClosed => {
                let stream = TcpStream::connect(("127.0.0.1", port)).await;
                let mut stream = stream.expect("the server listens");
                let text = http::encode(port, "POST", "/orders", &headers, "");
                let sent = stream.write_all(text.as_bytes()).await;
                sent.expect("the server reads");
                Wire::Http1(stream)
            }
            Leaves::ResettingItsStream | Leaves::ClosingHttp2 => {
                let connection = http2::Connection::open(port).await;
                let connection = connection.expect("the server listens");
                let begun = connection.begin("POST", "/orders", &headers);
                let stream = begun.await.expect("the server reads");
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
