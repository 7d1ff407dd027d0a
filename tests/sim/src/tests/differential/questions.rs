//! Random commands that are no scripts of the kit, also wrong ones.

use crate::server::Server;

use super::kit::{KEYS, MARK, REGISTERS, channel, lock, queue, shares};
use super::random::Random;

/// Names of settings that the kit reads.
const SCRIPTS: [&str; 12] = [
    "return redis.call('GET', KEYS[1])",
    "return redis.pcall('GET', KEYS[1])",
    "return {1, 2.9, -2.9, 'x', false, nil, 3}",
    "return {redis.pcall('HGET', KEYS[1], 'f'), redis.error_reply('ONE'), redis.status_reply('two three')}",
    "local x = redis.call('TIME')\n\nreturn x[1] + nil",
    "return undefined",
    "undefined = 1",
    "error('on purpose')",
    "return redis.call('SET', KEYS[1], 1.5, 'PX', 100000)",
    "redis.call('DEL', KEYS[1]) return redis.call('SET', KEYS[1], 1795479580784343)",
    "local set = redis.pcall('ZADD', KEYS[1], 0.1, 'm') return {set, redis.pcall('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')}",
    "return redis.call('PUBLISH', KEYS[1], 'm')",
];

/// The words of a random command.
pub fn question(random: &mut Random, server: &Server, micros: i64) -> Vec<String> {
    let command = match random.below(20) {
        0..5 => about_text(random, micros),
        5..9 => about_sets(random),
        9..12 => about_keys(random, micros),
        12 => about_hashes(random),
        13 => about_scripts(random),
        14 | 15 => about_channels(random, server),
        16 | 17 => about_tracking(random),
        18 => about_the_connection(random),
        _ => wrong(random),
    };
    command.split('\u{1f}').map(str::to_owned).collect()
}

/// Joins words, which may contain spaces.
fn join(words: &[&str]) -> String {
    words.join("\u{1f}")
}

fn key(random: &mut Random) -> String {
    let one = random.pick(&KEYS);
    match random.below(8) {
        0 => queue(one),
        1 => shares(one),
        2 => MARK.to_owned(),
        3 => REGISTERS.to_owned(),
        4 => "other".to_owned(),
        _ => lock(one),
    }
}

fn number(random: &mut Random) -> String {
    match random.below(6) {
        0 => random
            .pick(&["", "x", "1.5", "-0", "+1", "9223372036854775808", "01"])
            .to_owned(),
        1 => random.between(-3, 3).to_string(),
        _ => random.between(1, 400).to_string(),
    }
}

fn score(random: &mut Random) -> String {
    match random.below(5) {
        0 => random
            .pick(&[
                "inf",
                "-inf",
                "nan",
                "x",
                "",
                "-0",
                "1e3",
                "0.1",
                "1700000000000000",
            ])
            .to_owned(),
        1 => random.between(0, 9).to_string() + ".25",
        _ => random.between(-5, 5).to_string(),
    }
}

fn bound(random: &mut Random) -> String {
    match random.below(5) {
        0 => random.pick(&["+inf", "-inf", "(", "[1", ""]).to_owned(),
        1 => format!("({}", random.between(-5, 5)),
        _ => random.between(-5, 5).to_string(),
    }
}

fn about_text(random: &mut Random, micros: i64) -> String {
    let key = key(random);
    match random.below(5) {
        0 => join(&["GET", &key]),
        1 => join(&["MGET", &key, "none", MARK]),
        2 => {
            let end = (micros / 1_000 + random.between(-20, 2_000)).to_string();
            join(&["SET", &key, "v", "PXAT", &end])
        }
        3 => join(&["SET", &key, "v", "NX", "GET", "PX", &number(random)]),
        _ => {
            let mut command = join(&["SET", &key, random.pick(&["", "v", "two words", "\r\n"])]);
            for _ in 0..random.below(4) {
                let options = [
                    "NX", "XX", "GET", "KEEPTTL", "PX", "EX", "px", "EXAT", "wrong",
                ];
                let option = random.pick(&options);
                command = join(&[&command, option]);
                if option.len() == 2
                    && option.ends_with(['X', 'x'])
                    && !random.once_in(6)
                    && !matches!(option, "NX" | "XX")
                {
                    command = join(&[&command, &number(random)]);
                }
            }
            command
        }
    }
}

fn about_sets(random: &mut Random) -> String {
    let (key, member) = (key(random), random.pick(&["m", "n", "", "o"]));
    let (least, most) = (bound(random), bound(random));
    match random.below(10) {
        0..3 => {
            let mut command = join(&["ZADD", &key]);
            for _ in 0..random.below(3) {
                command = join(&[&command, random.pick(&["NX", "XX", "GT", "LT", "CH"])]);
            }
            for _ in 0..=random.below(3) {
                let member = random.pick(&["m", "n", "", "o"]);
                command = join(&[&command, &score(random), member]);
            }
            command
        }
        3 => join(&["ZREM", &key, member, "n"]),
        4 => match random.below(3) {
            0 => join(&["ZPOPMIN", &key, &number(random)]),
            _ => join(&["ZPOPMIN", &key]),
        },
        5 => join(&["ZSCORE", &key, member]),
        6 => join(&["ZCOUNT", &key, &least, &most]),
        7 => join(&["ZREMRANGEBYSCORE", &key, &least, &most]),
        8 => {
            let (first, last) = (number(random), number(random));
            let command = join(&["ZRANGEBYSCORE", &key, &least, &most]);
            match random.below(3) {
                0 => command,
                1 => join(&[&command, "WITHSCORES"]),
                _ => join(&[&command, "LIMIT", &first, &last]),
            }
        }
        _ => {
            let first = random.pick(&["0", "1", "-1", "-2", "-9", "x"]);
            let last = random.pick(&["0", "1", "-1", "-2", "9", "-9"]);
            match random.below(4) {
                0 => join(&["ZCARD", &key]),
                1 => join(&["ZRANGE", &key, first, last]),
                _ => join(&["ZRANGE", &key, first, last, "WITHSCORES"]),
            }
        }
    }
}

