//! A server as a node of a quorum.

use std::borrow::Cow;
use std::time::Duration;

use redis::{Cmd, Value};

use super::RedisStore;
use crate::base::clock::ServerTime;
use crate::base::token::Token;
use crate::lease::Refusal;
use crate::lease::cohort::GAP;
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::reply::{not_understood, number, owner, owner_name, refusal, text};
use crate::store::redis::wire::scripts::{self, Lua, push};
use crate::store::redis::wire::send_error::SendError;
use crate::store::redis::wire::spans::{grant, in_millis, millis};
use crate::store::vote::{
    BLOCK, Join, Joined, Propose, UpTo, Vote, VoteOperation, VoteOutcome, Welcome, Withdrawal,
};
use crate::store::{Ended, Outcome, Release};

impl RedisStore {
    /// Asks a node. The other votes take the fast path.
    pub(super) async fn vote(
        &self,
        operation: &VoteOperation,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        let outcome = match operation {
            VoteOperation::Join(join) => self.join(join, on).await?.map(VoteOutcome::Joined),
            VoteOperation::Reserve(reserve) => self.set_aside(reserve, on).await?,
            VoteOperation::Propose(_) | VoteOperation::Withdraw(..) => None,
        };
        Ok(outcome.map_or_else(not_understood, Outcome::Vote))
    }

    async fn join(&self, join: &Join, on: &Connection) -> Result<Option<Joined>, SendError> {
        self.handed_off.only_notify();
        let welcome = welcome(join, self.keeper.run_id());
        let name = join.name.to_string();
        let arguments = [name.as_str(), welcome, &millis(join.max_ttl)];
        let answer = scripts::JOIN
            .run(on, &[self.names.registers()], &arguments)
            .await?;
        for script in [
            &scripts::PROPOSE,
            &scripts::WITHDRAW,
            &scripts::PROPOSE_SHARE,
            &scripts::WITHDRAW_SHARE,
        ] {
            script.load(on).await?;
        }
        Ok(joined(&answer, self.keeper.run_id()))
    }

    /// Returns the script and the command of the usual votes, each of which is one trip.
    pub(super) fn voting(&self, vote: &VoteOperation) -> Option<(&'static Lua, Cmd)> {
        match vote {
            VoteOperation::Propose(propose) if propose.acquire.token.share().is_some() => {
                Some((&scripts::PROPOSE_SHARE, self.proposing_share(propose)))
            }
            VoteOperation::Propose(propose) => Some((&scripts::PROPOSE, self.proposing(propose))),
            VoteOperation::Withdraw(release, how, up_to) => {
                Some(self.withdrawal(release, &in_words(*how), *up_to))
            }
            VoteOperation::Join(_) | VoteOperation::Reserve(_) => None,
        }
    }

    /// Reads the answer to such a vote. `None`: there is more to do.
    pub(super) fn voted(&self, operation: &VoteOperation, answer: &Value) -> Option<Outcome> {
        let outcome = match operation {
            VoteOperation::Propose(propose) => {
                let hears = self.keeper.is_listening();
                vote(answer, propose.number, hears).map(VoteOutcome::voted)
            }
            VoteOperation::Withdraw(release, ..) => match withdrawn(answer) {
                Some((_, Waiters::More)) => return None,
                Some((released, waiters)) => Some(self.has_withdrawn(release, released, waiters)),
                None => None,
            },
            VoteOperation::Join(_) | VoteOperation::Reserve(_) => None,
        };
        Some(outcome.map_or_else(not_understood, Outcome::Vote))
    }

    /// Does the rest of a withdrawal, which has found more dead waiters than one call removes: asks until a living
    /// waiter is notified, or none is left. The withdrawal itself is done in any case.
    pub(super) async fn has_voted(
        &self,
        operation: &VoteOperation,
        answer: &Value,
        on: &Connection,
    ) -> Outcome {
        let (VoteOperation::Withdraw(release, _, up_to), Some((released, mut waiters))) =
            (operation, withdrawn(answer))
        else {
            return not_understood();
        };
        let (script, leave) = self.withdrawal(release, "leave", *up_to);
        while waiters == Waiters::More {
            let answer = script.ask(on, &leave).await.ok();
            let left = answer.and_then(|answer| withdrawn(&answer));
            waiters = left.map_or(Waiters::Unserved, |(_, waiters)| waiters);
        }
        Outcome::Vote(self.has_withdrawn(release, released, waiters))
    }

