//! Messages of the protocol, version 3, as far as tokio-postgres uses it.

use super::Bytes;

/// The types of columns, by their numbers in `pg_type`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Type {
    Bool = 16,
    Bytea = 17,
    Int8 = 20,
    Int4 = 23,
    Text = 25,
    Void = 2278,
}

/// A message of a client.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    Startup,
    Query(String),
    Parse {
        name: String,
        text: String,
        types: Vec<i32>,
    },
    Bind {
        statement: String,
        params: Vec<Option<Bytes>>,
    },
    /// Of a statement.
    Describe(String),
    Execute,
    Sync,
    /// Of a statement.
    Close(String),
    Terminate,
}

/// Takes the next message from the bytes of a session. `None`: it is not complete.
///
/// # Panics
///
/// For a message that tokio-postgres does not send here.
pub(super) fn take(input: &mut Bytes, is_started: bool) -> Option<Message> {
    // The first message has no letter.
    let head = usize::from(is_started);
    let length = input.get(head..head + 4)?;
    let length = u32::from_be_bytes(length.try_into().ok()?) as usize;
    if input.len() < head + length {
        return None;
    }
    let message: Bytes = input.drain(..head + length).collect();
    let mut body = Body(&message[head + 4..]);
    if !is_started {
        assert_eq!(body.int(), 196_608, "the version of the protocol");
        return Some(Message::Startup);
    }
    Some(match message[0] {
        b'Q' => Message::Query(body.text()),
        b'P' => {
            let (name, text) = (body.text(), body.text());
            let types = (0..body.short()).map(|_| body.int()).collect();
            Message::Parse { name, text, types }
        }
        b'B' => {
            assert_eq!(body.text(), "", "the portal has no name");
            let statement = body.text();
            for _ in 0..body.short() {
                assert_eq!(body.short(), 1, "parameters are binary");
            }
            let params = (0..body.short()).map(|_| body.value()).collect();
            Message::Bind { statement, params }
        }
        kind @ (b'D' | b'C') => {
            assert_eq!(body.bytes(1), b"S", "it is about a statement");
            match kind {
                b'D' => Message::Describe(body.text()),
                _ => Message::Close(body.text()),
            }
        }
        b'E' => Message::Execute,
        b'S' => Message::Sync,
        b'X' => Message::Terminate,
        other => panic!("the simulated server knows no message {}", other as char),
    })
}

/// Gives the statements in the messages of a connection names of its own. tokio-postgres counts them in the whole program, and
/// so would name them otherwise in each history.
pub fn renamed(bytes: &[u8], names: &mut Vec<Bytes>) -> Bytes {
    let (mut out, mut rest) = (Bytes::new(), bytes);
    // The first message of a connection has no letter, and names no statement.
    while let [kind, length @ ..] = rest
        && *kind > 0
        && let Some(length) = length.first_chunk()
    {
        let (whole, after) = rest.split_at(1 + u32::from_be_bytes(*length) as usize);
        let body = &whole[5..];
        let at = match kind {
            b'P' => Some(0),
            // Behind the name of a portal, which is empty, or the kind of what is named.
            b'B' | b'C' | b'D' => Some(1),
            _ => None,
        };
        let name = at.and_then(|at| body[at..].split(|byte| *byte == 0).next());
        match (at, name) {
            (Some(at), Some(name)) if !name.is_empty() => {
                let known = names.iter().position(|it| it == name);
                let number = known.unwrap_or_else(|| {
                    names.push(name.to_vec());
                    names.len() - 1
                });
                let own = format!("s{number}");
                let parts = [&body[..at], own.as_bytes(), &body[at + name.len()..]];
                message(&mut out, *kind, &parts.concat());
            }
            _ => out.extend(whole),
        }
        rest = after;
    }
    out.extend(rest);
    out
}

/// The rest of a message, or of a parameter.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn short(&mut self) -> i16 {
        i16::from_be_bytes(self.bytes(2).try_into().expect("two bytes"))
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.bytes(4).try_into().expect("four bytes"))
    }

    fn text(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0);
        let text = self.bytes(end.expect("an end of the text"));
        self.bytes(1);
        String::from_utf8(text.to_vec()).expect("UTF-8")
    }

    fn value(&mut self) -> Option<Bytes> {
        let length = usize::try_from(self.int()).ok()?;
        Some(self.bytes(length).to_vec())
    }
}

/// The parameters of a statement.
pub(super) struct Params<'a>(pub(super) &'a [Option<Bytes>]);

