//! Checks of a server before it is used, because a refusal before a key is set is better than one after.
//!
//! One pipeline reads the high-water mark and runs `probe.lua`, which tries every command of the other scripts
//! without changing anything and names those that the ACL forbids. The script declares two keys of different
//! slots, so a node of a cluster refuses it even if it has all slots. Every answer is compared with the answer
//! of a Redis. Rights to `PUBLISH` and `SUBSCRIBE` are left to the audit, because waiters do without them.

use redis::{Pipeline, ServerError, Value, cmd};

use super::connection::{Connection, is_master};
use super::keyspace::Keyspace;
use super::reply::text;
use super::scripts;
use super::send_error::{SendError, forbidden, is_forbidden};
use crate::store::Failure;

/// The hash of no script.
const NO_SCRIPT: &str = "0000000000000000000000000000000000000000";
/// The commands that are tried, in their order, without `ROLE`.
const COMMANDS: [&str; 4] = ["TIME", "GET", "EVALSHA", "EVAL"];

/// The kind of server to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store::redis) enum Probe {
    Server,
    /// It must also be a master.
    Master,
    /// A node of a cluster. It need not have the slot of the tried keys.
    Node,
}

impl Connection {
    /// Checks in one round trip that the server is a Redis that lets this user run every command of a lock, and
    /// that a script may use all keys of one lock.
    pub(in crate::store::redis) async fn probe(
        &self,
        names: &Keyspace,
        probe: Probe,
    ) -> Result<(), Failure> {
        // No lock has these names, because no user's key begins with `!`.
        let (mark, queue) = (names.mark_for("!"), names.queue("!"));
        let keys = [&*mark, queue.as_str()];
        // A node of a cluster refuses two keys of different slots.
        let declared: &[&str] = if probe == Probe::Node { &[] } else { &keys };
        let mut commands = Pipeline::with_capacity(5);
        commands
            .add_command(cmd("TIME"))
            .add_command(cmd("GET").arg(&*mark).take())
            .add_command(cmd("EVALSHA").arg(NO_SCRIPT).arg(0).take())
            .add_command(scripts::PROBE.whole(declared, &keys));
        if probe == Probe::Master {
            commands.add_command(cmd("ROLE"));
        }
        let answers = self.send_many(&commands, commands.len()).await;
        let answers = answers.map_err(SendError::into_failure)?;
        judge(&answers, probe)?;
        if probe == Probe::Master {
            return is_master(answers.last());
        }
        Ok(())
    }
}

/// Judges the server by its answers.
fn judge(answers: &[Value], probe: Probe) -> Result<(), Failure> {
    let mut missing: Vec<String> = Vec::new();
    for (command, answer) in COMMANDS.iter().zip(answers) {
        match answer {
            Value::ServerError(error) if is_forbidden(error) => missing.push(right(error, command)),
            Value::ServerError(error) if is_unknown(error) => return Err(unknown(command)),
            _ => match SendError::of(answer) {
                None | Some(SendError::NoScript) => {}
                // An ACL forbids a command wherever the key is, so this one is allowed.
                Some(SendError::Elsewhere(_) | SendError::Moving(_)) if probe == Probe::Node => {}
                Some(trouble) => return Err(trouble.into_failure()),
            },
        }
    }
    let [time, mark, unknown_script, probed, ..] = answers else {
        return Err(no_redis());
    };
    if missing.is_empty() {
        let speaks = matches!(time, Value::Array(parts) if parts.len() == 2)
            && matches!(
                mark,
                Value::Nil | Value::BulkString(_) | Value::ServerError(_)
            )
            && matches!(unknown_script, Value::ServerError(_));
        let Value::Array(probed) = probed else {
            return Err(no_redis());
        };
        match probed.split_first() {
            Some((first, others)) if speaks && text(first) == Some("probed") => {
                missing.extend(others.iter().filter_map(text).map(str::to_owned));
            }
            _ => return Err(no_redis()),
        }
    }
    missing.dedup();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(forbidden(&missing))
    }
}

