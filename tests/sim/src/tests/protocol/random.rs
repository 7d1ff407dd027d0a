//! Random calls of the scripts, and the world around them.

use std::collections::BTreeMap;

use super::both::{ADDRESSES, Answer, Both, KEYS, Step};
use super::kit::{self, MARK};
use crate::rng::Rng;
use lock_core::protocol_by_words::Value;

const START: i64 = 1_795_000_000_000_000;
const DAY: i64 = 86_400_000_000;
const CHANNELS: &str = "lockkit:!m:";
/// The token of a ticket.
const NEVER_ASKED: &str = "00000000000b2000/0000000000000000000000000000ffff";

/// The lease of a token: for how long it is asked for, and for how long it is given to its waiter.
#[derive(Clone)]
struct Lease {
    token: String,
    ttl: i64,
    grant: i64,
}

pub struct Choices {
    rng: Rng,
    micros: i64,
    dead: [bool; ADDRESSES.len()],
    is_full: bool,
    leases: Vec<Lease>,
    /// The last fencing token of each lease.
    fences: BTreeMap<String, u64>,
}

impl Choices {
    pub fn new(seed: u64) -> Self {
        let leases = (0..15).map(|number: usize| {
            let ttl = [300, 2_000, 10_000, 30_000, 60_000][number % 5];
            Lease {
                token: format!("{}/{number:032x}", ADDRESSES[number / 3]),
                ttl,
                grant: ttl.min(2_000),
            }
        });
        Self {
            rng: Rng::of(seed),
            micros: START,
            dead: [false; ADDRESSES.len()],
            is_full: false,
            leases: leases.collect(),
            fences: BTreeMap::new(),
        }
    }

    pub fn next(&mut self, both: &Both) -> Step {
        let key = self.rng.pick(&KEYS);
        let lock = kit::lock(key);
        self.move_clock(both, &lock);
        if self.rng.one_in(25) {
            let one = self.rng.index(ADDRESSES.len());
            self.dead[one] = !self.dead[one];
        }
        self.is_full = match self.is_full {
            true => !self.rng.one_in(6),
            false => self.rng.one_in(40),
        };
        let near = self.near(both, &lock);
        let (script, arguments) = self.call(&near);
        if script == "REMEMBER" {
            self.leave_the_last_millisecond(both, &lock);
        }
        let companions = [MARK.to_owned(), kit::queue(key)];
        let mut keys = vec![lock];
        if !matches!(script, "FORGET" | "EXTEND" | "SWAP") {
            keys.extend(companions);
        }
        Step {
            micros: self.micros,
            dead: self.dead,
            is_full: self.is_full,
            script,
            keys,
            arguments,
        }
    }

    /// Remembers the fencing tokens that were given.
    pub fn heard(&mut self, step: &Step, answer: &Answer) {
        if let Value::List(items) = &answer.reply
            && let [Value::Int(1), Value::Text(fence), ..] = &items[..]
        {
            let fence = fence.parse().expect("a fencing token");
            self.fences.insert(step.arguments[0].clone(), fence);
        }
        for (_, message) in &answer.pushes {
            let words: Vec<&str> = message.split(' ').collect();
            if words[0] == "g" {
                let fence = words[5].parse().expect("a fencing token");
                self.fences.insert(words[1].to_owned(), fence);
            }
        }
    }

    /// Moves the clock: mostly a little, sometimes to the end of a key, or back.
    fn move_clock(&mut self, both: &Both, lock: &str) {
        let rng = &mut self.rng;
        let by = match rng.below(100) {
            0..10 => 0,
            10..50 => rng.between(1, 900),
            50..75 => rng.between(1, 6_000),
            75..89 => rng.between(1, 1_300_000),
            89..91 => rng.between(1, 5_000_000),
            91..92 => 70_000_000,
            92..94 => return self.micros -= rng.between(1, 3_000_000).cast_signed(),
            94..96 if rng.one_in(20) => DAY.cast_unsigned() + rng.between(1, 5_000_000),
            94..96 if rng.one_in(20) => {
                return self.micros -= DAY + rng.between(1, 5_000_000).cast_signed();
            }
            _ => {
                let value = both.core.value(lock).map(|(_, ends)| ends);
                let queue = both.core.queue(lock).map(|(_, ends)| ends);
                let end = if rng.one_in(8) { queue } else { value };
                let end = end.map(|end| end.cast_signed() * 1_000);
                let edge = rng.between(0, 3_000).cast_signed() - 1_000;
                return self.micros = self.micros.max(end.unwrap_or(0) + edge);
            }
        };
        self.micros += by.cast_signed();
    }

