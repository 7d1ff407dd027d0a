//! Each rule is broken by a ledger that is written by hand, and kept by one that differs in the fact that the rule is about.

use std::ops::Deref;
use std::rc::Rc;

use lock_core::middleware::RecordOutcome;

use super::ticks::{Completed, Run};
use super::{Answer, Asks, Call, Cooldown, Ledger, Owning, Record};
use crate::plan::{Plan, Topology, Verb};
use crate::world::{Fault, Kind, Late, MILLI, Order, Planned, SECOND, Settings, Sim, State, Write};

/// A plan in which nothing goes wrong.
pub(super) fn calm() -> Plan {
    let mut plan = Plan::of(0, Topology::One);
    plan.faults.clear();
    plan.verbs = vec![Verb::Acquire];
    plan.stops_inside = false;
    for process in &mut plan.processes {
        process.exits = None;
        process.leaves = None;
    }
    plan
}

pub(super) fn with(fault: Fault) -> Plan {
    let mut plan = calm();
    plans(&mut plan, (1_000, 2_000), fault);
    plan
}

/// A world, until it is dropped.
pub(super) struct World(Rc<Sim>);

impl World {
    /// The rules that a check finds broken in this world.
    pub(super) fn judge(
        &self,
        mut ledger: Ledger,
        plan: &Plan,
        check: impl FnOnce(&mut Ledger, &Plan, &State),
    ) -> Vec<&'static str> {
        self.look(|state| check(&mut ledger, plan, state));
        rules(&ledger)
    }
}

impl Deref for World {
    type Target = Rc<Sim>;

    fn deref(&self) -> &Rc<Sim> {
        &self.0
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.end();
    }
}

/// A world with one server.
pub(super) fn world() -> World {
    let sim = Sim::start(Settings {
        order: Order::Fifo,
        latency: 1,
        ..Settings::default()
    });
    sim.change(|state| state.add_server());
    sim.add_process(0);
    World(sim)
}

/// Notes a call for key 0 at a time in seconds. Returns its number.
pub(super) fn asks(
    ledger: &mut Ledger,
    owning: Owning,
    wait: Option<u64>,
    asked: u64,
    answered: Option<u64>,
) -> usize {
    calls(ledger, owning, wait, asked, answered);
    ledger.calls.len() - 1
}

/// The same, where its number does not matter.
pub(super) fn calls(
    ledger: &mut Ledger,
    owning: Owning,
    wait: Option<u64>,
    asked: u64,
    answered: Option<u64>,
) -> &mut Call {
    let asks = Asks {
        process: 0,
        task: 0,
        keys: vec![0],
        owning,
        ttl: SECOND,
        wait,
    };
    ledger.calls.push(Call {
        answered: answered.map(|time| time * SECOND),
        ..asks.at(asked * SECOND)
    });
    ledger.calls.last_mut().expect("a call")
}

/// A write of key 0, which leaves it a value for so long.
pub(super) fn write(at: u64, kind: Kind, lasts: u64) -> Write {
    Write {
        at,
        key: 0,
        value: 1,
        kind,
        is_strange: false,
        lasts,
    }
}

/// Plans a fault from one time to another one, in milliseconds.
pub(super) fn plans(plan: &mut Plan, (from, to): (u64, u64), fault: Fault) {
    let (at, lasts) = (from * MILLI, (to - from) * MILLI);
    plan.faults.push(Planned { at, lasts, fault });
}

/// Notes a record that the owner of a call leaves on server 0 at second 3, for a minute, and the outcome that it hears.
pub(super) fn leaves_record(ledger: &mut Ledger, call: usize, outcome: (RecordOutcome, u64)) {
    ledger.leaves_record(Record {
        call,
        key: 0,
        bytes: b"paid".to_vec(),
        lifetime: 60 * SECOND,
        ended: 3 * SECOND,
        lasts: Some(4 * SECOND),
        on: vec![0],
        outcome: Some(outcome),
    });
}

/// Notes an owner of key 0 that believes from one time to another one.
pub(super) fn owns(ledger: &mut Ledger, owning: Owning, token: u64, from: u64, until: u64) {
    let call = asks(ledger, owning, Some(0), from, Some(from));
    ledger.calls[call].answer = Answer::Granted;
    ledger.claims(call, token, from * SECOND);
    ledger.claims(call, token, until * SECOND);
}

pub(super) fn rules(ledger: &Ledger) -> Vec<&'static str> {
    ledger.violations.iter().map(|it| it.rule).collect()
}

pub(super) const MANY: &str = "too many owners at once";

#[test]
fn two_owners_at_once_break_a_rule() {
    for (until, broken) in [(4, vec![]), (5, vec![MANY]), (9, vec![MANY])] {
        let mut ledger = Ledger::default();
        owns(&mut ledger, Owning::Alone, 1, 2, until);
        owns(&mut ledger, Owning::Alone, 2, 5, 7);
        assert_eq!(world().judge(ledger, &calm(), Ledger::check_owners), broken);
    }
}

