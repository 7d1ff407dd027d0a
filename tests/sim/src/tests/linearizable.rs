//! The histories are those of a lock, by a checker that is not a part of this project.

use crate::history::{Log, run};
use crate::linear::broken_keys;
use crate::plan::{Plan, Topology};

/// How many histories of each topology are exported.
const HISTORIES: u64 = 100;

#[test]
fn the_histories_of_each_topology_are_those_of_a_lock() {
    let (mut judged, mut claims) = (0, 0);
    for topology in Topology::ALL {
        for seed in 0..HISTORIES {
            let plan = Plan::of(seed, topology);
            // A call inside of a lock enters it, too.
            if plan.loses_data() || plan.may_forget() || !plan.is_plain() {
                continue;
            }
            let report = run(&plan, Log::No);
            let broken = broken_keys(&report.ledger);
            assert!(broken.is_empty(), "keys {broken:?} of {plan}");
            judged += 1;
            claims += report.ledger.claims.len();
        }
    }
    assert!(
        judged > HISTORIES,
        "many histories are of plain locks and keep their data"
    );
    assert!(claims as u64 > 10 * judged, "callers own locks");
}
