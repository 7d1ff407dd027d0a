//! The leases of a key, as far as the generator of calls knows them.

use super::both::Both;

const SHARE_LENGTH: usize = 16 + 1 + 32 + 8;

/// The lease of a token: for how long it is asked for, and for how long it is given to its waiter.
#[derive(Clone)]
pub struct Lease {
    pub token: String,
    pub ttl: i64,
    pub grant: i64,
}

/// What the generator of calls sees of a key.
pub struct Seen {
    pub inside: Vec<Lease>,
    pub waiting: Vec<Lease>,
    pub has_shares: bool,
    /// The ends of the key and of its shares, in milliseconds.
    pub ends: Vec<i64>,
}

impl Seen {
    pub fn of(both: &Both, lock: &str, leases: &[Lease]) -> Self {
        let value = both.core.value(lock);
        let queue = both.core.queue(lock).map(|(entries, _)| entries);
        let shares = both.core.shares(lock).map(|(members, _)| members);
        let mut ends: Vec<i64> = value.iter().map(|(_, ends)| ends.cast_signed()).collect();
        let ends_of_shares = shares.iter().flatten().map(|(_, ends)| *ends as i64);
        ends.extend(ends_of_shares);
        let found = |texts: &[String]| {
            let is_there = |lease: &&Lease| texts.iter().any(|text| text.contains(&lease.token));
            leases.iter().filter(is_there).cloned().collect::<Vec<_>>()
        };
        let value = value.map(|(text, _)| text);
        let shares = shares.into_iter().flatten().map(|(text, _)| text);
        let inside: Vec<String> = value.into_iter().chain(shares).collect();
        let waiting = queue.into_iter().flatten().map(|(text, _)| text);
        let waiting: Vec<String> = waiting.collect();
        let (inside, waiting) = (found(&inside), found(&waiting));
        let has_shares = inside.iter().chain(&waiting).any(|it| is_share(&it.token));
        let has_shares = has_shares || both.core.shares(lock).is_some();
        Self {
            inside,
            waiting,
            has_shares,
            ends,
        }
    }

    pub fn all(&self) -> Vec<Lease> {
        self.inside.iter().chain(&self.waiting).cloned().collect()
    }
}

pub fn is_share(token: &str) -> bool {
    token.len() == SHARE_LENGTH
}
