//! A process that dies between two calls of its release, a lock whose answer meets a flush, a waiter that
//! the server has forgotten, and one that is not told of its grant.

use lock_core::middleware::RecordOutcome;

use super::super::tests::{asks, calls, calm, plans, with, world, write};
use super::super::{Answer, Owning};
use super::*;
use crate::server::Refusal;
use crate::world::{Kind, Planned};

/// A death of a process at this time in milliseconds, behind a release of its lock at second 4, whose queue has so many
/// dead waiters.
struct Scene {
    dead: usize,
    dies: u64,
    /// The key is taken once more, from here to second 5.
    again: Option<u64>,
}

impl Scene {
    /// The rules that are broken where a call of another process waits for the key from second 3 to 6.
    fn broken(&self) -> Vec<&'static str> {
        let mut plan = calm();
        let its = plan.processes[0].clone();
        plan.processes = vec![its.clone(), its];
        (plan.ttls, plan.latency, plan.habits.blocks) = (vec![3_000], MILLI, 0);
        let key = plan.topology.queue_name(0).into_bytes();
        let count = self.dead;
        let faults = [
            (
                2 * SECOND,
                Fault::Gone {
                    server: 0,
                    key,
                    count,
                },
            ),
            (self.dies * MILLI, Fault::Kill { process: 1 }),
        ];
        let lasts = MILLI;
        let planned = faults.map(|(at, fault)| Planned { at, lasts, fault });
        plan.faults.extend(planned);
        let mut ledger = Ledger::default();
        let it = calls(&mut ledger, Owning::Alone, Some(0), 2, Some(2));
        (it.process, it.answer, it.left) = (1, Answer::Granted, Some(4 * SECOND));
        calls(&mut ledger, Owning::Alone, None, 3, Some(6)).answer = Answer::Granted;
        let sim = world();
        sim.change(|state| {
            state.now = 7 * SECOND;
            let again = self.again.map(|from| (from * MILLI, Some(5 * SECOND)));
            let first = (2 * SECOND, Some(4 * SECOND + 5 * MILLI));
            let lives = [Some(first), again].into_iter().flatten();
            let lives = lives.collect();
            state.hosts[0]
                .lives
                .insert(lock_name(0).into_bytes(), lives);
        });
        sim.judge(ledger, &plan, Ledger::check_waits)
    }
}

#[test]
fn a_key_is_free_beside_a_waiter_only_where_a_process_dies_between_two_calls_of_its_release() {
    let rule = "a call waits beside a free key";
    let scene = Scene {
        dead: 1_100,
        dies: 4_010,
        again: None,
    };
    assert!(scene.broken().is_empty());
    assert_eq!(Scene { dead: 900, ..scene }.broken(), [rule]);
    assert_eq!(
        Scene {
            dies: 4_900,
            ..scene
        }
        .broken(),
        [rule]
    );
    assert_eq!(
        Scene {
            dies: 3_900,
            ..scene
        }
        .broken(),
        [rule]
    );
    let again = Some(4_500);
    assert_eq!(Scene { again, ..scene }.broken(), [rule]);
}

/// The rules that are broken where the server is flushed at second 4, a call of this process was granted the key a moment
/// later and notices it at its next renewal, after a third of its ttl, and another process waits until it does.
fn broken_by_a_flush(granted: u64, ttl: u64, left: u64) -> Vec<&'static str> {
    broken_by_a_flush_of(calm(), granted, ttl, left)
}

fn broken_by_a_flush_of(mut plan: Plan, granted: u64, ttl: u64, left: u64) -> Vec<&'static str> {
    let its = plan.processes[0].clone();
    plan.processes = vec![its.clone(), its];
    (plan.ttls, plan.latency, plan.habits.blocks) = (vec![ttl * 1_000], MILLI, 0);
    plans(&mut plan, (4_000, 4_001), Fault::Flush { server: 0 });
    let mut ledger = Ledger::default();
    let it = calls(&mut ledger, Owning::Alone, Some(0), 3, Some(4));
    (it.process, it.answer, it.ttl) = (1, Answer::Granted, ttl * SECOND);
    (it.asked, it.answered) = ((granted - 5) * MILLI, Some(granted * MILLI));
    it.left = Some(left * SECOND);
    calls(&mut ledger, Owning::Alone, None, 3, Some(left)).answer = Answer::Granted;
    let sim = world();
    sim.change(|state| {
        state.now = 20 * SECOND;
        let lives = vec![(3 * SECOND, Some(4 * SECOND))];
        let key = lock_name(0).into_bytes();
        state.hosts[0].lives.insert(key, lives);
    });
    sim.judge(ledger, &plan, Ledger::check_waits)
}

