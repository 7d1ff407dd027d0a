//! Loses an answer on its way, so that the page can show what its client does then.

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use http_body_util::channel::Channel;

/// A request with this header loses its answer.
pub(crate) const LOSE: &str = "x-lose-answer";

/// The time in which the head of the answer is sent. Without it a browser would repeat the request by itself.
const HEAD: Duration = Duration::from_millis(50);

/// Breaks the connection within the answer, after the order is written.
pub(crate) async fn lose(request: Request, next: Next) -> Response {
    let loses = request.headers().contains_key(LOSE);
    let mut answer = next.run(request).await;
    if !loses {
        return answer;
    }
    answer.headers_mut().remove(header::CONTENT_LENGTH);
    let (mut sender, body) = Channel::<Bytes, io::Error>::new(1);
    tokio::spawn(async move {
        // A client that has gone needs no broken connection.
        if sender.send_data(Bytes::from_static(b"{")).await.is_ok() {
            tokio::time::sleep(HEAD).await;
            sender.abort(io::ErrorKind::ConnectionReset.into());
        }
    });
    answer.map(|_| Body::new(body))
}
