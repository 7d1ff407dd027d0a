//! A quorum for tests of its parts.

use std::sync::Arc;

use super::{QuorumNode, QuorumStore};
use crate::base::clock::Clock;
use crate::base::settings::Settings;
use crate::base::token::{Address, TokenSource};
use crate::store::MemoryStore;
use crate::timer::Timers;

/// A quorum of one node, to which nothing is sent.
pub(super) fn one_node(timers: &Arc<Timers>) -> Arc<QuorumStore> {
    let node = QuorumNode {
        store: MemoryStore::new(Clock::default()),
        shown: "0".to_owned(),
    };
    let names = TokenSource::new(Address::random());
    QuorumStore::new(vec![node], Settings::default(), timers, names)
}