#[test]
fn an_owner_whose_answer_meets_a_flush_notices_it_at_its_next_renewal() {
    let rule = "a call waits beside a free key";
    assert!(broken_by_a_flush(4_010, 9, 7).is_empty());
    assert!(broken_by_a_flush(4_001, 9, 7).is_empty());
    assert_eq!(broken_by_a_flush(3_990, 9, 7), [rule]);
    assert_eq!(broken_by_a_flush(4_900, 9, 7), [rule]);
    assert_eq!(broken_by_a_flush(4_010, 6, 7), [rule]);
}

#[test]
fn an_owner_whose_connections_have_just_ended_notices_a_flush_at_its_next_renewal() {
    let broken = |ended: u64, granted: u64, left: u64| {
        let mut plan = with(Fault::EndConnections { server: 0 });
        (plan.faults[0].at, plan.faults[0].lasts) = (ended * MILLI, MILLI);
        broken_by_a_flush_of(plan, granted, 9, left)
    };
    let rule = "a call waits beside a free key";
    assert!(broken(3_950, 3_900, 7).is_empty());
    assert_eq!(broken(3_950, 3_900, 9), [rule]);
    assert_eq!(broken(2_500, 3_900, 7), [rule]);
}

#[test]
fn the_end_of_a_grant_is_heard_of_unless_the_process_that_gave_it_has_ended_too() {
    let rule = "a call waits beside a free key";
    // The times in milliseconds at which the process ends, or drops its manager, that leaves its lock at second 3, and the one
    // that is given it ends.
    let broken_by = |gives: u64, takes: u64, is_dropped: bool| {
        let mut plan = calm();
        let its = plan.processes[0].clone();
        plan.processes = vec![its; 3];
        (plan.ttls, plan.latency, plan.habits.blocks) = (vec![10_000], MILLI, 0);
        plan.processes[1].leaves = is_dropped.then_some(gives * MILLI);
        let ends = [(2, takes), (1, gives)].into_iter();
        let ends = ends.take(if is_dropped { 1 } else { 2 });
        for (process, at) in ends {
            plans(&mut plan, (at, at + 1), Fault::Kill { process });
        }
        let mut ledger = Ledger::default();
        let it = calls(&mut ledger, Owning::Alone, Some(0), 2, Some(2));
        (it.process, it.answer) = (1, Answer::Granted);
        (it.left, it.released) = (Some(3 * SECOND), Some(3 * SECOND));
        let it = calls(&mut ledger, Owning::Alone, None, 2, Some(3));
        (it.process, it.answer, it.ttl) = (2, Answer::Granted, 10 * SECOND);
        calls(&mut ledger, Owning::Alone, None, 2, Some(12)).answer = Answer::Granted;
        let sim = world();
        sim.change(|state| {
            state.now = 14 * SECOND;
            let lives = vec![(2 * SECOND, Some(5 * SECOND))];
            let key = lock_name(0).into_bytes();
            state.hosts[0].lives.insert(key, lives);
        });
        sim.judge(ledger, &plan, Ledger::check_waits)
    };
    for is_dropped in [false, true] {
        let broken = |gives: u64, takes: u64| broken_by(gives, takes, is_dropped);
        assert!(broken(3_500, 4_000).is_empty());
        assert_eq!(broken(5_500, 4_000), [rule]);
        assert_eq!(broken(3_500, 5_500), [rule]);
    }
}

#[test]
fn a_call_waits_for_long_where_a_crash_of_postgresql_has_lost_the_release_of_a_long_lease() {
    let broken = |crashes: u64, answered: u64| {
        let mut plan = with(Fault::Restart {
            server: 0,
            keeps_data: true,
        });
        (plan.topology, plan.habits.holds) = (Topology::Postgres, vec![40]);
        plan.faults[0].at = crashes * SECOND;
        let mut ledger = Ledger::default();
        calls(&mut ledger, Owning::Alone, None, 3, Some(answered)).answer = Answer::Granted;
        let sim = world();
        sim.change(|state| {
            state.add_postgres(0);
            let back = write(2 * SECOND, Kind::Set, 100 * SECOND);
            let since = write(102 * SECOND, Kind::Replaced, SECOND);
            state.hosts[1].writes.extend([back, since]);
        });
        sim.judge(ledger, &plan, Ledger::check_waits)
            .contains(&"a call waits for long")
    };
    assert!(!broken(2, 103));
    assert!(broken(2, 110));
    assert!(broken(1, 103), "the crash did not write it");
}

#[test]
fn a_call_waits_for_long_only_where_the_server_can_neither_tell_its_waiter_nor_put_it_back() {
    let broken = |commands: &[&str], answered: u64| {
        let mut plan = calm();
        for command in commands {
            let (server, command) = (0, (*command).to_owned());
            plans(&mut plan, (2_000, 3_000), Fault::Deny { server, command });
        }
        plan.habits.holds = vec![40];
        let mut ledger = Ledger::default();
        calls(&mut ledger, Owning::Alone, None, 1, Some(answered)).answer = Answer::Granted;
        world()
            .judge(ledger, &plan, Ledger::check_waits)
            .contains(&"a call waits for long")
    };
    assert!(!broken(&["PUBLISH", "ZADD"], 33));
    assert!(broken(&["PUBLISH", "ZADD"], 35));
    assert!(broken(&["PUBLISH"], 33));
    assert!(broken(&["ZADD"], 33));
}

