//! Checks that the seeded faults fit the present source. `cargo run -p lock-tests --bin
//! faults` runs them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use lock_tests::faults::{self, Simulated};

use crate::covered::{cases, tests_in};

#[test]
fn every_seeded_fault_applies_exactly_once() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let rows = faults::read(&workspace).expect("rows");
    let mut problems = Vec::new();
    let mut names = BTreeSet::new();
    for fault in &rows {
        if !names.insert(&fault.name) {
            problems.push(format!("{}: another fault has the same name", fault.name));
        }
        let is_found = matches!(fault.sim, Some(Simulated::Found { .. }));
        if fault.must_fail.is_empty() && !is_found || fault.edits.is_empty() {
            problems.push(format!(
                "{}: the fault has no edit, or neither a test nor the simulation finds it",
                fault.name
            ));
        }
        problems.extend(fault.suite().err());
        problems.extend(fault.applied_to(&workspace).err());
        let same = fault.edits.iter().find(|edit| edit.text == edit.becomes);
        problems.extend(
            same.map(|edit| format!("{}: {} is not changed by an edit", fault.name, edit.file)),
        );
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_test_that_must_notice_a_fault_exists() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let case = |case: &str| case.rsplit("::").next().map(str::to_owned);
    let mut conformance: BTreeSet<_> = cases().iter().filter_map(|name| case(name)).collect();
    // Cases of some stores only, and those of databases, stand in lists of their own.
    let lists = [
        include_str!("conformance/mod.rs"),
        include_str!("conformance/one_server_a_key.rs"),
        include_str!("once/functions.rs"),
        include_str!("once/layer/mod.rs"),
        include_str!("once/suite/mod.rs"),
    ];
    let lines = lists.iter().flat_map(|list| list.lines());
    conformance.extend(lines.filter_map(|line| line.trim().strip_suffix(',').map(str::to_owned)));
    let (mut missing, mut tests_of) = (Vec::new(), BTreeMap::new());
    for fault in faults::read(&workspace).expect("rows") {
        let (package, binary) = fault.suite().expect("two words");
        let folder = match (package, binary) {
            ("lock-tests", "it") => "tests/it".to_owned(),
            (package, "lib") => format!("{package}/src"),
            (package, binary) => format!("{package}/tests/{binary}"),
        };
        let tests = tests_of
            .entry(folder)
            .or_insert_with_key(|folder| tests_in(folder));
        // The search does not see a module inside a file. It does not see that `state_tests.rs` and `passing_tests.rs` are
        // modules of `state.rs`.
        let inline = |name: &str| name.replace("::tests::", "::");
        let beside = |name: &str| name.replace("::tests::", "_tests::");
        let by_path = |name: &str| name.replace("::state::", "::");
        for name in fault.must_fail {
            let of_lists = [
                "conformance::",
                "once::functions::",
                "once::layer::on_",
                "once::on_",
            ];
            let in_a_list = of_lists.iter().any(|list| name.starts_with(list));
            let of_a_store =
                in_a_list && case(&name).is_some_and(|case| conformance.contains(&case));
            let of_main = tests.contains(&format!("main::{name}"));
            let names = [name.clone(), inline(&name), beside(&name), by_path(&name)];
            let found = names.iter().any(|name| tests.contains(name));
            if !found && !of_main && !of_a_store {
                missing.push(format!("{}: {name}", fault.name));
            }
        }
    }
    assert!(missing.is_empty(), "no such test:\n{}", missing.join("\n"));
}

#[test]
fn every_seeded_fault_of_lock_core_says_what_the_simulation_does_with_it() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut problems = Vec::new();
    for fault in faults::read(&workspace).expect("rows") {
        let problem =
            match &fault.sim {
                None if fault.is_of_the_core() => "has no field `sim`",
                Some(_) if !fault.is_of_the_core() => "has a field `sim`, which is for lock-core",
                Some(Simulated::Found { found: on } | Simulated::Missed { missed: on, .. })
                    if on.is_empty() || !on.iter().all(|place| is_place(place)) =>
                {
                    "names no topology, or one that there is not"
                }
                Some(
                    Simulated::Missed { why, .. } | Simulated::Unreachable { unreachable: why },
                ) if why.split_whitespace().count() < 2 => "has no reason",
                _ => continue,
            };
        problems.push(format!("{} {problem}", fault.name));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Returns whether a place begins with a topology of the simulation.
fn is_place(place: &str) -> bool {
    let topology = place.split(':').next().unwrap_or(place);
    let topologies = [
        "one", "replicas", "redlock", "sentinel", "cluster", "postgres",
    ];
    topologies.contains(&topology)
}
