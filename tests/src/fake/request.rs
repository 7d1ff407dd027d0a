//! Reads requests in the form that clients write: arrays of bulk strings.

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// The bytes that a client has sent and that have not been parsed yet.
#[derive(Default)]
pub(super) struct Requests {
    bytes: Vec<u8>,
}

impl Requests {
    /// Reads the next command and its arguments.
    ///
    /// `None` when the client has gone or sends no valid request.
    pub(super) async fn next(&mut self, stream: &mut TcpStream) -> Option<Vec<String>> {
        loop {
            match parse(&self.bytes) {
                Parsed::Request(words, length) => {
                    self.bytes.drain(..length);
                    return Some(words);
                }
                Parsed::Nonsense => return None,
                Parsed::Incomplete => {
                    if !matches!(stream.read_buf(&mut self.bytes).await, Ok(1..)) {
                        return None;
                    }
                }
            }
        }
    }
}

/// Returns the first request among the bytes that a client has sent.
///
/// `None` when the request is not complete yet. Bytes that are no request give an empty list.
pub(crate) fn first(bytes: &[u8]) -> Option<Vec<String>> {
    match parse(bytes) {
        Parsed::Request(words, _) => Some(words),
        Parsed::Incomplete => None,
        Parsed::Nonsense => Some(Vec::new()),
    }
}

enum Parsed {
    Request(Vec<String>, usize),
    Incomplete,
    Nonsense,
}

fn parse(bytes: &[u8]) -> Parsed {
    let mut reader = Reader { bytes, position: 0 };
    match reader.request() {
        Ok(words) if words.is_empty() => Parsed::Nonsense,
        Ok(words) => Parsed::Request(words, reader.position),
        Err(stopped) => stopped,
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Reader<'_> {
    fn request(&mut self) -> Result<Vec<String>, Parsed> {
        let count = self.number(b'*')?;
        (0..count).map(|_| self.bulk()).collect()
    }

    fn bulk(&mut self) -> Result<String, Parsed> {
        let length = self.number(b'$')?;
        let start = self.position;
        let text = self
            .bytes
            .get(start..start + length)
            .ok_or(Parsed::Incomplete)?;
        self.position = start + length + 2;
        if self.position > self.bytes.len() {
            return Err(Parsed::Incomplete);
        }
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    fn number(&mut self, kind: u8) -> Result<usize, Parsed> {
        let rest = &self.bytes[self.position..];
        let end = rest
            .windows(2)
            .position(|pair| pair == b"\r\n")
            .ok_or(Parsed::Incomplete)?;
        let digits = rest[..end].strip_prefix(&[kind]).ok_or(Parsed::Nonsense)?;
        self.position += end + 2;
        let number = std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.parse().ok());
        number.ok_or(Parsed::Nonsense)
    }
}
