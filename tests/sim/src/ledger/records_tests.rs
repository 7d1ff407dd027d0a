//! A record that stands again where it was forgotten, and an owner beside a record that failed.

use lock_core::middleware::{Forgotten, RecordOutcome};

use super::super::tests::{asks, calm, leaves_record, owns, plans, with, world};
use super::super::{Ledger, Owning};
use super::*;
use crate::world::{MILLI, Ways};

/// The rules that are broken where an owner leaves a record at second 3 and hears at second 4 that it is stored, a call from
/// second 5 to 6 deletes it, and the server has it at second 8. The connections of a process stand still in this span, in
/// milliseconds.
fn broken(frozen: Option<(usize, u64, u64)>) -> Vec<&'static str> {
    broken_by(frozen.map(|(process, from, to)| {
        let fault = Fault::Freeze {
            process,
            server: 0,
            ways: Ways::Both,
        };
        (fault, from, to)
    }))
}

fn broken_by(fault: Option<(Fault, u64, u64)>) -> Vec<&'static str> {
    let mut plan = calm();
    if let Some((fault, from, to)) = fault {
        plans(&mut plan, (from, to), fault);
    }
    let mut ledger = Ledger::default();
    let call = asks(&mut ledger, Owning::Alone, Some(0), 2, Some(2));
    leaves_record(&mut ledger, call, (RecordOutcome::Stored, 4 * SECOND));
    ledger.kept.forgets.push(Forget {
        process: 0,
        key: 0,
        begun: 5 * SECOND,
        ended: Some(6 * SECOND),
        answer: Some(Forgotten::Yes),
    });
    let sim = world();
    sim.change(|state| {
        let words: [&[u8]; 5] = [b"SET", b"lockkit:k0", b"done/paid", b"PX", b"60000"];
        state.stranger_runs(0, &words);
        state.now = 8 * SECOND;
    });
    sim.judge(ledger, &plan, |it, plan, state| {
        it.check_forgotten(plan, state, 0)
    })
}

#[test]
fn a_forgotten_record_stands_again_only_where_its_request_stands_still_meanwhile() {
    let rule = "a forgotten record stands again";
    assert_eq!(broken(None), [rule]);
    assert!(broken(Some((0, 3_500, 5_500))).is_empty());
    assert_eq!(broken(Some((1, 3_500, 5_500))), [rule]);
    assert_eq!(broken(Some((0, 4_100, 5_500))), [rule]);
    assert_eq!(broken(Some((0, 3_500, 4_900))), [rule]);
}

#[test]
fn a_forgotten_record_stands_again_where_its_request_is_slower_than_the_forgetting() {
    let slow = |by: u64| Fault::Slow {
        process: 0,
        server: 0,
        by: by * MILLI,
    };
    let rule = "a forgotten record stands again";
    assert!(broken_by(Some((slow(1_200), 3_500, 3_900))).is_empty());
    assert_eq!(broken_by(Some((slow(1_000), 3_500, 3_900))), [rule]);
}

/// The rules that are broken where an owner with a ttl of 100 s leaves a record at second 3 and hears at second 4 that it failed,
/// a call deletes a record in this span of seconds, and another owner has the key from second 7 on.
fn broken_behind_a_failure(forgets: Option<(u64, u64)>) -> Vec<&'static str> {
    let mut ledger = Ledger::default();
    let call = asks(&mut ledger, Owning::Alone, Some(0), 2, Some(2));
    ledger.calls[call].ttl = 100 * SECOND;
    leaves_record(&mut ledger, call, (RecordOutcome::Failed, 4 * SECOND));
    owns(&mut ledger, Owning::Alone, 2, 7, 8);
    ledger.kept.forgets.extend(forgets.map(|(from, to)| Forget {
        process: 0,
        key: 0,
        begun: from * SECOND,
        ended: Some(to * SECOND),
        answer: Some(Forgotten::Yes),
    }));
    world().judge(ledger, &calm(), Ledger::check_records)
}

#[test]
fn the_token_of_a_failed_record_keeps_the_key_unless_a_record_of_a_late_copy_is_forgotten() {
    let rule = "an owner beside a record";
    let beside = |forgets| broken_behind_a_failure(forgets).contains(&rule);
    assert!(beside(None));
    assert!(beside(Some((1, 2))), "before the record");
    assert!(beside(Some((8, 9))), "behind the other owner");
    assert!(!beside(Some((5, 6))));
}

#[test]
fn on_postgresql_a_record_that_is_over_stands_again_when_the_clock_is_set_back() {
    // A call finds at second 5 that no record stands.
    let is_forgotten = |topology: Topology, answer: Forgotten, step: u64| {
        let mut plan = with(Fault::StepClock { server: 0, by: -1 });
        (plan.topology, plan.faults[0].at) = (topology, step * SECOND);
        let mut ledger = Ledger::default();
        let call = asks(&mut ledger, Owning::Alone, Some(0), 2, Some(2));
        leaves_record(&mut ledger, call, (RecordOutcome::Stored, 4 * SECOND));
        ledger.kept.forgets.push(Forget {
            process: 0,
            key: 0,
            begun: 5 * SECOND,
            ended: Some(5 * SECOND),
            answer: Some(answer),
        });
        let record = &ledger.kept.records[0];
        ledger.is_forgotten_by(&plan, record, 8 * SECOND)
    };
    let nothing = Forgotten::Nothing;
    assert!(!is_forgotten(Topology::Postgres, nothing, 6));
    assert!(is_forgotten(Topology::Postgres, nothing, 4));
    assert!(is_forgotten(Topology::Postgres, Forgotten::Yes, 6));
    assert!(is_forgotten(Topology::One, nothing, 6));
}
