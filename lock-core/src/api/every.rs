//! Schedules: one process of many runs a job in each tick.
//!
//! # Why at most one run of a tick is completed
//!
//! A run belongs to the tick in which it asked the server for the time, while it held the lock. When its body has ended,
//! the key cools down until the end of that tick, by the clock of the same server. So in the rest of the tick no process
//! gets the lock, and after it the server's clock shows another tick. No clock of a process takes part: it only decides
//! when the process asks.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::active::Role;
use crate::api::handle::LockHandle;
use crate::api::leader::{is_passing, unless_draining};
use crate::api::manager::LockManager;
use crate::api::request::LockRequest;
use crate::base::clock::ServerTime;
use crate::base::error::{Error, ErrorKind};
use crate::base::key::LockKey;
use crate::base::options::{Reentrancy, Wait};
use crate::base::schedule::{Schedule, next_tick};
use crate::engine::server_clock::{FRESH, ServerClock};
use crate::lease::backoff::pause_before_campaign;

impl LockManager {
    /// Creates a job that one of all processes runs in each tick of the schedule.
    ///
    /// A schedule is a [`Duration`], an [`Interval`](crate::Interval), with the feature `cron` a cron expression
    /// (`Cron::new("0 2 * * *", "Europe/Berlin")?`), or any other [`Schedule`]. All processes name the same key and the same
    /// schedule.
    ///
    /// # Examples
    ///
    /// ```
    /// # async fn sweep(_: lock_core::Tick) {}
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), lock_core::Error> {
    /// # let locks = lock_core::LockManager::in_memory();
    /// use std::time::Duration;
    ///
    /// let cleanup = locks.every("cleanup", Duration::from_secs(60)).max_hold(Duration::from_secs(50));
    /// let job = tokio::spawn(cleanup.run(|tick| async move { sweep(tick).await }));
    /// # tokio::task::yield_now().await;
    ///
    /// locks.drain(Duration::from_secs(10)).await; // a run that has begun may end
    /// job.await.expect("no panic")
    /// # }
    /// ```
    pub fn every(&self, key: impl Into<LockKey>, schedule: impl Schedule + 'static) -> Every {
        Every {
            locks: self.clone(),
            key: key.into(),
            schedule: Box::new(schedule),
            ttl: None,
            max_hold: None,
            from_next: false,
        }
    }
}

/// A job that one of all processes runs in each tick.
///
/// [`LockManager::every`] creates it, and [`run`](Self::run) takes part.
#[must_use = "a job does nothing until the future of `run` is awaited"]
pub struct Every {
    locks: LockManager,
    key: LockKey,
    schedule: Box<dyn Schedule>,
    ttl: Option<Duration>,
    max_hold: Option<Duration>,
    from_next: bool,
}

impl Every {
    /// Sets for how long the lock of a run outlives its last renewal. Default: that of the manager, 30 s.
    ///
    /// The ttl may be shorter than the run, because the lock is renewed. After a crash the key stays taken for that
    /// long. The bounds are those of [`LockRequest::ttl`](crate::LockRequest::ttl).
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets the longest time of a run. Default: no limit.
    ///
    /// After that time the body is dropped, and the lock is released. The run does not count as completed.
    pub fn max_hold(mut self, max_hold: Duration) -> Self {
        self.max_hold = Some(max_hold);
        self
    }

    /// Leaves out the tick in which [`run`](Self::run) is called.
    ///
    /// By default the process asks at once, and runs the job if no process has completed it in this tick. So a job
    /// whose process was killed in the middle is repeated by the next process that starts. With this method, no job
    /// runs because a process was started.
    pub fn from_next_tick(mut self) -> Self {
        self.from_next = true;
        self
    }

