//! What is remembered of states, by their hashes: for this model and that of several servers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub(crate) type ByHash<T> = HashMap<u64, T, BuildHasherDefault<AsItIs>>;

/// The hashes are hashes already.
#[derive(Default)]
pub(crate) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only u64 are hashed");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
