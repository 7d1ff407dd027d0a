//! A simulated server with the scripts beside the protocol.

use std::collections::BTreeMap;
use std::fmt;

use lock_core::protocol_by_words::{Server as Core, Value};

use super::kit;
use crate::server::{Bytes, Data, Refusal, Server};

pub const KEYS: [&str; 3] = ["a", "b", "c"];
/// Two of one manager, and those of three other ones.
pub const ADDRESSES: [&str; 5] = [
    "00000000000a1000",
    "00000000000a1001",
    "00000000000b2000",
    "00000000000c3000",
    "00000000000d4001",
];
/// The connection that runs the scripts. Each address has one that listens.
const CALLER: usize = 100;

/// A call of a script, and the world around it.
#[derive(Clone, Debug)]
pub struct Step {
    pub micros: i64,
    /// Which processes are dead, by their addresses.
    pub dead: [bool; ADDRESSES.len()],
    /// The server is out of memory.
    pub is_full: bool,
    pub script: &'static str,
    pub keys: Vec<String>,
    pub arguments: Vec<String>,
}

/// The answer of an operation, and the messages that processes have received: address and text.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub reply: Value,
    pub pushes: Vec<(String, String)>,
}

/// The members of a key with their scores, and its end. A text is one member.
type Stored = (Vec<(String, f64)>, Option<i64>);

pub struct Both {
    redis: Server,
    pub core: Core,
    /// The hash of each script.
    hashes: BTreeMap<String, String>,
    dead: [bool; ADDRESSES.len()],
}

impl Both {
    pub fn new(scripts: &BTreeMap<String, String>) -> Self {
        let mut both = Self {
            redis: Server::new("first".into()),
            core: Core::default(),
            hashes: BTreeMap::new(),
            dead: [true; ADDRESSES.len()],
        };
        for (name, source) in scripts {
            let hash = both.ask(CALLER, 0, &["SCRIPT", "LOAD", source]);
            let Value::Text(hash) = hash else {
                panic!("{name}: {hash:?}")
            };
            both.hashes.insert(name.clone(), hash);
        }
        both
    }

    /// Runs a step on both.
    ///
    /// # Errors
    ///
    /// How the two differ.
    pub fn run(&mut self, step: &Step) -> Result<Answer, String> {
        self.prepare(step);
        let before = self.core.clone();
        let theirs = self.run_script(step);
        let mut ours = run_core(&mut self.core, step);
        if step.is_full && (ours != theirs || self.is_different().is_some()) {
            // A server refuses nothing to a script that has written, such as one that has taken a waiter from the queue.
            self.core = before.clone();
            self.core.is_full = false;
            ours = run_core(&mut self.core, step);
        }
        if step.is_full && theirs.reply == Value::Error("OOM".into()) {
            // The script has done nothing.
            self.core = before;
            ours = theirs.clone();
            ours.pushes.clear();
        }
        if ours != theirs {
            return Err(format!("protocol {ours:?}\nscripts  {theirs:?}"));
        }
        self.is_different().map_or(Ok(ours), Err)
    }

    /// Makes the world around the step.
    fn prepare(&mut self, step: &Step) {
        for (conn, address) in ADDRESSES.iter().enumerate() {
            if self.dead[conn] == step.dead[conn] {
                continue;
            }
            let verb = if step.dead[conn] {
                self.core.listeners.remove(*address);
                "UNSUBSCRIBE"
            } else {
                self.core.listeners.insert((*address).to_owned());
                "SUBSCRIBE"
            };
            self.ask(conn, 0, &[verb, &format!("lockkit:!m:{address}")]);
        }
        self.dead = step.dead;
        self.core.is_full = step.is_full;
        self.redis.refusal = step.is_full.then_some(Refusal::OutOfMemory);
        self.redis.expire(step.micros);
        self.core.settle(step.micros.cast_unsigned());
    }

    fn run_script(&mut self, step: &Step) -> Answer {
        let count = step.keys.len().to_string();
        let hash = self.hashes[step.script].clone();
        let mut words = vec!["EVALSHA", &hash, &count];
        words.extend(step.keys.iter().chain(&step.arguments).map(String::as_str));
        let reply = plain(self.ask(CALLER, step.micros, &words));
        self.redis.take_changes();
        let pushes = self.redis.take_pushes().into_iter().map(|(conn, bytes)| {
            let Value::List(message) = value(&mut bytes.as_slice()) else {
                panic!("no message: {bytes:?}")
            };
            let Value::Text(text) = &message[2] else {
                panic!("no text: {message:?}")
            };
            (ADDRESSES[conn].to_owned(), with_fence(text))
        });
        let pushes = pushes.collect();
        Answer { reply, pushes }
    }

    fn ask(&mut self, conn: usize, micros: i64, words: &[&str]) -> Value {
        let words: Vec<Bytes> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let mut out = Bytes::new();
        self.redis.run(conn, micros, &words, &mut out);
        value(&mut out.as_slice())
    }

