//! The same seed is the same history.

use std::collections::BTreeSet;

use crate::history::{Log, run};
use crate::plan::{Plan, Topology};

/// Every seed that ever showed a violation, with its topology. It runs twice, and shows none now.
const SEEDS: &str = include_str!("seeds.txt");

#[test]
fn a_seed_has_the_same_trace_in_each_run() {
    for topology in Topology::ALL {
        let mut traces = BTreeSet::new();
        for seed in 0..20 {
            let plan = Plan::of(seed, topology);
            let (one, other) = (run(&plan, Log::No), run(&plan, Log::No));
            assert_eq!(one.trace, other.trace, "{plan}");
            traces.insert(one.trace);
        }
        assert_eq!(traces.len(), 20, "other seeds are other histories");
    }
}

#[test]
fn every_seed_that_ever_failed_passes_and_has_the_same_trace_twice() {
    for line in SEEDS.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let (topology, seed) = (
            words.next().expect("a topology"),
            words.next().expect("a seed"),
        );
        let mut all = Topology::ALL.into_iter();
        let topology = all.find(|it| format!("{it:?}").eq_ignore_ascii_case(topology));
        let seed = seed.parse().expect("a number");
        let plan = Plan::of(seed, topology.expect("a topology"));
        let (one, other) = (run(&plan, Log::No), run(&plan, Log::No));
        assert!(one.violations.is_empty(), "{plan}{:?}", one.violations);
        assert_eq!(one.trace, other.trace, "{plan}");
    }
}
