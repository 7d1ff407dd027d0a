//! Fresh histories: the share of CI. `LOCK_SIM_HISTORIES` sets how many, `LOCK_SIM_SEED` the first seed.

use std::env;
use std::ops::ControlFlow;
use std::time::SystemTime;

use lock_sim::plan::Topology;
use lock_sim::search::search;

/// How many histories run, unless `LOCK_SIM_HISTORIES` says otherwise.
const USUAL: u64 = 2_000;

/// Runs this topology's share of the histories, in hundredths.
fn run(topology: Topology, share: u64) {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>());
    let all = number("LOCK_SIM_HISTORIES")
        .unwrap_or(Ok(USUAL))
        .expect("a number");
    let first = number("LOCK_SIM_SEED")
        .unwrap_or_else(|| Ok(any_seed()))
        .expect("a number");
    let wanted = all * share / 100;
    println!("{topology:?}: {wanted} histories from seed {first}");
    let (sum, done) = search(&[topology], first, |sum| match sum.histories < wanted {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    });
    println!("{sum:?}");
    if let Err(violation) = done {
        panic!("{violation}");
    }
    assert!(sum.grants > 0 || wanted == 0, "the histories grant locks");
}

fn any_seed() -> u64 {
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    time.expect("after 1970").as_secs() << 20
}

#[test]
fn one_server_keeps_every_promise() {
    run(Topology::One, 65);
}

#[test]
fn a_server_with_replicas_keeps_every_promise() {
    run(Topology::Replicas, 28);
}

#[test]
fn a_quorum_keeps_every_promise() {
    run(Topology::Redlock, 7);
}