fn about_keys(random: &mut Random, micros: i64) -> String {
    let key = key(random);
    match random.below(9) {
        0 => join(&["DEL", &key, "none"]),
        1 => join(&["EXISTS", &key, &key, MARK]),
        2 => join(&["TYPE", &key]),
        3 => join(&["PTTL", &key]),
        4 => join(&["PEXPIRE", &key, &number(random)]),
        5 | 6 => {
            let end = (micros / 1_000 + random.between(-5, 2_000)).to_string();
            join(&["PEXPIREAT", &key, &end])
        }
        7 => join(&["DBSIZE"]),
        _ if random.once_in(4) => join(&["FLUSHALL"]),
        _ => join(&["PEXPIRETIME", &key]),
    }
}

fn about_hashes(random: &mut Random) -> String {
    let key = random.pick(&[REGISTERS, "lockkit:a", "lockkit:!q:{a}"]);
    match random.below(5) {
        0 => join(&["HSET", key, "7", "v"]),
        1 => join(&["HSET", key, "7", "v", "8", "w", "7"]),
        2 => join(&["HSET", key, "7", "v", "8", "w"]),
        3 => join(&["HGET", key, "7"]),
        _ => join(&["HMGET", key, "7", "none", "opens"]),
    }
}

fn about_scripts(random: &mut Random) -> String {
    let key = key(random);
    let script = random.pick(&SCRIPTS);
    match random.below(12) {
        0 => join(&["SCRIPT", "FLUSH"]),
        1 => join(&["SCRIPT", "LOAD", script]),
        2 => join(&[
            "SCRIPT",
            "EXISTS",
            "e0e1f9fabfc9d4800c877a703b823ac0578ff8db",
        ]),
        3 => join(&["EVALSHA", &"0".repeat(40), "0"]),
        4 => join(&["EVAL", script, random.pick(&["x", "-1", "2", "1"]), &key]),
        _ => join(&["EVAL", script, "1", &key]),
    }
}

fn about_channels(random: &mut Random, server: &Server) -> String {
    let other = "other".to_owned();
    let (one, two) = (channel(0), channel(1));
    let channel = random.pick(&[one.as_str(), one.as_str(), two.as_str(), &other]);
    match random.below(8) {
        0..4 => join(&["PUBLISH", channel, "m"]),
        4 => join(&["UNSUBSCRIBE", channel]),
        // Without a channel, the order of the confirmations is that of a hash table.
        // The server ends a client that has subscribed to a channel which the user may not use any more.
        _ if channel == other && server.allowed_channels.is_none() => {
            join(&["PUBLISH", channel, ""])
        }
        6 => join(&["SUBSCRIBE", channel, &two, channel]),
        _ => join(&["SUBSCRIBE", channel]),
    }
}

fn about_tracking(random: &mut Random) -> String {
    match random.below(11) {
        0..4 => join(&["CLIENT", "CACHING", "YES"]),
        4 => join(&["CLIENT", "CACHING", random.pick(&["NO", "x"])]),
        5 | 6 => join(&["CLIENT", "TRACKING", "ON", "OPTIN", "NOLOOP"]),
        7 => join(&[
            "CLIENT",
            "TRACKING",
            "ON",
            random.pick(&["OPTIN", "NOLOOP", "x"]),
        ]),
        8 => join(&["CLIENT", "TRACKING", "ON"]),
        9 => join(&["CLIENT", "TRACKING", "off"]),
        _ => join(&["CLIENT", "TRACKING", "x"]),
    }
}

fn about_the_connection(random: &mut Random) -> String {
    let commands: [&[&str]; 14] = [
        &["HELLO", "3"],
        &["HELLO", "3", "SETNAME", "n"],
        &["HELLO", "2"],
        &["HELLO"],
        &["HELLO", "4"],
        &["PING"],
        &["PING", "text"],
        &["TIME"],
        &["ECHO", "text"],
        &["SELECT", "0"],
        &["AUTH", "none", "x"],
        &["CLIENT", "SETNAME", "a name"],
        &["CLIENT", "GETNAME"],
        &["CONFIG", "GET", "appendfsync"],
    ];
    let protocols = random.once_in(2);
    join(if protocols {
        commands[0]
    } else {
        random.pick(&commands)
    })
}

fn wrong(random: &mut Random) -> String {
    let commands: [&[&str]; 12] = [
        &["NONE", "a", "b c"],
        &["GET"],
        &["get", "a", "b"],
        &["CLIENT"],
        &["CLIENT", "NONE"],
        &["CLIENT", "CACHING"],
        &["SCRIPT", "none"],
        &["WAIT", "x", "1"],
        &["WAIT", "0", "-1"],
        &["CLUSTER", "SLOTS"],
        &["SENTINEL", "masters"],
        &["ZRANGE", "a", "0"],
    ];
    join(random.pick(&commands))
}
