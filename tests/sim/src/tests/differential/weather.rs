//! Changes of both servers' state by an operator: refusals, rights, data and scripts that are gone.

use std::time::{Duration, Instant};

use crate::server::{Refusal, Server};

use super::kit::{KEYS, lock, queue};
use super::random::Random;
use super::real::Link;

/// Has the server fail to write a snapshot, so that it refuses writes as long as it is to write snapshots.
pub fn fail_a_snapshot(operator: &mut Link, next_round: impl Fn()) {
    operator.order(&["BGSAVE"]);
    let start = Instant::now();
    while !operator
        .ask(&["INFO", "persistence"])
        .contains("rdb_last_bgsave_status:err")
    {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "the snapshot fails"
        );
        next_round();
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Lets both servers serve all commands.
pub fn clear(operator: &mut Link, server: &mut Server) {
    refuse(None, operator, server);
    allow_all(operator, server);
}

pub fn change(random: &mut Random, operator: &mut Link, server: &mut Server) {
    match random.below(8) {
        0..3 => {
            let refusals = [
                Refusal::OutOfMemory,
                Refusal::NoReplicas,
                Refusal::ReadOnly,
                Refusal::Misconfigured,
            ];
            let refusal = refusals[random.below(4)];
            refuse(Some(refusal), operator, server);
        }
        3 => refuse(None, operator, server),
        4 => deny(random, operator, server),
        5 => allow_all(operator, server),
        6 => {
            operator.order(&["SCRIPT", "FLUSH"]);
            server.forget_scripts();
        }
        _ => {
            let key = random.pick(&KEYS);
            let key = if random.once_in(2) {
                lock(key)
            } else {
                queue(key)
            };
            if server.refusal != Some(Refusal::ReadOnly) {
                refuse(None, operator, server);
                operator.ask(&["DEL", &key]);
                server.delete(key.as_bytes());
            }
        }
    }
}

fn refuse(refusal: Option<Refusal>, operator: &mut Link, server: &mut Server) {
    if server.refusal == refusal {
        return;
    }
    // Each refusal is switched by one setting.
    let mut switch = |refusal, on| match refusal {
        Refusal::OutOfMemory => {
            operator.order(&["CONFIG", "SET", "maxmemory", if on { "1" } else { "0" }]);
        }
        Refusal::NoReplicas => {
            let count = if on { "1" } else { "0" };
            operator.order(&["CONFIG", "SET", "min-replicas-to-write", count]);
        }
        Refusal::ReadOnly if on => operator.order(&["REPLICAOF", "127.0.0.1", "1"]),
        Refusal::ReadOnly => operator.order(&["REPLICAOF", "NO", "ONE"]),
        Refusal::Misconfigured => {
            let save = if on { "1000000000 1000000000" } else { "" };
            operator.order(&["CONFIG", "SET", "save", save]);
        }
        Refusal::Loading => unreachable!("the comparison does not make a server load data"),
    };
    if let Some(before) = server.refusal {
        switch(before, false);
    }
    if let Some(refusal) = refusal {
        switch(refusal, true);
    }
    server.refusal = refusal;
}

/// Takes one right away, or those to some keys or channels.
fn deny(random: &mut Random, operator: &mut Link, server: &mut Server) {
    let commands = [
        "GET",
        "SET",
        "DEL",
        "ZADD",
        "ZREM",
        "ZPOPMIN",
        "ZRANGE",
        "PUBLISH",
        "EXISTS",
        "PTTL",
        "MGET",
        "PEXPIREAT",
        "EVALSHA",
        "EVAL",
        "TIME",
        "HMGET",
        "HSET",
        "CLIENT|TRACKING",
        "CLIENT|CACHING",
        "CLIENT",
        "SUBSCRIBE",
        "HELLO",
    ];
    allow_all(operator, server);
    match random.below(6) {
        0 => {
            // No client has subscribed to another channel, because the server would end it.
            set_user(&["allkeys", "resetchannels", "&lockkit:!m:*"], operator);
            server.allowed_channels = Some(vec![b"lockkit:!m:*".to_vec()]);
        }
        1 => {
            let allowed = random.pick(&["lockkit:a*", "lockkit:!*", "lockkit:[^!]*"]);
            set_user(
                &["resetkeys", &format!("~{allowed}"), "allchannels"],
                operator,
            );
            server.allowed_keys = Some(vec![allowed.as_bytes().to_vec()]);
        }
        _ => {
            let command = random.pick(&commands);
            let right = format!("-{}", command.to_lowercase());
            set_user(&["allkeys", "allchannels", &right], operator);
            server.denied.insert(command.to_owned());
        }
    }
}

fn allow_all(operator: &mut Link, server: &mut Server) {
    if server.denied.is_empty()
        && server.allowed_keys.is_none()
        && server.allowed_channels.is_none()
    {
        return;
    }
    set_user(&["allkeys", "allchannels"], operator);
    server.denied.clear();
    server.allowed_keys = None;
    server.allowed_channels = None;
}

fn set_user(rights: &[&str], operator: &mut Link) {
    let mut command = vec!["ACL", "SETUSER", "default", "+@all"];
    command.extend_from_slice(rights);
    operator.order(&command);
}
