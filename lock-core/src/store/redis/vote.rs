//! A server as a node of a quorum.

use redis::Value;

use super::connection::Connection;
use super::reply::{number, owner, refusal, text};
use super::send_error::Trouble;
use super::{RedisStore, grant, millis, scripts};
use crate::base::clock::ServerTime;
use crate::lease::Refusal;
use crate::lease::cohort::GAP;
use crate::store::vote::{
    BLOCK, Join, Joined, Propose, Reserve, UpTo, Vote, VoteOperation, VoteOutcome, Welcome,
    Withdrawal,
};
use crate::store::{Failure, Outcome, Release, Released};
use std::time::Duration;

impl RedisStore {
    pub(super) async fn vote(
        &self,
        operation: &VoteOperation,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        let outcome = match operation {
            VoteOperation::Join(join) => self.join(join, on).await?.map(VoteOutcome::Joined),
            VoteOperation::Propose(propose) => {
                self.propose(propose, on).await?.map(VoteOutcome::voted)
            }
            VoteOperation::Withdraw(release, how, up_to) => {
                self.withdraw(release, *how, *up_to, on).await?
            }
            VoteOperation::Reserve(reserve) => self.set_aside(reserve, on).await?,
        };
        Ok(outcome.map_or_else(|| Outcome::Failed(Failure::not_understood()), Outcome::Vote))
    }

    async fn join(&self, join: &Join, on: &Connection) -> Result<Option<Joined>, Trouble> {
        let welcome = match join.welcome {
            Welcome::Look => "look",
            Welcome::Wait => "wait",
            Welcome::Fresh => "fresh",
        };
        let name = join.name.to_string();
        let arguments = [name.as_str(), welcome, &millis(join.max_ttl)];
        let answer = scripts::JOIN
            .run(on, &[self.names.registers()], &arguments)
            .await?;
        for script in [&scripts::PROPOSE, &scripts::WITHDRAW] {
            script.load(on).await?;
        }
        Ok(joined(&answer, self.keeper.run_id()))
    }

    async fn propose(&self, propose: &Propose, on: &Connection) -> Result<Option<Vote>, Trouble> {
        let acquire = &propose.acquire;
        let lock = self.names.lock(&acquire.key);
        let queue = self.names.queue(&acquire.key);
        let keys = [lock.as_str(), self.names.registers(), queue.as_str()];
        let token = acquire.token.text();
        let replaces = acquire.replaces.map(|lease| lease.token.to_string());
        let arguments = [
            token.as_str(),
            &millis(acquire.ttl),
            &propose.register.to_string(),
            &sixteen_digits(propose.number),
            &BLOCK.to_string(),
            &millis(propose.max_ttl),
            &grant(acquire.ttl),
            if acquire.queues() { "1" } else { "0" },
            replaces.as_deref().unwrap_or_default(),
            self.names.channels(),
        ];
        let answer = scripts::PROPOSE.run(on, &keys, &arguments).await?;
        Ok(vote(&answer, propose.number, self.keeper.is_listening()))
    }

    async fn withdraw(
        &self,
        release: &Release,
        how: Withdrawal,
        up_to: Option<UpTo>,
        on: &Connection,
    ) -> Result<Option<VoteOutcome>, Trouble> {
        let lock = self.names.lock(&release.key);
        let queue = self.names.queue(&release.key);
        let token = release.token.text();
        let how = match how {
            Withdrawal::Over => "",
            Withdrawal::Gap => &millis(GAP),
            Withdrawal::Leave => "leave",
            Withdrawal::Pause => "pause",
        };
        let grant = grant(release.ttl);
        let keys = [lock.as_str(), queue.as_str(), self.names.registers()];
        let (register, number) = match up_to {
            Some(up_to) => (up_to.register.to_string(), sixteen_digits(up_to.number)),
            None => (String::new(), String::new()),
        };
        let ask = async |how| {
            let arguments = [
                token.as_str(),
                &grant,
                self.names.channels(),
                how,
                &register,
                &number,
            ];
            scripts::WITHDRAW.run(on, &keys, &arguments).await
        };
        let Some((released, mut after)) = withdrawn(&ask(how).await?) else {
            return Ok(None);
        };
        // More dead waiters than one call removes: calls until a living one is told, or none is left. What was
        // given back is given back, whatever becomes of these.
        while after == Waiters::More {
            let answer = Box::pin(ask("leave")).await.ok();
            after = answer
                .and_then(|answer| withdrawn(&answer))
                .map_or(Waiters::NotTold, |(_, after)| after);
        }
        let told = after == Waiters::Told;
        Ok(Some(VoteOutcome::withdrawn(released, told)))
    }

