//! One node: its store, and whether it is worth asking.
//!
//! A node that fails, or is silent for too long, is out. It is not asked again until it has answered the
//! keeper's thread, so that only the first question waits for it. Releases that it misses are kept as hints.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, watch};

use super::QuorumNode;
use super::hinted_handoff::Hints;
use crate::base::sync::lock;
use crate::store::{BoxFuture, Failure, Lane, Operation, Outcome, Store};

/// The node has not answered yet.
const NEW: u8 = 0;
const UP: u8 = 1;
const OUT: u8 = 2;

/// The numbers of nodes that are worth asking, and of nodes that have not answered yet.
pub(super) struct Census {
    pub(super) up: usize,
    pub(super) new: usize,
}

pub(super) struct Node {
    pub(super) store: Arc<dyn Store>,
    /// The address, without user or password.
    pub(super) shown: String,
    standing: AtomicU8,
    /// Whether the node came back without data and does not vote yet.
    kept_out: AtomicBool,
    /// Why the node is out.
    why: Mutex<Option<Failure>>,
    pub(super) hints: Hints,
    /// Notified when the keeper's thread has work for the node.
    pub(super) bell: Notify,
    changed: Arc<watch::Sender<()>>,
}

impl Node {
    pub(super) fn new(node: QuorumNode, changed: &Arc<watch::Sender<()>>) -> Arc<Self> {
        Arc::new(Self {
            shown: node.shown,
            standing: AtomicU8::new(NEW),
            kept_out: AtomicBool::new(false),
            why: Mutex::default(),
            hints: Hints::new(node.store.limits().late_duplicate),
            bell: Notify::new(),
            changed: Arc::clone(changed),
            store: node.store,
        })
    }

    pub(super) fn is_up(&self) -> bool {
        self.standing.load(Ordering::Relaxed) == UP
    }

    /// Counts the nodes one after the other, each once, even if its state changes meanwhile.
    pub(super) fn census(nodes: &[Arc<Node>]) -> Census {
        let mut census = Census { up: 0, new: 0 };
        for node in nodes {
            let standing = node.standing.load(Ordering::Relaxed);
            census.up += usize::from(standing == UP);
            census.new += usize::from(standing == NEW);
        }
        census
    }

    /// Returns whether the node voted when it was last looked at. Only the node decides that.
    pub(super) fn votes(&self) -> bool {
        !self.kept_out.load(Ordering::Relaxed)
    }

    /// Notes whether the node is kept out. Returns whether it was before.
    pub(super) fn note_kept_out(&self, kept_out: bool) -> bool {
        self.kept_out.swap(kept_out, Ordering::Relaxed)
    }

    /// The failure of a node that will never answer otherwise.
    pub(super) fn final_failure(&self) -> Option<Failure> {
        let why = lock(&self.why).clone();
        why.filter(Failure::is_final)
    }

    /// Asks the node. On a failure the keeper's thread finds out whether the node is out, because the caller's
    /// runtime may have ended, or the key may hold a foreign value.
    pub(super) fn ask(
        self: &Arc<Self>,
        operation: Operation,
        lane: Lane,
    ) -> BoxFuture<'static, Outcome> {
        let node = Arc::clone(self);
        Box::pin(async move {
            let outcome = node.store.execute(operation, lane).await;
            if let Outcome::Failed(_) = &outcome {
                node.bell.notify_one();
            }
            outcome
        })
    }

    /// Resets the node to its state before the first answer.
    #[cfg(test)]
    pub(super) fn is_not_known(&self) {
        self.standing.store(NEW, Ordering::Relaxed);
    }

    pub(super) fn answered(&self) {
        if self.standing.swap(UP, Ordering::Relaxed) != UP {
            if lock(&self.why).take().is_some() {
                tracing::info!(
                    node = self.shown,
                    "a node of the lock's quorum answers again"
                );
            }
            self.changed.send_replace(());
        }
    }

    pub(super) fn is_silent(&self) {
        self.is_out(&Failure::unanswered("it gave no answer in time"));
    }

    pub(super) fn is_out(&self, failure: &Failure) {
        if self.standing.swap(OUT, Ordering::Relaxed) != OUT {
            *lock(&self.why) = Some(failure.clone());
            if failure.is_final() {
                tracing::error!(node = self.shown, error = %failure.error, "a node of the lock's quorum cannot be used");
            } else {
                tracing::warn!(node = self.shown, error = %failure.error, "a node of the lock's quorum is out");
            }
            self.bell.notify_one();
            self.changed.send_replace(());
        }
    }
}
