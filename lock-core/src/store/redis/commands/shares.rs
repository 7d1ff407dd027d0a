//! Shares of a key: readers beside readers, and permits beside permits.
//!
//! A first attempt on a free key is the native commands of any lock, and a lone share is renewed and released as cheaply.
//! Only beside others `share.lua` decides. A key that was seen with shares a moment ago is asked for by that script at
//! once, which saves the attempt that would be refused.
//!
//! A plain lock of a key that was seen with shares ends by `share.lua` too, and so does its wait, because the shares
//! behind it may enter together then.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::{Cmd, Value};

use super::RedisStore;
use super::release::ReleaseKind;
use crate::base::clock::{Clock, Moment};
use crate::base::sync::lock;
use crate::base::token::Token;
use crate::lease::backoff::LONGEST;
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::reply::{self, ShareAnswer};
use crate::store::redis::wire::scripts;
use crate::store::redis::wire::send_error::SendError;
use crate::store::redis::wire::spans::{grant_in_millis, in_millis, push_fence};
use crate::store::{AcquireCommand, Extended, Extension, Outcome, Refusal, Release};

/// For how long a share is asked for by the script, after the key was seen with shares.
const ASKED_BY_SCRIPT: Duration = Duration::from_secs(2);
/// For how long a waiter that leaves may have to let in shares behind it: it asks at least that often.
const REMEMBERED: Duration = LONGEST.saturating_mul(2);
/// The number of keys at which those that were seen long ago are forgotten.
const MANY: usize = 1_024;

/// The keys that were seen with shares.
#[derive(Default)]
pub(in crate::store::redis) struct SharedKeys {
    clock: Clock,
    seen: Mutex<HashMap<Arc<str>, Moment>>,
    /// Whether there are any keys, to be read without the lock.
    any: AtomicBool,
}

impl SharedKeys {
    pub(super) fn note(&self, key: &Arc<str>) {
        let now = self.clock.now();
        let mut seen = lock(&self.seen);
        if seen.len() >= MANY && seen.len() == seen.capacity() {
            seen.retain(|_, at| now.since(*at) < REMEMBERED);
        }
        seen.insert(Arc::clone(key), now);
        self.any.store(true, Ordering::Relaxed);
    }

    /// Notes the key if the refusal of an acquire shows shares.
    pub(super) fn note_answer(&self, key: &Arc<str>, answer: &Value) {
        let Value::Array(parts) = answer else {
            return;
        };
        let owner = parts.get(1).and_then(reply::owner);
        if owner.is_some_and(reply::is_shared) {
            self.note(key);
        }
    }

    /// Returns whether the acquire is one of a share of a key that was seen with shares a moment ago.
    pub(in crate::store::redis) fn is_shared_by(&self, acquire: &AcquireCommand) -> bool {
        acquire.token.share().is_some() && self.was_seen(&acquire.key, ASKED_BY_SCRIPT)
    }

    fn was_seen(&self, key: &str, within: Duration) -> bool {
        if !self.any.load(Ordering::Relaxed) {
            return false;
        }
        let seen = lock(&self.seen).get(key).copied();
        seen.is_some_and(|at| self.clock.now().since(at) < within)
    }
}

impl RedisStore {
    /// Returns whether `share.lua` ends this lease or wait.
    ///
    /// It ends a share, and the lock of a key that was seen with shares, because several shares may enter then.
    pub(super) fn ends_as_share(&self, release: &Release) -> bool {
        release.token.share().is_some() || self.shared.was_seen(&release.key, REMEMBERED)
    }