    fn has_withdrawn(&self, release: &Release, released: Ended, waiters: Waiters) -> VoteOutcome {
        if waiters == Waiters::Unserved {
            self.handed_off.note_unserved(release, Duration::ZERO);
        }
        VoteOutcome::withdrawn(released, waiters == Waiters::Told)
    }

    fn proposing(&self, propose: &Propose) -> Cmd {
        let acquire = &propose.acquire;
        let (registers, channels) = (self.names.registers(), self.names.channels());
        let unusual = acquire.queues() || acquire.replaces.is_some();
        let bytes = 2 * acquire.key.len() + 4 * channels.len() + 3 * Token::LENGTH + 96;
        let (keys, arguments) = if unusual { (3, 5) } else { (2, 3) };
        let mut command = scripts::PROPOSE.command(keys, arguments, bytes);
        self.names.push_lock(&acquire.key, &mut command);
        command.arg(registers);
        if unusual {
            self.names.push_queue(&acquire.key, &mut command);
        }
        let without_block = sixteen_digits(propose.number.saturating_sub(BLOCK));
        let number = sixteen_digits(propose.number);
        let token = acquire.token.text();
        let (max_ttl, grant) = (millis(propose.max_ttl), grant(acquire.ttl));
        push::<[u8]>(
            &mut command,
            &[
                &without_block,
                b" ",
                &number,
                token.as_bytes(),
                max_ttl.as_bytes(),
                b" ",
                grant.as_bytes(),
                b" ",
                channels.as_bytes(),
            ],
        );
        command.arg(in_millis(acquire.ttl)).arg(propose.register);
        if unusual {
            let replaces = acquire.replaces.map(|lease| lease.token.to_string());
            command.arg(if acquire.queues() { "1" } else { "0" });
            command.arg(replaces.as_deref().unwrap_or_default());
        }
        command
    }

    fn withdrawal(&self, release: &Release, how: &str, up_to: Option<UpTo>) -> (&'static Lua, Cmd) {
        match release.token.share() {
            // The register may have the number of another reader, so it protects no newer vote.
            Some(_) => (
                &scripts::WITHDRAW_SHARE,
                self.withdrawing_share(release, how),
            ),
            None => (&scripts::WITHDRAW, self.withdrawing(release, how, up_to)),
        }
    }

    fn withdrawing(&self, release: &Release, how: &str, up_to: Option<UpTo>) -> Cmd {
        let (registers, channels) = (self.names.registers(), self.names.channels());
        let usual = how.is_empty() && up_to.is_none();
        let bytes = 2 * release.key.len() + 4 * channels.len() + Token::LENGTH + 64;
        let keys = if up_to.is_some() { 3 } else { 2 };
        let arguments = if usual { 1 } else { 4 };
        let mut command = scripts::WITHDRAW.command(keys, arguments, bytes);
        self.names.push_lock(&release.key, &mut command);
        self.names.push_queue(&release.key, &mut command);
        if up_to.is_some() {
            command.arg(registers);
        }
        let token = release.token.text();
        push::<str>(
            &mut command,
            &[token.as_str(), " ", &grant(release.ttl), " ", channels],
        );
        if !usual {
            command.arg(how);
            match up_to {
                Some(UpTo { register, number }) => {
                    command.arg(register).arg(&sixteen_digits(number)[..]);
                }
                None => drop(command.arg("").arg("")),
            }
        }
        command
    }

    async fn set_aside(
        &self,
        reserve: &Propose,
        on: &Connection,
    ) -> Result<Option<VoteOutcome>, SendError> {
        let lock = self.names.lock(&reserve.acquire.key);
        let keys = [lock.as_str(), self.names.registers()];
        let token = reserve.acquire.token.text();
        let register = reserve.register.to_string();
        let number = format!("{:016}", reserve.number);
        let arguments = [token.as_str(), &register, &number];
        Ok(match scripts::SET_ASIDE.run(on, &keys, &arguments).await? {
            Value::Int(reserved @ (0 | 1)) => Some(VoteOutcome::Reserved(reserved == 1)),
            _ => None,
        })
    }
}

