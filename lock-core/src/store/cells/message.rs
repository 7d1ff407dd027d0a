//! Messages between processes, as text: a letter, numbers, tokens, and the key in hex digits at the end.

use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;

use super::{PASSES, Written};
use crate::base::clock::ServerTime;
use crate::base::fence::FencingToken;
use crate::base::holder_token::HolderToken;
use crate::base::token::{Address, Token};
use crate::protocol::{News, Push};
use crate::store::steps::event;
use crate::store::{Answer, Event, Held, Question};

/// A push of a write, whose number is the fencing token of a grant.
pub(crate) fn of_push(push: &Push, key: &str, written: Written) -> String {
    let (token, key, now) = (push.token, HEXLOWER.encode(key.as_bytes()), written.at.0);
    match push.news {
        News::Given { grant, .. } => {
            let fence = written.revision * PASSES;
            format!("g {now} {grant} {fence} {token} {key}")
        }
        News::Next { grant, after } => format!("n {grant} {after} {token} {key}"),
        News::Forced => format!("f {token} {key}"),
    }
}

pub(super) fn of_question(question: &Question) -> String {
    let Question {
        holder,
        reply_to,
        number,
        key,
    } = question;
    let holder = HEXLOWER.encode(holder.as_bytes());
    let key = HEXLOWER.encode(key.as_bytes());
    format!("q {number} {reply_to} {holder} {key}")
}

pub(super) fn of_answer(answer: &Answer) -> String {
    let number = answer.number;
    match answer.held {
        Some(Held { held_for, fence }) => format!("a {number} {} {fence}", held_for.as_micros()),
        None => format!("a {number}"),
    }
}

/// Reads a message. `None`: another client has sent it.
pub(crate) fn read(text: &str) -> Option<Event> {
    let words: Vec<&str> = text.split(' ').collect();
    let push = |token: &str, key: &str, at: u64, news| {
        let token = Token::parse(token)?;
        let to = token.address();
        event(&name(key)?, &Push { to, token, news }, ServerTime(at))
    };
    match *words.as_slice() {
        ["g", at, grant, fence, token, key] => {
            let (grant, fence) = (number(grant)?, number(fence)?);
            push(token, key, number(at)?, News::Given { grant, fence })
        }
        ["n", grant, after, token, key] => {
            let (grant, after) = (number(grant)?, number(after)?);
            push(token, key, 0, News::Next { grant, after })
        }
        ["f", token, key] => push(token, key, 0, News::Forced),
        ["q", id, reply_to, holder, key] => Some(Event::Asked(Question {
            key: name(key)?,
            holder: HolderToken::new(&HEXLOWER.decode(holder.as_bytes()).ok()?),
            reply_to: Address::parse(reply_to)?,
            number: number(id)?,
        })),
        ["a", id] => Some(Event::Answered {
            number: number(id)?,
            held: None,
        }),
        ["a", id, micros, fence] => Some(Event::Answered {
            number: number(id)?,
            held: Some(Held {
                held_for: Duration::from_micros(number(micros)?),
                fence: FencingToken::new(number(fence)?)?,
            }),
        }),
        _ => None,
    }
}

fn number(word: &str) -> Option<u64> {
    word.parse().ok()
}

fn name(hex: &str) -> Option<Arc<str>> {
    let bytes = HEXLOWER.decode(hex.as_bytes()).ok()?;
    String::from_utf8(bytes).ok().map(Arc::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::token::TokenSource;

    #[test]
    fn messages_read_back_and_others_are_no_messages() {
        let token = TokenSource::new(Address::random()).fresh();
        let (to, at) = (token.address(), ServerTime(1_700_000_000_000_000));
        let key = "a key\0with \u{fc} in it";
        let revision = u64::from(u32::MAX);
        let (written, fence) = (Written { revision, at }, revision * PASSES);
        let (grant, after) = (2_000, 30);
        for news in [
            News::Given { grant, fence },
            News::Next { grant, after },
            News::Forced,
        ] {
            let push = Push { to, token, news };
            let text = of_push(&push, key, written);
            let shown = format!("{:?}", event(&key.into(), &push, at));
            assert_eq!(format!("{:?}", read(&text)), shown);
        }
        let question = Question {
            key: key.into(),
            holder: HolderToken::new(b"any value"),
            reply_to: to,
            number: 7,
        };
        match read(&of_question(&question)) {
            Some(Event::Asked(read)) => assert_eq!(read, question),
            other => panic!("{other:?}"),
        }
        let held = Some(Held {
            held_for: Duration::from_micros(12_345),
            fence: FencingToken::new(fence).expect("in bounds"),
        });
        for held in [held, None] {
            let answer = Answer {
                key: key.into(),
                to,
                number: 7,
                held,
            };
            let read = read(&of_answer(&answer));
            assert!(matches!(read, Some(Event::Answered { number: 7, held: it }) if it == held));
        }
        for text in ["", "g", "x 1 2", "n 1 2 token 00", "a seven", "f a/b zz"] {
            assert!(read(text).is_none(), "{text:?}");
        }
    }
}
