//! Sends the commands of go-zero's `RedisLock` and of redsync's `Mutex`, as a process that speaks like `worker.py`.
//!
//! | client | version | source |
//! | --- | --- | --- |
//! | go-zero | 1.10.3 | `core/stores/redis/redislock.go`, `lockscript.lua`, `delscript.lua` |
//! | redsync | 4.17.0 | `mutex.go`, `scripts.go` |
//!
//! The scripts here run the same Redis commands in the same order as theirs.

use std::io::{self, BufRead};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use lock_core::redis1::{Client, Connection, RedisError, cmd};

/// `lockscript.lua`: an owner that asks again begins its ttl anew.
const GO_ZERO_ACQUIRE: &str = "\
    if redis.call('GET', KEYS[1]) == ARGV[1] then \
        redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) \
        return 1 \
    end \
    return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0";
/// `delscript.lua`, and `deleteScript` but for its answer when the key is gone.
const RELEASE: &str = "\
    return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0";
/// `touchScript`
const REDSYNC_EXTEND: &str = "\
    return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0";

/// go-zero adds this time to the whole seconds of `SetExpire`.
const GO_ZERO_TOLERANCE: u64 = 500;
/// redsync waits for 50 to 250 ms between two tries.
const REDSYNC_DELAY: Duration = Duration::from_millis(150);
const PAUSE: Duration = Duration::from_millis(3);
const TTL: u64 = 10_000;
/// The time between the two steps of an increment.
const BETWEEN: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    GoZero,
    Redsync,
}

struct Worker {
    kind: Kind,
    /// go-zero has one server, and redsync needs a majority.
    servers: Vec<Connection>,
    key: String,
    token: String,
}

/// Answers requests until the input ends.
pub(crate) fn work(client: &str, ports: &str, lock: &str) -> ExitCode {
    let (kind, version) = match client {
        "go-zero" => (Kind::GoZero, "1.10.3"),
        _ => (Kind::Redsync, "4.17.0"),
    };
    let connection = |port: &str| {
        let server = Client::open(format!("redis://127.0.0.1:{port}")).expect("a URL");
        server.get_connection().expect("a connection")
    };
    let mut worker = Worker {
        kind,
        servers: ports.split(',').map(connection).collect(),
        key: lock.to_owned(),
        token: format!("{client} {}", std::process::id()),
    };
    println!("{version}");
    for request in io::stdin().lock().lines().map_while(Result::ok) {
        match worker.answer(&request) {
            Ok(answer) => println!("{answer}"),
            Err(error) => println!("failed: {error}"),
        }
    }
    ExitCode::SUCCESS
}

impl Worker {
    fn answer(&mut self, request: &str) -> Result<&'static str, RedisError> {
        let (verb, number) = request.split_once(' ').unwrap_or((request, "0"));
        let number: u64 = number.parse().expect("a number");
        let yes = match verb {
            "take" => self.take(number)?,
            "wait" if self.kind == Kind::Redsync => self.wait(number, REDSYNC_DELAY)?,
            "extend" => self.extend(number)?,
            "release" => self.script(RELEASE, None)?,
            "count" => {
                self.count(number)?;
                return Ok("done");
            }
            _ => return Ok("none"),
        };
        Ok(if yes { "yes" } else { "no" })
    }

    fn take(&mut self, ttl: u64) -> Result<bool, RedisError> {
        match self.kind {
            Kind::GoZero => self.script(GO_ZERO_ACQUIRE, Some(go_zero_ttl(ttl))),
            Kind::Redsync => {
                let mut set = cmd("SET");
                set.arg(&self.key).arg(&self.token);
                set.arg("PX").arg(ttl).arg("NX");
                let taken =
                    self.most(|server| Ok(set.query::<Option<String>>(server)?.is_some()))?;
                if !taken {
                    self.script(RELEASE, None)?;
                }
                Ok(taken)
            }
        }
    }

    fn wait(&mut self, ttl: u64, pause: Duration) -> Result<bool, RedisError> {
        while !self.take(ttl)? {
            sleep(pause);
        }
        Ok(true)
    }

    fn extend(&mut self, ttl: u64) -> Result<bool, RedisError> {
        match self.kind {
            Kind::GoZero => self.take(ttl),
            Kind::Redsync => self.script(REDSYNC_EXTEND, Some(ttl)),
        }
    }

    fn count(&mut self, rounds: u64) -> Result<(), RedisError> {
        for _ in 0..rounds {
            self.wait(TTL, PAUSE)?;
            let server = &mut self.servers[0];
            let counter: Option<u64> = cmd("GET").arg("counter").query(server)?;
            let next = counter.unwrap_or(0) + 1;
            sleep(BETWEEN);
            cmd("SET").arg("counter").arg(next).exec(server)?;
            self.script(RELEASE, None)?;
            sleep(PAUSE);
        }
        Ok(())
    }

    /// Runs a script with the token, and with the ttl if there is one. It answers with 1 or 0.
    fn script(&mut self, script: &str, ttl: Option<u64>) -> Result<bool, RedisError> {
        let mut eval = cmd("EVAL");
        eval.arg(script).arg(1).arg(&self.key).arg(&self.token);
        if let Some(ttl) = ttl {
            eval.arg(ttl);
        }
        self.most(|server| Ok(eval.query::<u64>(server)? == 1))
    }

    /// Asks all servers, and returns whether most of them agree.
    fn most(
        &mut self,
        ask: impl Fn(&mut Connection) -> Result<bool, RedisError>,
    ) -> Result<bool, RedisError> {
        let mut agreed = 0;
        for server in &mut self.servers {
            agreed += usize::from(ask(server)?);
        }
        Ok(agreed > self.servers.len() / 2)
    }
}

fn go_zero_ttl(ttl: u64) -> u64 {
    ttl / 1000 * 1000 + GO_ZERO_TOLERANCE
}
