//! Reading a server's settings, from which [`Facts`] are made.
//!
//! The audit asks on the keeper's connection once it is connected, and every other server on a connection of its
//! own. `connect` waits for it a quarter of a second at most.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use redis::{Pipeline, Value, cmd};

use crate::audit::{Facts, Finding, Persistence, Reading, Role, disagreements};
use crate::base::clock::Clock;
use crate::base::machine::{self, timeout};
use crate::store::Failure;
use crate::store::redis::topology::ServerId;
use crate::store::redis::topology::keeper_connection::KeeperConnection;
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::reply::{fields, micros, text};
use crate::store::redis::wire::send_error::SendError;

/// A look at one server that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(1);

impl KeeperConnection {
    /// Logs the findings.
    pub(in crate::store::redis) async fn log_findings(
        self: &Arc<Self>,
        home: ServerId,
        on: &Connection,
    ) {
        match timeout(2 * PATIENCE, self.findings(home, on)).await {
            Ok(Ok(findings)) => findings.iter().for_each(Finding::warn),
            _ => tracing::debug!("the server's settings could not be looked at"),
        }
    }

    /// Reads the home server, and the other servers that keep locks or may one day. Called on the keeper's
    /// runtime.
    pub(in crate::store::redis) async fn findings(
        self: &Arc<Self>,
        home: ServerId,
        on: &Connection,
    ) -> Result<Vec<Finding>, Failure> {
        let (facts, followers) = self.facts(on).await.map_err(SendError::into_failure)?;
        let facts = Facts {
            forbids_subscribing: !on.is_listening(),
            ..facts
        };
        let mut seen = vec![(self.topology.address_of(home).into(), facts)];
        seen.extend(self.look_at_others(home, &followers).await);
        let clocks: Vec<_> = seen
            .iter()
            .filter_map(|(server, facts)| Some((Arc::clone(server), facts.clock?)))
            .collect();
        let mut findings: Vec<_> = seen
            .iter()
            .flat_map(|(server, facts)| facts.findings(server, self.replica_acks))
            .collect();
        findings.extend(disagreements(&clocks));
        Ok(findings)
    }

    /// Asks all servers at once. A server that does not answer is not judged.
    async fn look_at_others(
        self: &Arc<Self>,
        home: ServerId,
        followers: &[(String, u16)],
    ) -> Vec<(Arc<str>, Facts)> {
        let others = self.topology.others(home, followers).into_iter();
        let looks: Vec<_> = others
            .map(|node| machine::spawn(timeout(PATIENCE, Arc::clone(self).look_at(node))))
            .collect();
        let mut seen = Vec::new();
        for look in looks {
            if let Ok(Ok(Some(server))) = look.await {
                seen.push(server);
            }
        }
        seen
    }

    async fn look_at(self: Arc<Self>, node: ServerId) -> Option<(Arc<str>, Facts)> {
        let connection = self.topology.open_whatever_it_is(node).await.ok()?;
        let (facts, _) = self.facts(&connection).await.ok()?;
        Some((self.topology.address_of(node).into(), facts))
    }

    /// Reads the facts in one write, and one more where replicas acknowledge. Also returns the replicas'
    /// addresses.
    async fn facts(&self, on: &Connection) -> Result<(Facts, Vec<(String, u16)>), SendError> {
        let mut questions = Pipeline::with_capacity(8);
        for section in ["memory", "persistence", "replication"] {
            questions.add_command(cmd("INFO").arg(section).take());
        }
        for setting in ["appendfsync", "save", "min-replicas-to-write"] {
            questions.add_command(cmd("CONFIG").arg("GET").arg(setting).take());
        }
        // It reaches no manager, because a manager's channel has another name.
        let channel = [self.names.channels(), "audit"].concat();
        questions
            .add_command(cmd("PUBLISH").arg(channel).arg("").take())
            .add_command(cmd("TIME"));
        let before = Clock::System.unix_micros();
        let [
            memory,
            persistence,
            replication,
            fsync,
            save,
            min_replicas,
            published,
            time,
        ] = on.send_all(&questions).await?;
        let after = Clock::System.unix_micros();
        let forbids_waiting = self.replica_acks > 0 && {
            // For no replica, so it is answered at once.
            let wait = cmd("WAIT").arg(0).arg(1).take();
            matches!(on.send(&wait).await, Err(SendError::Failed(failure)) if failure.is_final())
        };
        let sections = [&memory, &persistence, &replication];
        let info = sections.into_iter().flat_map(fields).collect();
        let facts = Facts {
            role: role(&info),
            may_be_replica: !self.topology.is_one_server(),
            replicas: replicas(&info),
            max_memory: info.get("maxmemory").and_then(|bytes| bytes.parse().ok()),
            used_memory: info.get("used_memory").and_then(|bytes| bytes.parse().ok()),
            eviction_policy: info
                .get("maxmemory_policy")
                .map(|&policy| policy.to_owned()),
            persistence: persistence_of(&info, setting(&fsync), setting(&save)),
            min_replicas: setting(&min_replicas).and_then(|count| count.parse().ok()),
            clock: micros(&time).map(|server| Reading {
                before,
                server,
                after,
            }),
            forbids_info: is_forbidden(&memory),
            forbids_subscribing: false,
            forbids_publishing: is_forbidden(&published),
            forbids_waiting,
        };
        Ok((facts, followers(&info)))
    }
}

