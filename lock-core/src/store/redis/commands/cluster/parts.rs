//! Operations on a lock whose slot is moving, in parts of one key each.
//!
//! While a slot moves from one node to another, no script may touch several of its keys (`TRYAGAIN`), because
//! each may be on either side. One key at a time can always be found. So a release is three steps: the
//! high-water mark is raised, the lock deleted, the first waiters told to ask, behind the gap if there is one. An acquire
//! is native commands without a queue. If the node that has the lock lacks the mark, the acquire reads it from the other
//! one, behind its `SET`, because the owner before it may have raised it up to then.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::Value;

use super::acquire::on_its_way;
use crate::base::fence::FencingToken;
use crate::base::record::Record;
use crate::base::sync::lock;
use crate::store::redis::commands::RedisStore;
use crate::store::redis::commands::dispatch::{Command, Dispatch};
use crate::store::redis::commands::native_acquire::ambiguous;
use crate::store::redis::commands::part::Part;
use crate::store::redis::commands::release::ReleaseKind;
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::reply::time_above;
use crate::store::redis::wire::send_error::SendError;
use crate::store::redis::wire::spans::{grant, millis};
use crate::store::redis::wire::{reply, scripts};
use crate::store::{
    AcquireCommand, Ended, Failure, Operation, OperatorOperation, Outcome, Queueing, Release,
    Remembered, Swap,
};

impl RedisStore {
    pub(in crate::store::redis::commands) async fn ask_cluster(
        &self,
        operation: Operation,
        dispatch: &mut Dispatch,
    ) -> Outcome {
        if let Operation::Extend(extensions) = operation {
            return self.extend_each(extensions, dispatch).await;
        }
        if let Operation::Operator(OperatorOperation::Scan(scan)) = &operation {
            return self.scan_cluster(scan, dispatch.lane).await;
        }
        if let Err(error) = self.names.check(operation.key()) {
            return Outcome::Failed(error.into());
        }
        if let Operation::AcquireAll(all) = &operation {
            let keys = all.leases.iter();
            if let Some(Err(error)) = keys
                .map(|(key, _)| self.names.check(key))
                .find(Result::is_err)
            {
                return Outcome::Failed(error.into());
            }
        }
        let sent = self
            .send_until_answered(Command::Whole(operation.clone()), dispatch)
            .await;
        let sent = match sent {
            Err(SendError::Unfenced(time)) => {
                Ok(self.fence_in_parts(operation.key(), &time, dispatch).await)
            }
            Err(SendError::Moving(_)) => {
                let answered = self.ask_in_parts(operation, dispatch).await;
                answered.map(|outcome| match dispatch.again {
                    true => outcome.of_the_last_send(),
                    false => outcome,
                })
            }
            sent => sent,
        };
        sent.unwrap_or_else(|trouble| dispatch.failed(trouble))
    }

    pub(super) async fn ask_in_parts(
        &self,
        operation: Operation,
        dispatch: &mut Dispatch,
    ) -> Result<Outcome, SendError> {
        match operation {
            Operation::Acquire(acquire) => self.acquire_in_parts(acquire, dispatch).await,
            Operation::Release(release) => {
                self.give_back_in_parts(release, ReleaseKind::Free, dispatch)
                    .await
            }
            Operation::Vacate(release) => {
                self.give_back_in_parts(release, ReleaseKind::Vacate, dispatch)
                    .await
            }
            Operation::Cool(release, cooldown) => {
                self.give_back_in_parts(release, ReleaseKind::Cool(cooldown), dispatch)
                    .await
            }
            Operation::Remember(release, record) => {
                self.remember_in_parts(release, record, dispatch).await
            }
            Operation::Leave(release) => {
                self.step(Part::Tell(release, Duration::ZERO), dispatch)
                    .await?;
                Ok(Outcome::Released(Ended::Absent))
            }
            Operation::Swap(swap) => self.swap_in_parts(swap, dispatch).await,
            // Each key is taken by itself then.
            Operation::AcquireAll(_) => Ok(Outcome::Apart),
            Operation::Operator(_) => Ok(Outcome::Failed(Failure::refused(
                "the slot of the key is moving from one node of the cluster to another; try again when it has moved",
            ))),
            // About one key as they are.
            Operation::Extend(_)
            | Operation::Raise(_)
            | Operation::Forget(_)
            | Operation::Clock(_)
            | Operation::Vote(_) => Ok(reply::not_understood()),
        }
    }

