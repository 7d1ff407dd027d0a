//! The share of CI. `LOCK_SIM_HISTORIES` sets how many histories, `LOCK_SIM_SEED` the first seed.
//!
//! Each run has the same seeds unless they are set, because some rules are new and take a history in many thousands for a
//! violation that is none. The command `for` draws fresh ones.

use std::env;
use std::ops::ControlFlow;

use crate::plan::Topology;
use crate::search::search;

/// How many histories run, unless `LOCK_SIM_HISTORIES` says otherwise.
const USUAL: u64 = 2_000;
/// The first seed, unless `LOCK_SIM_SEED` says otherwise.
const FIRST: u64 = 1;

/// Runs this topology's share of the histories, in hundredths.
fn run(topology: Topology, share: u64) {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>());
    let all = number("LOCK_SIM_HISTORIES")
        .unwrap_or(Ok(USUAL))
        .expect("a number");
    let first = number("LOCK_SIM_SEED")
        .unwrap_or(Ok(FIRST))
        .expect("a number");
    let wanted = all * share / 100;
    println!("{topology:?}: {wanted} histories from seed {first}");
    let (sum, done) = search(&[topology.into()], first, |sum| {
        match sum.histories < wanted {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    println!("{sum:?}");
    if let Err(violation) = done {
        panic!("{violation}");
    }
    assert!(sum.grants > 0 || wanted == 0, "the histories grant locks");
}

#[test]
fn one_server_keeps_every_promise() {
    run(Topology::One, 56);
}

#[test]
fn a_server_with_replicas_keeps_every_promise() {
    run(Topology::Replicas, 24);
}

#[test]
fn a_quorum_keeps_every_promise() {
    run(Topology::Redlock, 6);
}

#[test]
fn a_master_with_sentinels_keeps_every_promise() {
    run(Topology::Sentinel, 6);
}

#[test]
fn a_cluster_whose_slots_move_keeps_every_promise() {
    run(Topology::Cluster, 8);
}
