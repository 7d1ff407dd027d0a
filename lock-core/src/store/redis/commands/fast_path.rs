//! The usual case: a first attempt on a lock, or its release. As little as possible is done for it, and a rare answer is
//! completed elsewhere in a boxed future, so that the usual future stays small.

use redis::{Cmd, Pipeline};

use super::RedisStore;
use super::release::ReleaseKind;
use crate::base::token::Token;
use crate::store::redis::wire::batch::{BatchItem, BatchRequest, is_alone};
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::reply::{acquired_in_batch, has_more};
use crate::store::redis::wire::scripts::Lua;
use crate::store::redis::wire::send_error::SendError;
use crate::store::redis::wire::spans::{grant_in_millis, push_fence};
use crate::store::vote::VoteOperation;
use crate::store::{AcquireCommand, Operation, Outcome, Release};

/// An operation of the usual case, with its commands.
pub(super) enum FastPath<'a> {
    /// An acquire in a script with other requests.
    BatchedAcquire(&'a AcquireCommand, BatchRequest),
    /// A release in a script with other requests.
    BatchedRelease(&'a Release, BatchRequest),
    /// An acquire by native commands.
    NativeAcquire(&'a AcquireCommand, Pipeline),
    /// A release by its script.
    Release(&'a Release, &'static Lua, Cmd),
    /// A vote by its script.
    Vote(&'a VoteOperation, &'static Lua, Cmd),
}

impl RedisStore {
    /// Chooses the fast path of an operation, if it has one.
    pub(super) fn fast_path<'a>(
        &self,
        operation: &'a Operation,
        on: &Connection,
    ) -> Option<FastPath<'a>> {
        match operation {
            Operation::Acquire(acquire)
                if acquire.is_first() && !self.shared.is_shared_by(acquire) =>
            {
                if on.is_busy()
                    && acquire.token.share().is_none()
                    && let Some(request) =
                        on.batched(&self.names, BatchItem::Acquire(acquire.clone()))
                {
                    return Some(FastPath::BatchedAcquire(acquire, request));
                }
                Some(FastPath::NativeAcquire(
                    acquire,
                    self.native_commands(acquire),
                ))
            }
            Operation::Release(release) if !self.ends_as_share(release) => {
                if on.is_busy()
                    && let Some(request) =
                        on.batched(&self.names, BatchItem::Release(release.clone()))
                {
                    return Some(FastPath::BatchedRelease(release, request));
                }
                let script = &self.scripts.release;
                let command = self.releasing(script, release);
                Some(FastPath::Release(release, script, command))
            }
            Operation::Vote(vote) => {
                let (script, command) = self.voting(vote)?;
                Some(FastPath::Vote(vote, script, command))
            }
            _ => None,
        }
    }

    /// Sends an operation by its fast path. A rare answer is completed by the usual scripts.
    ///
    /// By reference, because a future has the size of the values that it owns.
    pub(super) async fn send_fast(
        &self,
        fast: &mut FastPath<'_>,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        let (release, answer) = match fast {
            FastPath::NativeAcquire(acquire, commands) => {
                return self.attempt(acquire, commands, on).await;
            }
            FastPath::BatchedAcquire(acquire, request) => {
                let answer = request.answer().await?;
                if is_alone(&answer) {
                    return Box::pin(self.acquire_by_script(acquire, on)).await;
                }
                return Ok(acquired_in_batch(&answer));
            }
            FastPath::BatchedRelease(release, request) => {
                let answer = request.answer().await?;
                if is_alone(&answer) {
                    return Box::pin(self.end_lease(release, ReleaseKind::Free, on)).await;
                }
                (*release, answer)
            }
            FastPath::Vote(vote, script, command) => {
                let answer = script.ask(on, command).await?;
                return Ok(match self.voted(vote, &answer) {
                    Some(outcome) => outcome,
                    None => Box::pin(self.has_voted(vote, &answer, on)).await,
                });
            }
            FastPath::Release(release, script, command) => {
                let answer = match self.handed_off.has(&release.key) {
                    true => Box::pin(script.ask_behind_pushes(on, command)).await?,
                    false => script.ask(on, command).await?,
                };
                (*release, answer)
            }
        };
        if has_more(&answer) {
            let rest = self.release_rest(release, ReleaseKind::Free, answer, on);
            return Ok(Box::pin(rest).await);
        }
        Ok(self.released(release, ReleaseKind::Free, &answer))
    }

    /// The command of a script that ends a lease, with the keys and arguments that all of these scripts take.
    pub(super) fn releasing(&self, script: &Lua, release: &Release) -> Cmd {
        let mark = self.names.mark_for(&release.key);
        let channels = self.names.channels();
        let bytes = 2 * (mark.len() + channels.len() + release.key.len()) + Token::LENGTH + 32;
        let mut command = script.command(3, 5, bytes);
        self.names.push_lock(&release.key, &mut command);
        command.arg(&*mark);
        self.names.push_queue(&release.key, &mut command);
        command.arg(release.token.text().as_bytes());
        push_fence(release.fence, &mut command);
        command.arg(channels).arg(grant_in_millis(release.ttl));
        command
    }
}