#[test]
fn two_owners_at_once_are_allowed_when_data_is_lost_and_their_tokens_must_rise() {
    let mut ledger = Ledger::default();
    owns(&mut ledger, Owning::Alone, 1, 2, 6);
    owns(&mut ledger, Owning::Alone, 2, 5, 7);
    let plan = with(Fault::Flush { server: 0 });
    assert_eq!(world().judge(ledger, &plan, Ledger::check_owners), [""; 0]);
}

#[test]
fn more_shares_than_their_limit_break_a_rule() {
    for (shares, broken) in [(2, vec![]), (3, vec![MANY])] {
        let mut ledger = Ledger::default();
        for _ in 0..shares {
            owns(&mut ledger, Owning::Share(2), 1, 2, 6);
        }
        assert_eq!(world().judge(ledger, &calm(), Ledger::check_owners), broken);
    }
}

#[test]
fn a_writer_beside_a_reader_breaks_a_rule() {
    let mut ledger = Ledger::default();
    owns(&mut ledger, Owning::Alone, 1, 2, 6);
    owns(&mut ledger, Owning::Share(u32::MAX), 2, 5, 7);
    assert_eq!(world().judge(ledger, &calm(), Ledger::check_owners), [MANY]);
}

#[test]
fn a_token_that_does_not_rise_breaks_a_rule() {
    for (token, broken) in [(8, vec![]), (7, vec!["a token does not rise"])] {
        let mut ledger = Ledger::default();
        owns(&mut ledger, Owning::Alone, 7, 2, 3);
        owns(&mut ledger, Owning::Alone, token, 5, 7);
        assert_eq!(world().judge(ledger, &calm(), Ledger::check_owners), broken);
    }
}

#[test]
fn a_refusal_of_a_free_key_breaks_a_rule() {
    for (until, broken) in [(3, vec!["busy though the key was free"]), (31, vec![])] {
        let mut ledger = Ledger::default();
        calls(&mut ledger, Owning::Alone, Some(0), 30, Some(30)).answer = Answer::Busy;
        let sim = world();
        sim.change(|state| {
            let life = vec![(SECOND, Some(until * SECOND))];
            state.hosts[0].lives.insert(b"lockkit:k0".to_vec(), life);
        });
        assert_eq!(sim.judge(ledger, &calm(), Ledger::check_busy), broken);
    }
}

#[test]
fn a_loss_without_a_fault_breaks_a_rule() {
    let plans = [
        (calm(), vec!["refused or lost without a cause"]),
        (with(Fault::StopServer { server: 0 }), vec![]),
    ];
    for (plan, broken) in plans {
        let mut ledger = Ledger::default();
        let it = calls(&mut ledger, Owning::Alone, Some(0), 1, Some(1));
        (it.answer, it.lost) = (Answer::Lost, Some(2 * SECOND));
        assert_eq!(world().judge(ledger, &plan, Ledger::check_causes), broken);
    }
}

/// The key may have been deleted under the call before it, which did not notice it.
#[test]
fn a_lock_that_went_on_inside_its_process_may_have_been_deleted_before_its_call() {
    let deletes = || {
        with(Fault::Delete {
            server: 0,
            key: crate::plan::lock_name(0).into_bytes(),
        })
    };
    for (token, broken) in [
        (101, vec![]),
        (2_000_000, vec!["refused or lost without a cause"]),
    ] {
        let mut ledger = Ledger::default();
        let before = calls(&mut ledger, Owning::Alone, Some(0), 1, Some(1));
        (before.answer, before.token) = (Answer::Granted, Some(100));
        let it = calls(&mut ledger, Owning::Alone, Some(0), 3, Some(3));
        (it.answer, it.token) = (Answer::Lost, Some(token));
        it.lost = Some(3 * SECOND + 1);
        let found = world().judge(ledger, &deletes(), Ledger::check_causes);
        assert_eq!(found, broken);
    }
}

#[test]
fn a_loss_after_one_late_segment_breaks_a_rule_and_after_several_it_breaks_none() {
    let late = |process, by| Late {
        process,
        sent: 3 * SECOND / 2,
        by: by * SECOND / 10,
    };
    let broken = vec!["refused or lost without a cause"];
    let segments = [
        (vec![late(0, 2)], broken.clone()),
        (vec![late(0, 1); 2], vec![]),
        (vec![late(1, 1); 2], broken.clone()),
        (vec![late(0, 0); 9], broken),
    ];
    for (late, broken) in segments {
        let mut ledger = Ledger::default();
        let it = calls(&mut ledger, Owning::Alone, Some(0), 1, Some(1));
        (it.answer, it.lost) = (Answer::Lost, Some(2 * SECOND));
        let sim = world();
        sim.change(|state| state.late = late);
        assert_eq!(sim.judge(ledger, &calm(), Ledger::check_causes), broken);
    }
}

