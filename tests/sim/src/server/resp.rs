//! Replies in both versions of the Redis protocol, and the commands in a buffer of received bytes.

use std::borrow::Cow;
use std::io::Write;

use super::Bytes;
use super::numbers::Float;

/// A reply of one command, or of a script.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Null,
    Int(i64),
    Bulk(Bytes),
    Status(Cow<'static, str>),
    Error(Cow<'static, str>),
    Float(Float),
    Array(Vec<Reply>),
    Map(Vec<(Reply, Reply)>),
    /// A report of `INFO`.
    Report(String),
    /// Pushes that stand in place of a reply: the confirmations of `SUBSCRIBE`.
    Pushes(Vec<Vec<Reply>>),
    /// The reply comes later.
    Later,
}

/// The text of an error, with its code and without the leading `-`.
pub(super) type Failure = Cow<'static, str>;

pub(super) type Answer = Result<Reply, Failure>;

/// The version of the protocol that a connection has chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Protocol {
    #[default]
    Resp2,
    Resp3,
}

pub(super) const OK: Reply = Reply::Status(Cow::Borrowed("OK"));

impl Reply {
    pub(super) fn text(text: impl AsRef<[u8]>) -> Self {
        Reply::Bulk(text.as_ref().to_vec())
    }

    pub(super) fn write(&self, protocol: Protocol, out: &mut Bytes) {
        let is_new = protocol == Protocol::Resp3;
        match self {
            Reply::Null if is_new => out.extend_from_slice(b"_\r\n"),
            Reply::Null => out.extend_from_slice(b"$-1\r\n"),
            Reply::Int(number) => header(b':', *number, out),
            Reply::Bulk(bytes) => bulk(bytes, out),
            Reply::Status(text) => line(b'+', text, out),
            Reply::Error(text) => line(b'-', &text.replace(['\r', '\n'], " "), out),
            Reply::Float(float) if is_new => line(b',', &float.text(), out),
            Reply::Float(float) => bulk(float.text().as_bytes(), out),
            Reply::Array(items) => {
                header(b'*', length(items.len()), out);
                items.iter().for_each(|item| item.write(protocol, out));
            }
            Reply::Map(pairs) => {
                match protocol {
                    Protocol::Resp3 => header(b'%', length(pairs.len()), out),
                    Protocol::Resp2 => header(b'*', 2 * length(pairs.len()), out),
                }
                for (key, value) in pairs {
                    key.write(protocol, out);
                    value.write(protocol, out);
                }
            }
            Reply::Report(text) if is_new => {
                header(b'=', length(text.len()) + 4, out);
                out.extend_from_slice(b"txt:");
                out.extend_from_slice(text.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
            Reply::Report(text) => bulk(text.as_bytes(), out),
            Reply::Pushes(pushes) => {
                for push in pushes {
                    write_push(push, protocol, out);
                }
            }
            Reply::Later => {}
        }
    }
}

/// Writes a message that answers no command. Before version 3 of the protocol it is an array.
pub(super) fn write_push(parts: &[Reply], protocol: Protocol, out: &mut Bytes) {
    match protocol {
        Protocol::Resp3 => header(b'>', length(parts.len()), out),
        Protocol::Resp2 => header(b'*', length(parts.len()), out),
    }
    parts.iter().for_each(|part| part.write(protocol, out));
}

fn header(kind: u8, number: i64, out: &mut Bytes) {
    out.push(kind);
    if (0..10).contains(&number) {
        out.push(b'0' + number as u8);
    } else {
        write!(out, "{number}").expect("a buffer takes everything");
    }
    out.extend_from_slice(b"\r\n");
}

fn line(kind: u8, text: &str, out: &mut Bytes) {
    out.push(kind);
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn bulk(bytes: &[u8], out: &mut Bytes) {
    header(b'$', length(bytes.len()), out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn length(length: usize) -> i64 {
    i64::try_from(length).expect("a length of memory")
}

/// Splits complete commands off a buffer of received bytes.
///
/// # Panics
///
/// For bytes that are no command as clients send it.
pub fn parse(input: &mut Bytes) -> Vec<Vec<Bytes>> {
    let mut commands = Vec::new();
    let mut rest = input.as_slice();
    while let Some((command, behind)) = command(rest) {
        commands.push(command);
        rest = behind;
    }
    let used = input.len() - rest.len();
    input.drain(..used);
    commands
}

fn command(input: &[u8]) -> Option<(Vec<Bytes>, &[u8])> {
    let (count, mut rest) = counted(b'*', input)?;
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let (bytes, behind) = counted(b'$', rest)?;
        if behind.len() < bytes + 2 {
            return None;
        }
        words.push(behind[..bytes].to_vec());
        rest = &behind[bytes + 2..];
    }
    Some((words, rest))
}

/// Reads `<kind><number>\r\n`. `None`: it is not complete.
fn counted(kind: u8, input: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = input.split_first()?;
    assert_eq!(*first, kind, "a client sends no command: {input:?}");
    let end = rest.iter().position(|byte| *byte == b'\r')?;
    if rest.len() < end + 2 {
        return None;
    }
    let number = rest[..end].iter().fold(0, |number, digit| {
        assert!(digit.is_ascii_digit(), "a client sends no number");
        10 * number + usize::from(digit - b'0')
    });
    Some((number, &rest[end + 2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_arrive_in_pieces_are_split_off_when_they_are_complete() {
        let sent = b"*2\r\n$3\r\nGET\r\n$2\r\na\n\r\n*1\r\n$4\r\nTIME\r\n";
        for middle in 0..=sent.len() {
            let mut buffer = sent[..middle].to_vec();
            let mut commands = parse(&mut buffer);
            buffer.extend_from_slice(&sent[middle..]);
            commands.extend(parse(&mut buffer));
            assert_eq!(
                commands,
                [
                    vec![b"GET".to_vec(), b"a\n".to_vec()],
                    vec![b"TIME".to_vec()]
                ]
            );
            assert!(buffer.is_empty());
        }
    }
}
