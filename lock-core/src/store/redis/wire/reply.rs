//! The meaning of a server's answers. An answer that is not understood is never a grant.

use std::str;
use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use crate::base::clock::ServerTime;
use crate::base::fence::FencingToken;
use crate::base::record::StoredRecord;
use crate::base::token::Token;
use crate::lease::Refusal;
use crate::store::vote::SEVERAL_READERS;
use crate::store::{Ended, Extended, Failure, Forgotten, Outcome, Remembered};

/// Reads the answer of a batch to one acquire. A grant is the fencing token alone.
pub(in crate::store::redis) fn acquired_in_batch(answer: &Value) -> Outcome {
    let outcome = match answer {
        Value::Int(_) => granted(answer),
        // No other answer of a batch is a grant.
        Value::Array(parts) => match parts.as_slice() {
            // A batch puts no waiter into a queue.
            [Value::Int(0), value, Value::Int(left)] => {
                owner(value).map(|owner| Outcome::Busy(refusal(owner, *left, false)))
            }
            _ => None,
        },
        _ => None,
    };
    outcome.unwrap_or_else(not_understood)
}

fn granted(fence: &Value) -> Option<Outcome> {
    number(fence)
        .and_then(FencingToken::new)
        .map(Outcome::Granted)
}

/// Reads the answer of a batch whose requests were all released or granted: the fencing token of the grants.
pub(in crate::store::redis) fn as_usual(answer: &Value) -> Option<i64> {
    let Value::BulkString(text) = answer else {
        return None;
    };
    i64::try_from(instant(text.strip_prefix(b"all ")?)?).ok()
}

/// Says what a push is worth to a refused waiter.
#[derive(Clone, Copy, Debug)]
pub(in crate::store::redis) struct Pushes {
    /// Whether pushes to the waiter arrive.
    pub(in crate::store::redis) arrive: bool,
    /// Whether a pushed grant counts without another question to the server.
    pub(in crate::store::redis) are_grants: bool,
}

/// Reads the answer of the acquire script.
pub(in crate::store::redis) fn acquired(answer: &Value, pushes: Pushes) -> Outcome {
    let Value::Array(parts) = answer else {
        return not_understood();
    };
    let outcome = match parts.as_slice() {
        [Value::Int(1), fence] => granted(fence),
        [
            Value::Int(0),
            value,
            Value::Int(left),
            time,
            Value::Int(stands @ (0 | 1)),
        ] => owner(value).map(|owner| {
            Outcome::Busy(Refusal {
                queued: *stands == 1,
                server_time: number(time).map(ServerTime).filter(|_| pushes.are_grants),
                ..refusal(owner, *left, pushes.arrive && *stands == 1)
            })
        }),
        _ => None,
    };
    outcome.unwrap_or_else(not_understood)
}

/// The parts of an answer of `share.lua` to a question that no other script gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store::redis) struct ShareAnswer {
    /// Further waiters fit, which this call did not let in.
    pub(in crate::store::redis) more: bool,
    /// As many shares as the limit of the refused one are inside.
    pub(in crate::store::redis) full: bool,
}

/// Takes these parts off, and leaves the answer as `acquire.lua` gives it.
pub(in crate::store::redis) fn take_share_answer(answer: &mut Value) -> ShareAnswer {
    let Value::Array(parts) = answer else {
        return ShareAnswer::default();
    };
    let (length, more, full) = match parts.as_slice() {
        [_, _, more] => (2, more, &Value::Nil),
        [.., more, full] if parts.len() == 7 => (5, more, full),
        _ => return ShareAnswer::default(),
    };
    let is_one = |part: &Value| *part == Value::Int(1);
    let answer = ShareAnswer {
        more: is_one(more),
        full: is_one(full),
    };
    parts.truncate(length);
    answer
}

/// The value of a key. A foreign value may be any bytes.
pub(in crate::store::redis) fn owner(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    }
}

/// The name under which the owner of a value is counted. Neither a record is part of it, nor the end of a cooldown, which
/// each node of a quorum counts by its own clock.
pub(in crate::store::redis) fn owner_name(value: &[u8]) -> Box<str> {
    let closed = ["done/", "cooling/"].into_iter();
    let mut closed = closed.filter(|prefix| value.starts_with(prefix.as_bytes()));
    let longest = closed.next().map(|prefix| prefix.len() + Token::LENGTH);
    let longest = longest.unwrap_or(value.len()).min(value.len());
    String::from_utf8_lossy(&value[..longest]).into()
}

/// `value` is in the key, for `left` milliseconds. `pushed`: the waiter is in the queue and receives pushes.
pub(in crate::store::redis) fn refusal(value: &[u8], left: i64, pushed: bool) -> Refusal {
    refused_by(ClosedKey::of(value), value, left, pushed)
}

