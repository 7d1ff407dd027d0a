//! The rules about what servers were asked and told, each broken and kept by a ledger that is written by hand.

use super::tests::{asks, calls, calm, owns, rules, with, world};
use super::{Foreign, Job, Ledger, Owning, Ping, Run};
use crate::plan::{MOST_KEYS, Topology, Verb, lock_name};
use crate::world::{EPOCH, Fault, Kind, MILLI, SECOND, Write};

#[test]
fn an_owner_beside_one_of_another_library_breaks_a_rule() {
    for (from, broken) in [
        (5, vec![]),
        (4, vec!["an owner beside one of another library"]),
    ] {
        let mut ledger = Ledger::default();
        owns(&mut ledger, Owning::Alone, 1, 2, 4);
        ledger.foreign.push(Foreign {
            key: 0,
            from: from * SECOND,
            until: 6 * SECOND,
        });
        ledger.check_foreign(&calm());
        assert_eq!(rules(&ledger), broken);
    }
}

#[test]
fn a_ping_without_a_majority_breaks_a_rule() {
    let without = "a ping succeeds without a majority";
    for (answered, broken) in [(2_500, vec![]), (1_500, vec![without])] {
        let mut ledger = Ledger::default();
        ledger.pings.push(Ping {
            process: 0,
            asked: 1_200 * MILLI,
            answered: answered * MILLI,
            good: true,
        });
        ledger.check_pings(&with(Fault::StopServer { server: 0 }));
        assert_eq!(rules(&ledger), broken);
    }
}

#[test]
fn a_server_without_the_key_that_an_owner_counts_breaks_a_rule() {
    let without = "an owner counts a server that is without the key";
    for (granted, broken) in [(1, vec![]), (2, vec![without])] {
        let mut ledger = Ledger::default();
        let call = asks(&mut ledger, Owning::Alone, None, 0, Some(0));
        let mut plan = calm();
        (plan.topology, plan.servers) = (Topology::Redlock, 3);
        let sim = world();
        sim.change(|state| {
            state.add_server();
            state.add_server();
            let words: [&[u8]; 5] = [b"SET", b"lockkit:k0", b"token", b"PX", b"9000"];
            state.stranger_runs(0, &words);
        });
        for time in [0, 2 * SECOND] {
            sim.change(|state| state.now += time);
            sim.look(|state| ledger.check_acks(&plan, state, call, granted));
        }
        assert_eq!(rules(&ledger), broken);
    }
}

#[test]
fn a_server_without_the_key_of_a_leader_breaks_a_rule() {
    let without = "a lock is not on all servers again";
    for (servers, broken) in [(3, vec![]), (2, vec![without])] {
        let mut ledger = Ledger::default();
        let call = asks(&mut ledger, Owning::Alone, None, 0, Some(0));
        let mut plan = calm();
        (plan.topology, plan.servers, plan.keys) = (Topology::Redlock, 3, MOST_KEYS);
        let key = plan.own_key(Verb::Lead);
        ledger.calls[call].keys = vec![key];
        let sim = world();
        sim.change(|state| {
            state.add_server();
            state.add_server();
            let name = lock_name(key);
            let words: [&[u8]; 5] = [b"SET", name.as_bytes(), b"token", b"PX", b"60000"];
            for server in 0..servers {
                state.stranger_runs(server, &words);
            }
            state.now += 30 * SECOND;
        });
        let found = sim.judge(ledger, &plan, |it, plan, state| {
            it.check_servers(plan, state, call)
        });
        assert_eq!(found, broken);
    }
}

#[test]
fn a_server_may_be_without_a_lock_for_a_while_if_its_late_vote_was_withdrawn() {
    let without = "a lock is not on all servers again";
    for (now, late, broken) in [
        (8, 7, vec![]),
        (8, 8, vec![without]),
        (10, 7, vec![without]),
    ] {
        let mut ledger = Ledger::default();
        let call = asks(&mut ledger, Owning::Alone, None, 0, Some(0));
        ledger.values.insert(call, 7);
        let mut plan = calm();
        (plan.topology, plan.servers) = (Topology::Redlock, 2);
        let sim = world();
        sim.change(|state| {
            state.add_server();
            let words: [&[u8]; 5] = [b"SET", b"lockkit:k0", b"token", b"PX", b"60000"];
            state.stranger_runs(0, &words);
            let vote = Write {
                value: late,
                ..write(1, Kind::Set, false)
            };
            let writes = [vote, write(2, Kind::Gone, false)];
            state.hosts[1].writes.extend(writes);
            state.now += now * SECOND;
        });
        let found = sim.judge(ledger, &plan, |it, plan, state| {
            it.check_servers(plan, state, call)
        });
        assert_eq!(found, broken);
    }
}

#[test]
fn a_register_that_is_too_high_on_a_node_without_a_stranger_breaks_a_rule() {
    let spreads = "a register is too high on a node without a stranger";
    for (plan, broken) in [
        (with(Fault::Spoil { server: 0 }), vec![]),
        (calm(), vec![spreads]),
    ] {
        let sim = world();
        sim.change(|state| {
            let register = b"9500000000000000token";
            state.stranger_runs(0, &[b"HSET".as_slice(), b"lockkit:!r", b"7", register]);
        });
        let found = sim.judge(Ledger::default(), &plan, Ledger::check_registers);
        assert_eq!(found, broken);
    }
}

