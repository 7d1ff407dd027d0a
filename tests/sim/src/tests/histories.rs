//! The share of CI. `LOCK_SIM_HISTORIES` sets how many histories, `LOCK_SIM_SEED` the first seed.
//!
//! Each state of the sources has seeds of its own, so every change is judged by fresh histories, and the same commit by the
//! same ones.

use std::env;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use sha1_smol::Sha1;

use crate::plan::Topology;
use crate::search::search;

/// How many histories run, unless `LOCK_SIM_HISTORIES` says otherwise.
const USUAL: u64 = 10_000;

/// Returns the first seed, unless `LOCK_SIM_SEED` says otherwise: a number that the sources of the kit and of the simulation
/// decide.
fn first_of_these_sources() -> u64 {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in [here.join("../../lock-core/src"), here.join("src")] {
        files_below(&folder, &mut files);
    }
    files.sort();
    let mut digest = Sha1::new();
    for file in &files {
        digest.update(&fs::read(file).expect("a source file"));
    }
    let digest = digest.digest().bytes();
    // Short enough to be typed.
    u64::from(u32::from_be_bytes([
        digest[0], digest[1], digest[2], digest[3],
    ]))
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => files_below(&path, files),
            false => files.push(path),
        }
    }
}

/// Runs this topology's share of the histories, in hundredths.
fn run(topology: Topology, share: u64) {
    let number = |name: &str| {
        let text = env::var(name).ok()?;
        Some(text.parse::<u64>().expect("a number"))
    };
    let all = number("LOCK_SIM_HISTORIES").unwrap_or(USUAL);
    let first = number("LOCK_SIM_SEED").unwrap_or_else(first_of_these_sources);
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
    run(Topology::One, 48);
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

#[test]
fn a_postgresql_server_keeps_every_promise() {
    run(Topology::Postgres, 8);
}