    async fn set_aside(
        &self,
        reserve: &Reserve,
        on: &Connection,
    ) -> Result<Option<VoteOutcome>, Trouble> {
        let lock = self.names.lock(&reserve.key);
        let keys = [lock.as_str(), self.names.registers()];
        let token = reserve.token.text();
        let register = reserve.register.to_string();
        let arguments = [token.as_str(), &register, &sixteen_digits(reserve.number)];
        Ok(match scripts::SET_ASIDE.run(on, &keys, &arguments).await? {
            Value::Int(0 | 1) => Some(VoteOutcome::Reserved),
            _ => None,
        })
    }
}

/// Microseconds since 1970 have as many until the year 2286.
fn sixteen_digits(number: u64) -> String {
    format!("{number:016}")
}

/// `run_id`: the server's own name, where it tells. The name in its data is another one for each
/// database and namespace, and the same on a replica.
fn joined(answer: &Value, run_id: Option<String>) -> Option<Joined> {
    let Value::Array(parts) = answer else {
        return None;
    };
    let [name, Value::Int(opens), time] = parts.as_slice() else {
        return None;
    };
    let opens_in = match (text(name)?, opens) {
        ("", -1) => None,
        ("", _) => return None,
        (_, opens) => Some(Duration::from_millis(u64::try_from(*opens).ok()?)),
    };
    let names = opens_in
        .is_some()
        .then(|| text(name).map(str::to_owned))
        .flatten();
    Some(Joined {
        names: names.into_iter().chain(run_id).collect(),
        opens_in,
        time: ServerTime(number(time)?),
    })
}

/// The answer of the propose script. `hears`: whether a push to this waiter arrives.
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
                    ..refusal(&owner, *left, hears && *stands == 1)
                },
                owner: owner.into(),
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

/// The waiters that a withdrawal has left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiters {
    NotTold,
    Told,
    /// Dead ones have left the queue, but not all.
    More,
}

fn withdrawn(answer: &Value) -> Option<(Released, Waiters)> {
    let Value::Int(reply) = answer else {
        return None;
    };
    let released = match reply % 10 {
        0 => Released::Absent,
        1 => Released::Yes,
        2 => Released::Other,
        _ => return None,
    };
    let waiters = match reply / 10 {
        0 => Waiters::NotTold,
        1 => Waiters::Told,
        2 => Waiters::More,
        _ => return None,
    };
    (*reply >= 0).then_some((released, waiters))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn an_answer_that_is_not_understood_is_no_vote() {
        let strange = [
            Value::Nil,
            Value::Okay,
            Value::Int(0),
            Value::Int(2),
            bulk("1"),
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![Value::Int(2)]),
            Value::Array(vec![Value::Int(2), bulk("many")]),
            Value::Array(vec![Value::Int(0), bulk("x"), Value::Int(5)]),
            Value::Array(vec![Value::Int(4), Value::Int(-1)]),
            Value::Array(vec![Value::Int(5)]),
        ];
        for answer in strange {
            assert!(vote(&answer, 7, true).is_none(), "{answer:?}");
        }
    }

    #[test]
    fn a_vote_says_whether_the_number_is_accepted_too() {
        assert!(matches!(
            vote(&Value::Int(1), 7, true),
            Some(Vote::Yes {
                accepted: true,
                highest: 7
            })
        ));
        let low = Value::Array(vec![Value::Int(2), bulk("1700000000000025")]);
        assert!(matches!(
            vote(&low, 7, true),
            Some(Vote::Yes {
                accepted: false,
                highest: 1_700_000_000_000_025
            })
        ));
    }

    #[test]
    fn a_node_without_data_has_no_name_yet() {
        let time = || bulk("1700000000000025");
        let looked_at = Value::Array(vec![bulk(""), Value::Int(-1), time()]);
        let joined_as = joined(&looked_at, Some("run".into())).expect("understood");
        assert_eq!(joined_as.opens_in, None);
        let met = Value::Array(vec![bulk("name"), Value::Int(0), time()]);
        let met = joined(&met, Some("run".into())).expect("understood");
        assert_eq!(
            (met.names, met.opens_in),
            (vec!["name".into(), "run".into()], Some(Duration::ZERO))
        );
        for strange in [
            Value::Array(vec![bulk(""), Value::Int(5), time()]),
            Value::Array(vec![bulk("name"), Value::Int(-1), time()]),
            Value::Array(vec![bulk("name"), Value::Int(0)]),
        ] {
            assert!(joined(&strange, None).is_none(), "{strange:?}");
        }
    }

    #[test]
    fn a_withdrawal_says_whether_somebody_was_told() {
        let of = |reply| withdrawn(&Value::Int(reply));
        assert_eq!(of(1), Some((Released::Yes, Waiters::NotTold)));
        assert_eq!(of(11), Some((Released::Yes, Waiters::Told)));
        assert_eq!(of(10), Some((Released::Absent, Waiters::Told)));
        assert_eq!(of(21), Some((Released::Yes, Waiters::More)));
        assert_eq!(of(2), Some((Released::Other, Waiters::NotTold)));
        assert_eq!(of(3), None);
        assert_eq!(of(31), None);
        assert_eq!(of(-1), None);
    }
}
