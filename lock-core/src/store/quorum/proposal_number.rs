//! Fencing tokens over independent servers: pure.
//!
//! Counters of the nodes, or the maximum of them, repeat numbers, and the clocks of nodes never agree on one
//! number. So the *client proposes* the number. Each node keeps the highest number that it accepted in a
//! register, and accepts only numbers above it, with the [`BLOCK`] before them. A majority that accepted a
//! number shares a node with every later majority, and that node refuses every number that is not higher. So
//! tokens are unique and rise, whatever the clocks and the clients do, as long as the registers are kept. (The
//! simpler way, in which each node counts its grants and the token is the highest count of a majority, gives a
//! token twice. The model finds it in 14 steps, with no other fault than a client that gives up.)
//!
//! A node that forgot its registers does not vote for a while (see [`node_monitor`](super::node_monitor)).
//! The numbers are also close to the time, so they are above earlier ones without any memory.
//!
//! Keys share registers, [`REGISTERS`] of them, by a hash of the key. A register for each key would have to be
//! kept for a day after the key's last use. Two keys of one register cost each other a second round trip when
//! both are taken at the same moment, and no more: a number above the other key's is above the own key's too.
//! All registers of a node are in one hash together with the mark that lets the node vote, so that a node
//! cannot lose one without the other.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::base::clock::{Moment, ServerTime};
use crate::base::fence::FencingToken;
use crate::store::vote::BLOCK;

/// The number of registers of a node.
pub(super) const REGISTERS: u16 = 4_096;

/// The register of a key. Every version of the kit must compute the same hash (FNV-1a).
pub(super) fn register_of(key: &str) -> u16 {
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash % u64::from(REGISTERS)) as u16
}

/// The number to propose at a time of the servers' clocks, when `highest` is the highest that was seen.
pub(super) fn next(time: u64, highest: u64) -> u64 {
    (time + BLOCK).max(highest + BLOCK + 1)
}

/// The fencing token of the first owner of a lease with this number.
pub(super) fn first_fence(number: u64) -> Option<FencingToken> {
    FencingToken::new(number.checked_sub(BLOCK)?)
}

/// What one manager knows of numbers.
pub(super) struct ProposalNumbers {
    /// From this process's clock in microseconds to the servers'.
    offset: AtomicI64,
    /// The highest number that was seen in each register.
    highest: Box<[AtomicU64]>,
}

impl ProposalNumbers {
    pub(super) fn new() -> Self {
        Self {
            offset: AtomicI64::new(0),
            highest: (0..REGISTERS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// A number to propose: like the time, and above all that was seen.
    pub(super) fn propose(&self, register: u16, now: Moment) -> u64 {
        let offset = self.offset.load(Ordering::Relaxed);
        let time = micros(now).saturating_add_signed(offset);
        let highest = &self.highest[usize::from(register)];
        let update = highest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |highest| {
            Some(next(time, highest))
        });
        next(time, update.unwrap_or_else(|highest| highest))
    }

    pub(super) fn saw(&self, register: u16, number: u64) {
        self.highest[usize::from(register)].fetch_max(number, Ordering::Relaxed);
    }

    /// Sets the clock by the nodes'. By the one in the middle: a minority that is wrong moves nothing.
    pub(super) fn set_clock(&self, mut offsets: Vec<i64>) {
        offsets.sort_unstable();
        if let Some(middle) = offsets.get(offsets.len().saturating_sub(1) / 2) {
            self.offset.store(*middle, Ordering::Relaxed);
        }
    }
}

/// How far the server's clock is ahead of this process's, by an answer to a question of `sent`.
pub(super) fn offset(sent: Moment, server: ServerTime) -> i64 {
    server.0.cast_signed() - micros(sent).cast_signed()
}

fn micros(moment: Moment) -> u64 {
    moment.0 / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::vote::accepts;
    use std::time::Duration;

    const NOW: Moment = Moment(5_000_000_000);

    #[test]
    fn proposals_are_like_the_time_and_rise() {
        let numbers = ProposalNumbers::new();
        numbers.set_clock(vec![1_700_000_000_000_000]);
        let first = numbers.propose(7, NOW);
        assert_eq!(first, 1_700_000_005_000_000 + BLOCK);
        assert_eq!(
            first_fence(first).map(u64::from),
            Some(1_700_000_005_000_000)
        );
        let second = numbers.propose(7, NOW);
        assert!(accepts(Some((first, false)), second));
        assert_eq!(numbers.propose(8, NOW), first, "another register");
        numbers.saw(7, second + 1_000_000);
        assert!(numbers.propose(7, NOW + Duration::from_millis(1)) > second + 1_000_000 + BLOCK);
    }

    #[test]
    fn a_minority_of_wrong_clocks_moves_nothing() {
        let numbers = ProposalNumbers::new();
        let year = 365 * 86_400 * 1_000_000;
        numbers.set_clock(vec![1_000, 1_005, year, 995, -year]);
        assert_eq!(numbers.propose(0, NOW), 5_000_000 + 1_000 + BLOCK);
    }

    #[test]
    fn a_keys_register_never_changes() {
        // Written down: managers of different versions must agree.
        assert_eq!(register_of(""), 805);
        assert_eq!(register_of("order:42"), register_of("order:42"));
        let used: std::collections::HashSet<_> = (0..10_000)
            .map(|id| register_of(&format!("order:{id}")))
            .collect();
        assert!(used.len() > 3_500, "{}", used.len());
    }
}