fn refused_by(closed: Option<ClosedKey>, value: &[u8], left: i64, pushed: bool) -> Refusal {
    let ours = closed.is_some() || value == SHARED || token_of(value).is_some();
    Refusal {
        cooling: closed.is_some(),
        record: closed.and_then(|closed| closed.record).map(Arc::new),
        remaining: millis(left),
        // Clients of other libraries push nothing when they release, and neither does a key without an end.
        pushed: pushed && left >= 0 && ours,
        shared: is_shared(value),
        ..Refusal::default()
    }
}

/// `value` was in the key at a first attempt, which does not ask for its end. A cooldown contains its end. For
/// a held lock the ttl of the attempt itself is the hint.
pub(in crate::store::redis) fn refusal_at_first(
    value: &[u8],
    time: &Value,
    ttl: Duration,
) -> Refusal {
    let closed = ClosedKey::of(value);
    let ends = closed.as_ref().and_then(|closed| closed.ends);
    let now = micros(time).map(Duration::from_micros);
    let left = ends.zip(now).map(|(ends, now)| ends.saturating_sub(now));
    Refusal {
        remaining: Some(left.unwrap_or(ttl)),
        ..refused_by(closed, value, 0, false)
    }
}

/// The value of a key that several shares have. No client of another library writes it.
pub(in crate::store::redis) const SHARED: &[u8] = SEVERAL_READERS.as_bytes();

fn token_of(value: &[u8]) -> Option<Token> {
    Token::parse(str::from_utf8(value).ok()?)
}

/// Returns whether several shares have the key.
pub(in crate::store::redis) fn has_several_shares(value: &[u8]) -> bool {
    value == SHARED
}

/// Returns whether one share or several have the key.
pub(in crate::store::redis) fn is_shared(value: &[u8]) -> bool {
    has_several_shares(value) || token_of(value).is_some_and(|token| token.share().is_some())
}

/// The value of a key whose owner has ended and which stays taken: `cooling/<token>/<end>`, or
/// `done/<token>/<end>/<fencing token>/<record>`, with the end in milliseconds of Unix time. Earlier versions left the
/// end of a cooldown out.
pub(in crate::store::redis) struct ClosedKey {
    ends: Option<Duration>,
    record: Option<StoredRecord>,
}

impl ClosedKey {
    pub(in crate::store::redis) fn has_record(&self) -> bool {
        self.record.is_some()
    }

    pub(in crate::store::redis) fn of(value: &[u8]) -> Option<Self> {
        let (ends, record) = match value.strip_prefix(b"done/") {
            Some(value) => {
                let mut parts = behind_token(value)?
                    .strip_prefix(b"/")?
                    .splitn(3, |byte| *byte == b'/');
                let (ends, fence, bytes) = (parts.next()?, parts.next()?, parts.next()?);
                let record = StoredRecord {
                    fence: digits(fence).unwrap_or(0),
                    bytes: bytes.into(),
                };
                (Some(digits(ends)?), Some(record))
            }
            None => match behind_token(value.strip_prefix(b"cooling/")?)? {
                [] => (None, None),
                end => (Some(digits(end.strip_prefix(b"/")?)?), None),
            },
        };
        let ends = ends.map(Duration::from_millis);
        Some(Self { ends, record })
    }
}

/// Returns what follows the token at the beginning.
fn behind_token(value: &[u8]) -> Option<&[u8]> {
    let (token, rest) = value.split_at_checked(Token::LENGTH)?;
    Token::parse(str::from_utf8(token).ok()?)?;
    Some(rest)
}

/// A `PTTL`; negative: there is no end.
fn millis(left: i64) -> Option<Duration> {
    u64::try_from(left).ok().map(Duration::from_millis)
}

/// Returns whether a release has handed the key off to a waiter.
pub(in crate::store::redis) fn was_handed_off(answer: &Value) -> bool {
    matches!(answer, Value::Int(3 | 4 | 11))
}

/// Returns whether a release or a cooldown has found more dead waiters than one call removes, or more shares that may enter
/// than one call lets in.
pub(in crate::store::redis) fn has_more(answer: &Value) -> bool {
    matches!(answer, Value::Int(5 | 6 | 9))
}

/// Returns whether the server refused to serve or to notify the waiters of a lease that has ended.
pub(in crate::store::redis) fn left_waiters(answer: &Value) -> bool {
    matches!(answer, Value::Int(7 | 8 | 10))
}

pub(in crate::store::redis) fn released(answer: &Value) -> Outcome {
    match answer {
        Value::Int(1 | 4 | 6 | 8) => Outcome::Released(Ended::Yes),
        Value::Int(0 | 3 | 5 | 7) => Outcome::Released(Ended::Absent),
        Value::Int(2 | 9 | 10 | 11) => Outcome::Released(Ended::Other),
        _ => not_understood(),
    }
}

