//! The two servers, their clients, and one step of both.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::server::{Bytes, Server, Version};

use super::kit::words;
use super::real::{Folder, Link, Real};
use super::weather;

/// Clients of both servers, beside the operator.
pub const CLIENTS: usize = 3;
/// The connection of the operator.
const OPERATOR: usize = CLIENTS;

/// Lists all keys with their data and ends. An ended key is not listed, and so not deleted by this.
const DUMP: &str = "
local text = {}
local keys = redis.call('KEYS', '*')
table.sort(keys)
for _, key in ipairs(keys) do
  local kind = redis.call('TYPE', key).ok
  local data = {}
  if kind == 'string' then data[1] = redis.call('GET', key)
  elseif kind == 'zset' then data = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  else
    local pairs = redis.call('HGETALL', key)
    for index = 1, #pairs, 2 do data[#data + 1] = pairs[index] .. '=' .. pairs[index + 1] end
    table.sort(data)
  end
  text[#text + 1] = key .. ' ' .. kind .. ' ' .. redis.call('PEXPIRETIME', key) .. ' [' .. table.concat(data, ' ') .. ']'
end
text[#text + 1] = redis.call('DBSIZE') .. ' keys'
return table.concat(text, '\\n')";

pub struct Stage {
    real: Real,
    pub operator: Link,
    clients: Vec<Link>,
    pub simulated: Server,
    pub micros: i64,
    dump: Vec<Bytes>,
}

/// What differs, in words.
pub type Difference = String;

impl Stage {
    pub fn new(program: &Path, library: &Path, folder: &Folder, micros: i64) -> Self {
        let real = Real::start(program, library, folder, micros);
        let mut operator = real.connect();
        operator.order(&[
            "ACL", "SETUSER", "operator", "on", "nopass", "+@all", "~*", "&*",
        ]);
        operator.order(&["AUTH", "operator", "any"]);
        operator.order(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]);
        weather::fail_a_snapshot(&mut operator, || real.set_clock(micros));
        let mut simulated = Server::new("simulated".to_owned());
        simulated.version = version(&mut operator);
        let hash = operator.ask(&["SCRIPT", "LOAD", DUMP]);
        let hash = hash.lines().nth(1).expect("a hash").to_owned();
        let mut stage = Self {
            real,
            operator,
            clients: Vec::new(),
            simulated,
            micros,
            dump: words(&["EVALSHA", &hash, "0"]),
        };
        stage.dumps();
        stage.clients = (0..CLIENTS).map(|_| stage.real.connect()).collect();
        stage
    }

    /// Sets the time of both servers.
    pub fn set_time(&mut self, micros: i64) {
        self.micros = micros;
        self.real.set_clock(micros);
        if self.real.lags {
            self.operator.ask(&["PING"]);
        }
    }

    /// Runs a command on both servers, and compares the reply, what all clients are told, and all keys.
    pub fn ask(&mut self, client: usize, command: &[Bytes]) -> Result<(), Difference> {
        let mut reply = Bytes::new();
        self.simulated.run(client, self.micros, command, &mut reply);
        let mut expected = self.take_pushes();
        expected.entry(client).or_default().extend(reply);
        self.clients[client].send(command);
        // A part that is not compared may be shorter.
        let compared = comparable(&expected[&client]).len();
        self.clients[client].await_bytes(compared);
        self.compare(&expected)
    }

    /// Compares after an operator has changed something.
    pub fn look(&mut self) -> Result<(), Difference> {
        let expected = self.take_pushes();
        self.compare(&expected)
    }

    fn take_pushes(&mut self) -> BTreeMap<usize, Bytes> {
        let mut pushes = BTreeMap::<_, Bytes>::new();
        for (client, bytes) in self.simulated.take_pushes() {
            pushes.entry(client).or_default().extend(bytes);
        }
        pushes
    }

    fn compare(&mut self, expected: &BTreeMap<usize, Bytes>) -> Result<(), Difference> {
        let mut differences = Difference::new();
        let dumps = self.dumps();
        // The server has answered the operator, so it has written all else before.
        for (client, link) in self.clients.iter_mut().enumerate() {
            let expected = expected.get(&client).map_or(&[][..], Vec::as_slice);
            note(
                &format!("client {client}"),
                &link.take(),
                expected,
                &mut differences,
            );
        }
        let [real, simulated] = &dumps;
        note("keys", real, simulated, &mut differences);
        match differences.is_empty() {
            true => Ok(()),
            false => Err(differences),
        }
    }

    fn dumps(&mut self) -> [Bytes; 2] {
        let texts: Vec<String> = self
            .dump
            .iter()
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut real = self.operator.ask_bytes(&texts);
        if real.starts_with(b"-NOSCRIPT") {
            real = self.operator.ask_bytes(&["EVAL", DUMP, "0"]);
        }
        // The operator may use everything, and changes nothing.
        let denied = std::mem::take(&mut self.simulated.denied);
        let keys = self.simulated.allowed_keys.take();
        let mut simulated = Bytes::new();
        let question = words(&["EVAL", DUMP, "0"]);
        self.simulated
            .run(OPERATOR, self.micros, &question, &mut simulated);
        self.simulated.denied = denied;
        self.simulated.allowed_keys = keys;
        [real, simulated]
    }

    /// Ends a client's connection and opens a new one.
    pub fn reconnect(&mut self, client: usize) {
        self.clients[client] = self.real.connect();
        self.simulated.closed(client);
        // The server has noticed the end when it has answered.
        self.operator.ask(&["PING"]);
    }
}

/// Notes what differs between the bytes of both servers.
fn note(what: &str, real: &[u8], simulated: &[u8], differences: &mut Difference) {
    let [real, simulated] = [real, simulated].map(comparable);
    if real != simulated {
        let [real, simulated] = [real, simulated].map(|bytes| bytes.escape_ascii().to_string());
        write!(
            differences,
            "\n{what}\n  real      {real}\n  simulated {simulated}"
        )
        .expect("a text");
    }
}

/// Leaves out of an answer to `HELLO` what the kit does not read: the client's number, and the modules.
pub fn comparable(bytes: &[u8]) -> &[u8] {
    let number = b"$2\r\nid\r\n:";
    let place = bytes.windows(number.len()).position(|part| part == number);
    &bytes[..place.unwrap_or(bytes.len())]
}

/// Asks a server for its version.
pub fn version(operator: &mut Link) -> Version {
    let report = operator.ask(&["INFO", "server"]);
    let field = |name: &str| {
        let line = report.lines().find_map(|line| line.strip_prefix(name))?;
        let numbers = line
            .split('.')
            .map(|number| number.parse().expect("a number"));
        let numbers: Vec<u32> = numbers.collect();
        Some((numbers[0], numbers[1], numbers[2]))
    };
    Version {
        redis: field("redis_version:").expect("a version"),
        valkey: field("valkey_version:"),
    }
}