    /// The first key that is not the same.
    fn is_different(&self) -> Option<String> {
        let differs = |name: &str, ours: String| {
            let theirs = format!("{:?}", self.stored(name));
            (ours != theirs).then(|| format!("{name}\nprotocol {ours}\nscripts  {theirs}"))
        };
        for key in KEYS {
            let lock = kit::lock(key);
            let value = self.core.value(&lock).map(|(text, ends)| {
                let members = vec![(text, 0.0)];
                (members, Some(ends.cast_signed()))
            });
            let queue = self.core.queue(&lock);
            let queue = queue.map(|(members, ends)| (members, Some(ends.cast_signed())));
            let shares = self.core.shares(&lock);
            let shares = shares.map(|(members, ends)| (members, Some(ends.cast_signed())));
            let difference = differs(&lock, format!("{value:?}"))
                .or_else(|| differs(&kit::queue(key), format!("{queue:?}")));
            // A set of shares without its key means nothing.
            let of_shares = || differs(&kit::shares(key), format!("{shares:?}"));
            let difference = difference.or_else(|| shares.is_some().then(of_shares).flatten());
            if difference.is_some() {
                return difference;
            }
        }
        let mark = self.core.mark().map(|mark| {
            let members = vec![(mark.to_string(), 0.0)];
            (members, None::<i64>)
        });
        differs(kit::MARK, format!("{mark:?}"))
    }

    /// A key of the server: its text or its members, and its end.
    fn stored(&self, name: &str) -> Option<Stored> {
        let entry = self.redis.entry(name.as_bytes())?;
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let members = match &entry.data {
            Data::Text(value) => vec![(text(value), 0.0)],
            Data::Sorted(set) => {
                let members = set.members().iter();
                members.map(|(score, name)| (text(name), *score)).collect()
            }
            Data::Hash(_) => panic!("{name} is a hash"),
        };
        Some((members, entry.ends))
    }
}

fn run_core(core: &mut Core, step: &Step) -> Answer {
    let micros = step.micros.cast_unsigned();
    let (reply, pushes) = core.run(step.script, micros, &step.keys, &step.arguments);
    Answer { reply, pushes }
}

impl Answer {
    /// The kind of the answer, for counting.
    pub fn kind(&self, step: &Step) -> String {
        let reply = match &self.reply {
            Value::List(items) if !step.script.starts_with("EXTEND") => format!("{:?}", items[0]),
            Value::Text(_) => "a text".to_owned(),
            reply => format!("{reply:?}"),
        };
        let pushed = if self.pushes.is_empty() {
            ""
        } else {
            ", pushes"
        };
        let verb = &step.arguments.first().map_or("", String::as_str);
        let verb = if step.script == "SHARE" { verb } else { "" };
        format!("{} {verb} {reply}{pushed}", step.script)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dead = ADDRESSES.iter().zip(self.dead);
        let dead: Vec<_> = dead
            .filter_map(|(address, dead)| dead.then_some(address))
            .collect();
        let full = if self.is_full { " full" } else { "" };
        write!(f, "{}{full} dead {dead:?} ", self.micros)?;
        write!(f, "{} {:?} {:?}", self.script, self.keys, self.arguments)
    }
}

/// A fencing token as a text: a script may give it as a number.
fn plain(reply: Value) -> Value {
    match reply {
        Value::List(mut items) => {
            if let [Value::Int(1), fence @ Value::Int(_), ..] = &mut items[..]
                && let Value::Int(number) = fence
                && *number > 1_000_000
            {
                *fence = Value::Text(number.to_string());
            }
            Value::List(items)
        }
        reply => reply,
    }
}

/// The message of a grant with its fencing token, where the script says that it is the time.
fn with_fence(message: &str) -> String {
    let words: Vec<&str> = message.split(' ').collect();
    match words[..] {
        [kind, token, seconds, part, grant, "-", lock] => {
            let number = |text: &str| text.parse::<u64>().expect("a number");
            let fence = number(seconds) * 1_000_000 + number(part);
            format!("{kind} {token} {seconds} {part} {grant} {fence} {lock}")
        }
        _ => message.to_owned(),
    }
}

/// Reads a reply of the server.
pub(super) fn value(bytes: &mut &[u8]) -> Value {
    let end = bytes.iter().position(|byte| *byte == b'\r');
    let (line, rest) = bytes.split_at(end.expect("a line"));
    let line = std::str::from_utf8(line).expect("ASCII");
    *bytes = &rest[2..];
    let (kind, line) = line.split_at(1);
    let number = || line.parse::<i64>().expect("a number");
    match kind {
        ":" => Value::Int(number()),
        "+" => Value::Text(line.to_owned()),
        "-" => Value::Error(line.split(' ').next().unwrap_or_default().to_owned()),
        "$" if line == "-1" => Value::Error("nil".to_owned()),
        "$" => {
            let (text, rest) = bytes.split_at(usize::try_from(number()).expect("a length"));
            *bytes = &rest[2..];
            Value::Text(String::from_utf8_lossy(text).into_owned())
        }
        "*" => Value::List((0..number()).map(|_| value(bytes)).collect()),
        other => panic!("{other}{line}"),
    }
}
