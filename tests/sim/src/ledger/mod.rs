//! What the callers saw, in true time, and the rules that it must obey.
//!
//! The ledger knows the public API and the keys of the servers, and nothing else of the library.

mod answers;
mod blocked;
mod bodies;
mod calm;
mod causes;
mod cluster;
mod cooldowns;
mod dead;
mod excused;
mod fifo;
mod forced;
mod foreign;
mod forgets;
mod full;
mod inspections;
mod interrupted;
mod itself;
mod kept;
mod late;
mod leaders;
mod limits;
mod line;
mod lists;
mod losses;
mod masters;
mod noticed;
mod order;
#[cfg(test)]
mod order_tests;
mod orders;
mod overtime;
mod ownerless;
mod owners;
mod passes;
mod patience;
mod pings;
mod questions;
mod quiet;
mod quorum;
mod records;
mod refusals;
mod registers;
mod remains;
mod renewals;
mod repeats;
mod replicas;
mod scripts;
#[cfg(test)]
mod server_tests;
mod several;
mod share_ends;
mod share_order;
mod statements;
#[cfg(test)]
mod tests;
mod tickets;
#[cfg(test)]
mod tickets_tests;
mod ticks;
#[cfg(test)]
mod ticks_tests;
mod tokens;
mod turns;
mod undisturbed;
mod unheard;
mod unpolled;
mod unreleased;
mod unserved;
mod waits;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

pub use self::blocked::Blocked;
pub use self::bodies::{BodyEnd, KeptWork};
pub use self::foreign::Foreign;
pub use self::inspections::{Seen, SeenHolder};
use self::kept::Kept;
pub use self::kept::{Cooldown, Record};
pub use self::leaders::Candidacy;
pub use self::lists::List;
pub use self::orders::{Order, Ordered};
pub use self::pings::Ping;
pub use self::records::servers_with_token;
pub use self::tickets::PassedOn;
pub use self::ticks::{Completed, Job, Run};
pub use self::unpolled::Unpolled;
use crate::world::{MILLI, sim};

/// One call for a lock.
#[derive(Clone, Debug, Default)]
pub struct Call {
    pub process: usize,
    pub task: usize,
    pub keys: Vec<usize>,
    pub owning: Owning,
    pub asked: u64,
    pub ttl: u64,
    /// `None`: for as long as it takes.
    pub wait: Option<u64>,
    pub answered: Option<u64>,
    pub answer: Answer,
    /// The fencing token of the lock that was granted.
    pub token: Option<u64>,
    /// It was refused, because all permits were taken.
    pub is_full: bool,
    /// It was not polled before this time.
    pub rests: Option<u64>,
    /// The call whose lock it goes on with.
    pub goes_on: Option<usize>,
    /// The owner has begun to end the lock.
    pub left: Option<u64>,
    /// The release was confirmed.
    pub released: Option<u64>,
    /// The release was answered.
    pub ended: Option<u64>,
    /// The owner has seen that the lock is lost.
    pub lost: Option<u64>,
    /// The time that the lock had left, by the owner's clock, when the owner began to end it.
    pub left_with: u64,
    pub renews: bool,
    /// From right after the grant on.
    pub watched: bool,
}

impl Call {
    /// From when on it waits for its answer, and until when.
    fn span(&self) -> (u64, u64) {
        (self.asked, self.answered.unwrap_or(u64::MAX))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    #[default]
    None,
    Granted,
    Busy,
    Cancelled,
    /// The ticket was used before, or its time is over.
    NoTicket,
    /// The lock was granted and is lost.
    Lost,
    /// The lock was granted, and has ended as its request says.
    RanOut,
    /// The error of an acquire, by its kind.
    Refused(String),
    /// The error of a release.
    NotReleased(String),
}

impl Answer {
    /// Returns whether the lock was granted, and has not ended as its request says.
    fn is_granted(&self) -> bool {
        matches!(self, Self::Granted | Self::Lost | Self::NotReleased(_))
    }

