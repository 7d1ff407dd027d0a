//! The commands that the server knows, with what Redis' own table says of each.

use std::collections::BTreeSet;

use super::resp::Answer;
use super::{
    Server, cluster, connection, hashes, info, keys, pubsub, scripts, sentinel, strings, waits,
    zsets,
};

pub(super) struct Command {
    /// In upper case; a subcommand as `CLIENT|TRACKING`.
    pub(super) name: &'static str,
    /// The number of words, or with a minus the least number.
    arity: i32,
    traits: u16,
    pub(super) keys: Keys,
    pub(super) run: fn(&mut Server, &[&[u8]]) -> Answer,
}

/// The words of a command that are keys.
#[derive(Clone, Copy)]
pub(super) enum Keys {
    None,
    First,
    /// All words from the second one on.
    Rest,
    /// Their number is the third word, and they follow it.
    Counted,
}

/// Changes data, so that a server may refuse it.
pub(super) const WRITE: u16 = 1;
/// May take memory.
pub(super) const GROWS: u16 = 2;
/// Only reads keys, which a client may have the server watch.
pub(super) const READ: u16 = 4;
/// No script may call it.
pub(super) const NO_SCRIPT: u16 = 8;
/// A server that loads its data answers it.
pub(super) const LOADING: u16 = 16;
/// Every user may call it.
pub(super) const ALWAYS: u16 = 32;
/// Has subcommands.
const CONTAINER: u16 = 64;
/// Its words are channels.
pub(super) const CHANNELS: u16 = 128;
/// Its first word is a channel.
pub(super) const CHANNEL: u16 = 256;
/// Only sentinels have it.
pub(super) const SENTINEL: u16 = 512;
/// Sentinels have it too.
pub(super) const ANYWHERE: u16 = 1024;

impl Command {
    pub(super) fn is(&self, traits: u16) -> bool {
        self.traits & traits != 0
    }

    pub(super) fn takes(&self, words: usize) -> bool {
        let words = i32::try_from(words).unwrap_or(i32::MAX);
        if self.arity < 0 {
            words >= -self.arity
        } else {
            words == self.arity
        }
    }

    /// Returns the words that are keys.
    pub(super) fn keys<'a, 'w>(&self, words: &'a [&'w [u8]]) -> &'a [&'w [u8]] {
        match self.keys {
            Keys::None => &[],
            Keys::First => &words[1..2],
            Keys::Rest => &words[1..],
            Keys::Counted => {
                let count = std::str::from_utf8(words[2]).ok();
                let count = count.and_then(|count| count.parse().ok()).unwrap_or(0);
                words
                    .get(3..usize::saturating_add(count, 3))
                    .unwrap_or_default()
            }
        }
    }
}

