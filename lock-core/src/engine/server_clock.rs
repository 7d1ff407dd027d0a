//! The clock of the server that has a key, as this process knows it.
//!
//! A schedule counts its ticks by that clock, because the key of the schedule ends by it too. So no clock of a process
//! decides which tick a run belongs to. Between two questions this process carries the last answer on by its own
//! monotonic clock, and only to choose the moment of its next question.

use std::sync::Arc;
use std::time::Duration;

use super::Engine;
use super::inquiry::error_of;
use crate::base::clock::{Clock, Moment, ServerTime};
use crate::base::error::Error;
use crate::store::{Failure, Operation, Outcome};

/// After this time an answer is not carried on any longer, because the two clocks may have come apart.
pub(crate) const FRESH: Duration = Duration::from_secs(15 * 60);

pub(crate) struct ServerClock {
    engine: Arc<Engine>,
    key: Arc<str>,
    last: Option<Reading>,
}

#[derive(Clone, Copy)]
struct Reading {
    server: ServerTime,
    /// The time after the answer. So an estimate is behind the server's clock and never ahead of it.
    local: Moment,
}

impl ServerClock {
    pub(crate) fn new(engine: &Arc<Engine>, key: &Arc<str>) -> Self {
        Self {
            engine: Arc::clone(engine),
            key: Arc::clone(key),
            last: None,
        }
    }

    /// Asks the server. Its clock shows the answer, or more, when this returns.
    pub(crate) async fn read(&mut self) -> Result<ServerTime, Error> {
        let engine = &self.engine;
        let question = Operation::Clock(Arc::clone(&self.key));
        let server = match engine.answer_to(question).await {
            Ok(Outcome::Clock(server)) => server,
            Ok(_) => return Err(error_of(Failure::not_understood(), &self.key)),
            Err(failure) => return Err(error_of(failure, &self.key)),
        };
        let local = engine.now();
        self.last = Some(Reading { server, local });
        Ok(server)
    }

    /// Returns how far the estimate stays behind, so that no question comes too early, is refused, and is asked again.
    /// One that comes a little late costs nothing.
    ///
    /// The server's clock may lose half a thousandth while it is slewed. A key still exists in the millisecond of its
    /// end.
    fn margin(&self, since: u64) -> u64 {
        match self.engine.timers.clock() {
            Clock::System => (since / 1000 + 2_000).min(since),
            // The embedded store has the same clock.
            #[cfg(feature = "test-util")]
            Clock::Manual(_) => 0,
        }
    }

    /// Lets the next question be answered by the server.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }

    /// Returns the time of the server, and asks only if the last answer is old.
    pub(crate) async fn now(&mut self) -> Result<ServerTime, Error> {
        let now = self.engine.now();
        match self.last {
            Some(Reading { server, local }) if now.since(local) <= FRESH => {
                let since = u64::try_from(now.since(local).as_micros()).unwrap_or(u64::MAX);
                let behind = self.margin(since);
                Ok(ServerTime(server.0.saturating_add(since - behind)))
            }
            _ => self.read().await,
        }
    }
}
