//! The way from one process to one server, in both directions.

use std::ops::RangeInclusive;

use super::{MILLI, State};
use crate::plan::Plan;

/// The segments of a new connection up to its first renewal.
pub const TO_CONNECT: u64 = 14;

/// What is wrong with a link. Each count is the number of faults that are under way.
#[derive(Clone, Default)]
pub(super) struct Link {
    /// Added to the latency, about.
    pub(super) slow: u64,
    pub(super) holds_requests: u32,
    pub(super) holds_replies: u32,
}

/// A segment of a process, or one to it, that took longer than usual.
#[derive(Clone, Debug)]
pub struct Late {
    pub process: usize,
    pub sent: u64,
    pub by: u64,
}

/// The longest time of a segment on a link that no fault slows down.
pub fn slowest_segment(usual: u64) -> u64 {
    usual / 2 + usual + slowest_tail(usual)
}

/// Some segments take longer than usual, up to this time.
fn slowest_tail(usual: u64) -> u64 {
    (40 * usual).min(40 * MILLI)
}

impl State {
    /// Returns whether a process began to connect in a span.
    pub fn has_dialed_in(&self, span: RangeInclusive<u64>) -> bool {
        self.connections.iter().any(|it| span.contains(&it.dialed))
    }

    /// How often a process has connected, or tried to connect, to a server.
    pub fn dials(&self, process: usize, server: usize) -> usize {
        let connections = self.connections.iter();
        let its = connections.filter(|it| it.process == process && it.server == server);
        its.count()
    }

    pub(super) fn link_of(&self, connection: usize) -> Link {
        let it = &self.connections[connection];
        let link = self.links.get(&(it.process, it.server));
        link.cloned().unwrap_or_default()
    }

    pub(super) fn link_mut(&mut self, process: usize, server: usize) -> &mut Link {
        self.links.entry((process, server)).or_default()
    }

    /// Makes a link longer for good.
    pub fn lengthen(&mut self, process: usize, server: usize, by: u64) {
        self.link_mut(process, server).slow += by;
    }

    /// The time of the next segment from a process to a server, or back.
    pub(super) fn latency(&mut self, process: usize, server: usize) -> u64 {
        let usual = self.settings.latency;
        let slow = self.links.get(&(process, server)).map_or(0, |it| it.slow);
        let mut time = usual / 2 + self.rng.below(usual);
        if self.rng.one_in(64) {
            let by = self.rng.below(slowest_tail(usual));
            self.late.push(Late {
                process,
                sent: self.now,
                by,
            });
            time += by;
        }
        if slow > 0 {
            time += slow / 2 + self.rng.below(slow);
        }
        time
    }

    /// Returns whether any process began to connect between two times.
    pub fn has_dialed(&self, from: u64, until: u64) -> bool {
        let mut connections = self.connections.iter();
        connections.any(|it| (from..=until).contains(&it.dialed))
    }

    /// How long a process connects at most, if it may do so between two times.
    pub fn connects_for(&self, plan: &Plan, process: usize, from: u64, until: u64) -> u64 {
        let longest = plan.segments(TO_CONNECT);
        let span = from.saturating_sub(longest)..=until;
        let mut connections = self.connections.iter();
        match connections.any(|it| it.process == process && span.contains(&it.dialed)) {
            true => longest,
            false => 0,
        }
    }
}

/// A segment as text.
pub(super) fn readable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", " ");
    match text.char_indices().nth(600) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    }
}
