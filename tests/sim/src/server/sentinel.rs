//! `SENTINEL`: a server without data, which knows the master of a service.
//!
//! It has the commands that the kit sends to sentinels, and no others.

use super::Server;
use super::commands::{ANYWHERE, Command, SENTINEL};
use super::resp::{Answer, Reply};

/// What a sentinel knows.
#[derive(Clone, Debug)]
pub struct Sentinel {
    pub service: String,
    /// The master's host.
    pub host: String,
    pub port: u16,
    /// The configuration's number. Each failover raises it.
    pub epoch: u64,
}

pub(super) fn master_address(server: &mut Server, words: &[&[u8]]) -> Answer {
    Ok(match server.watches(words[2]) {
        // An empty array, which version 3 of the protocol does not tell from other nothings.
        None => Reply::Null,
        Some(it) => Reply::Array(vec![
            Reply::text(&it.host),
            Reply::text(it.port.to_string()),
        ]),
    })
}

pub(super) fn master(server: &mut Server, words: &[&[u8]]) -> Answer {
    let Some(it) = server.watches(words[2]) else {
        return Err("ERR No such master with that name".into());
    };
    let (port, epoch) = (it.port.to_string(), it.epoch.to_string());
    let fields = [
        ("name", it.service.as_str()),
        ("ip", &it.host),
        ("port", &port),
        ("runid", ""),
        ("flags", "master"),
        ("link-pending-commands", "0"),
        ("link-refcount", "1"),
        ("last-ping-sent", "0"),
        ("last-ok-ping-reply", "100"),
        ("last-ping-reply", "100"),
        ("down-after-milliseconds", "500"),
        ("info-refresh", "100"),
        ("role-reported", "master"),
        ("role-reported-time", "100"),
        ("config-epoch", &epoch),
        ("num-slaves", "1"),
        ("num-other-sentinels", "1"),
        ("quorum", "2"),
        ("failover-timeout", "2000"),
        ("parallel-syncs", "8"),
    ];
    let fields = fields.map(|(name, value)| (Reply::text(name), Reply::text(value)));
    Ok(Reply::Map(fields.into()))
}

impl Server {
    /// Returns whether a server of this kind has the command.
    pub(super) fn knows(&self, command: &Command) -> bool {
        match &self.sentinel {
            Some(_) => command.is(SENTINEL | ANYWHERE),
            None => !command.is(SENTINEL),
        }
    }

    fn watches(&self, service: &[u8]) -> Option<&Sentinel> {
        let sentinel = self.sentinel.as_ref();
        sentinel.filter(|it| it.service.as_bytes() == service)
    }
}
