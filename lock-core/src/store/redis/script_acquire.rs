//! Acquiring by the script for whoever wants to be queued, steps over a release, or may have asked
//! before. A first attempt is in `first.rs`.

use super::connection::Connection;
use super::reply::acquired;
use super::send_error::Trouble;
use super::{RedisStore, grant, millis};
use crate::store::{Acquire, Outcome};

impl RedisStore {
    pub(super) async fn acquire_by_script(
        &self,
        acquire: &Acquire,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        let lock = self.names.lock(&acquire.key);
        let queue = self.names.queue(&acquire.key);
        let mark = self.names.mark(&lock);
        let keys = [lock.as_str(), &mark, queue.as_str()];
        let token = acquire.token.text();
        let replaces = acquire.replaces.map(|lease| lease.token.to_string());
        let used = acquire.replaces.and_then(|lease| lease.fence);
        let used = used.map(|fence| fence.to_string());
        let arguments = [
            token.as_str(),
            &millis(acquire.ttl),
            &grant(acquire.ttl),
            if acquire.queues() { "1" } else { "0" },
            replaces.as_deref().unwrap_or_default(),
            self.names.channels(),
            used.as_deref().unwrap_or_default(),
        ];
        let answer = self.scripts.acquire.run(on, &keys, &arguments).await?;
        let outcome = acquired(&answer, self.pushes_to(acquire.token, on));
        if let Outcome::Busy(_) = outcome {
            self.given.note_refused(acquire);
        }
        Ok(outcome)
    }
}
