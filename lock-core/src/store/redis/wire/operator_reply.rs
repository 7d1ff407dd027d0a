//! The meaning of a server's answers to an operator, and of the messages of operators.

use std::sync::Arc;
use std::time::Duration;

use redis::{PushInfo, Value};

use super::keyspace::Keyspace;
use super::reply::{ClosedKey, SHARED, number, text};
use crate::base::fence::FencingToken;
use crate::base::holder_token::HolderToken;
use crate::base::token::Address;
use crate::store::{ClosedFor, Event, Forced, Held, Inspected, Question, StoredHolder};

/// Reads the answer of the inspect script.
pub(in crate::store::redis) fn inspected(answer: &Value) -> Option<Inspected> {
    let Value::Array(parts) = answer else {
        return None;
    };
    let [
        value,
        Value::Int(left),
        time,
        mark,
        Value::Int(waiters),
        Value::Array(waiting),
        Value::Int(shares),
        Value::Array(shared),
    ] = parts.as_slice()
    else {
        return None;
    };
    let now = number(time)?;
    let mut inspected = Inspected {
        waiter_count: usize::try_from(*waiters).ok()?,
        waiters: pairs(waiting).filter_map(|it| waiter(it, now)).collect(),
        mark: counted_mark(mark),
        ..Inspected::default()
    };
    let remaining = u64::try_from(*left).ok().map(Duration::from_millis);
    match value {
        Value::Nil => {}
        Value::BulkString(value) if value == SHARED => {
            share_holders(&mut inspected, pairs(shared), now / 1_000);
            let unnamed = usize::try_from(*shares)
                .ok()?
                .saturating_sub(shared.len() / 2);
            inspected.holder_count += unnamed;
        }
        Value::BulkString(value) => match ClosedKey::of(value) {
            Some(closed) => {
                inspected.closed = Some(ClosedFor {
                    remaining,
                    has_record: closed.has_record(),
                });
            }
            None => {
                inspected.holder_count = 1;
                inspected.holders.push(StoredHolder {
                    token: HolderToken::new(value),
                    remaining,
                });
            }
        },
        _ => return None,
    }
    Some(inspected)
}

/// Reads the shares of a key: each is one holder, or the place of one that an operator has removed a moment ago.
fn share_holders<'a>(
    inspected: &mut Inspected,
    shares: impl Iterator<Item = (&'a [u8], u64)>,
    now: u64,
) {
    for (member, ends) in shares {
        let remaining = Some(Duration::from_millis(ends.saturating_sub(now)));
        if ClosedKey::of(member).is_some() {
            inspected.closed = Some(ClosedFor {
                remaining,
                has_record: false,
            });
            continue;
        }
        inspected.holder_count += 1;
        inspected.holders.push(StoredHolder {
            token: HolderToken::new(member),
            remaining,
        });
    }
}

/// Reads the members of a sorted set with their scores.
fn pairs(parts: &[Value]) -> impl Iterator<Item = (&[u8], u64)> {
    parts.chunks_exact(2).filter_map(|pair| match pair {
        [Value::BulkString(member), score] => {
            Some((&**member, number(score).or_else(|| asked_at(score))?))
        }
        _ => None,
    })
}

/// Reads the negative score of a waiter that `share.lua` has asked whether it still waits, as microseconds. It has waited
/// for longer.
fn asked_at(score: &Value) -> Option<u64> {
    let twice: u64 = text(score)?.strip_prefix('-')?.parse().ok()?;
    (twice / 2).checked_mul(1_000)
}

/// Reads an entry of a queue, and the time since its arrival. `now` and the arrival are in microseconds.
fn waiter((entry, arrival): (&[u8], u64), now: u64) -> Option<(Address, Duration)> {
    let (token, _) = str::from_utf8(entry).ok()?.split_once(' ')?;
    let address = HolderToken::new(token.as_bytes()).address()?;
    Some((address, Duration::from_micros(now.saturating_sub(arrival))))
}

/// Reads a high-water mark, or the number in a register, which begins it: 0 for none, and for a number from which no token
/// can be counted. An order would write such a number of one node of a quorum into the registers of all nodes.
fn counted_mark(mark: &Value) -> u64 {
    let digits = text(mark).unwrap_or_default();
    let digits = digits.get(..16).unwrap_or(digits);
    let number = digits.parse::<u64>().ok();
    number
        .filter(|number| *number < FencingToken::HIGH_WATER_LIMIT)
        .unwrap_or(0)
}

/// Reads the answer of the force script.
pub(in crate::store::redis) fn forced(answer: &Value) -> Option<Forced> {
    match answer {
        Value::Int(0 | 2) => Some(Forced::Changed),
        Value::Int(1) => Some(Forced::Freed),
        Value::Int(3) => Some(Forced::Told),
        _ => None,
    }
}

/// Reads the answer of `SCAN`. A name that is no text is left out, because no lock has such a name.
pub(in crate::store::redis) fn scanned(
    answer: &Value,
) -> Option<(u64, impl Iterator<Item = &str>)> {
    let Value::Array(parts) = answer else {
        return None;
    };
    let [cursor, Value::Array(names)] = parts.as_slice() else {
        return None;
    };
    // A cursor may have all 64 bits.
    let cursor = text(cursor)?.parse().ok()?;
    Some((cursor, names.iter().filter_map(text)))
}

/// Reads a message of an operator or to one: `l <token> <lock>`, `w <token> <address of the reply> <number> <lock>`,
/// or `a <number> <held in ms> <fencing token> <lock>`.
pub(in crate::store::redis) fn order(names: &Keyspace, push: &PushInfo) -> Option<Event> {
    let [_channel, message] = push.data.as_slice() else {
        return None;
    };
    let (kind, rest) = text(message)?.split_once(' ')?;
    match kind {
        "l" => {
            let (token, lock) = rest.split_once(' ')?;
            Some(Event::Forced {
                key: key(names, lock)?,
                holder: HolderToken::new(token.as_bytes()),
            })
        }
        "w" => {
            let mut words = rest.splitn(4, ' ');
            let holder = HolderToken::new(words.next()?.as_bytes());
            let reply_to = Address::parse(words.next()?)?;
            let number = words.next()?.parse().ok()?;
            Some(Event::Asked(Question {
                key: key(names, words.next()?)?,
                holder,
                reply_to,
                number,
            }))
        }
        "a" => {
            let mut words = rest.splitn(4, ' ');
            let number = words.next()?.parse().ok()?;
            let held = match (words.next()?, words.next()?) {
                ("-", "-") => None,
                (held_for, fence) => Some(Held {
                    held_for: Duration::from_millis(held_for.parse().ok()?),
                    fence: FencingToken::new(fence.parse().ok()?)?,
                }),
            };
            Some(Event::Answered { number, held })
        }
        _ => None,
    }
}

fn key(names: &Keyspace, lock: &str) -> Option<Arc<str>> {
    names.key(lock).map(Arc::from)
}

#[cfg(test)]
#[path = "operator_reply_tests.rs"]
mod tests;
