//! The rules about ticks, each broken and kept by a ledger that is written by hand.

use super::tests::{asks, calm, with, world};
use super::{Answer, BodyEnd, Completed, Job, Ledger, Owning, Run};
use crate::plan::{Topology, Verb, Weather};
use crate::world::{EPOCH, Fault, Late, MILLI, SECOND};

#[test]
fn a_tick_is_left_out_where_the_release_of_the_run_before_may_come_after_its_begin() {
    // A segment of a process that was sent at this time, 50 ms later than usual.
    let broken_behind = |ended: i64, late: Option<(usize, u64)>| {
        let mut plan = calm();
        (plan.topology, plan.weather) = (Topology::Cluster, Weather::Calm);
        plan.latency = 5 * MILLI;
        let mut ledger = Ledger::default();
        let call = asks(&mut ledger, Owning::Alone, Some(0), 0, Some(0));
        let sim = world();
        sim.change(|state| {
            let late = late.map(|(process, sent)| Late {
                process,
                sent: sent * MILLI,
                by: 50 * MILLI,
            });
            state.late.extend(late);
        });
        let job = ledger.takes_part(Job::begins(0, plan.own_key(Verb::Every), SECOND, false));
        let run = Run::begins(job, call, EPOCH, EPOCH + 1_000_000);
        ledger.runs.push(run);
        let end = BodyEnd {
            at: 0,
            server_time: EPOCH + 1_000 * ended,
            held_for: 0,
            is_lost: false,
        };
        ledger.ends.insert(call, end);
        ledger.jobs[job].until = Some(EPOCH + 2_500_000);
        sim.judge(ledger, &plan, Ledger::check_ticks)
    };
    let rule = "a tick is left out";
    assert!(broken_behind(950, None).is_empty());
    assert_eq!(broken_behind(850, None), [rule]);
    for sent in [800, 860] {
        assert!(broken_behind(850, Some((0, sent))).is_empty());
        assert_eq!(broken_behind(850, Some((1, sent))), [rule]);
        assert_eq!(broken_behind(800, Some((0, sent))), [rule]);
    }
    for sent in [780, 1_000] {
        assert_eq!(broken_behind(850, Some((0, sent))), [rule]);
    }
}

#[test]
fn a_tick_is_left_out_where_a_manager_is_dropped_soon_after_its_begin() {
    // One process takes part from 0 to 2.5 s, and another one drops its manager at this time.
    let broken = |leaves: Option<u64>| {
        let mut plan = calm();
        plan.weather = Weather::Calm;
        plan.processes[1].leaves = leaves.map(|at| at * MILLI);
        let mut ledger = Ledger::default();
        let sim = world();
        for process in 0..2 {
            let key = plan.own_key(Verb::Every);
            ledger.takes_part(Job::begins(process, key, SECOND, false));
        }
        ledger.jobs[0].until = Some(EPOCH + 2_500_000);
        sim.judge(ledger, &plan, Ledger::check_ticks)
    };
    assert!(broken(Some(1_010)).is_empty());
    for leaves in [None, Some(990), Some(1_410)] {
        assert_eq!(broken(leaves), ["a tick is left out"]);
    }
}

/// A run whose process has stopped inside its body until its lock had run out, and was told of the loss.
#[test]
fn two_completed_runs_of_a_tick_break_a_rule_unless_the_first_process_stopped_inside_its_body() {
    let broken = vec!["two runs of a tick are completed"];
    for (stops, remaining, answer, expected) in [
        (true, 0, Answer::Lost, vec![]),
        (false, 0, Answer::Lost, broken.clone()),
        (true, 1, Answer::Lost, broken.clone()),
        (true, 0, Answer::Granted, broken),
    ] {
        let mut plan = calm();
        plan.stops_inside = stops;
        let mut ledger = Ledger::default();
        for (asked, ends, remaining, answer) in
            [(2, 9, remaining, answer), (8, 8, SECOND, Answer::Granted)]
        {
            let call = asks(&mut ledger, Owning::Alone, Some(0), asked, Some(asked));
            ledger.calls[call].answer = answer;
            let _world = world();
            let job = ledger.takes_part(Job::begins(call, 0, 20 * SECOND, false));
            let mut run = Run::begins(job, call, 0, 20_000_000);
            let at = ends * SECOND;
            run.completed = Some(Completed { at, remaining });
            ledger.runs.push(run);
        }
        assert_eq!(
            world().judge(ledger, &plan, Ledger::check_ticks),
            expected,
            "{stops} {remaining}"
        );
    }
}

/// A process stands still while it reads the server's clock in the tick of second 1, and begins its body in the next tick.
#[test]
fn a_tick_that_began_while_the_process_stood_still_before_its_body_may_be_run() {
    // By this process, to the middle of second 2. The body begins so many milliseconds later.
    let broken = |process: usize, later: i64| {
        let mut plan = with(Fault::Block { process });
        plan.processes[0].operation_timeout = 200 * MILLI;
        (plan.faults[0].at, plan.faults[0].lasts) = (1_900 * MILLI, 600 * MILLI);
        let mut ledger = Ledger::default();
        let calls = [1, 2].map(|at| asks(&mut ledger, Owning::Alone, Some(0), at, Some(at)));
        let sim = world();
        let job = ledger.takes_part(Job::begins(0, 0, SECOND, false));
        let begins = EPOCH + 2_500_000 + 1_000 * later;
        let ticks = [(EPOCH + 1_900_000, 2), (begins, 3)];
        for (call, (began, tick)) in calls.into_iter().zip(ticks) {
            let mut run = Run::begins(job, call, began, EPOCH + tick * 1_000_000);
            run.from = begins;
            ledger.runs.push(run);
            let end = BodyEnd {
                at: 0,
                server_time: begins,
                held_for: 0,
                is_lost: false,
            };
            ledger.ends.insert(call, end);
        }
        sim.judge(ledger, &plan, Ledger::check_ticks)
    };
    let rule = "a tick that began during a run is run";
    assert!(broken(0, 1).is_empty());
    assert_eq!(broken(1, 1), [rule]);
    assert_eq!(broken(0, 100), [rule]);
}
