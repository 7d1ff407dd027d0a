//! Plans a task of a worker as a pure function of the seed, the round and the task.

use std::time::Duration;

use lock_core::Wait;

use super::plan::Plan;
use crate::dice::Dice;

/// The number of tasks of each worker.
pub(super) const TASKS: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Acquire,
    TryAcquire,
    Run,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Release,
    InBackground,
    Drop,
}

/// One use of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// The pause before the request.
    pub(super) pause: Duration,
    pub(super) key: usize,
    pub(super) verb: Verb,
    pub(super) ttl: Duration,
    pub(super) wait: Wait,
    pub(super) hold: Duration,
    pub(super) cooldown: Duration,
    pub(super) end: End,
    /// The time after which the acquire is dropped if it has not ended.
    pub(super) cancel: Option<Duration>,
}

/// Returns the task's steps for the time of its work.
pub(super) fn steps(
    plan: &Plan,
    worker: usize,
    life: u64,
    task: usize,
) -> impl Iterator<Item = Step> {
    let mut dice = Dice::of(&[plan.seed, plan.number, worker as u64, life, task as u64, 1]);
    let (short, keys) = (plan.short_ttls, plan.keys.len());
    std::iter::repeat_with(move || {
        let ttl = match short {
            true => dice.one_of(&[600, 1_000, 1_500, 2_000]),
            false => dice.one_of(&[1_000, 3_000, 10_000, 30_000]),
        };
        let step = any(&mut dice, keys, Duration::from_millis(ttl));
        match (worker, task) {
            (0, 0) => quiet_owner(step, &mut dice),
            (1, 0) => quiet_waiter(step, &mut dice),
            _ => step,
        }
    })
}

fn any(dice: &mut Dice, keys: usize, ttl: Duration) -> Step {
    let millis = |millis| Duration::from_millis(millis);
    let verb = match dice.between(0, 9) {
        0..2 => Verb::TryAcquire,
        2..4 => Verb::Run,
        _ => Verb::Acquire,
    };
    let wait = match dice.between(0, 9) {
        0..3 => Wait::None,
        3..8 => Wait::For(millis(dice.between(50, 3_000))),
        _ => Wait::Forever,
    };
    Step {
        pause: millis(dice.between(0, 150)),
        key: 1 + dice.index(keys - 1),
        verb,
        ttl,
        wait,
        hold: millis(match dice.percent(20) {
            true => dice.between(200, 1_200),
            false => dice.between(0, 60),
        }),
        cooldown: millis(if dice.percent(10) {
            dice.between(50, 400)
        } else {
            0
        }),
        end: dice.one_of(&[End::Release, End::Release, End::InBackground, End::Drop]),
        cancel: dice.percent(20).then(|| millis(dice.between(0, 600))),
    }
}

/// Holds the first key for a while, and then leaves it free for a longer time.
fn quiet_owner(step: Step, dice: &mut Dice) -> Step {
    Step {
        pause: Duration::from_millis(dice.between(300, 2_500)),
        key: 0,
        verb: Verb::Acquire,
        wait: Wait::For(Duration::from_secs(5)),
        hold: Duration::from_millis(dice.between(500, 2_000)),
        cooldown: Duration::ZERO,
        cancel: None,
        ..step
    }
}

/// Waits a long time for the first key.
fn quiet_waiter(step: Step, dice: &mut Dice) -> Step {
    Step {
        pause: Duration::from_millis(dice.between(0, 500)),
        key: 0,
        verb: Verb::Acquire,
        wait: dice.one_of(&[Wait::Forever, Wait::For(Duration::from_secs(6))]),
        hold: Duration::from_millis(dice.between(5, 50)),
        cooldown: Duration::ZERO,
        cancel: None,
        ..step
    }
}

#[test]
fn a_seed_determines_a_whole_task() {
    let plan = Plan::of(7, 0);
    let some = |seed_of: &Plan, life| steps(seed_of, 2, life, 1).take(50).collect::<Vec<_>>();
    assert_eq!(some(&plan, 0), some(&plan, 0));
    assert_ne!(some(&plan, 0), some(&plan, 1));
    assert_ne!(some(&plan, 0), some(&Plan::of(8, 0), 0));
}