/// The command that these words call.
pub(super) enum Found {
    Command(&'static Command),
    Unknown,
    /// A command with subcommands, but not with this one.
    UnknownPart(&'static Command),
}

pub(super) fn find(words: &[&[u8]]) -> Found {
    let Some(command) = words.first().and_then(|verb| lookup(&[verb])) else {
        return Found::Unknown;
    };
    match words.get(1) {
        Some(part) if command.is(CONTAINER) => match lookup(&[words[0], b"|", part]) {
            Some(command) => Found::Command(command),
            None => Found::UnknownPart(command),
        },
        _ => Found::Command(command),
    }
}

fn lookup(pieces: &[&[u8]]) -> Option<&'static Command> {
    let mut name = [0; 40];
    let mut length = 0;
    for byte in pieces.iter().copied().flatten() {
        *name.get_mut(length)? = byte.to_ascii_uppercase();
        length += 1;
    }
    let name = &name[..length];
    let at = COMMANDS.binary_search_by(|command| command.name.as_bytes().cmp(name));
    at.ok().map(|at| &COMMANDS[at])
}

/// The names of all commands but these.
pub(super) fn without(rights: &[String]) -> BTreeSet<String> {
    let forbidden = COMMANDS
        .iter()
        .filter(|command| !command.is(CONTAINER) && !rights.iter().any(|it| it == command.name));
    forbidden.map(|command| command.name.to_owned()).collect()
}

const fn row(
    name: &'static str,
    arity: i32,
    traits: u16,
    keys: Keys,
    run: fn(&mut Server, &[&[u8]]) -> Answer,
) -> Command {
    Command {
        name,
        arity,
        traits,
        keys,
        run,
    }
}

/// In the order of their names.
#[rustfmt::skip]
static COMMANDS: [Command; 63] = [
    row("ASKING", 1, 0, Keys::None, cluster::asking),
    row("AUTH", -2, NO_SCRIPT | LOADING | ALWAYS | ANYWHERE, Keys::None, connection::auth),
    row("CLIENT", -2, NO_SCRIPT | CONTAINER | ANYWHERE, Keys::None, connection::container),
    row("CLIENT|CACHING", 3, NO_SCRIPT | LOADING | ANYWHERE, Keys::None, connection::caching),
    row("CLIENT|GETNAME", 2, NO_SCRIPT | LOADING | ANYWHERE, Keys::None, connection::name),
    row("CLIENT|ID", 2, NO_SCRIPT | LOADING | ANYWHERE, Keys::None, connection::id),
    row("CLIENT|SETNAME", 3, NO_SCRIPT | LOADING | ANYWHERE, Keys::None, connection::rename),
    row("CLIENT|TRACKING", -3, NO_SCRIPT | LOADING | ANYWHERE, Keys::None, connection::tracking),
    row("CLUSTER", -2, CONTAINER, Keys::None, connection::container),
    row("CLUSTER|INFO", 2, 0, Keys::None, cluster::info),
    row("CLUSTER|SHARDS", 2, LOADING, Keys::None, cluster::shards),
    row("CLUSTER|SLOTS", 2, 0, Keys::None, cluster::slots),
    row("CONFIG", -2, NO_SCRIPT | CONTAINER, Keys::None, connection::container),
    row("CONFIG|GET", -3, NO_SCRIPT | LOADING, Keys::None, info::settings),
    row("CONFIG|SET", -4, NO_SCRIPT | LOADING, Keys::None, info::set),
    row("DBSIZE", 1, READ, Keys::None, keys::count),
    row("DEL", -2, WRITE, Keys::Rest, keys::delete),
    row("ECHO", 2, LOADING, Keys::None, connection::echo),
    row("EVAL", -3, NO_SCRIPT, Keys::Counted, scripts::eval),
    row("EVALSHA", -3, NO_SCRIPT, Keys::Counted, scripts::eval_known),
    row("EXISTS", -2, READ, Keys::Rest, keys::exist),
    row("FLUSHALL", -1, WRITE, Keys::None, keys::flush),
    row("FLUSHDB", -1, WRITE, Keys::None, keys::flush),
    row("GET", 2, READ, Keys::First, strings::get),
    row("HELLO", -1, NO_SCRIPT | LOADING | ALWAYS | ANYWHERE, Keys::None, connection::hello),
    row("HGET", 3, READ, Keys::First, hashes::get),
    row("HGETALL", 2, READ, Keys::First, hashes::all),
    row("HMGET", -3, READ, Keys::First, hashes::get_several),
    row("HSET", -4, WRITE | GROWS, Keys::First, hashes::set),
    row("INFO", -1, LOADING, Keys::None, info::report),
    row("KEYS", 2, READ, Keys::None, keys::list),
    row("MGET", -2, READ, Keys::Rest, strings::get_several),
    row("PEXPIRE", -3, WRITE, Keys::First, keys::end_in),
    row("PEXPIREAT", -3, WRITE, Keys::First, keys::end_at),
    row("PEXPIRETIME", 2, READ, Keys::First, keys::end_of),
    row("PING", -1, ANYWHERE, Keys::None, connection::ping),
    row("PTTL", 2, READ, Keys::First, keys::left),
    row("PUBLISH", 3, LOADING | CHANNEL, Keys::None, pubsub::publish),
    row("ROLE", 1, NO_SCRIPT | LOADING, Keys::None, info::role),
    row("SCAN", -2, READ, Keys::None, keys::scan),
    row("SCRIPT", -2, NO_SCRIPT | CONTAINER, Keys::None, connection::container),
    row("SCRIPT|EXISTS", -3, NO_SCRIPT, Keys::None, scripts::exist),
    row("SCRIPT|FLUSH", -2, NO_SCRIPT, Keys::None, scripts::flush),
    row("SCRIPT|LOAD", 3, NO_SCRIPT, Keys::None, scripts::load),
    row("SELECT", 2, LOADING, Keys::None, connection::select),
    row("SENTINEL", -2, SENTINEL | CONTAINER, Keys::None, connection::container),
    row("SENTINEL|GET-MASTER-ADDR-BY-NAME", 3, SENTINEL, Keys::None, sentinel::master_address),
    row("SENTINEL|MASTER", 3, SENTINEL, Keys::None, sentinel::master),
    row("SET", -3, WRITE | GROWS, Keys::First, strings::set),
    row("SUBSCRIBE", -2, NO_SCRIPT | LOADING | CHANNELS, Keys::None, pubsub::subscribe),
    row("TIME", 1, LOADING, Keys::None, info::time),
    row("TYPE", 2, READ, Keys::First, keys::kind),
    row("UNSUBSCRIBE", -1, NO_SCRIPT | LOADING, Keys::None, pubsub::unsubscribe),
    row("WAIT", 3, NO_SCRIPT, Keys::None, waits::wait),
    row("ZADD", -4, WRITE | GROWS, Keys::First, zsets::add),
    row("ZCARD", 2, READ, Keys::First, zsets::length),
    row("ZCOUNT", 4, READ, Keys::First, zsets::count),
    row("ZPOPMIN", -2, WRITE, Keys::First, zsets::pop),
    row("ZRANGE", -4, READ, Keys::First, zsets::range),
    row("ZRANGEBYSCORE", -4, READ, Keys::First, zsets::range_by_score),
    row("ZREM", -3, WRITE, Keys::First, zsets::remove),
    row("ZREMRANGEBYSCORE", 4, WRITE, Keys::First, zsets::remove_by_score),
    row("ZSCORE", 3, READ, Keys::First, zsets::score),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert!(COMMANDS.is_sorted_by_key(|command| command.name));
    }
}
