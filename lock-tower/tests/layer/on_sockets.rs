//! Servers and clients on real sockets.

use std::net::SocketAddr;

use axum::Router;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Serves until the runtime of the test ends.
pub(crate) async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

pub(crate) async fn connect_and_send(address: SocketAddr, request: impl AsRef<[u8]>) -> TcpStream {
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(request.as_ref()).await.unwrap();
    client
}

/// Reads the next response on a connection up to its known length.
pub(crate) async fn read_until(client: &mut TcpStream, is_all: impl Fn(&str) -> bool) -> String {
    let mut text = String::new();
    while !is_all(&text) {
        let mut buffer = [0; 1024];
        let read = client.read(&mut buffer).await.unwrap();
        assert_ne!(read, 0, "the connection ended after {text:?}");
        text.push_str(str::from_utf8(&buffer[..read]).unwrap());
    }
    text
}

/// Reads the next response on a connection up to `end`.
pub(crate) async fn answer_until(client: &mut TcpStream, end: &str) -> String {
    read_until(client, |text| text.ends_with(end)).await
}