#[test]
fn a_waiter_on_postgresql_is_not_told_of_its_key_where_the_process_stands_still_behind_the_write() {
    let rule = "a call waits beside a free key";
    let broken = |topology: Topology, stops: u64| {
        let mut plan = calm();
        let its = plan.processes[0].clone();
        plan.processes = vec![its.clone(), its];
        plan.topology = topology;
        (plan.ttls, plan.latency, plan.habits.blocks) = (vec![3_000], MILLI, 0);
        plans(
            &mut plan,
            (stops, stops + 3_000),
            Fault::Stop { process: 1 },
        );
        let mut ledger = Ledger::default();
        calls(&mut ledger, Owning::Alone, None, 1, Some(7)).answer = Answer::Granted;
        let sim = world();
        sim.change(|state| {
            state.now = 8 * SECOND;
            let key = lock_name(0).into_bytes();
            let host = &mut state.hosts[0];
            host.given
                .insert(key.clone(), vec![(2 * SECOND, 2_000_000)]);
            host.lives.insert(key, vec![(SECOND, Some(4 * SECOND))]);
        });
        sim.judge(ledger, &plan, Ledger::check_waits)
    };
    assert!(broken(Topology::Postgres, 1_990).is_empty());
    assert_eq!(broken(Topology::Postgres, 1_900), [rule]);
    assert_eq!(broken(Topology::One, 1_990), [rule]);
}

#[test]
fn a_call_waits_for_a_new_connection_to_a_postgres_server_that_takes_no_writes() {
    let broken = |topology: Topology, fault: Fault| {
        let mut plan = calm();
        (plan.topology, plan.latency) = (topology, MILLI);
        plans(&mut plan, (2_000, 7_000), fault);
        let mut ledger = Ledger::default();
        calls(&mut ledger, Owning::Alone, Some(0), 3, Some(4)).answer =
            Answer::Refused("Unavailable".to_owned());
        world().judge(ledger, &plan, Ledger::check_waits)
    };
    let refuses = || Fault::Refuse {
        server: 0,
        refusal: Refusal::ReadOnly,
    };
    let spoils = Fault::SpoilMark {
        server: 0,
        is_number: true,
    };
    let rule = "a call is answered too late";
    assert!(broken(Topology::Postgres, refuses()).is_empty());
    assert_eq!(broken(Topology::One, refuses()), [rule]);
    assert_eq!(broken(Topology::Postgres, spoils), [rule]);
}

#[test]
fn a_call_has_no_answer_only_beside_a_long_lease_whose_release_a_crash_has_lost() {
    let broken = |at| {
        let plan = with(Fault::Restart {
            server: 0,
            keeps_data: true,
        });
        let mut ledger = Ledger::default();
        asks(&mut ledger, Owning::Alone, None, 5, None);
        let sim = world();
        sim.change(|state| {
            state.add_postgres(0);
            state.now = 60 * SECOND;
            let set = write(at, Kind::Set, 300 * SECOND);
            state.hosts[1].writes.push(set);
        });
        sim.judge(ledger, &plan, Ledger::check_waits)
            .contains(&"a call is never answered")
    };
    assert!(!broken(SECOND));
    assert!(broken(SECOND - 1));
}

#[test]
fn a_call_has_no_answer_behind_those_that_wait_for_a_key_whose_record_found_no_memory() {
    let mut plan = calm();
    plan.keys = 3;
    let broken = |outcome, full: usize, chain: &[[usize; 2]], key: usize, wait| {
        let mut ledger = Ledger::default();
        let owner = asks(&mut ledger, Owning::Alone, Some(0), 1, Some(1));
        ledger.calls[owner].keys = vec![full];
        ledger.leaves_record(Record {
            call: owner,
            key: full,
            bytes: b"paid".to_vec(),
            lifetime: 60 * SECOND,
            ended: 2 * SECOND,
            lasts: None,
            on: vec![0],
            outcome: Some((outcome, 2 * SECOND)),
        });
        for keys in chain {
            calls(&mut ledger, Owning::Alone, None, 3, None).keys = keys.to_vec();
        }
        calls(&mut ledger, Owning::Alone, wait, 5, None).keys = vec![key];
        world()
            .judge(ledger, &plan, Ledger::check_waits)
            .contains(&"a call is never answered")
    };
    let (failed, chain) = (RecordOutcome::Failed, [[0, 1], [1, 2]]);
    assert!(!broken(failed, 2, &chain, 0, None));
    assert!(broken(RecordOutcome::Stored, 2, &chain, 0, None));
    assert!(broken(failed, 2, &chain[..1], 0, None));
    // A higher key is not held.
    assert!(broken(failed, 0, &chain[..1], 1, None));
    assert!(broken(failed, 2, &chain, 0, Some(SECOND)));
}
