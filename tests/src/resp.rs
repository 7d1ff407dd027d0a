//! A small blocking Redis client.
//!
//! A test observes a server by it and not by the client under test. The only command that it adds
//! to the server's statistics is the command itself.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// One connection in RESP2.
#[derive(Debug)]
pub(crate) struct Connection(BufReader<TcpStream>);

/// A reply as text: arrays have one element a line, and nil is `(nil)`, as redis-cli prints it. An
/// error reply is `Err`.
pub(crate) type Reply = Result<String, String>;

impl Connection {
    /// Connects. The same `timeout` bounds every later read.
    pub(crate) fn open(address: SocketAddr, timeout: Duration) -> io::Result<Connection> {
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(timeout))?;
        Ok(Connection(BufReader::new(stream)))
    }

    /// Sends one command and reads its reply.
    pub(crate) fn command(&mut self, arguments: &[&str]) -> io::Result<Reply> {
        self.0.get_mut().write_all(&encode(arguments))?;
        self.read_reply()
    }

    fn read_reply(&mut self) -> io::Result<Reply> {
        let line = self.read_line()?;
        let (kind, rest) = line.split_at_checked(1).ok_or(io::ErrorKind::InvalidData)?;
        match kind {
            "+" | ":" => Ok(Ok(rest.to_owned())),
            "-" => Ok(Err(rest.to_owned())),
            "$" => Ok(Ok(self.read_bulk(number(rest)?)?)),
            "*" => self.read_array(number(rest)?),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, line)),
        }
    }

    fn read_bulk(&mut self, length: i64) -> io::Result<String> {
        let Ok(length) = usize::try_from(length) else {
            return Ok("(nil)".to_owned());
        };
        let mut bytes = vec![0; length + 2];
        self.0.read_exact(&mut bytes)?;
        bytes.truncate(length);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn read_array(&mut self, length: i64) -> io::Result<Reply> {
        if length < 0 {
            return Ok(Ok("(nil)".to_owned()));
        }
        let mut lines = Vec::new();
        for _ in 0..length {
            // An error inside an array is a value there, for example in an answer to EXEC.
            lines.push(self.read_reply()?.unwrap_or_else(|error| error));
        }
        Ok(Ok(lines.join("\n")))
    }

    fn read_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end_matches("\r\n").to_owned())
    }
}

fn encode(arguments: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend_from_slice(format!("${}\r\n{argument}\r\n", argument.len()).as_bytes());
    }
    bytes
}

fn number(text: &str) -> io::Result<i64> {
    text.parse()
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, text.to_owned()))
}
