//! Acquiring: by a short script, or by the one for whoever wants to be queued, steps over a release, or
//! may have asked before.

use std::sync::Arc;

use super::answers::{acquired, acquired_at_first, acquired_in_batch};
use super::batch::{Item, is_alone};
use super::connection::Connection;
use super::trouble::Trouble;
use super::{RedisStore, grant, millis, scripts};
use crate::store::{Acquire, Outcome};

impl RedisStore {
    pub(super) async fn acquire(
        &self,
        acquire: &Acquire,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        if acquire.queue || acquire.repeated || acquire.replaces.is_some() {
            return Box::pin(self.acquire_by_script(acquire, on)).await;
        }
        let lock = self.names.lock(&acquire.key);
        if on.is_busy() {
            let item = Item::Acquire {
                key: Arc::clone(&acquire.key),
                lock,
                token: acquire.token,
                ttl_millis: millis(acquire.ttl),
            };
            return match on.send_in_batch(&self.names, item).await? {
                Some(answer) => Ok(acquired_in_batch(
                    &answer,
                    self.will_tell(acquire.token, on),
                )),
                None => Box::pin(self.acquire_by_script(acquire, on)).await,
            };
        }
        #[cfg(feature = "cluster")]
        if self.topology.is_cluster() {
            return Box::pin(self.acquire_on_a_node(acquire, on)).await;
        }
        let keys = [lock.as_str(), self.names.only_mark()];
        let token = acquire.token.text();
        let arguments = [token.as_str(), &millis(acquire.ttl)];
        let answer = scripts::FIRST.run(on, &keys, &arguments).await?;
        if is_alone(&answer) {
            return Box::pin(self.acquire_by_script(acquire, on)).await;
        }
        Ok(acquired_at_first(
            &answer,
            self.will_tell(acquire.token, on),
        ))
    }

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
            if acquire.queue { "1" } else { "0" },
            replaces.as_deref().unwrap_or_default(),
            self.names.channels(),
            used.as_deref().unwrap_or_default(),
        ];
        let answer = self.scripts.acquire.run(on, &keys, &arguments).await?;
        Ok(acquired(&answer, self.will_tell(acquire.token, on)))
    }
}
