//! Records outside the store who claims a key and when, and judges the claims. It knows nothing of locks.
//!
//! A claim is a span of time. At its beginning the lock had been granted, and its end was read before a check that
//! found the lock valid. So the claim is true for the whole span, also if its process was stopped or killed.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use lock_core::LockGuard;
use rustix::time::{ClockId, clock_gettime};

/// Returns the nanoseconds of a clock that all processes share and that is never set.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let nanos = time.tv_sec * 1_000_000_000 + time.tv_nsec;
    u64::try_from(nanos).expect("after the start")
}

/// A file with a line for each part of a claim. A line is written at once, behind the lines of other processes.
pub(crate) struct Ledger {
    file: File,
    path: PathBuf,
    last: AtomicU64,
}

impl Ledger {
    pub(crate) fn open(folder: &Path) -> Ledger {
        let path = folder.join("ledger");
        let file = OpenOptions::new().create(true).append(true).open(&path);
        Ledger {
            file: file.expect("a ledger"),
            path,
            last: AtomicU64::new(0),
        }
    }

    /// Begins a claim of one owner of one key, if its lock is still valid. The fencing token 0 stands for a client of
    /// another library.
    pub(crate) fn alone(&self, fence: u64, is_valid: impl FnOnce() -> bool) -> Option<Claim<'_>> {
        let claim = self.claim(None, &["k".to_owned()], 0, fence);
        claim.goes_on(is_valid).then_some(claim)
    }

    /// Begins the claim of a guard in the same way.
    pub(crate) fn of(&self, guard: &LockGuard) -> Option<Claim<'_>> {
        self.alone(u64::from(guard.fencing_token()), || guard.is_valid())
    }

    /// Makes a claim of these keys, which counts from now on once it goes on. `hold`: the first claim of a lock that goes
    /// on; `limit`: how many may have each of the keys, 0 for one alone.
    pub(super) fn claim(
        &self,
        hold: Option<&str>,
        keys: &[String],
        limit: u32,
        fence: u64,
    ) -> Claim<'_> {
        let from = now();
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", std::process::id());
        let hold = hold.map_or_else(|| name.clone(), str::to_owned);
        Claim {
            ledger: self,
            rest: format!("{from} {fence} {limit} {hold} {}", keys.join(",")),
            name,
            hold,
        }
    }

    /// Compares the claims of all processes, and returns how many there were.
    #[track_caller]
    pub(crate) fn check(&self) -> usize {
        let (claims, wrong) = self.judged();
        assert!(wrong.is_empty(), "{wrong:#?}");
        claims
    }

    /// Judges all claims. Returns how many there were, and what was wrong.
    pub(super) fn judged(&self) -> (usize, Vec<String>) {
        let text = std::fs::read_to_string(&self.path).expect("the ledger");
        judge(&text)
    }
}

/// A claim, which its owner extends again and again.
pub(crate) struct Claim<'a> {
    ledger: &'a Ledger,
    name: String,
    rest: String,
    pub(super) hold: String,
}

impl Claim<'_> {
    /// Extends the claim to now. `false`: the lock is lost.
    pub(crate) fn goes_on(&self, is_valid: impl FnOnce() -> bool) -> bool {
        let until = now();
        let valid = is_valid();
        if valid {
            let line = format!("{} {until} {}\n", self.name, self.rest);
            let mut file = &self.ledger.file;
            file.write_all(line.as_bytes()).expect("a line is written");
        }
        valid
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Span<'a> {
    /// The first claim of the same lock.
    hold: &'a str,
    from: u64,
    until: u64,
    fence: u64,
    limit: u32,
}

impl Span<'_> {
    fn is_alone(self) -> bool {
        self.limit == 0
    }
}

fn judge(text: &str) -> (usize, Vec<String>) {
    let mut claims: HashMap<(&str, &str), Span<'_>> = HashMap::new();
    // The last line of a process that was killed may be incomplete.
    for line in text.lines() {
        let parts: Vec<_> = line.split(' ').collect();
        let [name, until, from, fence, limit, hold, keys] = parts[..] else {
            continue;
        };
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let (from, until, fence) = (number(from), number(until), number(fence));
        let limit = u32::try_from(number(limit)).expect("a limit");
        for key in keys.split(',') {
            let span = claims.entry((key, name)).or_insert(Span {
                hold,
                from,
                until,
                fence,
                limit,
            });
            span.until = span.until.max(until);
        }
    }
    let mut by_key: HashMap<&str, Vec<Span<'_>>> = HashMap::new();
    for ((key, _), span) in &claims {
        by_key.entry(key).or_default().push(*span);
    }
    let mut wrong = Vec::new();
    for (key, mut spans) in by_key {
        spans.sort_by_key(|span| span.from);
        beside_one_another(key, &spans, &mut wrong);
        // A client of another library has no token.
        spans.retain(|span| span.fence > 0);
        tokens(key, &spans, &mut wrong);
    }
    (claims.len(), wrong)
}