    /// A server deletes a key at once that is told to end in the present millisecond, though it exists in all of it. A
    /// script that writes an end once more so ends a key a millisecond early.
    fn leave_the_last_millisecond(&mut self, both: &Both, lock: &str) {
        let end = both.core.value(lock).map(|(_, ends)| ends.cast_signed());
        if end == Some(self.micros / 1_000) {
            self.micros += 1_000;
        }
    }

    /// The leases that have the key or wait for it.
    fn near(&self, both: &Both, lock: &str) -> Vec<Lease> {
        let value = both.core.value(lock).map(|(value, _)| value);
        let queue = both.core.queue(lock).map(|(entries, _)| entries);
        let waiting = queue.into_iter().flatten().map(|(entry, _)| entry);
        let texts: Vec<String> = value.into_iter().chain(waiting).collect();
        let is_near = |lease: &&Lease| texts.iter().any(|text| text.contains(&lease.token));
        self.leases.iter().filter(is_near).cloned().collect()
    }

    fn lease(&mut self, near: &[Lease]) -> Lease {
        match !near.is_empty() && self.rng.percent(60) {
            true => self.rng.pick(near),
            false => self.rng.pick(&self.leases),
        }
    }

    /// The fencing token that a lease reports, or nothing.
    fn fence(&mut self, token: &str) -> String {
        let used = self.fences.get(token).copied();
        match used.filter(|_| self.rng.percent(60)) {
            Some(fence) => (fence + self.rng.pick(&[0, 0, 1, 3])).to_string(),
            None => String::new(),
        }
    }

    fn call(&mut self, near: &[Lease]) -> (&'static str, Vec<String>) {
        let lease = self.lease(near);
        let Lease { token, ttl, grant } = lease.clone();
        let (ttl_text, grant_text) = (ttl.to_string(), grant.to_string());
        let fence = self.fence(&token);
        let end = [&token, &fence, CHANNELS, &grant_text].map(str::to_owned);
        let mut end = end.to_vec();
        let script = match self.rng.below(100) {
            0..46 => return ("ACQUIRE", self.acquire(&lease, near)),
            46..64 => "RELEASE",
            64..70 => {
                end.push("leave".to_owned());
                "RELEASE"
            }
            70..75 => {
                end.push(self.rng.pick(&["0", "500", "3000"]).to_owned());
                if self.rng.one_in(2) {
                    let until = self.micros / 1_000 - 2_000;
                    let until = until + self.rng.between(0, 7_000).cast_signed();
                    end.push(until.to_string());
                }
                "COOL"
            }
            75..79 => {
                end.push("50".to_owned());
                "VACATE"
            }
            79..83 => {
                let record = self.rng.pick(&["", "paid", "a/b"]);
                end.extend(["5000", record, &ttl_text].map(str::to_owned));
                "REMEMBER"
            }
            83..87 => return ("FORGET", Vec::new()),
            87..95 => return ("EXTEND", vec![token, ttl_text]),
            _ => {
                let other = self.rng.pick(&self.leases).token;
                let to = if other == token {
                    NEVER_ASKED.to_owned()
                } else {
                    other
                };
                return ("SWAP", vec![token, to, ttl_text]);
            }
        };
        (script, end)
    }

    fn acquire(&mut self, lease: &Lease, near: &[Lease]) -> Vec<String> {
        let Lease { token, ttl, grant } = lease;
        let waits = if self.rng.percent(70) { "1" } else { "0" };
        let (mut replaced, mut fence) = (String::new(), String::new());
        if self.rng.one_in(5) {
            replaced = self.lease(near).token;
            fence = self.fence(&replaced);
        }
        if replaced == *token {
            replaced.clear();
        }
        let (ttl, grant) = (ttl.to_string(), grant.to_string());
        [token, &ttl, &grant, waits, &replaced, CHANNELS, &fence]
            .map(str::to_owned)
            .to_vec()
    }
}
