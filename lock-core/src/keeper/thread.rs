//! The keeper's thread: it renews leases in batches and runs the tasks.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::{Keeper, LeaseListener};
use crate::active::ActiveLease;
use crate::base::clock::Moment;
use crate::base::machine;
use crate::base::sync::lock;
use crate::base::telemetry;
use crate::lease::Action;
use crate::store::{BoxFuture, Extended, Extension, Lane, Operation, Outcome, Store};

/// Keys in one renewal, few enough that other clients of the server do not wait long behind the script.
const BATCH: usize = 100;
/// Renewals under way at once.
const BATCHES_AT_ONCE: usize = 4;
/// How often the store is asked whether it still has votes to withdraw, when the last user is gone.
const LINGER: Duration = Duration::from_millis(20);
/// Leases looked at in one turn, so that tasks and timers get theirs.
const LEASES_A_TURN: usize = 4_096;

impl Keeper {
    /// Starts the thread. `background` is the store's own work there.
    pub(crate) fn start(
        self: &Arc<Self>,
        store: Arc<dyn Store>,
        background: BoxFuture<'static, ()>,
        listener: Box<dyn LeaseListener>,
    ) -> io::Result<()> {
        let keeper = Arc::clone(self);
        machine::thread("lock-keeper", async move {
            let background = machine::spawn(background);
            let thread = Arc::new(Thread {
                keeper,
                store,
                listener,
                batches: Mutex::default(),
            });
            thread.run().await;
            background.abort();
        })
    }
}

struct Thread {
    keeper: Arc<Keeper>,
    store: Arc<dyn Store>,
    listener: Box<dyn LeaseListener>,
    /// Permits for each shard, so that a server that does not answer delays only its own renewals.
    batches: Mutex<HashMap<u32, Arc<Semaphore>>>,
}

impl Thread {
    async fn run(self: &Arc<Self>) {
        loop {
            let timers = &self.keeper.timers;
            let now = timers.now();
            // First the timers, because work that is added from here on rings the bell.
            for waker in timers.take_due(now) {
                waker.wake();
            }
            let (leases, tasks, done) = {
                let mut state = lock(&self.keeper.state);
                (
                    state.schedule.take_due(now, LEASES_A_TURN),
                    std::mem::take(&mut state.tasks),
                    state.closing && state.open_tasks == 0,
                )
            };
            for task in tasks {
                machine::spawn(task);
            }
            let full_turn = leases.len() == LEASES_A_TURN;
            self.look_at(leases, now);
            let lingers = done && self.store.lingers();
            if done && !lingers {
                return;
            }
            if full_turn {
                tokio::task::yield_now().await;
            } else {
                let next = lock(&self.keeper.state).schedule.next();
                let soon = if lingers { now + LINGER } else { Moment::FAR };
                timers.sleep(next.min(soon)).await;
            }
        }
    }

    /// Does the due work of each lease, and plans its next look.
    fn look_at(self: &Arc<Self>, leases: Vec<Arc<ActiveLease>>, now: Moment) {
        let mut renewals = Vec::new();
        for lease in leases {
            let action = lease.poll(now);
            self.keeper.arm(&lease);
            match action {
                Action::Renew => renewals.push((self.store.shard(&lease.key), lease)),
                Action::Lost => self.listener.lost(&lease),
                Action::Overdue => self.listener.overdue(&lease),
                Action::Nothing | Action::HeldLong => {}
            }
        }
        // A batch may take a third of its shortest ttl, so short ones go with short ones.
        renewals.sort_by_key(|(shard, lease)| (*shard, lease.ttl()));
        for of_a_shard in renewals.chunk_by(|(one, _), (other, _)| one == other) {
            let turns = self.turns(of_a_shard[0].0);
            for batch in of_a_shard.chunks(BATCH) {
                let leases = batch.iter().map(|(_, lease)| Arc::clone(lease)).collect();
                machine::spawn(Arc::clone(self).renew(Arc::clone(&turns), leases));
            }
        }
    }

    fn turns(&self, shard: u32) -> Arc<Semaphore> {
        let mut batches = lock(&self.batches);
        let turns = batches.entry(shard);
        Arc::clone(turns.or_insert_with(|| Arc::new(Semaphore::new(BATCHES_AT_ONCE))))
    }

    /// Extends a batch of leases. A batch that the server refuses is asked again in halves, down to single keys,
    /// so that one refused key costs the others nothing.
    async fn renew(self: Arc<Self>, turns: Arc<Semaphore>, leases: Vec<Arc<ActiveLease>>) {
        let Ok(_turn) = turns.acquire().await else {
            return;
        };
        let mut parts = vec![leases];
        while let Some(part) = parts.pop() {
            let extensions: Vec<Extension> = part.iter().map(|lease| lease.extension()).collect();
            let shortest = extensions
                .iter()
                .map(|extension| extension.ttl)
                .min()
                .unwrap_or_default();
            // Half of the time that is left, so that a question without an answer can be repeated.
            let left = part.iter().map(|lease| lease.remaining()).min();
            let patience = self
                .keeper
                .operation_timeout
                .min(shortest / 3)
                .min(left.unwrap_or_default() / 2);
            let sent = self.keeper.timers.now();
            let mut asked = self.extend(extensions);
            let outcome = machine::timeout(patience, &mut asked).await;
            if outcome.is_err() {
                let heeding = Arc::clone(&self).heed(asked, patience, sent, shortest, part.clone());
                machine::spawn(heeding);
            }
            let answers = match outcome {
                Ok(Outcome::Extended(answers)) if answers.len() == part.len() => answers,
                Ok(Outcome::Failed(failure)) if failure.is_final() && part.len() > 1 => {
                    let (left, right) = part.split_at(part.len() / 2);
                    parts.extend([right.to_vec(), left.to_vec()]);
                    continue;
                }
                _ => vec![Extended::Unknown; part.len()],
            };
            for (lease, answer) in part.iter().zip(&answers) {
                if lease.renewed(sent, *answer) {
                    self.listener.lost(lease);
                }
                self.keeper.arm(lease);
            }
            // Not ours: it is a loss, or the lease has ended meanwhile.
            let count = |of| answers.iter().filter(|answer| **answer == of).count();
            telemetry::renewals(count(Extended::Yes), count(Extended::Unknown));
        }
    }

    fn extend(&self, extensions: Vec<Extension>) -> BoxFuture<'static, Outcome> {
        let store = Arc::clone(&self.store);
        let operation = Operation::Extend(extensions);
        Box::pin(async move { store.execute(operation, Lane::KEEPER).await })
    }

    /// Waits as long again for the answer to a renewal that was not answered within `patience`. The leases that it extends last
    /// from its send, also if those after it are answered too late as well, and those that the store does not have are lost.
    ///
    /// `extended_to`: the shortest ttl of the leases.
    async fn heed(
        self: Arc<Self>,
        asked: BoxFuture<'static, Outcome>,
        patience: Duration,
        sent: Moment,
        extended_to: Duration,
        leases: Vec<Arc<ActiveLease>>,
    ) {
        let Ok(Outcome::Extended(answers)) = machine::timeout(patience, asked).await else {
            return;
        };
        for (lease, answer) in leases.iter().zip(answers) {
            if lease.renewed_late(sent, answer, extended_to) {
                self.listener.lost(lease);
            }
            self.keeper.arm(lease);
        }
    }
}
