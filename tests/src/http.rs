//! Sends one HTTP/1.1 request on a connection of its own.
//!
//! A server sees the same bytes as from a click in a browser, because no client in between pools,
//! retries or follows redirects.

use std::collections::BTreeMap;
use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A server's answer.
#[derive(Debug, Clone)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The headers, with names in lower case; of a repeated header, the last value.
    pub headers: BTreeMap<String, String>,
    /// The body, as text.
    pub body: String,
}

/// Sends `GET` for a path to 127.0.0.1:`port`.
///
/// # Errors
///
/// If there is no connection, or no complete answer.
pub async fn get(port: u16, path: &str) -> io::Result<Response> {
    request(port, "GET", path, &[], "").await
}

/// Sends `POST` with a JSON body and further headers.
///
/// # Errors
///
/// If there is no connection, or no complete answer.
pub async fn post(
    port: u16,
    path: &str,
    headers: &[(&str, &str)],
    json: &str,
) -> io::Result<Response> {
    let headers = [&[("content-type", "application/json")], headers].concat();
    request(port, "POST", path, &headers, json).await
}

/// Sends any request.
///
/// # Errors
///
/// If there is no connection, or no complete answer.
pub async fn request(
    port: u16,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<Response> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    request_on(stream, method, path, headers, body).await
}

/// Sends any request on a connection that the test has made.
///
/// # Errors
///
/// If there is no complete answer.
pub async fn request_on(
    mut stream: TcpStream,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<Response> {
    let port = stream.peer_addr()?.port();
    stream
        .write_all(encode(port, method, path, headers, body).as_bytes())
        .await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    parse(&answer).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, answer.into_owned()))
}

/// Encodes a request, for tests that send only a part of it or hang up.
pub fn encode(port: u16, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let own: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\
         content-length: {length}\r\n{own}\r\n{body}"
    )
}

fn parse(answer: &str) -> Option<Response> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let (status_line, header_lines) = head.split_once("\r\n").unwrap_or((head, ""));
    let status = status_line.split(' ').nth(1)?.parse().ok()?;
    let headers: BTreeMap<_, _> = header_lines
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .get("content-length")
        .and_then(|length| length.parse().ok());
    let body = match headers.get("transfer-encoding") {
        Some(coding) if coding == "chunked" => join_chunks(body)?,
        _ if length.is_some_and(|length: usize| length != body.len()) => return None,
        _ => body.to_owned(),
    };
    Some(Response {
        status,
        headers,
        body,
    })
}

/// Joins the chunks; `None` unless the last chunk, which is empty, has arrived.
fn join_chunks(mut rest: &str) -> Option<String> {
    let mut body = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n")?;
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.push_str(after.get(..size)?);
        rest = after.get(size..)?.strip_prefix("\r\n")?;
    }
}
