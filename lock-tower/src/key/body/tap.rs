//! Digests the body of a request while its handler reads it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

/// The digest of a request, which grows with every byte that its handler reads.
///
/// The body is not buffered for it. A byte that the handler does not read cannot change the answer.
pub(crate) struct BodyTap(Mutex<Tapped>);

#[derive(Clone)]
struct Tapped {
    digest: Sha256,
    read: u64,
    ended: bool,
}

impl BodyTap {
    pub(super) fn data(&self, bytes: &[u8]) {
        let mut tapped = self.tapped();
        tapped.digest.update(bytes);
        tapped.read += bytes.len() as u64;
    }

    pub(super) fn end(&self) {
        self.tapped().ended = true;
    }

    fn tapped(&self) -> MutexGuard<'_, Tapped> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(feature = "replay")]
impl BodyTap {
    /// Makes a tap whose digest begins with the head of the request.
    pub(crate) fn new(digest: Sha256) -> Self {
        Self(Mutex::new(Tapped {
            digest,
            read: 0,
            ended: false,
        }))
    }

    /// Returns the digest, the number of bytes that were read, and whether the body has ended.
    pub(crate) fn so_far(&self) -> ([u8; 32], u64, bool) {
        let Tapped {
            digest,
            read,
            ended,
        } = self.tapped().clone();
        (digest.finalize().into(), read, ended)
    }
}