pub(in crate::store::redis) fn remembered(answer: &Value) -> Outcome {
    match answer {
        Value::Int(1) => Outcome::Remembered(Remembered::Yes),
        Value::Int(0) => Outcome::Remembered(Remembered::Absent),
        Value::Int(2) => Outcome::Remembered(Remembered::Other),
        Value::Int(3) => Outcome::Remembered(Remembered::NoRoom),
        _ => not_understood(),
    }
}

pub(in crate::store::redis) fn forgotten(answer: &Value) -> Outcome {
    match answer {
        Value::Int(0) => Outcome::Forgotten(Forgotten::Nothing, None),
        Value::Int(2) => Outcome::Forgotten(Forgotten::Held, None),
        answer => match text(answer).and_then(Token::parse) {
            Some(owner) => Outcome::Forgotten(Forgotten::Yes, Some(owner)),
            None => not_understood(),
        },
    }
}

pub(in crate::store::redis) fn clock(answer: &Value) -> Outcome {
    micros(answer).map_or_else(not_understood, |time| Outcome::Clock(ServerTime(time)))
}

pub(in crate::store::redis) fn swapped(answer: &Value) -> Outcome {
    match answer {
        Value::Int(1) => Outcome::Swapped(Ended::Yes),
        Value::Int(0) => Outcome::Swapped(Ended::Absent),
        Value::Int(2) => Outcome::Swapped(Ended::Other),
        _ => not_understood(),
    }
}

pub(in crate::store::redis) fn extended(answer: &Value) -> Outcome {
    let Value::Array(parts) = answer else {
        return not_understood();
    };
    let answers = parts.iter().map(|part| match part {
        Value::Int(1) => Extended::Yes,
        Value::Int(0 | 2) => Extended::NotOurs,
        _ => Extended::Unknown,
    });
    Outcome::Extended(answers.collect())
}

pub(in crate::store::redis) fn not_understood() -> Outcome {
    Outcome::Failed(Failure::not_understood())
}

pub(in crate::store::redis) fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text),
        _ => None,
    }
}

/// Reads the fields of a report, one `name:value` in each line.
pub(in crate::store::redis) fn fields(report: &Value) -> impl Iterator<Item = (&str, &str)> {
    let lines = text(report).unwrap_or_default().lines();
    lines.filter_map(|line| line.split_once(':'))
}

/// Reads one field of a report.
pub(in crate::store::redis) fn field<'a>(report: &'a Value, name: &str) -> Option<&'a str> {
    let (_, value) = fields(report).find(|(field, _)| *field == name)?;
    Some(value.trim_end())
}

/// Reads a non-negative decimal number that is exact in a double.
pub(in crate::store::redis) fn number(value: &Value) -> Option<u64> {
    let number = match value {
        Value::Int(number) => u64::try_from(*number).ok()?,
        Value::BulkString(bytes) => digits(bytes)?,
        Value::SimpleString(text) => digits(text.as_bytes())?,
        _ => return None,
    };
    (number < FencingToken::LIMIT).then_some(number)
}

/// Reads a time in microseconds from seconds and microseconds with a space between.
fn instant(text: &[u8]) -> Option<u64> {
    let space = text.iter().position(|byte| *byte == b' ')?;
    let (seconds, micros) = (digits(&text[..space])?, digits(&text[space + 1..])?);
    let whole = micros < 1_000_000;
    whole.then(|| seconds.checked_mul(1_000_000)?.checked_add(micros))?
}

/// Reads a number in plain digits.
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 19 {
        return None;
    }
    text.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        Some(number * 10 + u64::from(digit))
    })
}

/// Reads a high-water mark, by the rule of `count` in `common.lua`: 0 for none.
fn counted(mark: &Value) -> Option<u64> {
    let Value::BulkString(digits) = mark else {
        return matches!(mark, Value::Nil).then_some(0);
    };
    let number = number(mark).filter(|_| digits.len() <= 16);
    number.filter(|number| *number < FencingToken::HIGH_WATER_LIMIT)
}

/// The server's time in microseconds as a fencing token, if it is above the mark.
pub(in crate::store::redis) fn time_above(mark: &Value, time: &Value) -> Option<FencingToken> {
    let mark = counted(mark)?;
    let now = micros(time)?;
    if now > mark {
        FencingToken::new(now)
    } else {
        None
    }
}

/// Reads the reply of `TIME` in microseconds.
pub(in crate::store::redis) fn micros(time: &Value) -> Option<u64> {
    let Value::Array(time) = time else {
        return None;
    };
    let [seconds, micros] = time.as_slice() else {
        return None;
    };
    number(seconds)?
        .checked_mul(1_000_000)?
        .checked_add(number(micros)?)
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
