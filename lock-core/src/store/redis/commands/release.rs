//! The end of a lease: a release, one that leaves the key free, a cooldown, or a waiter that leaves the queue.

use std::time::Duration;

use redis::{Cmd, Value};

use super::RedisStore;
use crate::base::record::Record;
use crate::base::token::Token;
use crate::lease::cohort::GAP;
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::reply;
use crate::store::redis::wire::send_error::SendError;
use crate::store::redis::wire::spans::{grant_in_millis, in_millis, push_fence};
use crate::store::{Cooldown, Outcome, Release};

/// How a lease ends.
#[derive(Clone, Copy)]
pub(super) enum ReleaseKind {
    Free,
    Vacate,
    Leave,
    Cool(Cooldown),
    /// `Free` and `Leave` by `share.lua`: of a share, or beside shares.
    FreeShare,
    LeaveShare,
}

impl ReleaseKind {
    /// For how long no waiter may have the key.
    pub(super) fn keeps_the_key_for(self) -> Duration {
        match self {
            ReleaseKind::Free
            | ReleaseKind::Leave
            | ReleaseKind::FreeShare
            | ReleaseKind::LeaveShare => Duration::ZERO,
            ReleaseKind::Vacate => GAP,
            // The waiters of a key that cools until a time ask when they are told, and wait for the rest themselves.
            ReleaseKind::Cool(cooldown) => cooldown.span,
        }
    }
}

impl RedisStore {
    pub(super) async fn remember(
        &self,
        release: &Release,
        record: &Record,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        let mark = self.names.mark_for(&release.key);
        let keys = [
            &self.names.lock(&release.key),
            &*mark,
            &self.names.queue(&release.key),
        ];
        let command = self.remembering(release, record, &keys);
        let answer = self.scripts.remember.ask(on, &command).await?;
        Ok(reply::remembered(&answer))
    }

    /// The command that leaves a record. The high-water mark and the queue are left out where they cannot be touched
    /// together with the lock.
    pub(super) fn remembering(&self, release: &Release, record: &Record, keys: &[&str]) -> Cmd {
        let channels = self.names.channels();
        let bytes = keys.iter().map(|key| key.len()).sum::<usize>() + record.bytes.len();
        let bytes = bytes + channels.len() + Token::LENGTH + 48;
        let mut command = self.scripts.remember.command(keys.len(), 7, bytes);
        for key in keys {
            command.arg(key);
        }
        command.arg(release.token.text().as_bytes());
        push_fence(release.fence, &mut command);
        command
            .arg(channels)
            .arg(grant_in_millis(release.ttl))
            .arg(in_millis(record.lifetime))
            .arg(&record.bytes)
            .arg(in_millis(release.ttl));
        command
    }

    pub(super) async fn end_lease(
        &self,
        release: &Release,
        ending: ReleaseKind,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        let answer = self.send_release(release, ending, on).await?;
        if reply::has_more(&answer) {
            return Ok(Box::pin(self.release_rest(release, ending, answer, on)).await);
        }
        Ok(self.released(release, ending, &answer))
    }

    async fn send_release(
        &self,
        release: &Release,
        ending: ReleaseKind,
        on: &Connection,
    ) -> Result<Value, SendError> {
        let script = match ending {
            ReleaseKind::Free | ReleaseKind::Leave => &self.scripts.release,
            ReleaseKind::Vacate => &self.scripts.vacate,
            ReleaseKind::Cool(_) => &self.scripts.cool,
            ReleaseKind::FreeShare | ReleaseKind::LeaveShare => &self.scripts.share,
        };
        let mut command = match ending {
            ReleaseKind::FreeShare => self.share_command("free", release),
            ReleaseKind::LeaveShare => self.share_command("leave", release),
            _ => self.releasing(script, release),
        };
        match ending {
            ReleaseKind::Free => {}
            ReleaseKind::FreeShare | ReleaseKind::LeaveShare => {
                push_fence(release.fence, &mut command);
            }
            ReleaseKind::Leave => drop(command.arg("leave")),
            ReleaseKind::Vacate => drop(command.arg(in_millis(GAP))),
            ReleaseKind::Cool(cooldown) => {
                command.arg(in_millis(cooldown.span));
                if cooldown.until_millis > 0 {
                    command.arg(cooldown.until_millis);
                }
            }
        }
        script.ask(on, &command).await
    }

    /// Repeats a release until a living waiter is notified, or none is left, and until no more shares fit. The lease has
    /// ended as `answer` says, and the queue held more dead waiters than one call removes, or more shares that may enter
    /// than one call lets in.
    pub(super) async fn release_rest(
        &self,
        release: &Release,
        ending: ReleaseKind,
        answer: Value,
        on: &Connection,
    ) -> Outcome {
        let outcome = reply::released(&answer);
        let ending = match ending {
            ReleaseKind::Free => ReleaseKind::Leave,
            ReleaseKind::FreeShare => ReleaseKind::LeaveShare,
            ending => ending,
        };
        let mut answer = answer;
        while reply::has_more(&answer) {
            match self.send_release(release, ending, on).await {
                Ok(next) => answer = next,
                // The lease has ended all the same, and the keeper asks for the rest.
                Err(_) => {
                    self.handed_off
                        .note_unserved(release, ending.keeps_the_key_for());
                    return outcome;
                }
            }
        }
        self.released(release, ending, &answer);
        outcome
    }

    pub(super) fn released(
        &self,
        release: &Release,
        ending: ReleaseKind,
        answer: &Value,
    ) -> Outcome {
        if reply::was_handed_off(answer) {
            self.handed_off.note(release);
        } else if reply::left_waiters(answer) {
            self.handed_off
                .note_unserved(release, ending.keeps_the_key_for());
        }
        reply::released(answer)
    }
}
