//! Measures the least possible wake-up: a script that publishes and a thread that reads, on
//! plain sockets.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::machine::now;
use crate::member::Turn;
use crate::nap::BlockingNap;
use crate::record::Tenure;

/// One of two processes that send a message to each other in turn.
pub(crate) struct Ball {
    number: u32,
    heard: BufReader<TcpStream>,
    said: BufReader<TcpStream>,
    script: String,
    nap: BlockingNap,
}

impl Ball {
    pub(crate) fn new(url: &str, number: u32) -> Self {
        let address = url.trim_start_matches("redis://");
        let connect = || {
            let stream = TcpStream::connect(address).expect("the server");
            stream.set_nodelay(true).expect("no delay");
            BufReader::new(stream)
        };
        let (mut heard, mut said) = (connect(), connect());
        let script = r#"SCRIPT LOAD "return redis.call('PUBLISH', KEYS[1], ARGV[1])""#;
        send(&mut said, script);
        let script = lines(&mut said, 2).expect("an answer")[1].clone();
        send(&mut heard, &format!("SUBSCRIBE ball:{number}"));
        lines(&mut heard, 6).expect("an answer");
        Self {
            number,
            heard,
            said,
            script,
            nap: BlockingNap::new(),
        }
    }

    /// Sends messages until the end of the turn; number 0 begins. A tenure lasts from the
    /// message to the own answer.
    pub(crate) fn turn(&mut self, turn: Turn) -> Vec<Tenure> {
        let mut tenures = Vec::new();
        let mut asked = now();
        if self.number == 0 {
            // The other process is subscribed already. The pause lets it fall asleep.
            std::thread::sleep(Duration::from_millis(5));
            self.throw(turn);
        }
        while self.catch(turn) {
            let granted = now();
            if let Some(nanos) = turn.hold() {
                self.nap.take(nanos);
            }
            let released = now();
            self.throw(turn);
            tenures.push(Tenure::new(0, asked, granted, released));
            asked = now();
            if asked >= turn.end {
                break;
            }
        }
        tenures
    }

    fn throw(&mut self, turn: Turn) {
        let other = 1 - self.number;
        let (script, start) = (&self.script, turn.start);
        send(
            &mut self.said,
            &format!("EVALSHA {script} 1 ball:{other} {start}"),
        );
        lines(&mut self.said, 1).expect("an answer");
    }

    /// Waits for the message; `false` if the other process has ended its turn. Messages of
    /// earlier turns are ignored.
    fn catch(&mut self, turn: Turn) -> bool {
        loop {
            let left = turn.end.saturating_sub(now()) + 20_000_000;
            let patience = Some(Duration::from_nanos(left));
            let set = self.heard.get_ref().set_read_timeout(patience);
            set.expect("a time to wait");
            match lines(&mut self.heard, 7) {
                Some(message) if message[6] == turn.start.to_string() => return true,
                Some(_) => {}
                None => return false,
            }
        }
    }
}

fn send(to: &mut BufReader<TcpStream>, command: &str) {
    let line = format!("{command}\r\n");
    let written = to.get_mut().write_all(line.as_bytes());
    written.expect("a server that listens");
}

/// Reads so many lines; `None` if they do not come in time.
fn lines(from: &mut BufReader<TcpStream>, count: usize) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    for _ in 0..count {
        let mut line = String::new();
        let read = from.read_line(&mut line).ok()?;
        assert!(read > 0, "the server has ended");
        lines.push(line.trim_end().to_owned());
    }
    assert!(!lines[0].starts_with('-'), "refused: {}", lines[0]);
    Some(lines)
}