    /// Takes part in each tick until the manager drains.
    ///
    /// At the begin of a tick each process asks once for the lock. One of them gets it and runs the body; the others are
    /// refused and wait for the next tick. When the body has ended, the key stays taken until the end of the tick.
    ///
    /// * **At most one run of a tick is completed**, also where the clocks of the processes differ, because ticks are
    ///   counted by the clock of the server that has the key. If that clock steps, or another server with another clock takes
    ///   its place, a tick may be left out or repeated. A tick may also be repeated if a server loses the key.
    /// * **A run that lasts longer than its tick** goes on. The ticks that have begun before the store hears of its end
    ///   are left out.
    /// * **A run that does not complete** (its process crashes, it reaches `max_hold`, or its lock is lost) is repeated
    ///   only by a process that asks later in the same tick, such as one that starts. The others were refused already.
    /// * **The store does not answer.** The process asks again, after 100 ms at first and after 10 s at most. If the tick
    ///   is over by then, it is left out.
    /// * **The key has a record** that other code has [left](LockHandle::remember) there. No tick runs until the record
    ///   ends or is [forgotten](LockManager::forget).
    /// * **The body panics.** The panic ends this method, so the process takes part in no later tick. The lock is released, and
    ///   the run does not count as completed. Watch the `JoinHandle` of the task.
    /// * **The manager drains.** A run that has begun may end, and then the method returns.
    ///
    /// A body that blocks its thread until the lock is lost, and returns without an await, has completed its run, and the key
    /// does not cool down. So a process that asks later in the tick may complete a second run.
    ///
    /// The body handles its own errors: a body that returns has completed its tick. It can repeat its work within the
    /// tick, because the lock is renewed as long as it runs. The body runs inside the lock of the key.
    ///
    /// # Errors
    ///
    /// * `Misconfigured`: the store will never accept this request.
    /// * `Invalid`: the key, the ttl or `max_hold` is out of bounds; the calling code holds this lock; the schedule
    ///   names a tick that is not later than the time for which it was asked; or the manager's locks are on several
    ///   independent servers (`redlock://`), which have no common clock.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the body is dropped first, and then the background releases the lock. The run does not
    /// count as completed.
    pub async fn run<C, F>(self, mut body: C) -> Result<(), Error>
    where
        C: FnMut(Tick) -> F,
        F: Future<Output = ()>,
    {
        self.request().check()?;
        let key = self.key.clone().into_result()?;
        let mut clock = ServerClock::new(self.locks.engine(), &key);
        let mut turn = Turn {
            due: ServerTime(0),
            passes: self.from_next,
        };
        let mut failures = 0;
        while !self.locks.is_draining() {
            let error = match self.take_turn(&mut turn, &mut clock, &mut body).await {
                Ok(()) => {
                    failures = 0;
                    continue;
                }
                Err(error) => error,
            };
            if self.locks.is_draining() {
                break;
            }
            if !is_passing(&error) {
                return Err(error);
            }
            failures += 1;
            self.rest(pause_before_campaign(failures)).await;
        }
        Ok(())
    }

