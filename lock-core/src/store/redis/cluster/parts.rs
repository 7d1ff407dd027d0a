//! Operations on a cluster: what cannot be one script there is done in parts, of one key each.
//!
//! While a slot is on its way from one node to another no script may touch several keys of it: each of
//! a lock's keys may be on either side. One key at a time can always be found.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use crate::store::redis::connection::Connection;
use crate::store::redis::dispatch::{Errand, Journey};
use crate::store::redis::reply;
use crate::store::redis::send_error::Trouble;
use crate::store::redis::{RedisStore, grant, millis, scripts};
use crate::store::{Acquire, Failure, Operation, Outcome, Release, Released};

/// One step of an operation.
#[derive(Clone, Debug)]
pub(in crate::store::redis) enum Part {
    /// A first attempt, or another one, that does not queue.
    Acquire(Acquire),
    /// The fencing token of a lease goes into the mark.
    Raise(Release),
    /// The lock is deleted, or cools down for that long.
    Free(Release, Option<Duration>),
    /// The queue is left, and the first in it hear that the key is free after that long.
    Tell(Release, Duration),
}

impl Part {
    pub(in crate::store::redis) fn key(&self) -> &str {
        match self {
            Part::Acquire(acquire) => &acquire.key,
            Part::Raise(release) | Part::Free(release, _) | Part::Tell(release, _) => &release.key,
        }
    }
}

impl Part {
    pub(in crate::store::redis) fn acquire(&self) -> Option<&Acquire> {
        match self {
            Part::Acquire(acquire) => Some(acquire),
            _ => None,
        }
    }
}

impl RedisStore {
    pub(in crate::store::redis) async fn ask_cluster(
        &self,
        operation: Operation,
        journey: &mut Journey,
    ) -> Outcome {
        if let Operation::Extend(extensions) = operation {
            return self.extend_each(extensions, journey).await;
        }
        if let Err(error) = self.names.check(operation.key()) {
            return Outcome::Failed(Failure {
                error,
                ambiguous: false,
            });
        }
        let sent = self.travel(Errand::Whole(operation.clone()), journey).await;
        let sent = match sent {
            Err(Trouble::Moving(_)) => self.ask_in_parts(operation, journey).await,
            sent => sent,
        };
        sent.unwrap_or_else(|trouble| journey.failed(trouble))
    }

    async fn ask_in_parts(
        &self,
        operation: Operation,
        journey: &mut Journey,
    ) -> Result<Outcome, Trouble> {
        match operation {
            Operation::Acquire(acquire) => self.acquire_in_parts(acquire, journey).await,
            Operation::Release(release) | Operation::Vacate(release) => {
                self.give_back_in_parts(release, None, journey).await
            }
            Operation::Cool(release, cooldown) => {
                self.give_back_in_parts(release, Some(cooldown), journey)
                    .await
            }
            Operation::Leave(release) => {
                self.step(Part::Tell(release, Duration::ZERO), journey)
                    .await?;
                Ok(Outcome::Released(Released::Absent))
            }
            // About one key as they are.
            Operation::Extend(_) | Operation::Vote(_) => Ok(reply::not_understood()),
        }
    }

    async fn acquire_in_parts(
        &self,
        acquire: Acquire,
        journey: &mut Journey,
    ) -> Result<Outcome, Trouble> {
        if let Some(replaced) = acquire.replaces {
            let release = Release {
                key: Arc::clone(&acquire.key),
                token: replaced.token,
                ttl: acquire.ttl,
                fence: replaced.fence,
                in_background: true,
            };
            self.give_back_in_parts(release, None, journey).await?;
        }
        self.step(Part::Acquire(acquire), journey).await
    }

    /// In the order in which a script would: the lock is free when no later fencing token can be lower.
    async fn give_back_in_parts(
        &self,
        release: Release,
        cooldown: Option<Duration>,
        journey: &mut Journey,
    ) -> Result<Outcome, Trouble> {
        if release.fence.is_some() {
            self.step(Part::Raise(release.clone()), journey).await?;
        }
        let freed = self
            .step(Part::Free(release.clone(), cooldown), journey)
            .await?;
        let after = cooldown.unwrap_or_default();
        let told = Part::Tell(release.clone(), after);
        if self.step(told, journey).await.is_err() {
            self.given.note_unserved(&release, after);
        }
        Ok(freed)
    }

    async fn step(&self, part: Part, journey: &mut Journey) -> Result<Outcome, Trouble> {
        Box::pin(self.travel(Errand::Part(part), journey)).await
    }

    pub(in crate::store::redis) async fn send_part(
        &self,
        part: &Part,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        match part {
            Part::Acquire(acquire) => self.acquire_one_key(acquire, on).await,
            Part::Raise(release) => {
                let mark = self.names.mark(&self.names.lock(&release.key)).into_owned();
                let fence = fence_text(release);
                scripts::RAISE.run(on, &[&mark], &[&fence]).await?;
                Ok(Outcome::Released(Released::Yes))
            }
            Part::Free(release, cooldown) => {
                let lock = self.names.lock(&release.key);
                let cooldown = cooldown.map(millis).unwrap_or_default();
                let token = release.token.text();
                let arguments = [token.as_str(), &cooldown];
                let answer = scripts::FREE.run(on, &[&lock], &arguments).await?;
                Ok(reply::released(&answer))
            }
            Part::Tell(release, free_after) => {
                let lock = self.names.lock(&release.key);
                let queue = self.names.queue(&release.key);
                let token = release.token.text();
                let arguments = [
                    token.as_str(),
                    &grant(release.ttl),
                    self.names.channels(),
                    &lock,
                    &millis(*free_after),
                ];
                let answer = scripts::TELL.run(on, &[&queue], &arguments).await?;
                if answer != Value::Int(1) {
                    self.given.note_unserved(release, *free_after);
                }
                Ok(Outcome::Released(Released::Yes))
            }
        }
    }
}

/// The fencing token as the scripts take it: nothing, where none was given.
fn fence_text(release: &Release) -> String {
    let fence = release.fence.map(|fence| fence.to_string());
    fence.unwrap_or_default()
}
