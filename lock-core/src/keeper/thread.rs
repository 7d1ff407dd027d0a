//! The keeper's thread: looks at what is due, renews in batches, runs the jobs.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;

use super::{Keeper, jobs};
use crate::active::Hold;
use crate::base::clock::{Clock, Moment};
use crate::base::sync::lock;
use crate::lease::{Action, Renewal};
use crate::store::{BoxFuture, Extended, Extension, Lane, Operation, Outcome, Store};

/// Keys in one renewal: few enough that nobody else on the server waits long behind the script.
const BATCH: usize = 100;
/// Renewals under way at once.
const BATCHES_AT_ONCE: usize = 4;
/// Holds looked at in one turn, so that jobs and timers get theirs.
const TURN: usize = 4_096;

pub(super) fn start(
    keeper: Arc<Keeper>,
    store: Arc<dyn Store>,
    background: BoxFuture<'static, ()>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::Builder::new()
        .name("lock-keeper".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                let background = tokio::spawn(background);
                Thread {
                    keeper,
                    store,
                    batches: Mutex::default(),
                }
                .run()
                .await;
                background.abort();
            });
        })
        .map(drop)
}

struct Thread {
    keeper: Arc<Keeper>,
    store: Arc<dyn Store>,
    /// For each shard its own: a server that does not answer holds up nobody else's renewals.
    batches: Mutex<HashMap<u32, Arc<Semaphore>>>,
}

impl Thread {
    async fn run(&self) {
        loop {
            let now = self.keeper.clock.now();
            let (holds, timers, jobs, done) = {
                let mut state = lock(&self.keeper.state);
                // Whoever adds something from here on compares with "now" and rings.
                state.planned = Moment::FAR;
                let holds = state.schedule.take_holds(now, TURN);
                let timers = state.schedule.take_timers(now);
                let mut jobs = std::mem::take(&mut state.jobs);
                jobs.append(&mut state.errands.take_overdue(now));
                (holds, timers, jobs, state.closing && state.open_jobs == 0)
            };
            for timer in timers {
                timer.wake();
            }
            for job in jobs {
                tokio::spawn(jobs::run(
                    Arc::clone(&self.keeper),
                    Arc::clone(&self.store),
                    job,
                ));
            }
            let full_turn = holds.len() == TURN;
            self.look_at(holds, now);
            if done {
                return;
            }
            if full_turn {
                tokio::task::yield_now().await;
            } else {
                self.rest().await;
            }
        }
    }

    /// Does what is due for each hold, and plans the next look at it.
    fn look_at(&self, holds: Vec<Arc<Hold>>, now: Moment) {
        let mut renewals = Vec::new();
        for hold in holds {
            let action = hold.poll(now);
            self.keeper.rearm(&hold);
            if action == Action::Renew {
                renewals.push(hold);
            }
        }
        let mut renewals: Vec<_> = renewals
            .into_iter()
            .map(|hold| (self.store.shard(&hold.key), hold))
            .collect();
        // A batch may take a third of its shortest ttl: short ones go with short ones.
        renewals.sort_by_key(|(shard, hold)| (*shard, hold.ttl()));
        for of_a_shard in renewals.chunk_by(|(one, _), (other, _)| one == other) {
            let turns = self.turns(of_a_shard[0].0);
            for batch in of_a_shard.chunks(BATCH) {
                tokio::spawn(renew(
                    Arc::clone(&self.keeper),
                    Arc::clone(&self.store),
                    Arc::clone(&turns),
                    batch.iter().map(|(_, hold)| Arc::clone(hold)).collect(),
                ));
            }
        }
    }

    fn turns(&self, shard: u32) -> Arc<Semaphore> {
        let mut batches = lock(&self.batches);
        let turns = batches.entry(shard);
        Arc::clone(turns.or_insert_with(|| Arc::new(Semaphore::new(BATCHES_AT_ONCE))))
    }

    /// Sleeps until something is due or the bell rings.
    async fn rest(&self) {
        let next = {
            let mut state = lock(&self.keeper.state);
            let next = state.schedule.next().min(state.errands.next());
            state.planned = next;
            next
        };
        let bell = self.keeper.bell.notified();
        match self.keeper.clock {
            Clock::System if next < Moment::FAR => {
                let left = next.since(self.keeper.clock.now());
                // Never for long at a time: these timers stand still while the machine sleeps.
                let nap = left.min(Duration::from_secs(1)) + Duration::from_micros(200);
                let _ = tokio::time::timeout(nap, bell).await;
            }
            // A clock that a test moves rings the bell when it is moved.
            _ => bell.await,
        }
    }
}

/// Extends a batch of leases. What cannot be told about the whole batch is asked in halves, down to
/// single keys: one key that the server refuses costs the others nothing.
async fn renew(
    keeper: Arc<Keeper>,
    store: Arc<dyn Store>,
    batches: Arc<Semaphore>,
    holds: Vec<Arc<Hold>>,
) {
    let Ok(_turn) = batches.acquire().await else {
        return;
    };
    let mut parts = vec![holds];
    while let Some(part) = parts.pop() {
        let extensions: Vec<Extension> = part.iter().map(|hold| hold.extension()).collect();
        let shortest = extensions
            .iter()
            .map(|extension| extension.ttl)
            .min()
            .unwrap_or_default();
        // Half of what is left: an answer that does not come in time is asked for again.
        let left = part.iter().map(|hold| hold.remaining()).min();
        let patience = keeper
            .operation_timeout
            .min(shortest / 3)
            .min(left.unwrap_or_default() / 2);
        let sent = keeper.clock.now();
        let operation = Operation::Extend(extensions);
        let outcome = tokio::time::timeout(patience, store.execute(operation, Lane::Keeper)).await;
        let answers = match outcome {
            Ok(Outcome::Extended(answers)) if answers.len() == part.len() => answers,
            Ok(Outcome::Failed(failure)) if failure.is_final() && part.len() > 1 => {
                let (left, right) = part.split_at(part.len() / 2);
                parts.extend([right.to_vec(), left.to_vec()]);
                continue;
            }
            _ => vec![Extended::Unknown; part.len()],
        };
        for (hold, answer) in part.iter().zip(answers) {
            hold.renewed(
                sent,
                match answer {
                    Extended::Yes => Renewal::Extended,
                    Extended::NotOurs => Renewal::NotOurs,
                    Extended::Unknown => Renewal::Unknown,
                },
            );
            keeper.rearm(hold);
        }
    }
}
