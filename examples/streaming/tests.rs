//! Tests the service on a real socket, with both versions of HTTP.

use std::net::SocketAddr;

use axum::body::Bytes;
use axum::http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Version {
    Http1,
    Http2,
}

const BOTH: [Version; 2] = [Version::Http1, Version::Http2];

async fn serve(time_for_a_page: Duration) -> SocketAddr {
    let app = app(LockManager::in_memory(), time_for_a_page).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// Asks for a report on a connection of its own, which ends with the answer.
async fn ask_for_report(server: SocketAddr, version: Version) -> Response<Incoming> {
    let request = Request::post(format!("http://{server}/reports"))
        .header("host", server.to_string())
        .header("x-user-id", "ada")
        .body(Empty::<Bytes>::new())
        .unwrap();
    let socket = TokioIo::new(TcpStream::connect(server).await.unwrap());
    match version {
        Version::Http1 => {
            let (mut client, connection) = http1::handshake(socket).await.unwrap();
            tokio::spawn(connection);
            client.send_request(request).await.unwrap()
        }
        Version::Http2 => {
            let executor = TokioExecutor::new();
            let (mut client, connection) = http2::handshake(executor, socket).await.unwrap();
            tokio::spawn(connection);
            client.send_request(request).await.unwrap()
        }
    }
}

async fn text(response: Response<Incoming>) -> String {
    let text = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(text.to_vec()).unwrap()
}

#[tokio::test]
async fn a_report_is_sent_completely_and_its_cooldown_follows() {
    for version in BOTH {
        let server = serve(Duration::ZERO).await;
        let report = ask_for_report(server, version).await;
        assert_eq!(report.status(), StatusCode::OK);
        assert_eq!(text(report).await.lines().count(), 10, "{version:?}");
        let second = ask_for_report(server, version).await;
        assert_eq!(second.status(), StatusCode::CONFLICT);
        assert!(text(second).await.contains("lock_cooling_down"));
    }
}

#[tokio::test]
async fn a_report_is_refused_while_another_is_sent_and_until_its_reader_leaves() {
    for version in BOTH {
        let server = serve(Duration::from_secs(3600)).await;
        let mut first = ask_for_report(server, version).await;
        let page = first.body_mut().frame().await.unwrap().unwrap();
        assert!(page.into_data().unwrap().starts_with(b"page 1 "));
        let second = ask_for_report(server, version).await;
        assert_eq!(second.status(), StatusCode::CONFLICT);
        assert!(text(second).await.contains("lock_busy"), "{version:?}");

        drop(first);
        // The server needs some time to notice that the client has left.
        while !text(ask_for_report(server, version).await)
            .await
            .contains("lock_cooling_down")
        {
            tokio::task::yield_now().await;
        }
    }
}
