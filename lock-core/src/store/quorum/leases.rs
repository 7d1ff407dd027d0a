//! On which nodes a lease stands, or may.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::acks::Acks;
use crate::sync::lock;
use crate::token::Token;

/// Nodes, each by its place in the list.
pub(super) type Nodes = u32;

/// The one node at this place.
pub(super) fn only(node: usize) -> Nodes {
    1 << node
}

pub(super) fn contains(nodes: Nodes, node: usize) -> bool {
    nodes & only(node) != 0
}

/// The leases of a manager that are asked for or held.
#[derive(Default)]
pub(super) struct Leases(Mutex<Table>);

#[derive(Default)]
struct Table {
    spreads: HashMap<Token, Arc<Spread>>,
    /// How many to have before looking for those that nobody needs.
    sweep_at: usize,
}

impl Leases {
    /// The lease's own spread, a new one if it has none.
    pub(super) fn begin(&self, token: Token) -> Arc<Spread> {
        let mut table = lock(&self.0);
        if table.spreads.len() >= table.sweep_at {
            table
                .spreads
                .retain(|_, spread| !(spread.is_over() && spread.is_resolved()));
            table.sweep_at = (table.spreads.len() * 2).max(64);
        }
        let spread = table.spreads.entry(token).or_default();
        spread.over.store(false, Ordering::SeqCst);
        Arc::clone(spread)
    }

    pub(super) fn of(&self, token: Token) -> Option<Arc<Spread>> {
        lock(&self.0).spreads.get(&token).cloned()
    }

    /// An attempt has failed: what comes late does not count. The lease may ask again, and must then know
    /// which nodes still have a question of it.
    pub(super) fn pause(&self, token: Token) {
        let mut table = lock(&self.0);
        if let Some(spread) = table.spreads.get(&token) {
            spread.over.store(true, Ordering::SeqCst);
            if spread.is_resolved() {
                table.spreads.remove(&token);
            }
        }
    }

    /// It never asks again, and what comes late does not count.
    pub(super) fn end(&self, token: Token) -> Option<Arc<Spread>> {
        let spread = lock(&self.0).spreads.remove(&token);
        if let Some(spread) = &spread {
            spread.ended.store(true, Ordering::SeqCst);
            spread.over.store(true, Ordering::SeqCst);
        }
        spread
    }

    pub(super) fn acks(&self, token: Token, of: usize) -> Acks {
        let granted = self
            .of(token)
            .map_or(0, |spread| spread.granted().count_ones());
        Acks::new(granted, u32::try_from(of).unwrap_or(u32::MAX))
    }
}

/// Where one lease stands.
#[derive(Debug, Default)]
pub(super) struct Spread {
    /// Where it may: asked, and not known to be without it.
    touched: AtomicU32,
    /// Where it does, by the node's last word.
    granted: AtomicU32,
    /// Where a question, or its undoing, has not been answered. Such a node is not asked again for the
    /// lease: what arrives late would undo the newer vote.
    unresolved: AtomicU32,
    /// Where one will never be answered, and may have arrived all the same.
    doubtful: AtomicU32,
    over: AtomicBool,
    /// For good: it does not ask again, nor wait.
    ended: AtomicBool,
    /// Rung when a question is resolved.
    bell: Notify,
}

impl Spread {
    /// The right to ask the node for it, unless somebody has it: it is resolved, or undone.
    #[must_use]
    pub(super) fn claim(&self, node: usize) -> bool {
        let before = self.unresolved.fetch_or(only(node), Ordering::SeqCst);
        let claimed = !contains(before, node);
        if claimed {
            self.touched.fetch_or(only(node), Ordering::SeqCst);
        }
        claimed
    }

    /// The node has it. `false`: nobody wants it any more.
    #[must_use]
    pub(super) fn stands(&self, node: usize) -> bool {
        self.granted.fetch_or(only(node), Ordering::SeqCst);
        // In this order: whoever ends the lease looks where it stands after that.
        !self.over.load(Ordering::SeqCst)
    }

    /// The node does not have it.
    pub(super) fn is_without(&self, node: usize) {
        self.granted.fetch_and(!only(node), Ordering::SeqCst);
        self.touched.fetch_and(!only(node), Ordering::SeqCst);
    }

    /// Nothing of it is on its way to the node.
    pub(super) fn resolved(&self, node: usize) {
        self.unresolved.fetch_and(!only(node), Ordering::SeqCst);
        self.bell.notify_waiters();
    }

    /// Resolves when the node may be asked, or nobody wants the lease any more: `false`.
    pub(super) async fn claimed(&self, node: usize) -> bool {
        loop {
            let mut bell = pin!(self.bell.notified());
            bell.as_mut().enable();
            if self.is_over() {
                return false;
            }
            if self.claim(node) {
                return true;
            }
            bell.await;
        }
    }

    pub(super) fn unresolved(&self, node: usize) {
        self.unresolved.fetch_or(only(node), Ordering::SeqCst);
    }

    /// There will be no answer. `false`: nobody wants it any more.
    #[must_use]
    pub(super) fn doubt(&self, node: usize) -> bool {
        self.doubtful.fetch_or(only(node), Ordering::SeqCst);
        !self.over.load(Ordering::SeqCst)
    }

    pub(super) fn doubtful(&self) -> Nodes {
        self.doubtful.load(Ordering::SeqCst)
    }

    pub(super) fn may_ask(&self, node: usize) -> bool {
        !contains(self.unresolved.load(Ordering::SeqCst), node)
    }

    fn is_resolved(&self) -> bool {
        self.unresolved.load(Ordering::SeqCst) == 0
    }

    pub(super) fn touched(&self) -> Nodes {
        self.touched.load(Ordering::SeqCst)
    }

    pub(super) fn granted(&self) -> Nodes {
        self.granted.load(Ordering::SeqCst)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::{Address, TokenSource};

    #[test]
    fn a_late_vote_counts_for_a_lease_that_is_wanted_and_for_no_other() {
        let (leases, tokens) = (Leases::default(), TokenSource::new(Address::random()));
        let token = tokens.fresh();
        let spread = leases.begin(token);
        assert!((0..3).all(|node| spread.claim(node)));
        assert!(spread.stands(0) && spread.stands(2));
        assert_eq!(leases.acks(token, 3), Acks::new(2, 3));
        assert!(leases.end(token).is_some());
        assert!(!spread.stands(1), "it is to be undone");
        assert_eq!(spread.touched(), 0b111);
        assert_eq!(leases.acks(token, 3), Acks::new(0, 3));
    }

    #[test]
    fn a_lease_that_asks_again_knows_which_nodes_still_have_a_question() {
        let (leases, tokens) = (Leases::default(), TokenSource::new(Address::random()));
        let token = tokens.fresh();
        let first = leases.begin(token);
        assert!(first.claim(0) && first.claim(1));
        assert!(!first.claim(1), "one question at a time");
        first.resolved(0);
        leases.pause(token);
        assert!(first.is_over());
        let second = leases.begin(token);
        assert!(second.may_ask(0) && !second.may_ask(1));
        assert!(!second.is_over());
        second.resolved(1);
        leases.pause(token);
        assert!(leases.of(token).is_none(), "nothing is kept for nothing");
    }

    #[test]
    fn what_nobody_asks_for_again_is_swept_away() {
        let (leases, tokens) = (Leases::default(), TokenSource::new(Address::random()));
        for _ in 0..1_000 {
            let token = tokens.fresh();
            let spread = leases.begin(token);
            assert!(spread.claim(0));
            leases.pause(token);
            spread.resolved(0);
        }
        assert!(lock(&leases.0).spreads.len() <= 64);
    }
}
