//! Several locks in one script, and the high-water marks of locks on several nodes.

use std::sync::Arc;

use redis::Value;

use super::RedisStore;
use crate::base::fence::FencingToken;
use crate::base::token::Token;
use crate::lease::cohort::MOST;
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::reply::{self, owner, refusal};
use crate::store::redis::wire::scripts;
use crate::store::redis::wire::send_error::SendError;
use crate::store::redis::wire::slots::HashSlot;
use crate::store::redis::wire::spans::in_millis;
use crate::store::{AcquireAll, Outcome, Place, Raise};

impl RedisStore {
    pub(in crate::store::redis) fn place_of(&self, keys: &[Arc<str>]) -> Place {
        if !self.topology.is_cluster() {
            return Place::Together;
        }
        let mut slots = keys.iter().map(|key| HashSlot::of(&self.names.lock(key)));
        let first = slots.next();
        match slots.all(|slot| Some(slot) == first) {
            true => Place::Together,
            false => Place::Apart,
        }
    }

    pub(super) async fn acquire_all(
        &self,
        all: &AcquireAll,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        let count = all.leases.len();
        let mark = self
            .names
            .mark_for(all.leases.first().map_or("", |(key, _)| key));
        let keys = all.leases.iter().map(|(key, _)| key.len() + 32);
        let bytes = mark.len() + keys.sum::<usize>() + count * Token::LENGTH + 8;
        let mut command = scripts::ALL.command(count + 1, count + 1, bytes);
        command.arg(&*mark);
        for (key, _) in &all.leases {
            self.names.push_lock(key, &mut command);
        }
        command.arg(in_millis(all.ttl));
        for (_, token) in &all.leases {
            command.arg(token.text().as_bytes());
        }
        let answer = scripts::ALL.ask(on, &command).await?;
        Ok(all_or_none(&answer, count))
    }

    /// Raises the mark above the tokens of all tasks that the lease may pass to.
    pub(super) async fn raise(&self, raise: &Raise, on: &Connection) -> Result<Outcome, SendError> {
        let mark = self.names.mark_for(&raise.key);
        let highest = (u64::from(raise.fence) + u64::from(MOST)).to_string();
        scripts::RAISE.run(on, &[&mark], &[&highest]).await?;
        Ok(Outcome::Raised)
    }
}

/// Reads the answer of the script about `count` locks.
fn all_or_none(answer: &Value, count: usize) -> Outcome {
    let outcome = match answer {
        Value::BulkString(_) => reply::number(answer)
            .and_then(FencingToken::new)
            .map(Outcome::Granted),
        Value::Array(parts) => match parts.as_slice() {
            [Value::Int(index), value, Value::Int(left)] => usize::try_from(*index)
                .ok()
                .filter(|index| *index < count)
                .zip(owner(value))
                .map(|(index, value)| Outcome::BusyAt(index, refusal(value, *left, false))),
            _ => None,
        },
        _ => None,
    };
    outcome.unwrap_or_else(reply::not_understood)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_about_several_locks_that_makes_no_sense_is_never_a_grant() {
        let text = |text: &str| Value::BulkString(text.into());
        let refused = |index, value| Value::Array(vec![Value::Int(index), value, Value::Int(7)]);
        assert!(matches!(
            all_or_none(&text("1700000000000000"), 2),
            Outcome::Granted(fence) if u64::from(fence) == 1_700_000_000_000_000
        ));
        let busy = all_or_none(&refused(1, text("another owner")), 2);
        assert!(matches!(busy, Outcome::BusyAt(1, refusal) if !refusal.pushed));
        for wrong in [
            Value::Nil,
            Value::Okay,
            Value::Int(1),
            text("x"),
            Value::Array(vec![]),
            refused(2, text("beyond the last lock")),
            refused(-1, text("before the first one")),
            refused(0, Value::Nil),
        ] {
            let outcome = all_or_none(&wrong, 2);
            assert!(
                matches!(outcome, Outcome::Failed(failure) if failure.ambiguous),
                "{wrong:?}"
            );
        }
    }
}