    /// Returns whether the lock is lost, also if its release was told so.
    fn is_loss(&self) -> bool {
        match self {
            Self::Lost => true,
            Self::NotReleased(why) => why.starts_with("Lost"),
            _ => false,
        }
    }
}

/// What a call asks for.
#[derive(Clone, Debug)]
pub struct Asks {
    pub process: usize,
    pub task: usize,
    pub keys: Vec<usize>,
    pub owning: Owning,
    pub ttl: u64,
    pub wait: Option<u64>,
}

impl Asks {
    /// The call, when it begins.
    pub fn at(self, asked: u64) -> Call {
        let Self {
            process,
            task,
            keys,
            owning,
            ttl,
            wait,
        } = self;
        Call {
            process,
            task,
            keys,
            owning,
            asked,
            ttl,
            wait,
            renews: true,
            ..Call::default()
        }
    }
}

/// How an owner has its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owning {
    #[default]
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
    /// What keeps keys taken without an owner.
    pub kept: Kept,
    /// Keys that stay taken, because a release was interrupted.
    interrupted: Vec<usize>,
    /// The claim of each call, key and token.
    open: BTreeMap<(usize, usize, u64), usize>,
    /// Until when the owners of each key believe in their shares, in true time, as they saw last.
    believed: BTreeMap<usize, BTreeMap<usize, u64>>,
    /// Processes whose manager has been drained, and whether nothing was left.
    pub drained: Vec<(usize, bool)>,
    pub pings: Vec<Ping>,
    pub foreign: Vec<Foreign>,
    /// The value of the key, as a hash, that the servers have for a call.
    values: BTreeMap<usize, u64>,
    /// Since when an owner counts too many servers.
    miscounts: BTreeMap<usize, u64>,
    /// The ends of bodies, by their calls.
    pub ends: BTreeMap<usize, BodyEnd>,
    pub kept_work: Vec<KeptWork>,
    pub unpolled: Vec<Unpolled>,
    pub blocked: Vec<Blocked>,
    pub candidacies: Vec<Candidacy>,
    pub jobs: Vec<Job>,
    pub runs: Vec<Run>,
    pub orders: Vec<Order>,
    pub inspections: Vec<Seen>,
    pub lists: Vec<List>,
    /// What operators were told instead of an answer, and when.
    pub operator_errors: Vec<(u64, String)>,
    pub tickets: Vec<PassedOn>,
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
    pub fn asks(&mut self, asks: Asks) -> usize {
        self.calls.push(asks.at(sim().now()));
        self.calls.len() - 1
    }

    /// Notes that an owner that has its key alone begins to go on as a reader. Returns the number of the reader's call.
    pub fn goes_on_as_reader(&mut self, writer: usize) -> usize {
        let before = &mut self.calls[writer];
        before.left = Some(sim().now());
        let asks = Asks {
            process: before.process,
            task: before.task,
            keys: before.keys.clone(),
            owning: Owning::READER,
            ttl: before.ttl,
            wait: Some(0),
        };
        let reader = self.asks(asks);
        self.calls[reader].goes_on = Some(writer);
        reader
    }

    /// Notes a lock of one key that the library has asked for by itself, at its grant. Returns the number of the call.
    pub fn grants(&mut self, process: usize, task: usize, key: usize, ttl: u64) -> usize {
        let call = self.asks(Asks {
            process,
            task,
            keys: vec![key],
            owning: Owning::Alone,
            ttl,
            wait: Some(0),
        });
        self.answered(call, Answer::Granted);
        call
    }

    pub fn answered(&mut self, call: usize, answer: Answer) {
        let call = &mut self.calls[call];
        call.answered = Some(sim().now());
        call.answer = answer;
    }

    /// Notes that an owner saw at `time` that its lock is valid.
    pub fn claims(&mut self, call: usize, token: u64, time: u64) {
        let owning = self.calls[call].owning;
        for key in self.calls[call].keys.clone() {
            self.claims_key(call, key, owning, token, time);
        }
    }

    fn claims_key(&mut self, call: usize, key: usize, owning: Owning, token: u64, time: u64) {
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
            "p{} t{} {:?} k{:?} ttl {} wait {} asked {:.3} answered {} left {} released {}: {:?}",
            self.process,
            self.task,
            self.owning,
            self.keys,
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
