//! A lock whose key stays taken for a while when its owner has ended.

use std::time::Duration;

use lock_core::machine::timeout;
use lock_core::{LockHandle, ReleaseMode};

use super::records::look_at_last;
use super::{Draw, End, Worker, answer_of, end, look_for, name, waiting};
use crate::ledger::{Answer, Cooldown, Owning, ledger};
use crate::world::{MILLI, sim};

/// Notes a cooldown that begins now, when its owner ends.
pub(super) fn note_cooldown(call: usize, lock: &LockHandle, span: u64) {
    let ended = sim().now();
    let lasts = look_at_last(call, lock);
    ledger(|it| {
        it.cools(Cooldown {
            call,
            span,
            ended,
            lasts,
        });
    });
}

impl Worker {
    pub(super) async fn cooldown(&mut self) {
        let draw = self.draw();
        let span = self.rng.pick(&[30, 300, 1_500]) * MILLI;
        match self.rng.below(5) {
            0 => self.forget_kept(draw.key).await,
            1 | 2 => self.run_and_cool(&draw, span).await,
            _ => self.guarded(&draw, span).await,
        }
    }

    /// Ends a guard, with a cooldown of the request or of the handle.
    async fn guarded(&mut self, draw: &Draw, span: u64) {
        let of_request = self.rng.percent(60);
        let of_handle = if of_request { 0 } else { span };
        let request = self.locks.lock(name(draw.key));
        let request = match of_request {
            true => request.cooldown(Duration::from_nanos(span)),
            false => request,
        };
        let owning = Owning::Alone;
        let Some((call, guard)) = self.ask(request, draw, vec![draw.key], owning).await else {
            return;
        };
        let lock = guard.handle();
        lock.cooldown(Duration::from_nanos(of_handle));
        self.hold(call, &lock, draw.hold).await;
        // That of a request counts after a release, and not after a drop.
        if draw.end != End::Drop || !of_request {
            note_cooldown(call, &lock, span);
        }
        end(call, guard, draw.end).await;
    }

    /// Runs a body, with a cooldown if it succeeds.
    async fn run_and_cool(&mut self, draw: &Draw, span: u64) {
        let succeeds = self.rng.percent(50);
        let mode = self
            .rng
            .pick(&[ReleaseMode::default(), ReleaseMode::Background]);
        let call = self.asks(draw, vec![draw.key], Owning::Alone);
        let (plan, hold) = (self.plan.clone(), draw.hold);
        let body = move |lock: LockHandle| async move {
            ledger(|it| it.answered(call, Answer::Granted));
            look_for(&plan, call, &lock, hold).await;
            let ended = sim().now();
            let lasts = look_at_last(call, &lock);
            ledger(|it| {
                it.calls[call].left = Some(ended);
                if succeeds {
                    it.cools(Cooldown {
                        call,
                        span,
                        ended,
                        lasts,
                    });
                }
            });
            succeeds
        };
        let request = self.locks.lock(name(draw.key));
        let run = request
            .ttl(Duration::from_nanos(draw.ttl))
            .wait(waiting(draw.wait))
            .cooldown(Duration::from_nanos(span))
            .release(mode)
            .run_with(body)
            .cooldown_if(|succeeded| *succeeded);
        let cancel = draw.cancel.map_or(Duration::MAX, Duration::from_nanos);
        let done = timeout(cancel, run).await;
        ledger(|it| {
            let granted = it.calls[call].answer != Answer::None;
            match (done, granted) {
                (Err(_), false) => it.answered(call, Answer::Cancelled),
                (Ok(Err(error)), false) => {
                    it.refused(call, &error);
                    it.answered(call, answer_of(&error));
                }
                (Ok(Err(_)), true) => it.calls[call].answer = Answer::Lost,
                // The body was dropped, or has ended.
                (Err(_), true) => {
                    let left = it.calls[call].left;
                    it.calls[call].left = left.or(Some(sim().now()));
                }
                (Ok(Ok(_)), _) => {}
            }
        });
    }
}
