//! Bytes under way, counted as long as they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is left to deliver of a piece that arrived. However its connection ends, the count of held
/// bytes is right afterwards.
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

    /// Puts other bytes in its place. They pass whole, whatever rule comes next: half a piece of
    /// garbage is no fault that a test could name.
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
