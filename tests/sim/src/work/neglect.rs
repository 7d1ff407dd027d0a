//! Several calls in one task, which polls only some of them at a time, as a `select!` in a loop may do.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use lock_core::machine::timeout;

use super::Worker;
use super::watched::{Work, is_dead};
use crate::ledger::ledger;
use crate::world::{MILLI, SECOND, sim};

/// The numbers of a task's branches are so far apart, so that their keys in a burst are those of their task.
const APART: usize = 60;

impl Worker {
    pub(super) async fn neglect(&mut self) {
        let key = self.draw_key();
        let count = self.rng.between(1, 4) as usize;
        let mut branches: Vec<Branch> = (1..=count).map(|it| self.branch(it, key)).collect();
        // Each is polled once at least, or a few times.
        let begin = self.rng.pick(&[1_000, MILLI, 30 * MILLI]);
        polled(&mut branches, begin).await;
        for _ in 0..self.rng.between(1, 3) {
            for branch in &mut branches {
                branch.is_polled(self.rng.percent(40));
            }
            let span = self.rng.pick(&[20, 200, 1_000, 4_000, 15_000]) * MILLI;
            self.polls(&mut branches, span).await;
        }
        if self.rng.percent(80) {
            branches
                .iter_mut()
                .for_each(|branch| branch.is_polled(true));
            polled(&mut branches, u64::MAX).await;
        }
    }

    /// Polls some branches for so long, unless the work is over or the manager drains.
    async fn polls(&self, branches: &mut [Branch], span: u64) {
        let until = (sim().now() + span).min(self.plan.work_ends + 6 * SECOND);
        while !self.locks.is_draining() {
            let left = until.saturating_sub(sim().now());
            if left == 0 || polled(branches, left.min(SECOND / 2)).await {
                return;
            }
        }
    }

    /// A call, most often for the same key as the other branches'.
    fn branch(&mut self, number: usize, key: usize) -> Branch {
        let mut worker = Worker {
            task: self.task + number * APART,
            ..self.fork()
        };
        let process = self.process;
        let task = worker.task;
        let work = async move {
            let mut draw = worker.draw();
            if worker.rng.percent(80) {
                draw.key = key;
            }
            worker.acquires(draw).await;
        };
        Branch {
            process,
            task,
            work: Some(Box::pin(work)),
            pause: None,
        }
    }
}

struct Branch {
    process: usize,
    task: usize,
    work: Option<Work>,
    /// The span in which it is not polled.
    pause: Option<usize>,
}

impl Branch {
    fn is_polled(&mut self, polled: bool) {
        match (polled, self.pause) {
            (false, None) if self.work.is_some() => {
                let (process, task) = (self.process, self.task);
                self.pause = Some(ledger(|it| it.leaves_unpolled(process, task)));
            }
            (true, Some(_)) => self.ends_pause(),
            _ => {}
        }
    }

    fn ends_pause(&mut self) {
        if let Some(span) = self.pause.take() {
            ledger(|it| it.polls_again(span));
        }
    }

    /// Returns whether its work is over.
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        if let Some(work) = &mut self.work
            && self.pause.is_none()
            && work.as_mut().poll(context).is_ready()
        {
            self.work = None;
        }
        self.work.is_none()
    }
}

impl Drop for Branch {
    fn drop(&mut self) {
        if !is_dead(self.process) {
            self.ends_pause();
            ledger(|it| it.gives_up(self.process, self.task));
        }
    }
}

/// Polls the branches whose turn it is for so long, or until all are over. Returns whether they are.
async fn polled(branches: &mut [Branch], span: u64) -> bool {
    let all = poll_fn(|context| {
        let mut are_over = true;
        for branch in branches.iter_mut() {
            are_over &= branch.poll(context);
        }
        match are_over {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    });
    timeout(Duration::from_nanos(span), all).await.is_ok()
}