fn is_forbidden(answer: &Value) -> bool {
    matches!(answer, Value::ServerError(error) if error.code() == "NOPERM")
}

/// The value of one setting in the answer to `CONFIG GET`.
fn setting(answer: &Value) -> Option<&str> {
    match answer {
        Value::Map(pairs) => text(&pairs.first()?.1),
        Value::Array(parts) => text(parts.get(1)?),
        _ => None,
    }
}

fn role(info: &HashMap<&str, &str>) -> Option<Role> {
    match *info.get("role")? {
        "master" => Some(Role::Master),
        "slave" | "replica" => Some(Role::Replica),
        _ => None,
    }
}

/// The replicas that have all data and receive new writes.
fn replicas(info: &HashMap<&str, &str>) -> Option<u64> {
    info.get("connected_slaves")?;
    let online = |line: &&str| part(line, "state") == Some("online");
    Some(replica_lines(info).filter(online).count() as u64)
}

/// The addresses of the replicas.
fn followers(info: &HashMap<&str, &str>) -> Vec<(String, u16)> {
    let at = |line: &str| {
        Some((
            part(line, "ip")?.to_owned(),
            part(line, "port")?.parse().ok()?,
        ))
    };
    replica_lines(info).filter_map(at).collect()
}

/// `slave0:ip=127.0.0.1,port=7001,state=online,…`
fn replica_lines<'a>(info: &HashMap<&str, &'a str>) -> impl Iterator<Item = &'a str> {
    (0..).map_while(|index| info.get(format!("slave{index}").as_str()).copied())
}

fn part<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let mut parts = line.split(',').filter_map(|part| part.split_once('='));
    parts.find_map(|(of, value)| (of == name).then_some(value))
}

fn persistence_of(
    info: &HashMap<&str, &str>,
    fsync: Option<&str>,
    save: Option<&str>,
) -> Option<Persistence> {
    Some(match (*info.get("aof_enabled")?, save) {
        ("1", _) => Persistence::Log {
            never_synced: fsync == Some("no"),
        },
        ("0", Some("")) => Persistence::Nothing,
        ("0", Some(_)) => Persistence::Snapshots,
        ("0", None) => Persistence::NoLog,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn only_replicas_that_are_online_count() {
        let info = bulk(
            "# Replication\r\nrole:master\r\nconnected_slaves:3\r\n\
             slave0:ip=127.0.0.1,port=7001,state=online,offset=84,lag=0\r\n\
             slave1:ip=127.0.0.1,port=7002,state=wait_bgsave,offset=0,lag=0\r\n\
             slave2:ip=127.0.0.1,port=7003,state=online,offset=84,lag=1\r\n",
        );
        let info = fields(&info).collect();
        assert_eq!(replicas(&info), Some(2));
        let there: Vec<_> = followers(&info).into_iter().map(|(_, port)| port).collect();
        assert_eq!(there, [7001, 7002, 7003]);
        assert_eq!(role(&info), Some(Role::Master));
    }

    #[test]
    fn a_setting_is_read_from_either_protocol() {
        let map = Value::Map(vec![(bulk("save"), bulk("3600 1"))]);
        assert_eq!(setting(&map), Some("3600 1"));
        let array = Value::Array(vec![bulk("save"), bulk("")]);
        assert_eq!(setting(&array), Some(""));
        assert_eq!(setting(&Value::Map(vec![])), None);
        assert_eq!(setting(&Value::Nil), None);
    }

    #[test]
    fn what_a_restart_finds_is_read_from_both_answers() {
        let log = HashMap::from([("aof_enabled", "1")]);
        let none = HashMap::from([("aof_enabled", "0")]);
        let log_synced = |never_synced| Some(Persistence::Log { never_synced });
        assert_eq!(persistence_of(&log, Some("no"), None), log_synced(true));
        assert_eq!(
            persistence_of(&log, Some("always"), None),
            log_synced(false)
        );
        assert_eq!(persistence_of(&log, None, None), log_synced(false));
        assert_eq!(
            persistence_of(&none, None, Some("")),
            Some(Persistence::Nothing)
        );
        assert_eq!(
            persistence_of(&none, None, Some("60 1")),
            Some(Persistence::Snapshots)
        );
        assert_eq!(persistence_of(&none, None, None), Some(Persistence::NoLog));
        assert_eq!(persistence_of(&HashMap::new(), Some("no"), Some("")), None);
    }
}
