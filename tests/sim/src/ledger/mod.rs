//! What the callers saw, in true time, and the rules that it must obey.
//!
//! The ledger knows the public API and the keys of the servers, and nothing else of the library.

mod answers;
mod owners;
mod remains;
mod waits;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use crate::world::{MILLI, sim};

/// One call for a lock.
#[derive(Clone, Debug)]
pub struct Call {
    pub process: usize,
    pub task: usize,
    pub key: usize,
    pub asked: u64,
    pub ttl: u64,
    /// `None`: for as long as it takes.
    pub wait: Option<u64>,
    pub answered: Option<u64>,
    pub answer: Answer,
    /// The owner has begun to end the lock.
    pub left: Option<u64>,
    /// The release was confirmed.
    pub released: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    None,
    Granted,
    Busy,
    Cancelled,
    /// The lock was granted and is lost.
    Lost,
    /// The error of an acquire, by its kind.
    Refused(String),
    /// The error of a release.
    NotReleased(String),
}

/// How an owner has a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owning {
    Alone,
    /// With others, up to so many.
    Share(u32),
}

/// The span in which an owner believed that it had a key: at both ends it saw that its lock was valid.
#[derive(Clone, Debug)]
pub struct Claim {
    pub call: usize,
    pub key: usize,
    pub owning: Owning,
    pub token: u64,
    pub from: u64,
    pub until: u64,
}

/// Something that must not happen.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The rule, in few words, by which histories are counted.
    pub rule: &'static str,
    pub text: String,
}

#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub calls: Vec<Call>,
    pub claims: Vec<Claim>,
    pub violations: Vec<Violation>,
    /// The claim of each call, key and token.
    open: BTreeMap<(usize, usize, u64), usize>,
    /// Processes whose manager has been drained, and whether nothing was left.
    pub drained: Vec<(usize, bool)>,
}

thread_local! {
    static LEDGER: RefCell<Ledger> = RefCell::default();
}

/// Changes the ledger of the history that runs.
pub fn ledger<T>(change: impl FnOnce(&mut Ledger) -> T) -> T {
    LEDGER.with_borrow_mut(change)
}

/// Takes the ledger, and begins a new one.
pub fn take() -> Ledger {
    LEDGER.take()
}

impl Ledger {
    /// Notes a call that begins now. Returns its number.
    pub fn asks(
        &mut self,
        process: usize,
        task: usize,
        key: usize,
        ttl: u64,
        wait: Option<u64>,
    ) -> usize {
        self.calls.push(Call {
            process,
            task,
            key,
            asked: sim().now(),
            ttl,
            wait,
            answered: None,
            answer: Answer::None,
            left: None,
            released: None,
        });
        self.calls.len() - 1
    }

    pub fn answered(&mut self, call: usize, answer: Answer) {
        let call = &mut self.calls[call];
        call.answered = Some(sim().now());
        call.answer = answer;
    }

    /// Notes that an owner saw at `time` that its lock is valid.
    pub fn claims(&mut self, call: usize, key: usize, owning: Owning, token: u64, time: u64) {
        match self.open.get(&(call, key, token)) {
            Some(claim) => self.claims[*claim].until = time,
            None => {
                self.open.insert((call, key, token), self.claims.len());
                self.claims.push(Claim {
                    call,
                    key,
                    owning,
                    token,
                    from: time,
                    until: time,
                });
            }
        }
    }

    pub fn violates(&mut self, rule: &'static str, text: impl Into<String>) {
        self.violations.push(Violation {
            rule,
            text: text.into(),
        });
    }

    fn show(&self, call: usize) -> String {
        self.calls[call].to_string()
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: u64| time as f64 / MILLI as f64;
        let option =
            |time: Option<u64>| time.map_or("-".to_owned(), |time| format!("{:.3}", ms(time)));
        write!(
            f,
            "p{} t{} k{} ttl {} wait {} asked {:.3} answered {} left {} released {}: {:?}",
            self.process,
            self.task,
            self.key,
            ms(self.ttl),
            option(self.wait),
            ms(self.asked),
            option(self.answered),
            option(self.left),
            option(self.released),
            self.answer
        )
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.text)
    }
}
