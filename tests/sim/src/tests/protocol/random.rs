//! Random calls of the scripts, and the world around them.

use std::collections::BTreeMap;

use super::both::{ADDRESSES, Answer, Both, KEYS, Step};
use super::kit::{self, MARK};
use super::seen::{Lease, Seen, is_share};
use crate::rng::Rng;
use lock_core::protocol_by_words::Value;

const START: i64 = 1_795_000_000_000_000;
const DAY: i64 = 86_400_000_000;
const CHANNELS: &str = "lockkit:!m:";
/// The limits of the shares, among locks.
const LIMITS: [&str; 7] = ["", READER, "00000002", READER, "", "00000003", READER];
const READER: &str = "ffffffff";
/// The token of a ticket.
const NEVER_ASKED: &str = "00000000000b2000/0000000000000000000000000000ffff";

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
        // Half of the seeds are about locks alone.
        let limits = if seed.is_multiple_of(2) {
            &[""; 7]
        } else {
            &LIMITS
        };
        let leases = (0..15).map(|number: usize| {
            let ttl = [300, 2_000, 10_000, 30_000, 60_000][number % 5];
            let limit = limits[number % limits.len()];
            Lease {
                token: format!("{}/{number:032x}{limit}", ADDRESSES[number / 3]),
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
        let seen = Seen::of(both, &lock, &self.leases);
        if seen.ends.contains(&(self.micros / 1_000)) && self.rng.one_in(2) {
            self.micros += 1_000;
        }
        let (script, mut arguments) = self.call(&seen);
        if let "SHARE" | "REMEMBER" | "EXTEND_SHARES" | "FORCE" = script {
            self.leave_the_last_millisecond(&seen);
        }
        if script == "SHARE" {
            self.spare_fencing_tokens(both, &seen, &mut arguments);
        }
        let (mark, queue, shares) = (MARK.to_owned(), kit::queue(key), kit::shares(key));
        let keys = match script {
            "FORGET" | "EXTEND" => vec![lock],
            // A ticket needs no mark.
            "SWAP" if arguments.len() == 3 => vec![lock],
            "SWAP" => vec![lock, mark],
            "ALL" => [mark].into_iter().chain(KEYS.map(kit::lock)).collect(),
            "EXTEND_SHARES" => vec![lock, shares],
            "SHARE" | "FORCE" => vec![lock, mark, queue, shares],
            _ => vec![lock, mark, queue],
        };
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
        if step.script != "ALL"
            && let Value::List(items) = &answer.reply
            && let [Value::Int(1), Value::Text(fence), ..] = &items[..]
        {
            let fence = fence.parse().expect("a fencing token");
            let token = if step.script == "SHARE" { 1 } else { 0 };
            self.fences.insert(step.arguments[token].clone(), fence);
        }
        for (_, message) in &answer.pushes {
            let words: Vec<&str> = message.split(' ').collect();
            if let "g" | "s" = words[0] {
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
            75..85 => rng.between(1, 1_300_000),
            85..91 if rng.one_in(4) => rng.between(1, 5_000_000),
            85..91 => rng.between(1, 900),
            91..92 if rng.one_in(4) => 70_000_000,
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
    /// script that writes such an end so ends a key a millisecond early.
    fn leave_the_last_millisecond(&mut self, seen: &Seen) {
        while seen.ends.contains(&(self.micros / 1_000)) {
            self.micros += 1_000;
        }
    }

    /// share.lua uses fencing tokens up for dead waiters where the clock is behind the mark, and the protocol does not.
    /// Nor does share.lua count on the fencing token of a lease that was over before its release. A script that is out of
    /// memory cannot note a fencing token, but may write later, after its first command that needs no memory.
    fn spare_fencing_tokens(&mut self, both: &Both, seen: &Seen, arguments: &mut [String]) {
        let is_end = matches!(arguments[0].as_str(), "free" | "leave");
        let is_inside = seen.inside.iter().any(|it| it.token == arguments[1]);
        if self.is_full || is_end && !(is_inside && arguments[0] == "free") {
            arguments[5].clear();
        }
        if self.dead.contains(&true) {
            let used = arguments[5].parse().unwrap_or(0);
            let mark = both.core.mark().unwrap_or(0).max(used).cast_signed();
            self.micros = self.micros.max(mark + 1);
            self.leave_the_last_millisecond(seen);
        }
    }

    /// One of these leases, in most cases, or any other.
    fn one_of(&mut self, near: &[Lease], is_wanted: fn(&Lease) -> bool) -> Lease {
        let near: Vec<_> = near.iter().filter(|it| is_wanted(it)).cloned().collect();
        let all = self.leases.iter().filter(|it| is_wanted(it)).cloned();
        let all: Vec<_> = all.collect();
        match !near.is_empty() && self.rng.percent(60) {
            true => self.rng.pick(&near),
            false => self.rng.pick(&all),
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

    fn call(&mut self, seen: &Seen) -> (&'static str, Vec<String>) {
        match self.rng.below(100) {
            0..40 => self.acquire(seen),
            40..43 => self.acquire_all(),
            43..46 => self.force(seen),
            46..64 => self.release(seen, "free"),
            64..70 => self.release(seen, "leave"),
            70..83 => self.close(seen),
            83..87 => ("FORGET", Vec::new()),
            87..95 => {
                let Lease { token, ttl, .. } = self.one_of(&seen.inside, |_| true);
                let script = if is_share(&token) {
                    "EXTEND_SHARES"
                } else {
                    "EXTEND"
                };
                (script, vec![token, ttl.to_string()])
            }
            _ => self.swap(seen),
        }
    }

    fn acquire(&mut self, seen: &Seen) -> (&'static str, Vec<String>) {
        // A newcomer in most cases.
        let near = if self.rng.one_in(2) {
            seen.all()
        } else {
            Vec::new()
        };
        let Lease { token, ttl, grant } = self.one_of(&near, |_| true);
        let (ttl, grant) = (ttl.to_string(), grant.to_string());
        let waits = self.rng.percent(70);
        if is_share(&token) {
            let verb = if waits { "wait" } else { "ask" };
            let fence = if self.rng.one_in(4) {
                self.fence(&token)
            } else {
                String::new()
            };
            let words = [verb, &token, &ttl, &grant, CHANNELS, &fence];
            return ("SHARE", words.map(str::to_owned).to_vec());
        }
        let (mut replaced, mut fence) = (String::new(), String::new());
        // acquire.lua and release.lua give a waiting share the key alone.
        if self.rng.one_in(5) && !seen.waiting.iter().any(|it| is_share(&it.token)) {
            replaced = self.one_of(&seen.inside, |it| !is_share(&it.token)).token;
            fence = self.fence(&replaced);
        }
        if replaced == token {
            replaced.clear();
        }
        let waits = if waits { "1" } else { "0" };
        let words = [&token, &ttl, &grant, waits, &replaced, CHANNELS, &fence];
        ("ACQUIRE", words.map(str::to_owned).to_vec())
    }

    fn acquire_all(&mut self) -> (&'static str, Vec<String>) {
        let ttl = self.rng.pick(&["300", "10000"]).to_owned();
        let mut tokens = Vec::new();
        while tokens.len() < KEYS.len() {
            let token = self.one_of(&[], |it| !is_share(&it.token)).token;
            if !tokens.contains(&token) {
                tokens.push(token);
            }
        }
        ("ALL", [vec![ttl], tokens].concat())
    }

    /// An operator's order. force.lua gives a waiting share the key alone, so none waits for it.
    fn force(&mut self, seen: &Seen) -> (&'static str, Vec<String>) {
        if seen.waiting.iter().any(|it| is_share(&it.token)) {
            return self.release(seen, "free");
        }
        let token = self.one_of(&seen.inside, |_| true).token;
        let words = [&token, &self.fence(&token), CHANNELS, "1000", "", ""];
        ("FORCE", words.map(str::to_owned).to_vec())
    }

    /// Ends a lease or a wait, as the client does it: by share.lua where shares are.
    fn release(&mut self, seen: &Seen, verb: &str) -> (&'static str, Vec<String>) {
        let near = if verb == "free" {
            &seen.inside
        } else {
            &seen.waiting
        };
        let Lease { token, ttl, grant } = self.one_of(near, |_| true);
        let (ttl, grant, fence) = (ttl.to_string(), grant.to_string(), self.fence(&token));
        if is_share(&token) || seen.has_shares || self.rng.one_in(10) {
            let words = [verb, &token, &ttl, &grant, CHANNELS, &fence];
            return ("SHARE", words.map(str::to_owned).to_vec());
        }
        let mut words = [&token, &fence, CHANNELS, &grant]
            .map(str::to_owned)
            .to_vec();
        if verb == "leave" {
            words.push("leave".to_owned());
        }
        ("RELEASE", words)
    }

    /// Ends a lease by a cooldown, a gap or a record.
    fn close(&mut self, seen: &Seen) -> (&'static str, Vec<String>) {
        let Lease { token, ttl, grant } = self.one_of(&seen.inside, |it| !is_share(&it.token));
        let (grant, fence) = (grant.to_string(), self.fence(&token));
        let mut words = [&token, &fence, CHANNELS, &grant]
            .map(str::to_owned)
            .to_vec();
        let script = match self.rng.below(3) {
            0 => {
                words.push(self.rng.pick(&["0", "500", "3000"]).to_owned());
                if self.rng.one_in(2) {
                    let until = self.micros / 1_000 - 2_000;
                    let until = until + self.rng.between(0, 7_000).cast_signed();
                    words.push(until.to_string());
                }
                "COOL"
            }
            1 => {
                words.push("50".to_owned());
                "VACATE"
            }
            _ => {
                let record = self.rng.pick(&["", "paid", "a/b"]);
                words.extend(["5000", record, &ttl.to_string()].map(str::to_owned));
                "REMEMBER"
            }
        };
        (script, words)
    }

    /// Replaces a lock by a ticket, by its next owner, or by a share.
    fn swap(&mut self, seen: &Seen) -> (&'static str, Vec<String>) {
        let Lease { token, ttl, .. } = self.one_of(&seen.inside, |it| !is_share(&it.token));
        let mut to = self.rng.pick(&self.leases).token;
        if to == token {
            NEVER_ASKED.clone_into(&mut to);
        }
        let mut words = vec![token, to, ttl.to_string()];
        if is_share(&words[1]) {
            // Others may enter beside it.
            words.extend(Some(self.fence(&words[0])).filter(|fence| !fence.is_empty()));
        }
        ("SWAP", words)
    }
}
