//! The usual case: a first attempt on a lock, or its release. As little as possible is done for it.

use redis::{Cmd, Pipeline};

use super::batch::{BatchItem, BatchRequest, is_alone};
use super::connection::Connection;
use super::reply::{acquired_in_batch, has_more};
use super::scripts::Lua;
use super::send_error::Trouble;
use super::{RedisStore, ReleaseKind, grant_in_millis};
use crate::base::fence::FencingToken;
use crate::base::token::Token;
use crate::store::{Operation, Outcome, Release};

/// What is asked in the usual case, before it is sent.
pub(super) enum Quick {
    /// With others, in one script.
    Together(BatchRequest),
    /// By itself, a first attempt.
    First(Pipeline),
    /// By itself.
    Alone(&'static Lua, Cmd),
}

impl RedisStore {
    /// How to ask about an operation in the usual way, if that will do.
    pub(super) fn quick(&self, operation: &Operation, on: &Connection) -> Option<Quick> {
        match operation {
            Operation::Acquire(acquire) if acquire.is_first() => {
                if on.is_busy()
                    && let Some(request) =
                        on.batched(&self.names, BatchItem::Acquire(acquire.clone()))
                {
                    return Some(Quick::Together(request));
                }
                Some(Quick::First(self.first_attempt(acquire)))
            }
            Operation::Release(release) => {
                if on.is_busy()
                    && let Some(request) =
                        on.batched(&self.names, BatchItem::Release(release.clone()))
                {
                    return Some(Quick::Together(request));
                }
                let script = self.scripts.release;
                let command = self.releasing(script, release);
                Some(Quick::Alone(script, command))
            }
            Operation::Vote(vote) => {
                let (script, command) = self.voting(vote)?;
                Some(Quick::Alone(script, command))
            }
            _ => None,
        }
    }

    /// Sends it, and understands the answer. By reference, because its future has the size of what it owns.
    pub(super) async fn ask_quickly(
        &self,
        quick: &mut Quick,
        operation: &Operation,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        let answer = match quick {
            Quick::Together(request) => request.await?,
            Quick::First(commands) => {
                let Operation::Acquire(acquire) = operation else {
                    unreachable!("nothing else is a first attempt")
                };
                return self.attempt(acquire, commands, on).await;
            }
            Quick::Alone(script, command) => script.ask(on, command).await?,
        };
        if let Operation::Vote(vote) = operation {
            return match self.voted(vote, &answer) {
                Some(outcome) => Ok(outcome),
                None => Box::pin(self.has_voted(vote, &answer, on)).await,
            };
        }
        if is_alone(&answer) {
            return Box::pin(self.ask_at_length(operation, on)).await;
        }
        if let Operation::Release(release) = operation
            && has_more(&answer)
        {
            return Ok(Box::pin(self.release_rest(release, ReleaseKind::Free, answer, on)).await);
        }
        Ok(match operation {
            Operation::Acquire(_) => acquired_in_batch(&answer),
            Operation::Release(release) => self.released(release, ReleaseKind::Free, &answer),
            _ => unreachable!("nothing else is asked in short"),
        })
    }

    /// What the short way has left to the long one.
    async fn ask_at_length(
        &self,
        operation: &Operation,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        match operation {
            Operation::Acquire(acquire) => self.acquire_by_script(acquire, on).await,
            Operation::Release(release) => self.end_lease(release, ReleaseKind::Free, on).await,
            _ => unreachable!("nothing else is asked in short"),
        }
    }

    /// The keys and arguments of the scripts that end a lease, but for those that not all of them take.
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

/// A fencing token as the scripts take it: nothing, where none was given.
pub(super) fn push_fence(fence: Option<FencingToken>, command: &mut Cmd) {
    match fence {
        Some(fence) => command.arg(u64::from(fence)),
        None => command.arg(""),
    };
}
