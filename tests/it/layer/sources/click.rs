//! Makes requests for the tables, and sends them from chosen addresses.

use lock_tests::http::{self, Response};
use lock_tests::{http2, wait};
use tokio::net::TcpSocket;
use tokio::time::timeout;

use super::{Server, Version};

/// A request, by default a POST without headers or body from 127.0.0.1.
#[derive(Clone, Debug)]
pub(super) struct Click {
    method: &'static str,
    path: &'static str,
    headers: Vec<(&'static str, &'static str)>,
    pub(super) body: &'static str,
    from: [u8; 4],
}

/// Makes a click on an order in the shop.
pub(super) fn click() -> Click {
    Click {
        method: "POST",
        path: "/shop/orders/1",
        headers: Vec::new(),
        body: "",
        from: [127, 0, 0, 1],
    }
}

impl Click {
    pub(super) fn put(self) -> Click {
        Click {
            method: "PUT",
            ..self
        }
    }

    pub(super) fn to(self, path: &'static str) -> Click {
        Click { path, ..self }
    }

    pub(super) fn with(mut self, name: &'static str, value: &'static str) -> Click {
        self.headers.push((name, value));
        self
    }

    pub(super) fn body(self, body: &'static str) -> Click {
        Click { body, ..self }
    }

    pub(super) fn from(self, from: [u8; 4]) -> Click {
        Click { from, ..self }
    }

    /// Sends the click on a connection of its own.
    pub(super) async fn send(&self, version: Version, server: &Server) -> Response {
        let answer = async {
            let socket = TcpSocket::new_v4()?;
            socket.bind((self.from, 0).into())?;
            let stream = socket
                .connect(([127, 0, 0, 1], server.port()).into())
                .await?;
            let (method, path, headers) = (self.method, self.path, &self.headers);
            match version {
                Version::Http1 => http::request_on(stream, method, path, headers, self.body).await,
                Version::Http2 => {
                    let connection = http2::Connection::on(stream).await?;
                    connection.request(method, path, headers, self.body).await
                }
            }
        };
        let answer = timeout(wait::PATIENCE, answer).await;
        let answer = answer.unwrap_or_else(|_| panic!("{self:?} is not answered"));
        answer.unwrap_or_else(|error| panic!("no answer to {self:?}: {error}"))
    }
}
