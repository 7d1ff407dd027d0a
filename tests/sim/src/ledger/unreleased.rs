//! Locks whose release is forgotten, by a failover or a crash: the key stays taken for the ttl that the server was asked for
//! last, also by a call inside of the lock.

use super::calm::brought_back;
use super::masters::clock;
use crate::plan::{Plan, lock_name};
use crate::world::{MICRO, State, Switch};

/// How far two servers may be apart with the end of one lease, in microseconds, because each of them rounds it.
const ROUNDED: u64 = 10;

/// The spans in which a key is taken by a lock whose release is forgotten.
pub(super) fn unreleased(plan: &Plan, state: &State, key: usize) -> Vec<(u64, u64)> {
    let switches = state.service.switches.iter();
    let kept = switches.filter_map(|switch| {
        let (until, over) = kept_by(state, switch, key)?;
        let ends = ends_at(plan, state, switch.to, switch.at, until);
        let is_unreleased = is_released_elsewhere(plan, state, switch, key, ends);
        is_unreleased.then_some((switch.at, over))
    });
    kept.chain(brought_back(plan, state, key)).collect()
}

/// Until when a replica that is promoted would have a key, and until when it has it.
fn kept_by(state: &State, switch: &Switch, key: usize) -> Option<(u64, u64)> {
    let states = state.hosts[switch.to]
        .lives
        .get(lock_name(key).as_bytes())?;
    let mut states = states.iter().skip_while(|(at, _)| *at < switch.at);
    let (_, until) = states.next().filter(|(at, _)| *at == switch.at)?;
    let next = states.next().map_or(u64::MAX, |(at, _)| *at);
    until.map(|until| (until, until.min(next)))
}

/// Returns whether a server that was the master before a failover has released the lease of a key that ends then, while it was
/// not promoted again.
fn is_released_elsewhere(
    plan: &Plan,
    state: &State,
    switch: &Switch,
    key: usize,
    ends: i64,
) -> bool {
    let name = lock_name(key).into_bytes();
    let switches = &state.service.switches;
    let former = switches.iter().filter(|it| it.at <= switch.at);
    let mut former = former.map(|it| it.from);
    former.any(|server| {
        let host = &state.hosts[server];
        let states = host.lives.get(&name).map_or(&[][..], Vec::as_slice);
        states.windows(2).any(|pair| {
            let ((at, until), (released, then)) = (pair[0], pair[1]);
            let is_its = until.is_some_and(|until| {
                let its = ends_at(plan, state, server, at, until);
                released < until && its.abs_diff(ends) <= ROUNDED
            });
            let mut texts = host.texts.get(&name).into_iter().flatten();
            let is_free = then.is_none() && !state.service.demoted.contains(&released);
            let is_back = |it: &Switch| it.to == server && (switch.at..=released).contains(&it.at);
            is_its
                && (is_free || then.is_some() && texts.any(|(since, _)| *since == released))
                && !switches.iter().any(is_back)
        })
    })
}