    pub(super) async fn acquire_in_parts(
        &self,
        acquire: AcquireCommand,
        dispatch: &mut Dispatch,
    ) -> Result<Outcome, SendError> {
        if let Some(replaced) = acquire.replaces {
            let release = Release {
                token: replaced.token,
                fence: replaced.fence,
                // The caller waits for the acquire behind it.
                in_background: false,
                ..acquire.undo()
            };
            self.give_back_in_parts(release, ReleaseKind::Free, dispatch)
                .await?;
        }
        let is_share = acquire.token.share().is_some();
        let waits = acquire.queueing != Queueing::Never;
        let may_be_queued = waits || acquire.repeated;
        let own = acquire.undo();
        let outcome = match self.step(Part::Acquire(acquire), dispatch).await {
            Err(SendError::Unfenced(time)) => self.fence_in_parts(&own.key, &time, dispatch).await,
            acquired => acquired?,
        };
        // A release would hand the key to that entry, and a renewal on its way would
        // then lengthen a lock that has no owner.
        if let Outcome::Granted(_) = outcome
            && may_be_queued
        {
            let _ = self.step(Part::Unqueue(own), dispatch).await;
        }
        // Whether it fits beside other shares is known when the slot has moved. A waiter asks again until then.
        if let Outcome::Busy(_) = outcome
            && is_share
            && !waits
        {
            return Ok(Outcome::Failed(Failure::refused(
                "the key is on its way to another node of the cluster, and no share can join others meanwhile",
            )));
        }
        Ok(outcome)
    }

    /// Completes an acquire that has taken the lock on one node at this time, while the mark is on the other one.
    async fn fence_in_parts(&self, key: &str, time: &Value, dispatch: &mut Dispatch) -> Outcome {
        let mark = Arc::new(Mutex::new(Value::Nil));
        let read = Part::ReadMark(key.into(), Arc::clone(&mark));
        if let Err(trouble) = self.step(read, dispatch).await {
            return Outcome::Failed(ambiguous(trouble.into_failure()));
        }
        let mark = lock(&mark);
        time_above(&mark, time).map_or_else(on_its_way, Outcome::Granted)
    }

    /// In the order in which a script would: the lock is free when no later fencing token can be lower.
    async fn give_back_in_parts(
        &self,
        release: Release,
        ending: ReleaseKind,
        dispatch: &mut Dispatch,
    ) -> Result<Outcome, SendError> {
        self.raise_mark(&release.key, release.fence, dispatch)
            .await?;
        let cooldown = match ending {
            ReleaseKind::Cool(cooldown) => Some(cooldown),
            _ => None,
        };
        let freed = self
            .step(Part::Free(release.clone(), cooldown), dispatch)
            .await?;
        let freed = match (&freed, release.token.share()) {
            (Outcome::Released(Ended::Other), Some(_)) => {
                self.remove_share_in_parts(&release, dispatch).await?
            }
            _ => freed,
        };
        let after = ending.keeps_the_key_for();
        let told = Part::Tell(release.clone(), after);
        match self.step(told, dispatch).await {
            // The keeper repeats the request. A waiter that is gone would stay in the queue otherwise.
            Err(trouble) if release.in_background => return Err(trouble),
            Err(_) => self.handed_off.note_unserved(&release, after),
            Ok(_) => {}
        }
        Ok(freed)
    }

