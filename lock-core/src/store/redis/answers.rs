//! What a server's answers mean. An answer that is not understood is never a grant.

use std::borrow::Cow;
use std::str;
use std::time::Duration;

use redis::Value;

use crate::clock::ServerTime;
use crate::fence::FencingToken;
use crate::store::{Extended, Failure, Outcome, Refusal, Released};
use crate::token::Token;

/// The answer of a batch to one acquire: a grant is told by its fencing token alone.
pub(super) fn acquired_in_batch(answer: &Value) -> Outcome {
    match answer {
        Value::Int(_) => match number(answer).and_then(FencingToken::new) {
            Some(fence) => Outcome::Granted(fence),
            None => not_understood(),
        },
        // No other answer of a batch is a grant.
        Value::Array(parts) => match parts.as_slice() {
            [Value::Int(0), value, Value::Int(left)] => match owner(value) {
                // A batch lets no waiter stand in a queue.
                Some(owner) => Outcome::Busy(refusal(&owner, *left, false)),
                None => not_understood(),
            },
            _ => not_understood(),
        },
        _ => not_understood(),
    }
}

/// The answer of a batch in which all were released and granted: the fencing token of those that were.
pub(super) fn as_usual(answer: &Value) -> Option<i64> {
    let Value::BulkString(text) = answer else {
        return None;
    };
    i64::try_from(instant(text.strip_prefix(b"all ")?)?).ok()
}

/// No fencing token that is the time of a server is lower, and no other number that a script answers is as high.
const EARLIEST: u64 = 1_000_000_000_000_000;

/// The answer of the script that steps over a lease: the fencing token.
pub(super) fn acquired_by_a_step(answer: &Value) -> Outcome {
    let fence = number(answer).filter(|fence| *fence >= EARLIEST);
    match (answer, fence.and_then(FencingToken::new)) {
        (Value::Int(_), Some(fence)) => Outcome::Granted(fence),
        _ => not_understood(),
    }
}

/// The answer of the acquire script. `hears`: whether a push to this waiter arrives.
pub(super) fn acquired(answer: &Value, hears: bool) -> Outcome {
    let Value::Array(parts) = answer else {
        return not_understood();
    };
    match parts.as_slice() {
        [Value::Int(1), fence] => match number(fence).and_then(FencingToken::new) {
            Some(fence) => Outcome::Granted(fence),
            None => not_understood(),
        },
        [
            Value::Int(0),
            value,
            Value::Int(left),
            time,
            Value::Int(stands @ (0 | 1)),
        ] => match owner(value) {
            Some(owner) => Outcome::Busy(Refusal {
                server_time: number(time).map(ServerTime),
                ..refusal(&owner, *left, hears && *stands == 1)
            }),
            None => not_understood(),
        },
        _ => not_understood(),
    }
}

/// What stands in a key. A stranger's value may be any bytes; ours is ASCII, so that nothing else
/// reads like it.
pub(super) fn owner(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes)),
        _ => None,
    }
}

/// `value` stands in the key, for `left` milliseconds. `pushed`: the waiter stands in the queue, and hears pushes.
pub(super) fn refusal(value: &str, left: i64, pushed: bool) -> Refusal {
    let (cooling, owner) = match value.strip_prefix("cooling/") {
        Some(owner) => (true, owner),
        None => (false, value),
    };
    let ours = Token::parse(owner).is_some();
    Refusal {
        cooling: cooling && ours,
        remaining: millis(left),
        // Clients of other libraries push nothing when they release, nor does a key without expiry.
        pushed: pushed && left >= 0 && ours,
        server_time: None,
    }
}

/// A `PTTL`; negative: there is no end.
fn millis(left: i64) -> Option<Duration> {
    u64::try_from(left).ok().map(Duration::from_millis)
}

/// Whether there is a queue: it is gone when its last waiter is.
pub(super) fn waiting(answer: &Value) -> Outcome {
    match answer {
        Value::Int(0) => Outcome::Waiting(false),
        Value::Int(1) => Outcome::Waiting(true),
        _ => not_understood(),
    }
}

/// Whether a release has given the key to a waiter.
pub(super) fn was_given(answer: &Value) -> bool {
    matches!(answer, Value::Int(3 | 4))
}

/// Whether a release, or what begins a cooldown, has found more dead waiters than one call removes.
pub(super) fn has_more(answer: &Value) -> bool {
    matches!(answer, Value::Int(5 | 6))
}

pub(super) fn released(answer: &Value) -> Outcome {
    match answer {
        Value::Int(1 | 4 | 6) => Outcome::Released(Released::Yes),
        Value::Int(0 | 3 | 5) => Outcome::Released(Released::Absent),
        Value::Int(2) => Outcome::Released(Released::Other),
        _ => not_understood(),
    }
}

