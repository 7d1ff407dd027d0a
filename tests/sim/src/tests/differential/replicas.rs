//! `WAIT` of a server with one replica, whose clock stands still while the test waits.

use std::net::TcpListener;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::server::{Bytes, Replica, Server};

use super::START;
use super::kit::words;
use super::real::{Folder, Link, Real};
use super::stage;

/// The master and its replica, and the simulated master.
struct Pair {
    master: Real,
    replica: Real,
    clients: Vec<Link>,
    simulated: Server,
    micros: i64,
    operator: Link,
}

/// Compares the answers to `WAIT` while the replica follows, while it is stopped, and when it goes on.
pub fn compare(program: &Path, library: &Path, folder: &Folder) {
    let mut pair = Pair::new(program, library, folder);
    if pair.master.lags {
        // Its replicas acknowledge in rounds, which do not come while its forward clock stands still.
        return;
    }
    // A client that has written nothing waits for nothing.
    pair.ask(1, &["WAIT", "1", "50"]);
    pair.ask(0, &["SET", "a", "x"]);
    pair.replicate();
    pair.ask(0, &["WAIT", "1", "0"]);
    // One replica is too few.
    pair.ask(0, &["WAIT", "2", "50"]);
    pair.later(51);

    pair.replica.stop();
    pair.ask(0, &["SET", "a", "y"]);
    // The client is answered when the clock says so.
    pair.ask(0, &["WAIT", "1", "50"]);
    pair.later(50);
    pair.later(1);
    // Before Redis 7.2, any command makes its client wait for the writes of all.
    pair.ask(1, &["GET", "a"]);
    pair.ask(1, &["WAIT", "1", "50"]);
    pair.later(51);

    pair.ask(0, &["WAIT", "1", "0"]);
    pair.replica.go_on();
    pair.replicate();
}

impl Pair {
    fn new(program: &Path, library: &Path, folder: &Folder) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = free.expect("a free port").port().to_string();
        let listens = ["--port", &port, "--repl-diskless-sync-delay", "0"];
        let master = Real::start_with(program, library, folder, "master", START, &listens);
        let follows = ["--port", "0", "--replicaof", "127.0.0.1", &port];
        let replica = Real::start_with(program, library, folder, "replica", START, &follows);
        let mut operator = master.connect();
        let start = Instant::now();
        operator.order(&["SET", "first", "x"]);
        while !has_all(&operator.ask(&["INFO", "replication"])) {
            let waited = start.elapsed();
            assert!(waited < Duration::from_secs(20), "a replica follows");
            // The next rounds of both servers are due.
            for server in [&master, &replica] {
                server.set_clock(START);
            }
            sleep(Duration::from_millis(10));
        }
        let mut simulated = Server::new("simulated".to_owned());
        simulated.version = stage::version(&mut operator);
        simulated.replicas = vec![Replica::default()];
        Self {
            clients: vec![master.connect(), master.connect()],
            master,
            replica,
            simulated,
            operator,
            micros: START,
        }
    }

    /// Sends a command to both masters, and compares what there is of a reply.
    fn ask(&mut self, client: usize, command: &[&str]) {
        let command: Vec<Bytes> = words(command);
        let mut reply = Bytes::new();
        self.simulated
            .run(client, self.micros, &command, &mut reply);
        self.clients[client].send(&command);
        // The server answers this one when it has the command, so that no later time of its clock counts for that.
        self.operator.ask(&["PING"]);
        self.clients[client].await_bytes(reply.len());
        self.compare(client, &reply);
    }

    /// Lets the simulated replica have all changes, as the real one soon has.
    fn replicate(&mut self) {
        let offset = self.simulated.offset;
        self.simulated.acknowledge(0, offset);
        self.compare_all();
    }

    fn later(&mut self, millis: i64) {
        self.micros += 1_000 * millis;
        self.master.set_clock(self.micros);
        self.operator.ask(&["PING"]);
        self.simulated.end_waits(self.micros);
        self.compare_all();
    }

    fn compare_all(&mut self) {
        let pushes = self.simulated.take_pushes();
        for client in 0..self.clients.len() {
            let replies = pushes.iter().filter(|(conn, _)| *conn == client);
            let replies: Bytes = replies.flat_map(|(_, reply)| reply.clone()).collect();
            self.clients[client].await_bytes(replies.len());
            self.compare(client, &replies);
        }
    }

    fn compare(&mut self, client: usize, simulated: &[u8]) {
        // A reply that comes too early comes within some rounds of the server's timer.
        sleep(Duration::from_millis(250));
        let real = self.clients[client].take();
        let [real, simulated] = [&real, simulated].map(|bytes| bytes.escape_ascii().to_string());
        assert_eq!(
            real, simulated,
            "client {client} of the real master and of the simulated one"
        );
    }
}

/// Returns whether a replica has acknowledged all that its master has written.
fn has_all(report: &str) -> bool {
    let number = |name: &str| {
        let (_, number) = report.split_once(name)?;
        let digits = number.split(|digit: char| !digit.is_ascii_digit());
        digits.into_iter().next()?.parse::<u64>().ok()
    };
    let written = number("master_repl_offset:");
    written.is_some() && number("state=online,offset=") == written
}