    /// Waits for the next tick, and asks for its lock once.
    async fn take_turn<C, F>(
        &self,
        turn: &mut Turn,
        clock: &mut ServerClock,
        body: &mut C,
    ) -> Result<(), Error>
    where
        C: FnMut(Tick) -> F,
        F: Future<Output = ()>,
    {
        let mut now = clock.now().await?;
        // Also where the answer is not used, because a wrong schedule is found here, before its first run.
        let next = self.next(now)?;
        if turn.passes && now >= turn.due {
            turn.due = next;
        }
        turn.passes = false;
        while now < turn.due {
            // A long rest ends early, because the two clocks may come apart.
            let rest = Duration::from_micros(turn.due.0 - now.0);
            self.rest(rest.min(FRESH)).await;
            if self.locks.is_draining() {
                return Ok(());
            }
            now = clock.now().await?;
        }
        let due = turn.due;
        let mut ends = None;
        let run = self.request().run_with(|lock| async {
            // The lock is held when the answer arrives, so the server's clock has shown this time under the lock.
            let granted = clock.read().await?;
            if granted < due {
                // The grant belongs to the tick before, which is not this process's.
                return Ok(());
            }
            let end = self.next(granted)?;
            ends = Some(end);
            let lease = Arc::clone(&lock.lease);
            lease.serves_as(Role::Tick);
            body(Tick {
                lock,
                granted,
                ends: end,
            })
            .await;
            lease.cool_until(end);
            Ok(())
        });
        let ended = run.await;
        if let Some(end) = ends {
            // Ticks that have begun during the run are left out.
            *turn = Turn {
                due: end,
                passes: true,
            };
        }
        match ended {
            Ok(ended) => ended,
            Err(error) if error.kind() == ErrorKind::Busy => {
                self.is_refused(&error, turn, clock).await
            }
            Err(error) if ends.is_some() && error.kind() == ErrorKind::Lost => {
                tracing::warn!(%error, "a scheduled run did not complete");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Another process runs this tick, or has run it.
    async fn is_refused(
        &self,
        error: &Error,
        turn: &mut Turn,
        clock: &mut ServerClock,
    ) -> Result<(), Error> {
        let now = clock.now().await?.max(turn.due);
        let next = self.next(now)?;
        let cools = error.retry_after().filter(|_| error.is_cooling_down());
        // A key that is free long before the tick ends cools down for the tick before, because this process's estimate of the
        // server's clock was ahead, or not for a tick, such as behind the order of an operator.
        let soon = Duration::from_micros((next.0 - now.0) / 2);
        if let Some(left) = cools.filter(|left| *left < soon) {
            self.rest(left).await;
            clock.forget();
        } else {
            turn.due = next;
        }
        Ok(())
    }

    /// Rests for so long, or until the manager drains.
    async fn rest(&self, span: Duration) {
        let engine = self.locks.engine();
        let _ = unless_draining(&self.locks, engine.timers.at(engine.now() + span)).await;
    }

    fn next(&self, time: ServerTime) -> Result<ServerTime, Error> {
        next_tick(&*self.schedule, time)
    }

    fn request(&self) -> LockRequest {
        let mut request = self.locks.lock(self.key.clone());
        if let Some(ttl) = self.ttl {
            request = request.ttl(ttl);
        }
        if let Some(max_hold) = self.max_hold {
            request = request.max_hold(max_hold);
        }
        request.wait(Wait::None).reentrant(Reentrancy::Refuse)
    }
}

impl fmt::Debug for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Every")
            .field("ttl", &self.ttl)
            .field("max_hold", &self.max_hold)
            .finish_non_exhaustive()
    }
}

/// The next tick that a process asks for.
struct Turn {
    /// Its begin, or an earlier time.
    due: ServerTime,
    /// Set if a tick that has begun is left out.
    passes: bool,
}

/// One run of a job.
///
/// It is a [`LockHandle`]: `fencing_token`, `remaining`, `lost` and the other methods are those of the lock. But
/// `remember` and `ticket` are `Invalid`, because a second run of the same tick could then begin.
#[derive(Clone)]
pub struct Tick {
    lock: LockHandle,
    granted: ServerTime,
    ends: ServerTime,
}

impl Tick {
    /// Returns the begin of the run, by the clock of the server.
    #[must_use]
    pub fn began(&self) -> SystemTime {
        self.granted.into()
    }

    /// Returns the end of the tick, which is the begin of the next one.
    ///
    /// It identifies the tick: two runs with the same end are runs of the same tick. As a unique column it makes the
    /// effect of a tick happen once, and [`ends_unix_micros`](Self::ends_unix_micros) is the number for that column.
    #[must_use]
    pub fn ends(&self) -> SystemTime {
        self.ends.into()
    }

    /// Returns the [end](Self::ends) of the tick in microseconds of Unix time, for a `BIGINT` column.
    ///
    /// The number is exact, because ticks begin and end at whole microseconds. It is higher than those of all earlier
    /// ticks, and below 2⁵³, so it is exact in JSON and in JavaScript too.
    #[must_use]
    pub fn ends_unix_micros(&self) -> i64 {
        i64::try_from(self.ends.0).expect("a tick ends before the year 2256")
    }

    /// Returns the handle of the lock, for code that takes one.
    #[must_use]
    pub fn handle(&self) -> LockHandle {
        self.lock.clone()
    }
}

impl Deref for Tick {
    type Target = LockHandle;

    fn deref(&self) -> &LockHandle {
        &self.lock
    }
}

impl fmt::Debug for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tick")
            .field("ends", &self.ends())
            .field("lock", &self.lock)
            .finish_non_exhaustive()
    }
}