impl Params<'_> {
    pub(super) fn bytes(&self, at: usize) -> &Bytes {
        self.0[at].as_ref().expect("a parameter that is not NULL")
    }

    pub(super) fn number(&self, at: usize) -> i64 {
        number(self.bytes(at))
    }

    pub(super) fn text(&self, at: usize) -> String {
        String::from_utf8(self.bytes(at).clone()).expect("UTF-8")
    }

    pub(super) fn flag(&self, at: usize) -> bool {
        self.bytes(at)[0] != 0
    }

    pub(super) fn array(&self, at: usize) -> Vec<Bytes> {
        let mut body = Body(self.bytes(at));
        let (dimensions, _, _) = (body.int(), body.int(), body.int());
        if dimensions == 0 {
            return Vec::new();
        }
        assert_eq!(dimensions, 1);
        let (count, _) = (body.int(), body.int());
        let values = (0..count).map(|_| body.value());
        values.map(|value| value.expect("no NULL")).collect()
    }

    pub(super) fn numbers(&self, at: usize) -> Vec<i64> {
        self.array(at).iter().map(|it| number(it)).collect()
    }
}

fn number(bytes: &[u8]) -> i64 {
    i64::from_be_bytes(bytes.try_into().expect("eight bytes"))
}

/// A value of a row.
pub(super) type Value = Option<Bytes>;

pub(super) fn int8(number: i64) -> Value {
    Some(number.to_be_bytes().to_vec())
}

pub(super) fn int4(number: i32) -> Value {
    Some(number.to_be_bytes().to_vec())
}

pub(super) fn flag(flag: bool) -> Value {
    Some(vec![flag.into()])
}

pub(super) fn text(text: &str) -> Value {
    Some(text.as_bytes().to_vec())
}

/// Appends a message to the client.
fn message(out: &mut Bytes, kind: u8, body: &[u8]) {
    out.push(kind);
    out.extend((body.len() as u32 + 4).to_be_bytes());
    out.extend(body);
}

pub(super) fn greeting(out: &mut Bytes) {
    message(out, b'R', &0_i32.to_be_bytes());
    for setting in [
        b"server_version\x0017.0\0".as_slice(),
        b"client_encoding\0UTF8\0",
    ] {
        message(out, b'S', setting);
    }
    message(out, b'K', &[0; 8]);
    ready(out);
}

pub(super) fn ready(out: &mut Bytes) {
    message(out, b'Z', b"I");
}

pub(super) fn parsed(out: &mut Bytes) {
    message(out, b'1', b"");
}

pub(super) fn bound(out: &mut Bytes) {
    message(out, b'2', b"");
}

pub(super) fn closed(out: &mut Bytes) {
    message(out, b'3', b"");
}

pub(super) fn done(out: &mut Bytes, rows: usize) {
    message(out, b'C', format!("SELECT {rows}\0").as_bytes());
}

pub(super) fn described(out: &mut Bytes, params: &[i32], columns: &[Type]) {
    let mut body = (params.len() as u16).to_be_bytes().to_vec();
    body.extend(params.iter().flat_map(|oid| oid.to_be_bytes()));
    message(out, b't', &body);
    if columns.is_empty() {
        return message(out, b'n', b"");
    }
    let mut body = (columns.len() as u16).to_be_bytes().to_vec();
    for column in columns {
        // No name and no table; its type with any size and no modifier; binary.
        body.push(0);
        body.extend([0; 6]);
        body.extend((*column as i32).to_be_bytes());
        body.extend((-1_i16).to_be_bytes());
        body.extend((-1_i32).to_be_bytes());
        body.extend(1_i16.to_be_bytes());
    }
    message(out, b'T', &body);
}

pub(super) fn row(out: &mut Bytes, values: &[Value]) {
    let mut body = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        match value {
            None => body.extend((-1_i32).to_be_bytes()),
            Some(bytes) => {
                body.extend((bytes.len() as u32).to_be_bytes());
                body.extend(bytes);
            }
        }
    }
    message(out, b'D', &body);
}

pub(super) fn error(out: &mut Bytes, code: &str, text: &str) {
    message(out, b'E', &fields("ERROR", code, text));
}

pub(super) fn warning(out: &mut Bytes, code: &str, text: &str) {
    message(out, b'N', &fields("WARNING", code, text));
}

fn fields(severity: &str, code: &str, text: &str) -> Bytes {
    format!("S{severity}\0V{severity}\0C{code}\0M{text}\0\0").into_bytes()
}

pub(super) fn notification(channel: &str, payload: &str) -> Bytes {
    let mut out = Bytes::new();
    let body = [
        &[0; 4],
        channel.as_bytes(),
        b"\0",
        payload.as_bytes(),
        b"\0",
    ];
    message(&mut out, b'A', &body.concat());
    out
}
