//! What may pass: the state that a test sets and every connection reads before each byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::load::Load;

/// One of the two ways through a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    Requests,
    /// From the server to the client.
    Replies,
}

/// What happens to the bytes of one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flow {
    /// They pass.
    Pass,
    /// They are kept back, the end of the connection included, until another flow is set: a
    /// partition that heals delivers late.
    Hold,
    /// They pass that much later.
    Delay(Duration),
    /// That many more pass, counted over all connections; the rest is kept back.
    HoldAfter(u64),
    /// Each piece that arrives is replaced by these bytes: a peer that talks garbage.
    Replace(Vec<u8>),
    /// They pass, but what a server says of its clock (`TIME`) is that much later, from what arrives now
    /// on. Of whole seconds.
    ClockAhead(Duration),
    /// They pass, but the server does not know the options that a `SET` has at once since Redis 7.0: `NX` and
    /// `GET`.
    SetWithoutGet,
}

/// The whole state of a proxy.
#[derive(Debug, Default)]
pub(super) struct Plan {
    requests: Lane,
    replies: Lane,
    /// Shared by the live connections; a cut puts another in its place.
    pub(super) generation: Arc<()>,
    /// Whether new connections are to be refused.
    pub(super) refusing: bool,
    /// Whether the port is open.
    pub(super) listening: bool,
    /// How often the live connections were frozen so far: a connection's age is counted in it.
    pub(super) age: u64,
    /// Connections accepted before this age stand still.
    pub(super) frozen_before: u64,
    /// Connections accepted before this age have ended for their clients.
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
        lane.flow = flow;
    }

    /// Freezes every connection there is; those to come are of the next age.
    pub(super) fn freeze(&mut self) {
        self.age += 1;
        self.frozen_before = self.age;
    }

    /// Whether a connection of that age stands still.
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
}

/// What a lane says about a piece that arrived some time ago.
pub(super) enum Verdict<'a> {
    /// That many of its bytes may pass now (and its end, if it is one).
    Pass(usize),
    /// These bytes pass in its place.
    Instead(&'a [u8]),
    /// Nothing before that instant.
    Later(Instant),
    /// Nothing under this rule.
    Never,
}

impl Lane {
    pub(super) fn judge(&self, arrived: Instant, length: usize) -> Verdict<'_> {
        match &self.flow {
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

    /// Takes in what has arrived.
    pub(super) fn load(&self, mut bytes: Vec<u8>) -> Load {
        match self.flow {
            Flow::ClockAhead(by) => set_ahead(&mut bytes, by),
            Flow::SetWithoutGet => make_unknown(&mut bytes),
            _ => {}
        }
        Load::new(bytes, &self.held)
    }

    /// Counts what went out.
    pub(super) fn count_passed(&self, bytes: usize) {
        self.passed.fetch_add(bytes as u64, Ordering::Relaxed);
        if let Flow::HoldAfter(_) = self.flow {
            // One thread runs all connections, so that nobody else has taken from it meanwhile.
            self.budget.fetch_sub(bytes as u64, Ordering::Relaxed);
        }
    }

    pub(super) fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    pub(super) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }
}

/// The answers to `TIME` among these: the seconds and the microseconds, each as text.
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

/// The `GET` of every `SET … NX GET` among these is an option that no server knows.
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
        }
    }
}
