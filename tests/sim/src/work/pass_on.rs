//! An owner passes its lock on by a ticket, and a task of any process goes on with it.

use std::time::Duration;

use lock_core::machine::{self as kit, sleep, timeout};
use lock_core::{ErrorKind, LockGuard, LockHandle, Ticket, Wait};

use super::{Draw, Worker, answer_of, end, name};
use crate::ledger::{Answer, Owning, PassedOn, ledger};
use crate::world::{MILLI, SECOND, sim};

/// A job with a ticket may be delivered again while it is among so many.
const DELIVERED: usize = 6;
/// A pick-up time that no history sees the end of.
const LONG: u64 = 300 * SECOND;
/// The ttl of a request that names none.
const DEFAULT_TTL: u64 = 30 * SECOND;

impl Worker {
    pub(super) async fn pass_on(&mut self) {
        let jobs = ledger(|it| it.jobs(DELIVERED));
        if !jobs.is_empty() && self.rng.percent(60) {
            let ticket = self.rng.pick(&jobs);
            if self.rng.percent(20) {
                // The job was delivered twice.
                let mut twin = self.fork();
                kit::spawn(async move { twin.go_on(ticket).await });
            }
            self.go_on(ticket).await;
            return;
        }
        let mut draw = self.draw();
        draw.wait = self
            .rng
            .pick(&[Some(0), Some(300 * MILLI), Some(1_500 * MILLI)]);
        let request = self.locks.lock(name(draw.key));
        let keys = vec![draw.key];
        if let Some((call, guard)) = self.ask(request, &draw, keys, Owning::Alone).await {
            self.hold_and_pass_on(call, guard, &draw).await;
        }
    }