#[test]
fn a_vote_may_stay_if_a_stranger_has_raised_its_register() {
    let left = "left behind";
    for (register, broken) in [
        ("9500000000000000token", vec![]),
        ("9500000000000000other", vec![left]),
        ("1700000000000000token", vec![left]),
    ] {
        let mut ledger = Ledger::default();
        let sim = world();
        sim.change(|state| {
            let words: [&[u8]; 4] = [b"HSET", b"lockkit:!r", b"7", register.as_bytes()];
            state.stranger_runs(0, &words);
            let words: [&[u8]; 5] = [b"SET", b"lockkit:k0", b"token", b"PX", b"9000"];
            state.stranger_runs(0, &words);
        });
        ledger.check_remains(&calm(), &sim);
        assert_eq!(rules(&ledger), broken);
    }
}

/// A write of key 0 at a time in milliseconds.
fn write(at: u64, kind: Kind, is_strange: bool) -> Write {
    Write {
        value: 7,
        is_strange,
        ..super::tests::write(at * MILLI, kind, 1_600 * MILLI)
    }
}

#[test]
fn a_renewal_right_behind_another_one_breaks_a_rule() {
    for (next, broken) in [(450, vec![]), (449, vec!["a lock is renewed too soon"])] {
        let sim = world();
        sim.change(|state| {
            let writes = [
                (1, Kind::Set),
                (400, Kind::Lengthened),
                (next, Kind::Lengthened),
            ];
            let writes = writes.map(|(at, kind)| write(at, kind, false));
            state.hosts[0].writes.extend(writes);
        });
        let found = sim.judge(Ledger::default(), &calm(), Ledger::check_renewals);
        assert_eq!(found, broken);
    }
}

/// A call inside of the lock asks for a longer ttl.
#[test]
fn a_lock_that_becomes_longer_may_be_renewed_twice_in_a_row() {
    let rule = "a lock is renewed too soon";
    for (lasts, broken) in [(1_800, vec![rule]), (1_801, vec![])] {
        let sim = world();
        sim.change(|state| {
            let longer = Write {
                lasts: lasts * MILLI,
                ..write(410, Kind::Lengthened, false)
            };
            let renewed = write(400, Kind::Lengthened, false);
            state.hosts[0].writes.extend([renewed, longer]);
        });
        let found = sim.judge(Ledger::default(), &calm(), Ledger::check_renewals);
        assert_eq!(found, broken);
    }
}

/// There are readers beside several keys.
#[test]
fn a_share_that_enters_lengthens_the_key_of_all_shares() {
    let rule = "a lock is renewed too soon";
    let owning = Owning::Share(u32::MAX);
    for (owning, key, answered, broken) in [
        (owning, 0, 1, vec![]),
        (owning, 0, 0, vec![rule]),
        (owning, 1, 1, vec![rule]),
        (Owning::Alone, 0, 1, vec![rule]),
    ] {
        let mut ledger = Ledger::default();
        calls(&mut ledger, owning, Some(0), 0, Some(answered)).keys = vec![key];
        let mut plan = calm();
        (plan.keys, plan.verbs) = (1, vec![Verb::Several]);
        let sim = world();
        sim.change(|state| {
            let writes = [(400, Kind::Lengthened), (410, Kind::Lengthened)];
            let writes = writes.map(|(at, kind)| write(at, kind, false));
            state.hosts[0].writes.extend(writes);
        });
        assert_eq!(sim.judge(ledger, &plan, Ledger::check_renewals), broken);
    }
}

#[test]
fn an_owner_that_stays_behind_a_deletion_breaks_a_rule() {
    let rule = "a deletion is noticed late";
    for (until, renews, broken) in [(3, true, vec![]), (5, true, vec![rule]), (5, false, vec![])] {
        let mut ledger = Ledger::default();
        owns(&mut ledger, Owning::Alone, 1, 0, until);
        ledger.calls[0].renews = renews;
        ledger.values.insert(0, 7);
        let sim = world();
        sim.change(|state| {
            let writes = [
                write(1, Kind::Set, false),
                write(2_000, Kind::Lengthened, false),
                write(3_000, Kind::Gone, true),
            ];
            state.hosts[0].writes.extend(writes);
        });
        assert_eq!(sim.judge(ledger, &calm(), Ledger::check_renewals), broken);
    }
}

#[test]
fn a_waiter_that_asks_all_the_time_breaks_a_rule() {
    for (every, broken) in [(2_000, vec![]), (10, vec!["waiters ask again and again"])] {
        let mut plan = calm();
        plan.ttls = vec![3_000];
        let sim = world();
        sim.change(|state| {
            let writes = [write(1, Kind::Set, false), write(9_000, Kind::Gone, false)];
            state.hosts[0].writes.extend(writes);
            let asked = (0..9_000)
                .step_by(every)
                .map(|millis| EPOCH + 1_000 * millis);
            let asked = asked.collect();
            state.hosts[0]
                .server
                .asked
                .insert(b"lockkit:k0".to_vec(), asked);
        });
        let found = sim.judge(Ledger::default(), &plan, Ledger::check_questions);
        assert_eq!(found, broken);
    }
}

#[test]
fn a_job_that_runs_in_the_tick_of_its_call_breaks_a_rule_unless_the_clock_was_set_back() {
    let rule = "a job runs in the tick that it was told to leave out";
    let back = |by| with(Fault::StepClock { server: 0, by });
    for (plan, broken) in [
        (calm(), vec![rule]),
        (back(100_000), vec![rule]),
        (back(-600_000), vec![]),
    ] {
        let mut ledger = Ledger::default();
        let sim = world();
        sim.change(|state| state.now = 200 * MILLI);
        let job = ledger.takes_part(Job::begins(0, 0, SECOND, true));
        sim.change(|state| state.now = 1_100 * MILLI);
        let ends = EPOCH + 1_000_000;
        ledger.tick_begins(&plan, Run::begins(job, 0, EPOCH + 500_000, ends), ends);
        assert_eq!(rules(&ledger), broken);
    }
}