/// The end of a cooldown, which an owner or a completed run of a job leaves behind, gives the key to no waiter.
#[test]
fn a_process_that_asks_later_and_has_the_key_first_breaks_a_rule_unless_the_key_has_cooled_down() {
    let rule = "a process that waits is passed over";
    // Each case says the keys of the earlier owner, whether it has completed its run, which call leaves a cooldown, and when the
    // later owner leaves.
    for (keys, is_completed, cools, leaves, broken) in [
        (vec![0], false, None, 15, vec![rule]),
        (vec![0], true, None, 15, vec![]),
        (vec![0], false, Some(0), 15, vec![]),
        (vec![0], false, Some(0), 14, vec![]),
        (vec![0, 1], false, Some(0), 15, vec![]),
        (vec![1], false, Some(0), 15, vec![rule]),
        (vec![0], false, Some(2), 15, vec![rule]),
        (vec![0], false, Some(2), 14, vec![rule]),
    ] {
        let mut ledger = Ledger::default();
        let mut call = |process, asked, answered, left| {
            let call = asks(&mut ledger, Owning::Alone, None, asked, Some(answered));
            let noted = &mut ledger.calls[call];
            noted.process = process;
            noted.answer = Answer::Granted;
            noted.left = Some(left * SECOND);
            call
        };
        let before = call(2, 2, 3, 12);
        call(0, 10, 20, 21);
        call(1, 13, 14, leaves);
        ledger.calls[before].keys = keys;
        ledger.runs.push(Run {
            job: 0,
            call: before,
            began: 0,
            ends: 0,
            from: 0,
            completed: is_completed.then_some(Completed {
                at: 12 * SECOND,
                remaining: SECOND,
            }),
        });
        ledger.kept.cooldowns.extend(cools.map(|call| Cooldown {
            call,
            span: SECOND,
            ended: 12 * SECOND,
            lasts: None,
        }));
        ledger.check_fifo(&calm());
        assert_eq!(rules(&ledger), broken);
    }
}

#[test]
fn a_call_without_an_answer_breaks_a_rule() {
    for (answered, broken) in [(Some(5), vec![]), (None, vec!["a call is never answered"])] {
        let mut ledger = Ledger::default();
        asks(&mut ledger, Owning::Alone, Some(SECOND), 5, answered);
        assert_eq!(world().judge(ledger, &calm(), Ledger::check_waits), broken);
    }
}

#[test]
fn a_wait_beside_a_free_key_breaks_a_rule() {
    for (asked, broken) in [(12, vec![]), (1, vec!["a call waits beside a free key"])] {
        let mut ledger = Ledger::default();
        asks(&mut ledger, Owning::Alone, None, asked, Some(12));
        assert_eq!(world().judge(ledger, &calm(), Ledger::check_waits), broken);
    }
}

#[test]
fn a_deadline_behind_the_end_of_the_key_breaks_a_rule() {
    let believes_longer = "an owner believes longer than its key lives";
    for (remaining, broken) in [(1, vec![]), (3, vec![believes_longer])] {
        let mut ledger = Ledger::default();
        let call = asks(&mut ledger, Owning::Alone, Some(0), 0, Some(0));
        let sim = world();
        sim.change(|state| {
            let time = state.server_time(0);
            let words = ["SET", "lockkit:k0", "token", "PX", "2000"];
            let words: Vec<Vec<u8>> = words.map(|word| word.as_bytes().to_vec()).to_vec();
            state.hosts[0].server.run(0, time, &words, &mut Vec::new());
        });
        let found = sim.judge(ledger, &calm(), |it, plan, state| {
            it.check_deadline(plan, state, call, remaining * SECOND)
        });
        assert_eq!(found, broken);
    }
}

#[test]
fn a_key_that_is_left_behind_breaks_a_rule() {
    for (key, broken) in [
        ("lockkit:!h:card", vec![]),
        ("lockkit:k0", vec!["left behind"]),
    ] {
        let mut ledger = Ledger::default();
        let sim = world();
        sim.change(|state| {
            let time = state.server_time(0);
            let words = ["SET", key, "value", "PX", "9000"];
            let words: Vec<Vec<u8>> = words.map(|word| word.as_bytes().to_vec()).to_vec();
            state.hosts[0].server.run(0, time, &words, &mut Vec::new());
        });
        ledger.check_remains(&calm(), &sim);
        assert_eq!(rules(&ledger), broken);
    }
}

#[test]
fn a_manager_that_is_not_drained_breaks_a_rule() {
    let mut ledger = Ledger::default();
    ledger.drained.push((0, false));
    let sim = world();
    ledger.check_remains(&calm(), &sim);
    assert_eq!(rules(&ledger), ["a manager is not drained"]);
}
