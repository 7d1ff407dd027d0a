//! What a fake server says.

/// The one answer of a [`FakeServer`](crate::FakeServer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// None, ever; the connection stays open.
    Silence,
    /// A server that reads its data after a restart.
    Loading,
    /// A replica, or a primary that has just become one.
    ReadOnly,
    /// Something that is not this protocol: a web server on the wrong port.
    Garbage,
    /// An error line of one's own, without the leading `-`.
    Error(String),
    /// Any bytes.
    Raw(Vec<u8>),
    /// The connection is closed.
    HangUp,
}

impl Answer {
    /// What to write; `None` hangs up.
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        let error = |line: &str| format!("-{line}\r\n").into_bytes();
        Some(match self {
            Answer::Silence => Vec::new(),
            Answer::Loading => error("LOADING Redis is loading the dataset in memory"),
            Answer::ReadOnly => error("READONLY You can't write against a read only replica."),
            Answer::Garbage => {
                b"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\n\0\xff\n".to_vec()
            }
            Answer::Error(line) => error(line),
            Answer::Raw(bytes) => bytes.clone(),
            Answer::HangUp => return None,
        })
    }
}

/// A good server's answer to the commands that open a connection.
pub(super) fn greeting(request: &[String]) -> Option<Vec<u8>> {
    let answer = match request[0].to_ascii_uppercase().as_str() {
        "HELLO" => hello(),
        "AUTH" | "CLIENT" | "SELECT" => "+OK\r\n".to_owned(),
        "PING" => "+PONG\r\n".to_owned(),
        "SUBSCRIBE" => request[1..].iter().enumerate().map(subscribed).collect(),
        _ => return None,
    };
    Some(answer.into_bytes())
}

fn hello() -> String {
    let text = |text: &str| format!("${}\r\n{text}\r\n", text.len());
    let field = |name: &str, value: &str| text(name) + value;
    [
        "%7\r\n".to_owned(),
        field("server", &text("redis")),
        field("version", &text("7.0.15")),
        field("proto", ":3\r\n"),
        field("id", ":1\r\n"),
        field("mode", &text("standalone")),
        field("role", &text("master")),
        field("modules", "*0\r\n"),
    ]
    .concat()
}

fn subscribed((index, channel): (usize, &String)) -> String {
    let length = channel.len();
    format!(
        ">3\r\n$9\r\nsubscribe\r\n${length}\r\n{channel}\r\n:{}\r\n",
        index + 1
    )
}
