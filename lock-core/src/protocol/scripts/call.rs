//! The operations for the arguments of a script.

use std::sync::Arc;

use crate::base::record::StoredRecord;
use crate::base::token::Token;
use crate::protocol::operation::{Acquire, End, Force, Operation, Way};

/// The operations of a script, each with its key.
pub(super) fn calls<'a>(
    script: &str,
    keys: &'a [String],
    arguments: &[&str],
) -> Vec<(&'a str, Operation)> {
    if let "EXTEND" | "EXTEND_SHARES" = script {
        let keys_each = if script == "EXTEND" { 1 } else { 2 };
        let each = keys.iter().step_by(keys_each).zip(arguments.chunks(2));
        let each = each.map(|(key, words)| (key.as_str(), extend(words)));
        return each.collect();
    }
    let operation = match (script, arguments) {
        ("ACQUIRE", [token, ttl, grant, waits, replaced, _, fence]) => {
            Operation::Acquire(Acquire {
                token: token_of(token),
                ttl: number(ttl),
                grant: number(grant),
                waits: *waits == "1",
                replaces: (!replaced.is_empty()).then(|| token_of(replaced)),
                used: fence_of(fence),
            })
        }
        ("SHARE", [verb @ ("ask" | "wait"), token, ttl, grant, _, fence]) => {
            Operation::Acquire(Acquire {
                token: token_of(token),
                ttl: number(ttl),
                grant: number(grant),
                waits: *verb == "wait",
                replaces: None,
                used: fence_of(fence),
            })
        }
        ("SHARE", [verb, token, _, _, _, fence]) => Operation::End(End {
            token: token_of(token),
            fence: fence_of(fence),
            way: match *verb {
                "free" => Way::Release,
                _ => Way::Leave,
            },
        }),
        ("SWAP", [from, to, ttl, fence @ ..]) => Operation::Swap {
            from: token_of(from),
            to: token_of(to),
            ttl: number(ttl),
            fence: fence.first().map(|fence| number(fence)),
        },
        ("FORCE", [token, fence, _, grace, "", _]) => Operation::Force(Force {
            holder: token_of(token),
            fence: fence_of(fence),
            grace: number(grace),
            serves: true,
        }),
        ("FORGET", []) => Operation::Forget,
        (_, [token, fence, _, _, rest @ ..]) => Operation::End(End {
            token: token_of(token),
            fence: fence_of(fence),
            way: way(script, fence_of(fence), rest),
        }),
        _ => panic!("{script} {arguments:?}"),
    };
    vec![(keys[0].as_str(), operation)]
}

fn extend(words: &[&str]) -> Operation {
    Operation::Extend {
        token: token_of(words[0]),
        ttl: number(words[1]),
    }
}

fn way(script: &str, fence: Option<u64>, rest: &[&str]) -> Way {
    match (script, rest) {
        ("RELEASE", []) => Way::Release,
        ("RELEASE", ["leave"]) => Way::Leave,
        ("VACATE", [gap]) => Way::Vacate(number(gap)),
        ("COOL", [span]) => Way::Cool {
            span: number(span),
            until: 0,
        },
        ("COOL", [span, until]) => Way::Cool {
            span: number(span),
            until: number(until),
        },
        ("REMEMBER", [lifetime, record, ttl]) => Way::Remember {
            record: Arc::new(StoredRecord {
                fence: fence.unwrap_or(0),
                bytes: record.as_bytes().into(),
            }),
            lifetime: number(lifetime),
            ttl: number(ttl),
        },
        _ => panic!("{script} {rest:?}"),
    }
}

pub(super) fn token_of(text: &str) -> Token {
    Token::parse(text).expect("a token")
}

fn fence_of(text: &str) -> Option<u64> {
    (!text.is_empty()).then(|| number(text))
}

pub(super) fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}