/// No claim stands beside one that is alone, and never more than the limit stand beside each other.
fn beside_one_another(key: &str, spans: &[Span<'_>], wrong: &mut Vec<String>) {
    let mut inside: Vec<Span<'_>> = Vec::new();
    for span in spans {
        inside.retain(|other| other.until > span.from);
        if let Some(other) = inside
            .iter()
            .find(|other| other.is_alone() || span.is_alone())
        {
            wrong.push(format!(
                "{key}: {span:?} is beside {other:?}, of which one is alone"
            ));
        }
        inside.push(*span);
        if inside.iter().any(|span| span.is_alone()) {
            continue;
        }
        // A key has one limit, or each claim its own. The highest of those inside then bounds them all.
        let limit = inside.iter().map(|span| span.limit).max().unwrap_or(0);
        if inside.len() > limit as usize {
            wrong.push(format!(
                "{key}: {} are inside, and {limit} may be: {inside:?}",
                inside.len()
            ));
        }
    }
}

/// Of two claims of which one is alone, the later has the higher token, unless the same lock goes on.
fn tokens(key: &str, spans: &[Span<'_>], wrong: &mut Vec<String>) {
    let (mut highest, mut highest_alone): (Option<Span<'_>>, Option<Span<'_>>) = (None, None);
    let mut ended = spans.to_vec();
    ended.sort_by_key(|span| span.until);
    let mut ended = ended.into_iter().peekable();
    for span in spans {
        while let Some(before) = ended.next_if(|before| before.until <= span.from) {
            let higher = |than: Option<Span<'_>>| than.is_none_or(|it| it.fence < before.fence);
            if higher(highest) {
                highest = Some(before);
            }
            if before.is_alone() && higher(highest_alone) {
                highest_alone = Some(before);
            }
        }
        let before = if span.is_alone() {
            highest
        } else {
            highest_alone
        };
        let is_wrong = |before: &Span<'_>| match before.hold == span.hold {
            true => before.fence != span.fence,
            false => before.fence >= span.fence,
        };
        if let Some(before) = before.filter(is_wrong) {
            wrong.push(format!(
                "{key}: the token of {span:?} is not above that of {before:?}"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Judges claims of one key: from, until, fencing token, limit.
    fn wrong(claims: &[(u64, u64, u64, u32)]) -> usize {
        let lines = claims.iter().enumerate();
        let lines = lines.map(|(name, (from, until, fence, limit))| {
            format!("{name} {until} {from} {fence} {limit} {name} k\n")
        });
        judge(&lines.collect::<String>()).1.len()
    }

    #[test]
    fn a_lock_that_goes_on_has_the_same_token() {
        let goes_on = |fence: u64| {
            let lines = format!("a 10 0 1 0 a k\nb 30 20 {fence} 5 a k\n");
            judge(&lines).1.len()
        };
        assert_eq!((goes_on(1), goes_on(2)), (0, 1));
    }

    #[test]
    fn claims_that_may_stand_beside_one_another_are_right() {
        assert_eq!(wrong(&[(0, 10, 1, 0), (10, 20, 2, 0)]), 0);
        assert_eq!(wrong(&[(0, 10, 5, 2), (1, 9, 5, 2), (10, 20, 6, 0)]), 0);
        assert_eq!(wrong(&[(0, 10, 9, 2), (1, 9, 5, 2), (12, 13, 4, 2)]), 0);
        assert_eq!(wrong(&[(0, 10, 1, 0), (10, 20, 0, 0), (20, 30, 2, 0)]), 0);
    }

    #[test]
    fn a_claim_beside_one_that_is_alone_is_wrong() {
        assert_eq!(wrong(&[(0, 10, 1, 0), (9, 20, 2, 0)]), 1);
        assert_eq!(wrong(&[(0, 10, 1, 9), (9, 20, 2, 0)]), 1);
        assert_eq!(wrong(&[(0, 10, 1, 0), (9, 20, 2, 9)]), 1);
        assert_eq!(wrong(&[(0, 10, 1, 0), (9, 20, 0, 0)]), 1);
    }

    #[test]
    fn more_claims_than_the_limit_are_wrong() {
        assert_eq!(wrong(&[(0, 10, 1, 2), (1, 10, 2, 2), (9, 20, 3, 2)]), 1);
        assert_eq!(wrong(&[(0, 10, 1, 2), (1, 9, 2, 2), (9, 20, 3, 2)]), 0);
    }

    #[test]
    fn a_token_that_does_not_rise_where_one_is_alone_is_wrong() {
        assert_eq!(wrong(&[(0, 10, 2, 0), (10, 20, 2, 0)]), 1);
        assert_eq!(wrong(&[(0, 10, 2, 5), (10, 20, 1, 0)]), 1);
        assert_eq!(wrong(&[(0, 10, 2, 0), (10, 20, 1, 5)]), 1);
        assert_eq!(wrong(&[(0, 10, 2, 0), (10, 20, 0, 0), (20, 30, 1, 0)]), 1);
    }
}