    async fn hold_and_pass_on(&mut self, call: usize, guard: LockGuard, draw: &Draw) {
        let is_held = self.hold(call, &guard.handle(), draw.hold).await;
        if !is_held || self.rng.percent(15) {
            return end(call, guard, draw.end).await;
        }
        // A ticket that is dropped on the way would keep the key for long.
        let drops = self.rng.percent(self.plan.cancels);
        let is_long = drops && !self.plan.ends_early(self.process);
        let pick_up = match is_long {
            true => LONG,
            false => self.rng.pick(&[50, 300, 1_000, 3_000]) * MILLI,
        };
        let soon = self.rng.pick(&[3, 400]) * MILLI;
        let cancel = drops.then(|| Duration::from_nanos(self.rng.below(soon)));
        let lock = guard.handle();
        if self.rng.percent(10) {
            self.asks_inside(call, &lock, draw.key).await;
        }
        let made = self.make_ticket(call, &lock, pick_up, cancel).await;
        let Some(ticket) = made else {
            drop(guard);
            return;
        };
        self.check_made(call, &lock, guard).await;
        // Else it would keep the key for longer than the history.
        while is_long && !self.is_answered(ticket) {
            self.go_on(ticket).await;
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Asks for a ticket while a call is inside of the lock.
    async fn asks_inside(&self, call: usize, lock: &LockHandle, key: usize) {
        let outer = lock.clone();
        let token = lock.fencing_token();
        let request = self.locks.lock(name(key)).wait(Wait::None);
        ledger(|it| it.is_entered_with(call, DEFAULT_TTL));
        let inside = request.run_with(move |inner| async move {
            // The lock around it may have ended, and this is another one then.
            let is_inside = inner.fencing_token() == token;
            let made = outer.ticket(Duration::from_secs(1)).await;
            is_inside && made.is_ok()
        });
        if let Ok(true) = lock.scope(inside).await {
            ledger(|it| {
                let text = it.calls[call].to_string();
                it.violates("a lock is passed on while a call is inside of it", text);
            });
        }
    }

    async fn make_ticket(
        &mut self,
        call: usize,
        lock: &LockHandle,
        pick_up: u64,
        cancel: Option<Duration>,
    ) -> Option<usize> {
        let asked = sim().now();
        let ppm = self.plan.processes[self.process].ppm as f64;
        let remaining = lock.remaining().as_nanos() as f64 / (1.0 + ppm / 1e6);
        ledger(|it| it.calls[call].left = Some(asked));
        let made = lock.ticket(Duration::from_nanos(pick_up));
        let made = timeout(cancel.unwrap_or(Duration::MAX), made).await.ok()?;
        let made = match made {
            Ok(made) => made,
            Err(error) => {
                let is_lost = error.kind() == ErrorKind::Lost;
                let text = format!("{:?} {error}", error.kind());
                ledger(|it| {
                    it.calls[call].answer = Answer::NotReleased(text);
                    if is_lost {
                        // Made by a request whose answer was lost, it may be over.
                        let lasts = (remaining as u64).min(pick_up - pick_up / 100);
                        it.check_lost_to_ticket(&self.plan, call, asked + lasts);
                    }
                });
                return None;
            }
        };
        let now = sim().now();
        let key = ledger(|it| it.calls[call].keys[0]);
        let passed_on = PassedOn {
            by: call,
            key,
            token: u64::from(made.fencing_token()),
            text: made.to_string(),
            asked,
            made: now,
            pick_up,
            is_fetched: self.rng.percent(75),
            uses: Vec::new(),
        };
        let ends = asked + remaining as u64;
        ledger(|it| it.check_made_in_time(&self.plan, call, ends));
        if now < asked + pick_up / 2 {
            sim()
                .look(|state| ledger(|it| it.check_replicas(&self.plan, state, self.process, key)));
        }
        Some(ledger(|it| it.passes_on(passed_on)))
    }

    /// Checks that the owner has passed its lock on whole.
    async fn check_made(&mut self, call: usize, lock: &LockHandle, guard: LockGuard) {
        let mut wrong = lock
            .is_valid()
            .then_some("a lock is held beside its ticket");
        if self.rng.percent(20) && lock.ticket(Duration::from_secs(1)).await.is_ok() {
            wrong = Some("a lock has two tickets");
        }
        if self.rng.percent(50) && guard.release().await.is_err() {
            wrong = Some("a release behind a ticket is refused");
        }
        if let Some(rule) = wrong {
            ledger(|it| it.violates(rule, it.calls[call].to_string()));
        }
    }

    /// Returns whether the ticket was used, or is worth nothing.
    fn is_answered(&self, ticket: usize) -> bool {
        ledger(|it| {
            let mut uses = it.tickets[ticket].uses.iter();
            // A use that was given up may not have come to the server.
            uses.any(|call| {
                !matches!(
                    it.calls[*call].answer,
                    Answer::Refused(_) | Answer::Cancelled
                )
            })
        })
    }

    async fn go_on(&mut self, number: usize) {
        let (text, key, token) = ledger(|it| {
            let ticket = &it.tickets[number];
            (ticket.text.clone(), ticket.key, ticket.token)
        });
        let ticket: Ticket = text.parse().expect("its own text");
        let draw = Draw { key, ..self.draw() };
        let call = ledger(|it| it.goes_on(number, self.process, self.task));
        let cancel = draw.cancel.map_or(Duration::MAX, Duration::from_nanos);
        let (answer, guard) = match timeout(cancel, self.locks.resume(ticket)).await {
            Err(_) => (Answer::Cancelled, None),
            Ok(Err(error)) if error.kind() == ErrorKind::Lost => (Answer::NoTicket, None),
            Ok(Err(error)) => (answer_of(&error), None),
            Ok(Ok(guard)) => (Answer::Granted, Some(guard)),
        };
        ledger(|it| it.answered(call, answer));
        let Some(guard) = guard else { return };
        ledger(|it| it.calls[call].token = Some(token));
        if u64::from(guard.fencing_token()) != token {
            let text = format!("{token}: {}", guard.fencing_token());
            ledger(|it| it.violates("a ticket changes the fencing token", text));
        }
        sim().look(|state| ledger(|it| it.check_replicas(&self.plan, state, self.process, key)));
        Box::pin(self.hold_and_pass_on(call, guard, &draw)).await;
    }
}
