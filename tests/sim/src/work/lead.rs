//! Candidates for a leadership, and views of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lock_core::machine::{sleep, spawn, timeout};
use lock_core::{LeaderView, LockHandle};

use super::run::{Inside, Part};
use super::watched::{Terms, Work};
use super::{Draw, Worker, name};
use crate::ledger::{Candidacy, ledger};
use crate::plan::{Plan, Verb};
use crate::world::{MILLI, SECOND, sim};

/// The time between two looks at a view.
const BETWEEN_LOOKS: u64 = 25 * MILLI;

impl Worker {
    pub(super) async fn lead(&mut self) {
        let Draw { mut key, ttl, .. } = self.draw();
        if self.rng.percent(60) {
            key = self.plan.own_key(Verb::Lead);
        }
        let left = self.plan.work_ends.saturating_sub(sim().now());
        let stands = (self.rng.pick(&[1_500, 8_000, 8_000]) * MILLI).min(left + SECOND);
        let candidate = self.locks.leader(name(key));
        let candidate = candidate.ttl(Duration::from_nanos(ttl));
        let leads = Leads::new(candidate.view());
        let watch = spawn(leads.clone().watch(self.plan.clone()));
        let candidacy = Candidacy::begins(self.process, key, ttl);
        let candidacy = ledger(|it| it.stands_for(candidacy));
        let mut worker = self.fork();
        let noted = leads.clone();
        let work_ends = self.plan.work_ends;
        let run = candidate.run(move |lead| {
            let call = worker.is_granted(key, ttl);
            ledger(|it| it.candidacies[candidacy].terms.push(call));
            noted.note(u64::from(lead.fencing_token()), call);
            let terms = Terms {
                ends_with_drain: true,
                ..worker.terms(call)
            };
            let longest = worker.rng.pick(&[50, 400, 2_000, 8_000, 8_000]) * MILLI;
            let left = work_ends.saturating_sub(sim().now());
            let part = worker.part(terms, key, ttl);
            part.tries_to_leave(lead.handle());
            part.body(lead.handle(), Inside::Looks, longest.min(left))
        });
        let ended = timeout(Duration::from_nanos(stands), run).await;
        let error = match ended {
            Ok(Err(error)) => Some(error),
            Ok(Ok(())) | Err(_) => None,
        };
        ledger(|it| it.candidacy_ends(&self.plan, candidacy, error.as_ref()));
        watch.abort();
        if leads.view.is_leader() {
            ledger(|it| it.violates("a view says leader behind the end", format!("k{key}")));
        }
    }

    pub(super) fn fork(&mut self) -> Worker {
        Worker {
            plan: self.plan.clone(),
            process: self.process,
            task: self.task,
            locks: self.locks.clone(),
            rng: self.rng.split(),
        }
    }
}

impl Part {
    /// A tick and a leadership leave no record and pass their lock on to no bearer of a ticket.
    pub(super) fn tries_to_leave(&self, lock: LockHandle) {
        let call = self.terms.call;
        let hour = Duration::from_secs(3_600);
        if self.rng.clone().percent(90) {
            return;
        }
        if lock.remember(b"7".to_vec(), hour).is_ok() {
            ledger(|it| it.violates("a role leaves a record", it.calls[call].to_string()));
        }
        let work: Work = Box::pin(async move {
            if lock.ticket(hour).await.is_ok() {
                ledger(|it| it.violates("a role has a ticket", it.calls[call].to_string()));
            }
        });
        drop(spawn(work));
    }
}

/// A view, and the calls of the leaderships that it may show, by their tokens.
#[derive(Clone)]
struct Leads {
    view: LeaderView,
    calls: Arc<Mutex<Vec<(u64, usize)>>>,
}

impl Leads {
    fn new(view: LeaderView) -> Self {
        Self {
            view,
            calls: Arc::default(),
        }
    }

    fn note(&self, token: u64, call: usize) {
        let mut calls = self.calls.lock().expect("one thread");
        calls.push((token, call));
    }

    /// Looks at the view until the task is ended.
    async fn watch(self, plan: Plan) {
        loop {
            // Before the view is asked, so that it showed a leader at this time.
            let now = sim().now();
            if let Some(token) = self.view.fencing_token() {
                self.shows(&plan, u64::from(token), now);
            }
            sleep(Duration::from_nanos(BETWEEN_LOOKS)).await;
        }
    }

    fn shows(&self, plan: &Plan, token: u64, now: u64) {
        let calls = self.calls.lock().expect("one thread");
        let call = calls.iter().rev().find(|it| it.0 == token);
        let Some((_, call)) = call else {
            return;
        };
        ledger(|it| it.claims(*call, token, now));
        // At least for this moment.
        sim().look(|state| ledger(|it| it.check_deadline(plan, state, *call, 1)));
    }
}
