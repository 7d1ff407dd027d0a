//! Replies and pushes, as the scripts write them.

use crate::protocol::document::Document;
use crate::protocol::operation::{Ended, Refused, Reply};
use crate::protocol::{News, Push};

/// The reply of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// An error, by its first word.
    Error(String),
}

pub(super) fn of(script: &str, reply: &Reply, document: &Document, micros: u64) -> Value {
    match reply {
        Reply::Granted(fence) if script == "ALL" => text(fence),
        Reply::Granted(fence) if script == "SHARE" => {
            Value::List(vec![Value::Int(1), text(fence), Value::Int(0)])
        }
        Reply::Granted(fence) => Value::List(vec![Value::Int(1), text(fence)]),
        Reply::Busy(refused) => {
            let mut items = busy(refused, document, micros);
            if script == "SHARE" {
                items.extend([Value::Int(0), Value::Int(refused.is_full.into())]);
            }
            Value::List(items)
        }
        Reply::BusyAt(index, refused) => {
            let items = busy(refused, document, micros);
            let index = i64::try_from(*index).unwrap_or(i64::MAX);
            Value::List([vec![Value::Int(index)], items[1..3].to_vec()].concat())
        }
        Reply::Told => Value::Int(3),
        Reply::Done(how) => Value::Int(number(*how)),
        // The header of release.lua explains these numbers.
        Reply::Ended { how, gave: false } => Value::Int(number(*how)),
        Reply::Ended { how, gave: true } => Value::Int(match how {
            Ended::Other => 11,
            how => number(*how) + 3,
        }),
        Reply::Forgotten(token) => text(token),
        Reply::NoRoom if script == "REMEMBER" => Value::Int(3),
        Reply::NoRoom => Value::Error("OOM".to_owned()),
    }
}

/// One reply for all keys of a script.
pub(super) fn joined(script: &str, mut replies: Vec<Value>) -> Value {
    match script {
        "EXTEND" | "EXTEND_SHARES" => Value::List(replies),
        _ => replies.remove(0),
    }
}

fn busy(refused: &Refused, document: &Document, micros: u64) -> Vec<Value> {
    let left = refused.left.map_or(-2, u64::cast_signed);
    vec![
        Value::Int(0),
        Value::Text(document.value().unwrap_or_default()),
        Value::Int(left),
        text(micros),
        Value::Int(refused.queued.into()),
    ]
}

fn number(how: Ended) -> i64 {
    match how {
        Ended::Yes => 1,
        Ended::Absent => 0,
        Ended::Other => 2,
    }
}

/// The address and the message of a push.
pub(super) fn message(push: &Push, lock: &str, micros: u64) -> (String, String) {
    let token = push.token;
    let (seconds, part) = (micros / 1_000_000, micros % 1_000_000);
    let message = match push.news {
        News::Given { grant, fence } => {
            let kind = if token.share().is_some() { 's' } else { 'g' };
            format!("{kind} {token} {seconds} {part} {grant} {fence} {lock}")
        }
        News::Forced => format!("l {token} {lock}"),
        News::Next { grant, after } => format!("n {token} {grant} {after} {lock}"),
    };
    (push.to.to_string(), message)
}

fn text(of: impl ToString) -> Value {
    Value::Text(of.to_string())
}