/// The right that an ACL error is about: the command, or its keys.
fn right(error: &ServerError, command: &str) -> String {
    let keys = error.details().is_some_and(|why| why.contains("access"));
    if keys { "keys" } else { command }.to_owned()
}

fn is_unknown(error: &ServerError) -> bool {
    error
        .details()
        .is_some_and(|why| why.starts_with("unknown command"))
}

fn unknown(command: &str) -> Failure {
    Failure::misconfigured(format!(
        "the server does not know the command {command}: it is no Redis server that keeps data (a \
         sentinel is named by redis-sentinel://), or the command is renamed or disabled there"
    ))
}

/// It may be a Redis later: something between here and the server may have answered in its place.
fn no_redis() -> Failure {
    Failure::refused("the server does not answer as a Redis server does; check host and port")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn error(code: &str, why: &str) -> Value {
        let parsed = redis::parse_redis_value(format!("-{code} {why}\r\n").as_bytes());
        parsed.expect("an error reply")
    }

    fn answers(probed: &[&str]) -> [Value; 4] {
        let probed = probed.iter().map(|text| bulk(text)).collect();
        [
            Value::Array(vec![bulk("1700000000"), bulk("25")]),
            Value::Nil,
            error("NOSCRIPT", "No matching script."),
            Value::Array(probed),
        ]
    }

    fn said(answers: &[Value]) -> String {
        let failure = judge(answers, Probe::Server).expect_err("refused");
        failure.error.to_string()
    }

    #[test]
    fn a_redis_that_allows_everything_is_used() {
        assert!(judge(&answers(&["probed"]), Probe::Server).is_ok());
    }

    #[test]
    fn every_right_that_is_missing_is_named() {
        let said_of_scripts = said(&answers(&["probed", "MGET", "ZPOPMIN"]));
        assert!(
            said_of_scripts.contains("MGET, ZPOPMIN"),
            "{said_of_scripts}"
        );
        let mut forbidden = answers(&["probed"]);
        forbidden[2] = error(
            "NOPERM",
            "this user has no permissions to run the 'evalsha' command",
        );
        assert!(said(&forbidden).contains("EVALSHA"));
        forbidden[1] = error("NOPERM", "No permissions to access a key");
        assert!(said(&forbidden).contains("keys, EVALSHA"));
    }

    #[test]
    fn every_command_of_the_scripts_is_probed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/scripts");
        let probe = include_str!("../../../scripts/probe.lua");
        for file in std::fs::read_dir(folder).expect("the scripts") {
            let path = file.expect("a script").path();
            // An operator's call says by itself what is forbidden. Locks do without.
            if path.ends_with("inspect.lua") || path.ends_with("force.lua") {
                continue;
            }
            let script = std::fs::read_to_string(&path).expect("a script");
            for call in script.split("call('").skip(1) {
                let (command, _) = call.split_once('\'').expect("a command");
                // Waiters do without `PUBLISH`; a node of a quorum runs the others when it is registered.
                let left_out = matches!(command, "PUBLISH" | "HMGET" | "HSET");
                let probed = probe.contains(&format!("{{'{command}'"));
                assert!(left_out || probed, "{command} of {}", path.display());
            }
        }
    }

    #[test]
    fn a_peer_that_gives_one_answer_to_everything_is_no_redis() {
        for answer in [
            Value::Okay,
            Value::Nil,
            Value::Int(1),
            bulk("probed"),
            Value::Array(vec![bulk("probed")]),
            Value::Array(vec![bulk("probed"), bulk("probed")]),
        ] {
            let answers = vec![answer; 4];
            assert!(said(&answers).contains("host and port"));
        }
        assert!(said(&[]).contains("host and port"));
        let unknown = vec![error("ERR", "unknown command 'GET', with args"); 4];
        assert!(said(&unknown).contains("redis-sentinel://"));
    }
}