pub(super) fn extended(answer: &Value) -> Outcome {
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

pub(super) fn not_understood() -> Outcome {
    Outcome::Failed(Failure::not_understood())
}

pub(super) fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(bytes) => str::from_utf8(bytes).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

/// A non-negative decimal number, exact in a double.
pub(super) fn number(value: &Value) -> Option<u64> {
    let number = match value {
        Value::Int(number) => u64::try_from(*number).ok()?,
        _ => digits(text(value)?.as_bytes())?,
    };
    (number < FencingToken::LIMIT).then_some(number)
}

/// A time in microseconds, of its seconds and microseconds with a space between.
fn instant(text: &[u8]) -> Option<u64> {
    let space = text.iter().position(|byte| *byte == b' ')?;
    let (seconds, micros) = (digits(&text[..space])?, digits(&text[space + 1..])?);
    let whole = micros < 1_000_000;
    whole.then(|| seconds.checked_mul(1_000_000)?.checked_add(micros))?
}

/// A number in plain digits.
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 19 {
        return None;
    }
    text.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        Some(number * 10 + u64::from(digit))
    })
}

/// The server's time in microseconds, if it is above the mark, which is `least` at the least: a fencing
/// token.
pub(super) fn time_above(mark: &Value, time: &Value, least: u64) -> Option<FencingToken> {
    let mark = match mark {
        Value::Nil => least,
        mark => number(mark)?.max(least),
    };
    let Value::Array(time) = time else {
        return None;
    };
    let [seconds, micros] = time.as_slice() else {
        return None;
    };
    let now = number(seconds)?
        .checked_mul(1_000_000)?
        .checked_add(number(micros)?)?;
    if now > mark {
        FencingToken::new(now)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn an_answer_that_is_not_understood_is_never_a_grant() {
        let strange = [
            Value::Nil,
            Value::Okay,
            Value::Int(1),
            Value::Array(vec![]),
            Value::Array(vec![Value::Int(1)]),
            Value::Array(vec![Value::Int(1), bulk("")]),
            Value::Array(vec![Value::Int(1), bulk("0")]),
            Value::Array(vec![Value::Int(1), bulk("-5")]),
            Value::Array(vec![Value::Int(1), bulk("0x10")]),
            Value::Array(vec![Value::Int(1), bulk("1.7e+15")]),
            Value::Array(vec![Value::Int(1), bulk("9007199254740992")]),
            Value::Array(vec![Value::Int(1), bulk("5"), bulk("6")]),
            Value::Array(vec![Value::Int(2), bulk("5")]),
            Value::Array(vec![bulk("1"), bulk("5")]),
            Value::Array(vec![Value::Int(0), bulk("x"), Value::Int(5), bulk("6")]),
            Value::Array(refused(2).to_vec()),
        ];
        for answer in strange {
            assert!(
                matches!(acquired(&answer, true), Outcome::Failed(_)),
                "{answer:?}"
            );
        }
    }

    const OURS: &str = "0123456789abcdef/0123456789abcdef0123456789abcdef";

    /// `stands`: whether the waiter has a place in the queue.
    fn refused(stands: i64) -> [Value; 5] {
        let time = bulk("1700000000000025");
        [
            Value::Int(0),
            bulk(OURS),
            Value::Int(5),
            time,
            Value::Int(stands),
        ]
    }

    #[test]
    fn a_waiter_is_told_of_a_release_only_if_it_stands_in_the_queue_and_hears_pushes() {
        for (stands, hears) in [(0, false), (0, true), (1, false), (1, true)] {
            let answer = Value::Array(refused(stands).to_vec());
            let Outcome::Busy(refusal) = acquired(&answer, hears) else {
                panic!("a refusal");
            };
            assert_eq!(refusal.pushed, stands == 1 && hears);
            assert!(refusal.server_time.is_some());
        }
        let in_batch = Value::Array(refused(1)[..3].to_vec());
        let Outcome::Busy(refusal) = acquired_in_batch(&in_batch) else {
            panic!("a refusal");
        };
        assert!(!refusal.pushed, "a batch lets no waiter stand in a queue");
    }

    #[test]
    fn a_release_that_left_dead_waiters_in_the_queue_says_so() {
        for (answer, released_it, more) in [
            (1, true, false),
            (4, true, false),
            (6, true, true),
            (5, false, true),
        ] {
            let answer = Value::Int(answer);
            assert_eq!(has_more(&answer), more);
            let yes = matches!(released(&answer), Outcome::Released(Released::Yes));
            assert_eq!(yes, released_it, "{answer:?}");
        }
    }

    #[test]
    fn a_batch_tells_a_grant_by_its_fencing_token_alone() {
        let granted = acquired_in_batch(&Value::Int(1_700_000_000_000_025));
        assert!(matches!(granted, Outcome::Granted(_)));
        let strange = [
            Value::Nil,
            Value::Int(0),
            Value::Int(-7),
            Value::Int(1 << 53),
            bulk("5"),
            Value::Array(vec![Value::Int(1), bulk("5")]),
            Value::Array(vec![Value::Int(3)]),
        ];
        for answer in strange {
            let outcome = acquired_in_batch(&answer);
            assert!(matches!(outcome, Outcome::Failed(_)), "{answer:?}");
        }
    }

    #[test]
    fn a_batch_tells_in_words_that_all_went_as_usual() {
        let usual = as_usual(&bulk("all 1700000000 25"));
        assert_eq!(usual, Some(1_700_000_000_000_025));
        let strange = [
            Value::Int(1_700_000_000_000_025),
            Value::Okay,
            bulk("all"),
            bulk("all 1700000000"),
            bulk("all 1700000000 1000000"),
            bulk("granted 1700000000 25"),
            Value::Array(vec![bulk("all 1700000000 25")]),
        ];
        for answer in strange {
            assert_eq!(as_usual(&answer), None, "{answer:?}");
        }
    }

    #[test]
    fn a_step_over_a_lease_is_granted_by_the_time() {
        let granted = acquired_by_a_step(&Value::Int(1_700_000_000_000_025));
        let fence = FencingToken::new(1_700_000_000_000_025).expect("a token");
        assert!(matches!(granted, Outcome::Granted(granted) if granted == fence));
        let strange = [
            Value::Nil,
            Value::Okay,
            Value::Int(0),
            Value::Int(1),
            Value::Int(4),
            Value::Int(-1_700_000_000_000_025),
            Value::Int(999_999_999_999_999),
            Value::Int(1 << 53),
            bulk("1700000000000025"),
            bulk("all 1700000000 25"),
            Value::Array(vec![Value::Int(1_700_000_000_000_025)]),
            Value::Array(vec![Value::Int(1), bulk("1700000000000025")]),
        ];
        for answer in strange {
            let outcome = acquired_by_a_step(&answer);
            assert!(matches!(outcome, Outcome::Failed(_)), "{answer:?}");
        }
    }

    #[test]
    fn a_refusal_tells_held_from_cooling_and_ours_from_strangers() {
        let ours = "0123456789abcdef/0123456789abcdef0123456789abcdef";
        let held = refusal(ours, 1500, true);
        assert_eq!(
            (held.cooling, held.remaining, held.pushed),
            (false, Some(Duration::from_millis(1500)), true)
        );
        let cooling = refusal(&format!("cooling/{ours}"), 20, true);
        assert!(cooling.cooling && cooling.pushed);
        assert!(!refusal("some-uuid", 20, true).pushed);
        let endless = refusal(ours, -1, true);
        assert_eq!((endless.remaining, endless.pushed), (None, false));
    }

    #[test]
    fn an_unknown_status_of_a_renewal_is_not_a_loss() {
        let Outcome::Extended(answers) = extended(&Value::Array(vec![
            Value::Int(1),
            Value::Int(3),
            Value::Int(0),
        ])) else {
            panic!("a list of answers");
        };
        assert_eq!(
            answers,
            [Extended::Yes, Extended::Unknown, Extended::NotOurs]
        );
    }

    fn time(seconds: &str, micros: &str) -> Value {
        let part = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        Value::Array(vec![part(seconds), part(micros)])
    }

    #[test]
    fn the_fencing_token_is_the_servers_time_where_that_is_above_the_mark() {
        let now = time("1700000000", "25");
        let fence_of = |mark: Value| time_above(&mark, &now, 0).map(u64::from);
        assert_eq!(fence_of(Value::Nil), Some(1_700_000_000_000_025));
        assert_eq!(
            fence_of(Value::BulkString(b"1700000000000024".to_vec())),
            Some(1_700_000_000_000_025)
        );
        assert_eq!(
            fence_of(Value::BulkString(b"1700000000000025".to_vec())),
            None
        );
        assert_eq!(fence_of(Value::BulkString(b"soon".to_vec())), None);
        assert_eq!(time_above(&Value::Nil, &Value::Okay, 0), None);
        // What another node has said of the mark counts too.
        assert_eq!(time_above(&Value::Nil, &now, 1_700_000_000_000_025), None);
    }
}