/// Returns a withdrawal as the script takes it.
fn in_words(how: Withdrawal) -> Cow<'static, str> {
    match how {
        Withdrawal::Over => "".into(),
        Withdrawal::Gap => millis(GAP).into(),
        Withdrawal::Leave => "leave".into(),
        Withdrawal::Pause => "pause".into(),
    }
}

/// Microseconds since 1970 have sixteen digits until the year 2286.
pub(super) fn sixteen_digits(number: u64) -> [u8; 16] {
    let mut digits = [b'0'; 16];
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    digits
}

/// Returns how the script treats a server without data.
fn welcome(join: &Join, run_id: Option<String>) -> &'static str {
    let was_seen = |run_id: &String| join.seen.is_empty() || join.seen.contains(run_id);
    match join.welcome {
        Welcome::Look => "look",
        Welcome::Fresh if run_id.as_ref().is_none_or(was_seen) => "fresh",
        Welcome::Fresh | Welcome::Wait => "wait",
    }
}

/// `run_id`: the server's own name, if it may be read. The name in its data differs for each database and
/// namespace, and is the same on a replica.
fn joined(answer: &Value, run_id: Option<String>) -> Option<Joined> {
    let Value::Array(parts) = answer else {
        return None;
    };
    let [name, Value::Int(opens), time] = parts.as_slice() else {
        return None;
    };
    let name = text(name)?;
    let opens_in = match (name, opens) {
        ("", -1) => None,
        ("", _) => return None,
        (_, opens) => Some(Duration::from_millis(u64::try_from(*opens).ok()?)),
    };
    let names = opens_in.map(|_| name.to_owned());
    Some(Joined {
        names: names.into_iter().chain(run_id).collect(),
        opens_in,
        time: ServerTime(number(time)?),
    })
}

/// Reads the answer of the propose script. `hears`: whether a push to this waiter arrives.
fn vote(answer: &Value, proposed: u64, hears: bool) -> Option<Vote> {
    if *answer == Value::Int(1) {
        return Some(Vote::Yes {
            accepted: true,
            highest: proposed,
        });
    }
    let Value::Array(parts) = answer else {
        return None;
    };
    match parts.as_slice() {
        [Value::Int(2), highest] => Some(Vote::Yes {
            accepted: false,
            highest: number(highest)?,
        }),
        [
            Value::Int(0),
            value,
            Value::Int(left),
            highest,
            Value::Int(stands @ (0 | 1)),
        ] => {
            let owner = owner(value)?;
            Some(Vote::Taken {
                refusal: Refusal {
                    queued: *stands == 1,
                    ..refusal(owner, *left, hears && *stands == 1)
                },
                owner: owner_name(owner),
                highest: number(highest)?,
            })
        }
        [Value::Int(3)] => Some(Vote::Yields),
        [Value::Int(4), Value::Int(wait)] => Some(Vote::Empty(Duration::from_millis(
            u64::try_from(*wait).ok()?,
        ))),
        _ => None,
    }
}

/// The waiters after a withdrawal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiters {
    NotTold,
    Told,
    /// Dead waiters have left the queue, but not all of them.
    More,
    /// The server refused to notify them.
    Unserved,
}

fn withdrawn(answer: &Value) -> Option<(Ended, Waiters)> {
    let Value::Int(reply) = answer else {
        return None;
    };
    let released = match reply % 10 {
        0 => Ended::Absent,
        1 => Ended::Yes,
        2 => Ended::Other,
        _ => return None,
    };
    let waiters = match reply / 10 {
        0 => Waiters::NotTold,
        1 => Waiters::Told,
        2 => Waiters::More,
        3 => Waiters::Unserved,
        _ => return None,
    };
    (*reply >= 0).then_some((released, waiters))
}

#[cfg(test)]
#[path = "vote_tests.rs"]
mod tests;
