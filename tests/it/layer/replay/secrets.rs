//! Tests that Redis is sent nothing of a request or an answer that must not be stored.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::thread::JoinHandle;

use lock_tests::{RedisServer, needs};
use lock_tower::{Replay, Seal};

use super::{Payments, app, assert_first, assert_replay, pay, replaying};
use crate::layer::{Gate, Server};

/// Collects all commands that a server executes, by MONITOR.
struct Monitor {
    stream: TcpStream,
    lines: JoinHandle<String>,
}

impl Monitor {
    fn of(redis: &RedisServer) -> Self {
        let mut stream = TcpStream::connect(redis.address()).expect("a connection");
        stream.write_all(b"MONITOR\r\n").expect("it is sent");
        let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
        let mut ok = String::new();
        reader.read_line(&mut ok).expect("an answer");
        assert_eq!(ok.trim_end(), "+OK");
        let lines = std::thread::spawn(move || {
            let lines = reader.lines().map_while(Result::ok);
            lines.collect::<Vec<_>>().join("\n")
        });
        Self { stream, lines }
    }

    /// Returns the commands, up to a last one of this test.
    fn commands(self, redis: &RedisServer) -> String {
        redis.cli(&["ECHO", "the last one"]);
        let closed = self.stream.shutdown(Shutdown::Write);
        closed.expect("a socket");
        redis.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
        self.lines.join().expect("no panic")
    }
}

#[tokio::test]
async fn redis_sees_the_answer_and_no_secret_of_the_request_or_of_a_header() {
    needs!(redis);
    let redis = RedisServer::start();
    let locks = crate::steps::manager(&redis.url()).await;
    let monitor = Monitor::of(&redis);
    let layer = replaying(&locks, Replay::default());
    let server = Server::serve(locks, app(layer, &Gate::open(), &Payments::default())).await;
    let first = pay(server.port(), "k1", "secret-body").await;
    assert_eq!(first.headers["set-cookie"], "sid=secret-cookie");
    assert_replay(&pay(server.port(), "k1", "secret-body").await, "payment 1");
    assert_eq!(pay(server.port(), "k1", "secret-other").await.status, 422);

    let commands = monitor.commands(&redis);
    assert!(commands.contains("done/"), "{commands}");
    assert!(commands.contains("payment 1"), "{commands}");
    // The user stands in the key, because the template says so.
    let commands = commands.replace("secret-user", "");
    assert!(!commands.contains("secret"), "{commands}");
    for never in ["set-cookie", "x-access-token", "cookie"] {
        assert!(!commands.contains(never), "{never}: {commands}");
    }
}

/// Inverts every byte, behind the context.
struct Inverted;

impl Seal for Inverted {
    fn seal(&self, context: &[u8], plain: &[u8]) -> Option<Vec<u8>> {
        let inverted = plain.iter().map(|byte| !byte);
        Some(context.iter().copied().chain(inverted).collect())
    }

    fn open(&self, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let inverted = sealed.strip_prefix(context)?;
        Some(inverted.iter().map(|byte| !byte).collect())
    }
}

#[tokio::test]
async fn redis_sees_nothing_of_a_sealed_answer_and_the_context_names_the_lock() {
    needs!(redis);
    let redis = RedisServer::start();
    let locks = crate::steps::manager(&redis.url()).await;
    let monitor = Monitor::of(&redis);
    let layer = replaying(&locks, Replay::default().sealed(Inverted));
    let server = Server::serve(locks, app(layer, &Gate::open(), &Payments::default())).await;
    assert_first(&pay(server.port(), "k1", "").await, "payment 1");
    assert_replay(&pay(server.port(), "k1", "").await, "payment 1");
    let stored = redis.get(&super::name("k1")).expect("a record");
    assert!(stored.contains("lockkit:pay:secret-user:k1"), "{stored}");
    let commands = monitor.commands(&redis);
    assert!(commands.contains("done/"), "{commands}");
    for sealed in ["payment 1", "text/plain", "content-type"] {
        assert!(!commands.contains(sealed), "{sealed}: {commands}");
    }
}
