//! Records outside the store which owner claims the lock and when.
//!
//! The claims are compared at the end.
//!
//! A claim is a span of time. At its beginning the lock had been granted. Its end was read before a check
//! that found the lock still valid. So the claim is true for the whole span, even if its process was
//! stopped or killed at any point. Two claims that overlap are two owners at once.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use lock_core::LockGuard;
use rustix::time::{ClockId, clock_gettime};

/// Returns the nanoseconds of a clock that all processes share and that is never set.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let nanos = time.tv_sec * 1_000_000_000 + time.tv_nsec;
    u64::try_from(nanos).expect("after the start")
}

/// A file with a line for each claim. A line is written at once, behind the lines of other processes.
pub(crate) struct Ledger {
    file: File,
    path: PathBuf,
    last: AtomicU64,
}

/// The claim of an owner, which it extends again and again.
pub(crate) struct Claim<'a> {
    ledger: &'a Ledger,
    tenure: String,
    fence: u64,
    from: u64,
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

    /// Begins a claim if the lock is still valid. The fencing token 0 stands for a client of another
    /// library.
    pub(crate) fn claim(&self, fence: u64, is_valid: impl FnOnce() -> bool) -> Option<Claim<'_>> {
        let from = now();
        let number = self.last.fetch_add(1, Ordering::Relaxed);
        let claim = Claim {
            ledger: self,
            tenure: format!("{}-{number}", std::process::id()),
            fence,
            from,
        };
        is_valid().then(|| {
            claim.write(from);
            claim
        })
    }

    /// Compares the claims of all processes and returns their number.
    pub(crate) fn check(&self) -> usize {
        let text = std::fs::read_to_string(&self.path).expect("a ledger");
        let mut tenures: HashMap<&str, [u64; 3]> = HashMap::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [tenure, numbers @ ..] = words.as_slice() else {
                continue;
            };
            let numbers: Vec<u64> = numbers.iter().filter_map(|it| it.parse().ok()).collect();
            let [from, until, fence] = numbers.try_into().expect("three numbers");
            let known = tenures.entry(tenure).or_insert([from, until, fence]);
            known[1] = known[1].max(until);
        }
        let mut tenures: Vec<_> = tenures.into_iter().collect();
        tenures.sort_by_key(|(_, [from, ..])| *from);
        let mut before = ("none", [0, 0, 0]);
        let mut highest = 0;
        for this in &tenures {
            let (_, [from, _, fence]) = this;
            assert!(
                before.1[1] <= *from,
                "two owners at once: {before:?}, {this:?}"
            );
            if *fence > 0 {
                assert!(
                    highest < *fence,
                    "{fence} was granted after {highest}: {this:?}"
                );
                highest = *fence;
            }
            before = *this;
        }
        tenures.len()
    }
}

impl Claim<'_> {
    /// Extends the claim if the lock is still valid.
    pub(crate) fn goes_on(&self, is_valid: impl FnOnce() -> bool) -> bool {
        let until = now();
        let valid = is_valid();
        if valid {
            self.write(until);
        }
        valid
    }

    fn write(&self, until: u64) {
        let Claim {
            tenure,
            fence,
            from,
            ..
        } = self;
        let line = format!("{tenure} {from} {until} {fence}\n");
        (&self.ledger.file)
            .write_all(line.as_bytes())
            .expect("a ledger");
    }
}

/// Begins a claim for a guard.
pub(crate) fn claim<'a>(ledger: &'a Ledger, guard: &LockGuard) -> Option<Claim<'a>> {
    ledger.claim(u64::from(guard.fencing_token()), || guard.is_valid())
}

#[test]
fn the_ledger_finds_two_owners_at_once_and_a_token_that_falls() {
    let at_once = [(1, true), (2, true)];
    let falling = [(2, false), (1, false)];
    for (claims, rightly) in [
        (at_once, false),
        (falling, false),
        ([(1, false), (2, false)], true),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let ledger = Ledger::open(folder.path());
        let claims = claims.map(|(fence, stays)| {
            let claim = ledger.claim(fence, || true).expect("valid");
            claim.goes_on(|| true);
            (claim, stays)
        });
        for (claim, stays) in &claims {
            assert!(!stays || claim.goes_on(|| true));
        }
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ledger.check()));
        assert_eq!(checked.is_ok_and(|count| count == 2), rightly, "{rightly}");
    }
}
