//! The names of the slots in the queue of the process.
//!
//! | slot | name |
//! | --- | --- |
//! | a lock that one owner has, and its waiters | `<key>` |
//! | a share that is held | `!<token>/<key>` |
//! | a line in which shares wait | `!<kind><number>/<key>` |
//!
//! Shares of a key do not wait for one another, so each has a slot of its own. No key begins with `!`, and no token of a
//! share begins as the kind of a line does.

use std::borrow::Cow;
use std::sync::Arc;

use crate::base::token::Token;

pub(crate) type SlotName<'a> = Cow<'a, Arc<str>>;

pub(crate) fn slot_name(key: &Arc<str>, token: Token) -> SlotName<'_> {
    match token.share() {
        None => Cow::Borrowed(key),
        Some(_) => Cow::Owned(format!("!{token}/{key}").into()),
    }
}

/// Returns the key of the lock, if this is the name of a share that is held.
pub(crate) fn key_of_share(slot: &str) -> Option<&str> {
    // The token has a slash too.
    let (_, rest) = slot.strip_prefix('!')?.split_once('/')?;
    rest.split_once('/').map(|(_, key)| key)
}

/// The kind of the lines in which a share stands by itself.
pub(crate) const OWN_LINE: &str = "own";

pub(crate) fn line_name(key: &str, kind: &str, number: u64) -> Arc<str> {
    format!("!{kind}{number}/{key}").into()
}

/// Returns whether this is the line of a share of the key that stands by itself.
pub(crate) fn is_own_line(slot: &str, key: &str) -> bool {
    let line = slot
        .strip_prefix('!')
        .and_then(|slot| slot.strip_prefix(OWN_LINE));
    let key_of_line = line.and_then(|line| line.split_once('/'));
    key_of_line.is_some_and(|(_, of_line)| of_line == key)
}
