//! A map of states by their hashes, for this model and the model of several servers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type ByHash<T> = HashMap<u64, T, BuildHasherDefault<IdentityHasher>>;

/// Uses the keys as hashes, because the keys are hashes already.
#[derive(Default)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("all keys are `u64`");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
