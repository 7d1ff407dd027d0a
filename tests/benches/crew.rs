//! Starts processes that run parts of a benchmark: this program again, with other arguments.
//!
//! The benchmark writes orders to their input, a line each, and reads their answers. The processes
//! end when that pipe ends, so they never outlive the benchmark.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use lock_tests::RedisServer;

use crate::machine::now;
use crate::record::{Round, Tenure};

/// The kind of work of a crew.
#[derive(Clone, Copy)]
pub(crate) enum Trade {
    /// Tasks that take one lock of the kit in turn.
    Kit,
    /// One task with raw commands, alone.
    Raw,
    /// Two processes that send a message to each other, published by a script.
    Ball,
}

impl Trade {
    fn name(self) -> &'static str {
        match self {
            Trade::Kit => "kit",
            Trade::Raw => "raw",
            Trade::Ball => "ball",
        }
    }
}

pub(crate) struct Crew {
    members: Vec<Member>,
}

struct Member {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Crew {
    /// Starts processes with `tasks` tasks each, which are connected, warm and ready for orders.
    pub(crate) fn start(server: &RedisServer, trade: Trade, processes: u32, tasks: u32) -> Self {
        let members = (0..processes).map(|number| Member::start(server, trade, number, tasks));
        let mut crew = Self {
            members: members.collect(),
        };
        crew.answers();
        crew
    }

    /// Lets all of them work at the same time for this length, and hold each lock for `hold`.
    pub(crate) fn turn(&mut self, length: Duration, hold: Duration) -> Round {
        // The pause is for all members to read the order.
        let start = now() + 20_000_000;
        let end = start + nanos(length);
        self.order(&format!("turn {start} {end} {}", nanos(hold)));
        let answers = self.answers();
        let tenures = answers.iter().enumerate().flat_map(|(process, lines)| {
            lines
                .iter()
                .map(move |line| Tenure::parse(process, line).expect("a tenure"))
        });
        Round::new(tenures.collect(), start, end)
    }

    /// Gives an order that is answered only when it is done.
    pub(crate) fn tell(&mut self, order: &str) {
        self.order(order);
        self.answers();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.members[0].child.id()
    }

    fn order(&mut self, order: &str) {
        for member in &mut self.members {
            writeln!(member.orders, "{order}").expect("a member that listens");
        }
    }

    fn answers(&mut self) -> Vec<Vec<String>> {
        self.members.iter_mut().map(Member::answer).collect()
    }
}

impl Member {
    fn start(server: &RedisServer, trade: Trade, number: u32, tasks: u32) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["member", trade.name(), &server.url()])
            .args([number.to_string(), tasks.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program, started again");
        Self {
            orders: child.stdin.take().expect("its input"),
            answers: BufReader::new(child.stdout.take().expect("its output")),
            child,
        }
    }

    /// Reads lines up to the one that ends the answer.
    fn answer(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for line in self.answers.by_ref().lines() {
            let line = line.expect("a member that answers");
            if line == "." {
                return lines;
            }
            lines.push(line);
        }
        panic!("a member has ended; its output is above");
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).expect("a short time")
}