/// The end of a lease by the clock of its server, which had it at a time, without the epoch.
fn ends_at(plan: &Plan, state: &State, server: usize, at: u64, until: u64) -> i64 {
    (until / MICRO) as i64 + clock(plan, state, server, at)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::tests::{asks, with, world, write};
    use super::super::{Ledger, Owning};
    use super::*;
    use crate::plan::Topology;
    use crate::world::{Fault, Kind, SECOND};

    /// A plan in which a replica is promoted at second 2, and the former master goes on for a second.
    pub fn fails_over() -> Plan {
        let mut plan = with(Fault::Promote { server: 1 });
        (plan.topology, plan.replicas) = (Topology::Sentinel, vec![0]);
        plan.faults[0].at = 2 * SECOND;
        plan
    }

    /// Notes this failover, and a lock of key 0 from second 1 to second 31 on both servers, which the former master has until
    /// this second.
    pub fn keeps_a_lock(state: &mut State, released: u64) {
        state.add_server();
        state.service.switches.push(Switch {
            at: 2 * SECOND,
            from: 0,
            to: 1,
            told: Vec::new(),
        });
        let until = Some(31 * SECOND);
        let lives = [
            vec![(SECOND, until), (released * SECOND, None)],
            vec![(2 * SECOND, until)],
        ];
        for (host, lives) in state.hosts.iter_mut().zip(lives) {
            host.lives.insert(lock_name(0).into_bytes(), lives);
        }
    }

    /// The spans in which the key is taken by this lock, in seconds, where the former master has it until this second.
    fn taken(released: u64, change: impl FnOnce(&mut State)) -> Vec<(u64, u64)> {
        let sim = world();
        sim.change(|state| {
            keeps_a_lock(state, released);
            change(state);
        });
        let spans = sim.look(|state| unreleased(&fails_over(), state, 0));
        let seconds = spans.into_iter();
        let seconds = seconds.map(|(from, until)| (from / SECOND, until / SECOND));
        seconds.collect()
    }

    fn states(state: &mut State, server: usize) -> &mut Vec<(u64, Option<u64>)> {
        let name = lock_name(0).into_bytes();
        state.hosts[server].lives.entry(name).or_default()
    }

    fn promoted(at: u64, from: usize, to: usize) -> Switch {
        let (at, told) = (at * SECOND, Vec::new());
        Switch { at, from, to, told }
    }

    #[test]
    fn a_promoted_replica_keeps_a_lock_that_the_former_master_has_released() {
        assert_eq!(taken(3, |_| {}), [(2, 31)]);
        assert!(taken(31, |_| {}).is_empty(), "it has ended by itself");
        let is_demoted = |state: &mut State| state.service.demoted.push(3 * SECOND);
        assert!(
            taken(3, is_demoted).is_empty(),
            "the former master has given up its data"
        );
        // The release gives the lock to a waiter, or a renewal makes it longer.
        let given = |text: u64| {
            taken(3, move |state| {
                states(state, 0)[1].1 = Some(33 * SECOND);
                let texts = vec![(text * SECOND, b"text".to_vec())];
                state.hosts[0]
                    .texts
                    .insert(lock_name(0).into_bytes(), texts);
            })
        };
        assert_eq!(given(3), [(2, 31)]);
        assert!(given(1).is_empty());
    }

    #[test]
    fn the_lock_that_a_promoted_replica_keeps_is_the_one_that_was_released() {
        let until = |until: u64, clock: i64| {
            taken(3, move |state| {
                states(state, 1)[0].1 = Some(until * SECOND);
                state.hosts[1].clock = clock * 1_000_000;
            })
        };
        assert!(until(30, 0).is_empty());
        assert_eq!(until(30, 1), [(2, 30)]);
        assert!(until(31, 1).is_empty());
        // It is there behind the failover only, or up to its release there.
        assert!(taken(3, |state| states(state, 1)[0].0 = 2 * SECOND + 1).is_empty());
        let released = |state: &mut State| states(state, 1).push((9 * SECOND, None));
        assert_eq!(taken(3, released), [(2, 9)]);
    }

    #[test]
    fn a_lock_may_be_kept_by_the_server_that_has_released_it_if_that_is_promoted_again() {
        let again = |at: u64| {
            taken(3, move |state| {
                state.service.switches.push(promoted(at, 1, 0));
                states(state, 1).push((at * SECOND + 1, None));
                state.service.demoted.push(at * SECOND + 1);
                states(state, 0).push((at * SECOND, Some(31 * SECOND)));
                states(state, 0).sort_unstable();
            })
        };
        assert_eq!(again(5), [(2, 5), (5, 31)]);
        // The one that it releases then is its own.
        let back = taken(6, |state| {
            state.service.switches.push(promoted(5, 1, 0));
            states(state, 1).push((5 * SECOND + 1, None));
            state.service.demoted.push(5 * SECOND + 1);
            states(state, 0).insert(1, (5 * SECOND, Some(31 * SECOND)));
        });
        assert!(back.is_empty());
    }

    #[test]
    fn a_call_waits_for_long_only_up_to_the_end_of_a_lock_whose_release_is_forgotten() {
        let broken = |released: u64, answered: u64| {
            let mut plan = fails_over();
            plan.habits.holds = vec![0];
            let mut ledger = Ledger::default();
            asks(&mut ledger, Owning::Alone, None, 5, Some(answered));
            let sim = world();
            sim.change(|state| keeps_a_lock(state, released));
            sim.judge(ledger, &plan, Ledger::check_waits)
                .contains(&"a call waits for long")
        };
        assert!(!broken(3, 32));
        assert!(broken(3, 33));
        assert!(broken(31, 32), "it was not released");
    }

    #[test]
    fn a_crash_of_postgresql_brings_a_lock_back_up_to_the_next_one() {
        let taken = |at: u64, next: Option<u64>| {
            let mut plan = with(Fault::Restart {
                server: 0,
                keeps_data: true,
            });
            plan.topology = Topology::Postgres;
            let sim = world();
            sim.change(|state| {
                state.add_postgres(0);
                let times = [Some(at), next].into_iter().flatten();
                state.hosts[1]
                    .writes
                    .extend(times.map(|at| write(at * SECOND, Kind::Set, 30 * SECOND)));
            });
            sim.look(|state| unreleased(&plan, state, 0))
        };
        assert_eq!(taken(1, None), [(SECOND, 31 * SECOND)]);
        assert_eq!(taken(1, Some(5)), [(SECOND, 5 * SECOND)]);
        assert!(taken(2, None).is_empty(), "the crash did not write it");
    }
}
