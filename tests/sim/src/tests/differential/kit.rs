//! The kit's scripts, assembled as lock-core assembles them, and random calls of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::server::{Bytes, Data, Server};

use super::random::Random;

const CHANNELS: &str = "lockkit:!m:";
pub const MARK: &str = "lockkit:!f";
pub const REGISTERS: &str = "lockkit:!r";
/// The processes of the first two addresses listen.
const ADDRESSES: [&str; 3] = ["00000000000000aa", "00000000000000bb", "00000000000000cc"];
pub const KEYS: [&str; 2] = ["a", "b"];

/// The channel of a client.
pub fn channel(client: usize) -> String {
    [CHANNELS, ADDRESSES[client]].concat()
}

/// Reads which parts each script has from lock-core's list of them.
pub fn scripts() -> BTreeMap<String, String> {
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lock-core/src");
    let read = |path: &str| fs::read_to_string(core.join(path)).expect("a file of lock-core");
    let list = read("store/redis/wire/scripts.rs");
    // Each second piece stands between quotes.
    let source = |parts: &str| -> String {
        let parts = parts.split('"').skip(1).step_by(2);
        parts.map(|part| read(&format!("scripts/{part}"))).collect()
    };
    let mut scripts = BTreeMap::new();
    for call in list.split("\nscript!(").skip(1) {
        let (call, _) = call.split_once(");").expect("the end of a macro's call");
        let (name, parts) = call.split_once(',').expect("a name and parts");
        scripts.insert(name.trim().to_owned(), source(parts));
    }
    let (_, table) = list.split_once("\nof_a_lock! {\n").expect("the table");
    let (table, _) = table.split_once("\n}\n").expect("the end of the table");
    for row in table.lines() {
        let (name, parts) = row.split_once(':').expect("a name and parts");
        let name = name.trim().to_uppercase();
        for (name, between) in [
            (name.clone(), r#", "one_server.lua", "#),
            (format!("{name}_ON_A_NODE"), r#", "cluster.lua", "#),
        ] {
            scripts.insert(name, source(&parts.replace("] [", between)));
        }
    }
    assert!(scripts.len() > 30, "{:?}", scripts.keys());
    scripts
}

/// The names of one lock, and what a call of a script may be about.
struct Call<'a> {
    random: &'a mut Random,
    server: &'a Server,
    micros: i64,
    lock: String,
    queue: String,
    shares: String,
}

/// The keys and arguments of a random call of a script.
pub fn call(name: &str, random: &mut Random, server: &Server, micros: i64) -> [Vec<String>; 2] {
    let key = random.pick(&KEYS);
    let mut call = Call {
        random,
        server,
        micros,
        lock: lock(key),
        queue: queue(key),
        shares: shares(key),
    };
    call.made(name)
}

pub fn lock(key: &str) -> String {
    format!("lockkit:{key}")
}

pub fn queue(key: &str) -> String {
    format!("lockkit:!q:{{{key}}}")
}

pub fn shares(key: &str) -> String {
    format!("lockkit:!s:{{{key}}}")
}

impl Call<'_> {
    fn made(&mut self, name: &str) -> [Vec<String>; 2] {
        let (lock, queue, shares) = (self.lock.clone(), self.queue.clone(), self.shares.clone());
        let [lock, queue, shares] = [lock.as_str(), &queue, &shares];
        let (token, other, share) = (self.token(), self.token(), self.share());
        let (ttl, grant, fence) = (self.ttl(), self.grant(), self.fence());
        let one_lock = [lock, MARK, queue];
        let name = name.strip_suffix("_ON_A_NODE").unwrap_or(name);
        match name {
            "ACQUIRE" => {
                let waits = self.random.pick(&["0", "1"]);
                let replaced = self.sometimes(other);
                texts(
                    &one_lock,
                    &[&token, &ttl, &grant, waits, &replaced, CHANNELS, &fence],
                )
            }
            "RELEASE" => {
                let mut call = texts(&one_lock, &[&token, &fence, CHANNELS, &grant]);
                if self.random.once_in(5) {
                    call[1].push("leave".to_owned());
                }
                call
            }
            "COOL" => {
                let end = (self.micros / 1_000 + self.random.between(-50, 3_000)).to_string();
                let mut call = texts(&one_lock, &[&token, &fence, CHANNELS, &grant, &ttl]);
                if self.random.once_in(2) {
                    call[1].push(end);
                }
                call
            }
            "REMEMBER" => {
                let keys = if self.random.once_in(4) {
                    &one_lock[..1]
                } else {
                    &one_lock
                };
                let record = self.random.pick(&["", "paid", "a/b\r\n\0\u{e9}"]);
                texts(
                    keys,
                    &[&token, &fence, CHANNELS, &grant, &ttl, record, &grant],
                )
            }
            "VACATE" => texts(&one_lock, &[&token, &fence, CHANNELS, &grant, "300"]),
            "SHARE" => {
                let verb = self
                    .random
                    .pick(&["ask", "wait", "wait", "free", "free", "leave"]);
                let who = if self.random.once_in(4) { token } else { share };
                texts(
                    &[lock, MARK, queue, shares],
                    &[verb, &who, &ttl, &grant, CHANNELS, &fence],
                )
            }
            "EXTEND" | "EXTEND_AND_WATCH" => {
                let mut call = texts(&[lock], &[&token, &ttl]);
                if self.random.once_in(3) {
                    call = texts(&[lock, MARK], &[&token, &ttl, &other, &ttl]);
                }
                self.written(call)
            }
            "ALL" => texts(&[MARK, "lockkit:a", "lockkit:b"], &[&ttl, &token, &other]),
            "EXTEND_SHARES" => {
                let who = if self.random.once_in(4) { token } else { share };
                let call = texts(&[lock, shares], &[&who, &ttl]);
                self.written(call)
            }
            "BATCH" => self.batch(),
            "JOIN" => {
                let how = self.random.pick(&["look", "wait", "fresh"]);
                texts(&[REGISTERS], &["node", how, "2000"])
            }
            "PROPOSE" => self.propose(&token, &other),
            "WITHDRAW" => {
                let first = format!("{token} {grant} {CHANNELS}");
                let number = sixteen(self.micros);
                match self.random.below(3) {
                    0 => texts(&[lock, queue], &[&first]),
                    1 => {
                        let how = self.random.pick(&["", "leave", "pause", "300"]);
                        texts(&[lock, queue], &[&first, how, "", ""])
                    }
                    _ => texts(&[lock, queue, REGISTERS], &[&first, "", "7", &number]),
                }
            }
            "SET_ASIDE" => {
                let number = sixteen(self.micros);
                texts(&[lock, REGISTERS], &[&token, "7", &number])
            }
            "PROPOSE_SHARE" => {
                let (number, before) = self.number();
                let waits = self.random.pick(&["0", "1"]);
                texts(
                    &[lock, REGISTERS, queue, shares],
                    &[
                        &share, &ttl, &grant, CHANNELS, "7", &number, &before, "2000", waits,
                    ],
                )
            }
            "WITHDRAW_SHARE" => {
                let how = self.random.pick(&["", "leave", "pause", "300"]);
                texts(&[lock, queue, shares], &[&share, &grant, CHANNELS, how])
            }
            "FORGET" => texts(&[lock], &[]),
            "CLOCK" => texts(&[lock], &[]),
            "SWAP" if self.random.once_in(2) => {
                let fence = sixteen(self.micros);
                texts(&[lock, MARK], &[&token, &other, &ttl, &fence])
            }
            "SWAP" => texts(&[lock], &[&token, &other, &ttl]),
            "INSPECT" => {
                let (mark, register) = self.random.pick(&[&(MARK, ""), &(REGISTERS, "7")]);
                texts(&[lock, mark, queue, shares], &[register, "2", "2"])
            }
            "FORCE" => {
                let (mark, register) = self.random.pick(&[&(MARK, ""), &(REGISTERS, "7")]);
                let who = if self.random.once_in(2) { token } else { share };
                let number = sixteen(self.micros);
                texts(
                    &[lock, mark, queue, shares],
                    &[&who, &fence, CHANNELS, "2000", register, &number],
                )
            }
            "FREE" => {
                let cooldown = self.random.pick(&["", "0", "500"]);
                texts(&[lock], &[&token, cooldown, "0"])
            }
            "EXTEND_SHARE_PART" => match self.random.once_in(2) {
                true => texts(&[lock], &["lock", &share, &ttl]),
                false => texts(&[shares], &["set", &share, &ttl]),
            },
            "REMOVE_SHARE" => texts(&[shares], &[&share]),
            "FREE_SHARED" => {
                let end = (self.micros / 1_000 + self.random.between(-10, 5_000)).to_string();
                texts(&[lock], &["shared/lockkit", &end])
            }
            "RAISE" => {
                let fence = if fence.is_empty() {
                    "5".to_owned()
                } else {
                    fence
                };
                texts(&[MARK], &[&fence])
            }
            "TELL" => texts(&[queue], &[&token, &grant, CHANNELS, lock, "300"]),
            "PROBE" => match self.random.once_in(2) {
                true => texts(&[], &[MARK, queue]),
                false => texts(&[MARK, queue], &[MARK, queue]),
            },
            other => panic!("the comparison makes no calls of the new script {other}"),
        }
    }

    /// One to three releases, and acquires, of different locks.
    fn batch(&mut self) -> [Vec<String>; 2] {
        let releases = self.random.below(3);
        let acquires = self.random.below(3) + usize::from(releases == 0);
        let [first, second] = [KEYS.map(lock), KEYS.map(queue)];
        let mut keys = vec![MARK.to_owned()];
        keys.extend_from_slice(&first[..releases]);
        keys.extend_from_slice(&second[..releases]);
        keys.extend_from_slice(&first[..acquires.min(2)]);
        let acquires = acquires.min(2);
        let (grant, ttl, fence) = (self.grant(), self.ttl(), self.fence());
        let each = |one: String, count: usize, random: &mut Random| match count {
            0 => String::new(),
            2 if random.once_in(2) => format!("{one} 700"),
            _ => one,
        };
        let fence = if releases == 0 { String::new() } else { fence };
        let grants = each(grant, releases, self.random);
        let ttls = each(ttl, acquires, self.random);
        let mut arguments = vec![
            CHANNELS.to_owned(),
            releases.to_string(),
            fence,
            grants,
            ttls,
        ];
        for _ in 0..releases + acquires {
            arguments.push(self.token());
        }
        [keys, arguments]
    }

    fn propose(&mut self, token: &str, other: &str) -> [Vec<String>; 2] {
        let (number, before) = self.number();
        let (ttl, grant) = (self.ttl(), self.grant());
        let vote = format!("{before} {number}{token}2000 {grant} {CHANNELS}");
        let (lock, queue) = (self.lock.clone(), self.queue.clone());
        if self.random.once_in(2) {
            return texts(&[&lock, REGISTERS], &[&vote, &ttl, "7"]);
        }
        let waits = self.random.pick(&["0", "1"]);
        let replaced = self.sometimes(other.to_owned());
        texts(
            &[&lock, REGISTERS, &queue],
            &[&vote, &ttl, "7", waits, &replaced],
        )
    }

    /// A number of a vote, and the same without its block.
    fn number(&mut self) -> (String, String) {
        let number = self.micros + self.random.between(-5_000, 5_000);
        (sixteen(number), sixteen(number - 4_096))
    }

    /// Adds what replicas need, sometimes.
    fn written(&mut self, mut call: [Vec<String>; 2]) -> [Vec<String>; 2] {
        if self.random.once_in(3) {
            call[1].push("write".to_owned());
        }
        call
    }

    /// The token of the owner, or one of a few others.
    fn token(&mut self) -> String {
        let value = self.server.entry(self.lock.as_bytes());
        if self.random.once_in(2)
            && let Some(Data::Text(value)) = value.map(|entry| &entry.data)
            && value.len() == 49
        {
            return String::from_utf8_lossy(value).into_owned();
        }
        let address = self.random.pick(&ADDRESSES);
        format!("{address}/{:032x}", self.random.below(3))
    }

    fn share(&mut self) -> String {
        let address = self.random.pick(&ADDRESSES);
        let limit = self
            .random
            .pick(&["ffffffff", "ffffffff", "00000001", "00000002"]);
        format!("{address}/{:032x}{limit}", self.random.below(3))
    }

    fn ttl(&mut self) -> String {
        let ttls = ["1", "40", "500", "3000", "60000", "86400000", "90000000"];
        self.random.pick(&ttls).to_owned()
    }

    fn grant(&mut self) -> String {
        self.random.pick(&["500", "2000"]).to_owned()
    }

    /// A fencing token before the clock or after it, or none.
    fn fence(&mut self) -> String {
        match self.random.below(6) {
            0 => String::new(),
            1 => (self.micros + 5_000_000).to_string(),
            2 => self.random.pick(&["7", "8999999999999999"]).to_owned(),
            _ => (self.micros - 5_000).to_string(),
        }
    }

    fn sometimes(&mut self, text: String) -> String {
        match self.random.once_in(3) {
            true => text,
            false => String::new(),
        }
    }
}

fn sixteen(number: i64) -> String {
    format!("{number:016}")
}

fn texts(keys: &[&str], arguments: &[&str]) -> [Vec<String>; 2] {
    [keys, arguments].map(|texts| texts.iter().map(|text| (*text).to_owned()).collect())
}

/// The words of a command.
pub fn words(texts: &[impl AsRef<[u8]>]) -> Vec<Bytes> {
    texts.iter().map(|text| text.as_ref().to_vec()).collect()
}
