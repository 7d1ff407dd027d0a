//! Reports about the server: `INFO`, `ROLE`, `TIME`, `CONFIG`.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::patterns::matches;
use super::resp::{Answer, OK, Reply};
use super::{Refusal, Server};

/// The part that a server has in replication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Role {
    #[default]
    Master,
    /// A replica of the server at this host and port.
    Replica(String, u16),
}

/// A replica of a master.
#[derive(Clone, Debug, Default)]
pub struct Replica {
    pub host: String,
    pub port: u16,
    /// The master's offset up to which the replica has all changes.
    pub acknowledged: u64,
}

pub(super) fn usual_settings() -> BTreeMap<String, String> {
    let settings = [
        ("appendfsync", "everysec"),
        ("appendonly", "no"),
        ("maxmemory", "0"),
        ("maxmemory-policy", "noeviction"),
        ("min-replicas-to-write", "0"),
        ("save", "3600 1 300 100 60 10000"),
    ];
    let settings = settings.into_iter();
    settings
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

pub(super) fn time(server: &mut Server, _: &[&[u8]]) -> Answer {
    let (seconds, micros) = (
        server.micros.div_euclid(1_000_000),
        server.micros.rem_euclid(1_000_000),
    );
    let parts = [seconds, micros].map(|part| Reply::text(part.to_string()));
    Ok(Reply::Array(parts.into()))
}

pub(super) fn settings(server: &mut Server, words: &[&[u8]]) -> Answer {
    let patterns: Vec<_> = words[2..]
        .iter()
        .map(|word| word.to_ascii_lowercase())
        .collect();
    let found = server.settings.iter().filter(|(name, _)| {
        let mut patterns = patterns.iter();
        patterns.any(|pattern| matches(pattern, name.as_bytes()))
    });
    let found = found.map(|(name, value)| (Reply::text(name), Reply::text(value)));
    Ok(Reply::Map(found.collect()))
}

pub(super) fn set(server: &mut Server, words: &[&[u8]]) -> Answer {
    for pair in words[2..].chunks(2) {
        let [name, value] = pair else {
            return Err("ERR wrong number of arguments for 'config|set' command".into());
        };
        let [name, value] = [name, value].map(|word| String::from_utf8_lossy(word).into_owned());
        match server.settings.get_mut(&name.to_lowercase()) {
            Some(setting) => *setting = value,
            None => {
                let why = "ERR Unknown option or number of arguments for CONFIG SET";
                return Err(format!("{why} - '{name}'").into());
            }
        }
    }
    Ok(OK)
}

pub(super) fn role(server: &mut Server, _: &[&[u8]]) -> Answer {
    let offset = server.offset as i64;
    Ok(Reply::Array(match &server.role {
        Role::Master => {
            let replicas = server.replicas.iter().map(|replica| {
                let parts = [
                    replica.host.clone(),
                    replica.port.to_string(),
                    replica.acknowledged.to_string(),
                ];
                Reply::Array(parts.iter().map(Reply::text).collect())
            });
            let replicas = Reply::Array(replicas.collect());
            vec![Reply::text("master"), Reply::Int(offset), replicas]
        }
        Role::Replica(host, port) => vec![
            Reply::text("slave"),
            Reply::text(host),
            Reply::Int((*port).into()),
            Reply::text("connected"),
            Reply::Int(offset),
        ],
    }))
}

/// The name of a section of `INFO`, and what writes its lines.
type Section = (&'static str, fn(&Server) -> String);

pub(super) fn report(server: &mut Server, words: &[&[u8]]) -> Answer {
    let wanted: Vec<_> = words[1..]
        .iter()
        .map(|word| word.to_ascii_lowercase())
        .collect();
    let sections: [Section; 4] = [
        ("Server", Server::about_itself),
        ("Memory", Server::about_memory),
        ("Persistence", Server::about_persistence),
        ("Replication", Server::about_replication),
    ];
    let mut report = String::new();
    for (name, fields) in sections {
        let is_wanted = |word: &Vec<u8>| {
            word.eq_ignore_ascii_case(name.as_bytes())
                || matches!(word.as_slice(), b"all" | b"default" | b"everything")
        };
        if wanted.is_empty() || wanted.iter().any(is_wanted) {
            let between = if report.is_empty() { "" } else { "\r\n" };
            let fields = fields(server);
            write!(report, "{between}# {name}\r\n{fields}").expect("a text takes everything");
        }
    }
    Ok(Reply::Report(report))
}

impl Server {
    pub(super) fn is_replica(&self) -> bool {
        self.refusal == Some(Refusal::ReadOnly) || self.role != Role::Master
    }

    /// The role in the answer to `HELLO`.
    pub(super) fn role_name(&self) -> &'static str {
        if self.is_replica() {
            "replica"
        } else {
            "master"
        }
    }

    /// Returns whether it is a server of its own, as reports name it.
    pub(super) fn mode(&self) -> &'static str {
        match self.cluster {
            Some(_) => "cluster",
            None => "standalone",
        }
    }

    fn setting(&self, name: &str) -> &str {
        self.settings.get(name).map_or("", String::as_str)
    }

    fn about_itself(&self) -> String {
        let version = self.version.report();
        let (mode, run_id) = (self.mode(), &self.run_id);
        format!("{version}redis_mode:{mode}\r\nrun_id:{run_id}\r\n")
    }

    fn about_memory(&self) -> String {
        let limit = self.setting("maxmemory");
        let policy = self.setting("maxmemory-policy");
        format!("used_memory:1000000\r\nmaxmemory:{limit}\r\nmaxmemory_policy:{policy}\r\n")
    }

    fn about_persistence(&self) -> String {
        let loading = u8::from(self.refusal == Some(Refusal::Loading));
        let status = match self.refusal {
            Some(Refusal::Misconfigured) => "err",
            _ => "ok",
        };
        let log = u8::from(self.setting("appendonly") == "yes");
        format!("loading:{loading}\r\nrdb_last_bgsave_status:{status}\r\naof_enabled:{log}\r\n")
    }

    fn about_replication(&self) -> String {
        let mut report = match &self.role {
            Role::Master if self.is_replica() => "role:slave\r\n".to_owned(),
            Role::Master => "role:master\r\n".to_owned(),
            Role::Replica(host, port) => {
                format!(
                    "role:slave\r\nmaster_host:{host}\r\nmaster_port:{port}\r\nmaster_link_status:up\r\n"
                )
            }
        };
        let mut line = |text: String| report.push_str(&text);
        line(format!("connected_slaves:{}\r\n", self.replicas.len()));
        for (index, replica) in self.replicas.iter().enumerate() {
            let Replica {
                host,
                port,
                acknowledged,
            } = replica;
            line(format!(
                "slave{index}:ip={host},port={port},state=online,offset={acknowledged},lag=0\r\n"
            ));
        }
        line(format!("master_repl_offset:{}\r\n", self.offset));
        report
    }
}