    async fn remember_in_parts(
        &self,
        release: Release,
        record: Arc<Record>,
        dispatch: &mut Dispatch,
    ) -> Result<Outcome, SendError> {
        self.raise_mark(&release.key, release.fence, dispatch)
            .await?;
        let remember = Part::Remember(release.clone(), record);
        let remembered = self.step(remember, dispatch).await?;
        if let Outcome::Remembered(Remembered::Yes | Remembered::Unacknowledged) = remembered {
            // Each waiter that finds the record leaves the queue, and tells the next ones.
            let told = Part::Tell(release, Duration::ZERO);
            let _ = self.step(told, dispatch).await;
        }
        Ok(remembered)
    }

    async fn swap_in_parts(
        &self,
        swap: Swap,
        dispatch: &mut Dispatch,
    ) -> Result<Outcome, SendError> {
        self.raise_mark(&swap.key, swap.fence, dispatch).await?;
        let one_key = Swap {
            fence: None,
            ..swap
        };
        self.step(Part::Swap(one_key), dispatch).await
    }

    /// Raises the high-water mark to the fencing token of a lease, if it has one.
    async fn raise_mark(
        &self,
        key: &Arc<str>,
        fence: Option<FencingToken>,
        dispatch: &mut Dispatch,
    ) -> Result<(), SendError> {
        if let Some(fence) = fence {
            self.step(Part::Raise(Arc::clone(key), fence), dispatch)
                .await?;
        }
        Ok(())
    }

    pub(super) async fn step(
        &self,
        part: Part,
        dispatch: &mut Dispatch,
    ) -> Result<Outcome, SendError> {
        Box::pin(self.send_until_answered(Command::Part(part), dispatch)).await
    }

    pub(in crate::store::redis::commands) async fn send_part(
        &self,
        part: &Part,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        match part {
            Part::Acquire(acquire) => self.acquire_one_key(acquire, on).await,
            Part::ExtendLock(share) => {
                let name = self.names.lock(&share.key);
                self.extend_part(share, ("lock", &name), on).await
            }
            Part::ExtendInSet(share) => {
                let set = self.names.shares(&share.key);
                self.extend_part(share, ("set", &set), on).await
            }
            Part::ReadMark(key, mark) => {
                let name = self.names.mark_for(key);
                let answer = on.send(redis::cmd("GET").arg(&*name)).await?;
                *lock(mark) = answer;
                Ok(Outcome::Released(Ended::Yes))
            }
            Part::Raise(key, fence) => {
                let mark = self.names.mark_for(key);
                scripts::RAISE
                    .run(on, &[&mark], &[&fence.to_string()])
                    .await?;
                Ok(Outcome::Released(Ended::Yes))
            }
            Part::Swap(swap) => self.swap(swap, on).await,
            Part::Free(release, cooldown) => {
                let lock = self.names.lock(&release.key);
                let span = cooldown.map(|cooldown| millis(cooldown.span));
                let until = cooldown.unwrap_or_default().until_millis.to_string();
                let token = release.token.text();
                let arguments = [token.as_str(), &span.unwrap_or_default(), &until];
                let answer = scripts::FREE.run(on, &[&lock], &arguments).await?;
                Ok(reply::released(&answer))
            }
            Part::Remember(release, record) => {
                let lock = self.names.lock(&release.key);
                let command = self.remembering(release, record, &[&lock]);
                let answer = self.scripts.remember.ask(on, &command).await?;
                Ok(reply::remembered(&answer))
            }
            Part::ReadShared(release, sharing) => {
                sharing.note(self.read_shared(&release.key, on).await?);
                Ok(Outcome::Released(Ended::Other))
            }
            Part::RemoveShare(release, sharing) => self.remove_share(release, sharing, on).await,
            Part::FreeShared(release, sharing) => self.free_shared(release, sharing, on).await,
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
                    self.handed_off.note_unserved(release, *free_after);
                }
                Ok(Outcome::Released(Ended::Yes))
            }
            Part::Unqueue(release) => {
                let mut command = redis::cmd("ZREM");
                self.names.push_queue(&release.key, &mut command);
                command.arg(format!(
                    "{} {}",
                    release.token.text().as_str(),
                    grant(release.ttl)
                ));
                on.send(&command).await?;
                Ok(Outcome::Released(Ended::Yes))
            }
        }
    }
}
