//! Holds the rules that a test sets and that every connection reads before each byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::load::Load;

/// One of the two directions through a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Requests,
    /// From the server to the client.
    Replies,
}

/// The rule for the bytes of one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flow {
    /// The bytes pass.
    Pass,
    /// The proxy holds the bytes, and the end of the connection, until the test sets another flow. A
    /// partition that heals delivers its bytes late in the same way.
    Hold,
    /// The bytes pass after this delay.
    Delay(Duration),
    /// This many more bytes pass, counted over all connections; the proxy holds the rest.
    HoldAfter(u64),
    /// A piece that contains these bytes is held, and so is all that follows it on its connection. Other bytes pass.
    ///
    /// A piece is what the proxy reads at once: all that a peer writes at once, if that is short.
    HoldFrom(Vec<u8>),
    /// The proxy replaces each piece that arrives by these bytes, as a peer that sends garbage.
    Replace(Vec<u8>),
    /// The answers to `TIME` that arrive from now on are later by this time.
    ///
    /// The time is in whole seconds. All other bytes pass unchanged.
    ClockAhead(Duration),
    /// The server rejects `SET` with both `NX` and `GET`, as Redis did before 7.0.
    ///
    /// All other bytes pass unchanged.
    SetWithoutGet,
}

/// The whole state of a proxy.
#[derive(Debug, Default)]
pub(super) struct Plan {
    requests: Lane,
    replies: Lane,
    /// A reference that the live connections share. A cut replaces it.
    pub(super) generation: Arc<()>,
    /// Whether new connections are to be refused.
    pub(super) refusing: bool,
    /// Whether the port is open.
    pub(super) listening: bool,
    /// The number of freezes so far. The age of a connection is the number at its accept.
    pub(super) age: u64,
    /// Connections accepted before this age stand still.
    pub(super) frozen_before: u64,
    /// For the clients, connections accepted before this age have ended.
    pub(super) without_clients_before: u64,
}

impl Plan {
    pub(super) fn set(&mut self, direction: Direction, flow: Flow) {
        let lane = match direction {
            Direction::Requests => &mut self.requests,
            Direction::Replies => &mut self.replies,
        };
        lane.budget.store(
            if let Flow::HoldAfter(n) = flow { n } else { 0 },
            Ordering::Relaxed,
        );
        lane.met.store(false, Ordering::Relaxed);
        lane.flow = flow;
    }

    /// Freezes every present connection. Later connections have the next age.
    pub(super) fn freeze(&mut self) {
        self.age += 1;
        self.frozen_before = self.age;
    }

    /// Returns whether a connection of that age is frozen.
    pub(super) fn is_frozen(&self, age: u64) -> bool {
        age < self.frozen_before
    }

    pub(super) fn lane(&self, direction: Direction) -> &Lane {
        match direction {
            Direction::Requests => &self.requests,
            Direction::Replies => &self.replies,
        }
    }
}

/// One direction's rule and counts.
#[derive(Debug)]
pub(super) struct Lane {
    flow: Flow,
    budget: AtomicU64,
    passed: AtomicU64,
    held: Arc<AtomicU64>,
    /// Whether a piece with the bytes of [`Flow::HoldFrom`] has come.
    met: AtomicBool,
}

/// The rule's decision about a piece that arrived at a given time.
pub(super) enum Verdict<'a> {
    /// That many of its bytes may pass now, and the end of the stream if the piece is one.
    Pass(usize),
    /// These bytes pass in place of the piece.
    Instead(&'a [u8]),
    /// No byte passes before that instant.
    Later(Instant),
    /// No byte passes under this rule.
    Never,
}

impl Lane {
    pub(super) fn judge(&self, arrived: Instant, piece: &[u8]) -> Verdict<'_> {
        let length = piece.len();
        match &self.flow {
            Flow::HoldFrom(bytes) if contains(piece, bytes) => {
                self.met.store(true, Ordering::Relaxed);
                Verdict::Never
            }
            Flow::HoldFrom(_) => Verdict::Pass(length),
            Flow::Pass | Flow::ClockAhead(_) | Flow::SetWithoutGet => Verdict::Pass(length),
            Flow::Hold => Verdict::Never,
            Flow::Delay(by) if arrived.elapsed() >= *by => Verdict::Pass(length),
            Flow::Delay(by) => Verdict::Later(arrived + *by),
            Flow::HoldAfter(_) => match self.budget.load(Ordering::Relaxed) {
                0 => Verdict::Never,
                left => Verdict::Pass(length.min(usize::try_from(left).unwrap_or(length))),
            },
            Flow::Replace(bytes) => Verdict::Instead(bytes),
        }
    }

    /// Takes over bytes that have arrived.
    pub(super) fn load(&self, mut bytes: Vec<u8>) -> Load {
        match self.flow {
            Flow::ClockAhead(by) => set_ahead(&mut bytes, by),
            Flow::SetWithoutGet => make_unknown(&mut bytes),
            _ => {}
        }
        Load::new(bytes, &self.held)
    }

    /// Counts bytes that have passed.
    pub(super) fn count_passed(&self, bytes: usize) {
        self.passed.fetch_add(bytes as u64, Ordering::Relaxed);
        if let Flow::HoldAfter(_) = self.flow {
            // One thread runs all connections, so no other connection can use the budget in between.
            self.budget.fetch_sub(bytes as u64, Ordering::Relaxed);
        }
    }

    pub(super) fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    pub(super) fn has_met(&self) -> bool {
        self.met.load(Ordering::Relaxed)
    }

    pub(super) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }
}

fn contains(piece: &[u8], bytes: &[u8]) -> bool {
    piece.windows(bytes.len()).any(|window| window == bytes)
}

/// Sets the answers to `TIME` among these bytes ahead. An answer is the seconds and the microseconds, each as
/// text.
fn set_ahead(bytes: &mut [u8], by: Duration) {
    const BEFORE: &[u8] = b"*2\r\n$10\r\n";
    const AFTER: &[u8] = b"\r\n$";
    const LENGTH: usize = BEFORE.len() + 10 + AFTER.len();
    for at in 0..bytes.len().saturating_sub(LENGTH) {
        let piece = &bytes[at..at + LENGTH];
        if !piece.starts_with(BEFORE) || !piece.ends_with(AFTER) {
            continue;
        }
        let seconds = at + BEFORE.len()..at + BEFORE.len() + 10;
        let text = std::str::from_utf8(&bytes[seconds.clone()]).ok();
        if let Some(time) = text.and_then(|text| text.parse::<u64>().ok()) {
            let later = format!("{:010}", time + by.as_secs());
            bytes[seconds].copy_from_slice(later.as_bytes());
        }
    }
}

/// Renames the `GET` of every `SET … NX GET` among these bytes to an option that no server knows.
fn make_unknown(bytes: &mut [u8]) {
    const NX: &[u8] = b"$2\r\nNX\r\n$3\r\n";
    const OPTION: &[u8] = b"GET";
    const LENGTH: usize = NX.len() + OPTION.len();
    for at in 0..bytes.len().saturating_sub(LENGTH) {
        let piece = &mut bytes[at..at + LENGTH];
        if piece.starts_with(NX) && piece.ends_with(OPTION) {
            piece[NX.len()..].copy_from_slice(b"???");
        }
    }
}

impl Default for Lane {
    fn default() -> Lane {
        Lane {
            flow: Flow::Pass,
            budget: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            held: Arc::default(),
            met: AtomicBool::new(false),
        }
    }
}
