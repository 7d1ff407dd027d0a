//! A map of states by their hashes, for all models.
//!
//! A state is remembered by 64 bits of its hash. Among ten million states, the chance of a
//! collision is about one in three hundred thousand.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

use foldhash::quality::FixedState;

pub(crate) type ByHash<T> = HashMap<u64, T, BuildHasherDefault<IdentityHasher>>;

/// The hash of a state. It is equal in each run.
pub(crate) fn print(world: &impl Hash) -> u64 {
    FixedState::default().hash_one(world)
}

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
