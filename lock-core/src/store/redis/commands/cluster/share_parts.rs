//! Shares of a key whose slot is moving: they are renewed and released in parts of one key each.
//!
//! The two keys of a lock with several shares may be on two nodes. So a renewal lengthens the lock, the set, and the lock
//! again, and a release ends the share in the set and then deletes the lock if that was the last one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use redis::{Pipeline, Value};

use crate::base::sync::lock;
use crate::store::redis::commands::RedisStore;
use crate::store::redis::commands::dispatch::Dispatch;
use crate::store::redis::commands::part::{Part, Sharing};
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::reply::{self, micros, text};
use crate::store::redis::wire::scripts;
use crate::store::redis::wire::send_error::SendError;
use crate::store::redis::wire::spans::millis;
use crate::store::{Ended, Extended, Extension, Outcome, Release};

impl RedisStore {
    /// The lock first and last, so that it lasts as long as the share. The release of another share, which sees the end of
    /// this one in the set, may shorten the lock in between.
    pub(in crate::store::redis::commands) async fn extend_share_in_parts(
        &self,
        share: Extension,
        dispatch: &mut Dispatch,
    ) -> Result<Outcome, SendError> {
        let extended = self.step(Part::ExtendLock(share.clone()), dispatch).await?;
        if !has_several(&extended) {
            return Ok(extended);
        }
        let extended = self
            .step(Part::ExtendInSet(share.clone()), dispatch)
            .await?;
        if !matches!(&extended, Outcome::Extended(answers) if *answers == [Extended::Yes]) {
            return Ok(extended);
        }
        let again = self.step(Part::ExtendLock(share), dispatch).await?;
        Ok(if has_several(&again) { extended } else { again })
    }

    /// Reads the value and the end of a lock that has several shares.
    pub(super) async fn read_shared(
        &self,
        key: &str,
        on: &Connection,
    ) -> Result<Option<(Box<str>, i64)>, SendError> {
        let mut commands = Pipeline::with_capacity(3);
        commands.add_command(redis::cmd("TIME"));
        for verb in ["GET", "PTTL"] {
            let mut command = redis::cmd(verb);
            self.names.push_lock(key, &mut command);
            commands.add_command(command);
        }
        let [time, value, left] = on.send_all(&commands).await?;
        if let Some(error) = SendError::of(&value).or_else(|| SendError::of(&left)) {
            return Err(error);
        }
        let value = text(&value).filter(|value| reply::has_several_shares(value.as_bytes()));
        let now = micros(&time).and_then(|time| i64::try_from(time / 1_000).ok());
        Ok(match (value, now, left) {
            (Some(value), Some(now), Value::Int(left)) => Some((value.into(), now + left)),
            _ => None,
        })
    }

    pub(super) async fn extend_part(
        &self,
        share: &Extension,
        (kind, key): (&str, &str),
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        let token = share.token.text();
        let arguments = [kind, token.as_str(), &millis(share.ttl)];
        let answer = scripts::EXTEND_SHARE_PART
            .run(on, &[key], &arguments)
            .await?;
        Ok(match answer {
            // The set has the answer: see `has_several`.
            Value::Int(4) => Outcome::Extended(Vec::new()),
            answer => reply::extended(&Value::Array(vec![answer])),
        })
    }

    /// The value is read first. So a lock that other shares have entered anew since then keeps its key.
    pub(super) async fn remove_share_in_parts(
        &self,
        release: &Release,
        dispatch: &mut Dispatch,
    ) -> Result<Outcome, SendError> {
        let sharing = Arc::<Sharing>::default();
        let read = Part::ReadShared(release.clone(), Arc::clone(&sharing));
        self.step(read, dispatch).await?;
        let remove = Part::RemoveShare(release.clone(), Arc::clone(&sharing));
        let removed = self.step(remove, dispatch).await?;
        if sharing.is_over.load(Ordering::Relaxed) {
            let free = Part::FreeShared(release.clone(), sharing);
            self.step(free, dispatch).await?;
        }
        Ok(removed)
    }

    pub(super) async fn remove_share(
        &self,
        release: &Release,
        sharing: &Sharing,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        let set = self.names.shares(&release.key);
        let token = release.token.text();
        let keys = [&*set];
        let removed = scripts::REMOVE_SHARE
            .run(on, &keys, &[token.as_str()])
            .await?;
        let Value::Array(counts) = &removed else {
            return Ok(reply::not_understood());
        };
        let [Value::Int(ended), Value::Int(over)] = counts.as_slice() else {
            return Ok(reply::not_understood());
        };
        sharing.is_over.store(*over == 1, Ordering::Relaxed);
        Ok(Outcome::Released(match ended {
            1 => Ended::Yes,
            _ => Ended::Other,
        }))
    }

    pub(super) async fn free_shared(
        &self,
        release: &Release,
        sharing: &Sharing,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        let seen = lock(&sharing.seen).clone();
        let Some((value, ends)) = seen else {
            return Ok(Outcome::Released(Ended::Absent));
        };
        let name = self.names.lock(&release.key);
        let arguments = [&*value, &ends.to_string()];
        let answer = scripts::FREE_SHARED.run(on, &[&name], &arguments).await?;
        Ok(reply::released(&answer))
    }
}

/// Returns whether the lock has several shares and was lengthened, so that the set has the answer.
fn has_several(extended: &Outcome) -> bool {
    matches!(extended, Outcome::Extended(answers) if answers.is_empty())
}
