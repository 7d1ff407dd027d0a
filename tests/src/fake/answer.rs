//! Encodes the answers of a fake server.

/// The one answer of a [`FakeServer`](crate::FakeServer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// No answer, ever; the connection stays open.
    Silence,
    /// A server that reads its data after a restart.
    Loading,
    /// A replica, or a primary that has just become one.
    ReadOnly,
    /// Bytes of another protocol, as from a web server on the wrong port.
    Garbage,
    /// An error line that the test chooses, without the leading `-`.
    Error(String),
    /// Any bytes.
    Raw(Vec<u8>),
    /// A sentinel that knows the port of a master on this machine and the epoch of its configuration.
    Master {
        /// The port that the master listens on.
        port: u16,
        /// Raised by every failover.
        epoch: u64,
    },
    /// A node of a cluster that has one master.
    ///
    /// The master is on this machine and has all slots. The node also knows the cluster's epoch.
    Slots {
        /// The port that the master listens on.
        port: u16,
        /// Raised by every failover.
        epoch: u64,
    },
    /// The server closes the connection.
    HangUp,
}

impl Answer {
    /// Returns the bytes to write in answer to a request; `None` hangs up.
    pub(super) fn bytes(&self, request: &[String]) -> Option<Vec<u8>> {
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
            Answer::Master { port, epoch } => master(request, *port, *epoch),
            Answer::Slots { port, epoch } => slots(request, *port, *epoch),
            Answer::HangUp => return None,
        })
    }
}

/// Encodes the answer to `SENTINEL GET-MASTER-ADDR-BY-NAME` or `SENTINEL MASTER`.
fn master(request: &[String], port: u16, epoch: u64) -> Vec<u8> {
    let (port, epoch) = (port.to_string(), epoch.to_string());
    let words = if asks_for(request, "GET-MASTER-ADDR-BY-NAME") {
        vec!["127.0.0.1", &port]
    } else {
        vec!["name", "mymaster", "config-epoch", &epoch]
    };
    let texts = words.iter().map(|word| bulk(word));
    format!("*{}\r\n{}", words.len(), texts.collect::<String>()).into_bytes()
}

/// Encodes the answer to `CLUSTER SLOTS` or `CLUSTER INFO`.
fn slots(request: &[String], port: u16, epoch: u64) -> Vec<u8> {
    let answer = if asks_for(request, "SLOTS") {
        let host = bulk("127.0.0.1");
        format!("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n{host}:{port}\r\n")
    } else {
        bulk(&format!(
            "cluster_state:ok\r\ncluster_current_epoch:{epoch}\r\n"
        ))
    };
    answer.into_bytes()
}

fn asks_for(request: &[String], what: &str) -> bool {
    let asked = request.get(1);
    asked.is_some_and(|asked| asked.eq_ignore_ascii_case(what))
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// Encodes a good server's answer to the commands that open a connection.
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