    pub(super) async fn acquire_share(
        &self,
        acquire: &AcquireCommand,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        let verb = if acquire.queues() { "wait" } else { "ask" };
        let mut command = self.share_command(verb, &acquire.undo());
        let used = acquire.replaces.and_then(|before| before.fence);
        push_fence(used, &mut command);
        loop {
            let mut answer = self.scripts.share.ask(on, &command).await?;
            let ShareAnswer { more, full } = reply::take_share_answer(&mut answer);
            self.shared.note_answer(&acquire.key, &answer);
            match reply::acquired(&answer, self.pushes_to(acquire.token, on)) {
                // The next call may let this one in.
                Outcome::Busy(_) if more => {}
                Outcome::Busy(refusal) => {
                    let full = acquire.token.share().filter(|_| full);
                    return Ok(Outcome::Busy(Refusal { full, ..refusal }));
                }
                granted if more => {
                    let own = acquire.undo();
                    let served = self.end_lease(&own, ReleaseKind::LeaveShare, on).await;
                    if served.is_err() {
                        self.handed_off.note_unserved(&own, Duration::ZERO);
                    }
                    return Ok(granted);
                }
                outcome => return Ok(outcome),
            }
        }
    }

    /// The command of `share.lua` but for its last argument.
    pub(super) fn share_command(&self, verb: &str, release: &Release) -> Cmd {
        let Release { key, token, .. } = release;
        let mark = self.names.mark_for(key);
        let channels = self.names.channels();
        let bytes = 3 * (mark.len() + channels.len() + key.len()) + Token::LENGTH + 48;
        let mut command = self.scripts.share.command(4, 6, bytes);
        self.names.push_lock(key, &mut command);
        command.arg(&*mark);
        self.names.push_queue(key, &mut command);
        self.names.push_shares(key, &mut command);
        command
            .arg(verb)
            .arg(token.text().as_bytes())
            .arg(in_millis(release.ttl))
            .arg(grant_in_millis(release.ttl))
            .arg(channels);
        command
    }

    /// Lengthens leases of which some are shares: each kind by its script.
    pub(super) async fn extend_with_shares(
        &self,
        extensions: &[Extension],
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        let is_share = |one: &&Extension| one.token.share().is_some();
        let (shares, locks): (Vec<_>, Vec<_>) = extensions.iter().partition(is_share);
        let mut of_locks = Vec::new();
        if !locks.is_empty() {
            let answer = self.extend_locks(locks.iter().copied(), on).await?;
            of_locks = extended(&answer, locks.len());
        }
        let command = self.extending_shares(&shares);
        let answer = scripts::EXTEND_SHARES.ask(on, &command).await?;
        let mut of_shares = extended(&answer, shares.len()).into_iter();
        let mut of_locks = of_locks.into_iter();
        let each = extensions.iter().map(|one| match is_share(&one) {
            true => of_shares.next().unwrap_or(Extended::Unknown),
            false => of_locks.next().unwrap_or(Extended::Unknown),
        });
        Ok(Outcome::Extended(each.collect()))
    }

    fn extending_shares(&self, shares: &[&Extension]) -> Cmd {
        let keys = shares.iter().map(|one| 2 * one.key.len() + 64);
        let bytes = keys.sum::<usize>() + shares.len() * (Token::LENGTH + 16) + 8;
        let mut command =
            scripts::EXTEND_SHARES.command(2 * shares.len(), 2 * shares.len() + 1, bytes);
        for share in shares {
            self.names.push_lock(&share.key, &mut command);
            self.names.push_shares(&share.key, &mut command);
        }
        for share in shares {
            command
                .arg(share.token.text().as_bytes())
                .arg(in_millis(share.ttl));
        }
        if self.replicas.is_some() {
            command.arg("write");
        }
        command
    }

    /// The command that lengthens one lease.
    pub(super) fn extending_one(&self, lease: &Extension, on: &Connection) -> Cmd {
        match lease.token.share() {
            Some(_) => self.extending_shares(&[lease]),
            None => self.extending([lease].into_iter(), on),
        }
    }
}

/// The answers of a script, unless it gave another number of them.
fn extended(answer: &Value, count: usize) -> Vec<Extended> {
    match reply::extended(answer) {
        Outcome::Extended(each) if each.len() == count => each,
        _ => vec![Extended::Unknown; count],
    }
}
