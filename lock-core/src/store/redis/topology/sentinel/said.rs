//! Reports of sentinels, and which of them counts.

use std::collections::BTreeMap;

use redis::{Value, from_redis_value_ref};

use crate::store::Failure;
use crate::store::redis::wire::send_error::failure;
use crate::store::redis::wire::tls;

/// The report of a sentinel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SentinelReport {
    pub(super) host: String,
    pub(super) port: u16,
    /// The epoch of its configuration, raised by every failover.
    pub(super) epoch: u64,
}

/// The master of the newest configuration, or several where sentinels disagree. Otherwise the error that best
/// explains why there is none.
pub(super) fn newest(
    answers: impl Iterator<Item = Result<SentinelReport, Failure>>,
) -> Result<Vec<SentinelReport>, Failure> {
    let mut failed = None;
    let mut newest: Vec<SentinelReport> = Vec::new();
    for answer in answers {
        match answer {
            Ok(said) => {
                let epoch = newest.first().map_or(0, |newest| newest.epoch);
                if said.epoch > epoch {
                    newest.clear();
                }
                if said.epoch >= epoch && !newest.contains(&said) {
                    newest.push(said);
                }
            }
            Err(failure) => {
                // A definite answer explains more than none.
                if failed
                    .as_ref()
                    .is_none_or(|failed: &Failure| !failed.is_final())
                {
                    failed = Some(failure);
                }
            }
        }
    }
    if newest.is_empty() {
        return Err(failed.filter(Failure::is_final).unwrap_or_else(unreachable));
    }
    Ok(newest)
}

/// The failure of a sentinel that cannot be connected to, or refuses this client.
pub(super) fn not_let_in(failure: Failure) -> Failure {
    if failure.is_final() && !tls::is_refusal(&failure) {
        Failure::misconfigured(
            "the sentinels do not let this user in; write the user and password that they ask for \
             as `&sentinel_username=…&sentinel_password=…`: those before the `@` are for the master",
        )
    } else {
        failure
    }
}

pub(super) fn unreachable() -> Failure {
    Failure::refused("none of the sentinels of the URL can be reached")
}

/// Reads the report of one sentinel.
pub(super) fn said(answers: &[Value]) -> Result<SentinelReport, Failure> {
    let [address, master] = answers else {
        return Err(Failure::not_understood());
    };
    if let Value::ServerError(error) = address {
        return Err(match error.code() {
            "NOAUTH" | "WRONGPASS" => not_let_in(failure(error.clone().into())),
            "NOPERM" => Failure::misconfigured(
                "the sentinels' ACL forbids this user to ask for the master; allow it +sentinel",
            ),
            "LOADING" | "BUSY" => Failure::refused("a sentinel is not ready"),
            _ => Failure::misconfigured(
                "a server of the URL is no sentinel; write the sentinels' hosts and ports, or \
                 redis://host:port for a server without sentinels",
            ),
        });
    }
    if *address == Value::Nil {
        return Err(Failure::misconfigured(
            "the sentinels know no master of the name that the URL gives as `service`; write the \
             one of `sentinel monitor <name> …` in their configuration",
        ));
    }
    let Ok((host, port)) = from_redis_value_ref(address) else {
        return Err(Failure::not_understood());
    };
    let epoch = epoch(master).unwrap_or(0);
    Ok(SentinelReport { host, port, epoch })
}

/// The field of `SENTINEL MASTER`, a map or a list of names and values.
fn epoch(master: &Value) -> Option<u64> {
    let fields: BTreeMap<String, String> = from_redis_value_ref(master).ok()?;
    fields.get("config-epoch")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn named(host: &str, epoch: u64) -> Result<SentinelReport, Failure> {
        let address = Value::Array(vec![bulk(host), bulk("6379")]);
        let master = Value::Map(vec![
            (bulk("name"), bulk("mymaster")),
            (bulk("config-epoch"), bulk(&epoch.to_string())),
        ]);
        said(&[address, master])
    }

    #[test]
    fn the_newest_configuration_is_believed_whoever_answers_first() {
        let hosts = |answers: Vec<_>| {
            let newest = newest(answers.into_iter()).unwrap();
            newest.into_iter().map(|said| said.host).collect::<Vec<_>>()
        };
        assert_eq!(hosts(vec![named("old", 1), named("new", 2)]), ["new"]);
        assert_eq!(hosts(vec![named("new", 2), named("old", 1)]), ["new"]);
        let dead = Err(Failure::refused("no answer"));
        assert_eq!(hosts(vec![dead, named("old", 1)]), ["old"]);
        let torn = vec![named("one", 1), named("other", 1), named("one", 1)];
        assert_eq!(hosts(torn), ["one", "other"]);
    }

    #[test]
    fn a_sentinel_of_the_older_protocol_tells_its_epoch_in_a_list() {
        let master = Value::Array(vec![bulk("ip"), bulk("x"), bulk("config-epoch"), bulk("7")]);
        assert_eq!(epoch(&master), Some(7));
        assert_eq!(epoch(&Value::Nil), None);
    }

    #[test]
    fn an_unknown_service_is_a_mistake_and_silence_is_an_outage() {
        let unknown = said(&[Value::Nil, Value::Nil]);
        let silent = Err(Failure::unanswered("no answer"));
        let failure = newest([silent.clone(), unknown].into_iter()).unwrap_err();
        assert_eq!(failure.error.kind(), ErrorKind::Misconfigured);
        assert!(failure.error.to_string().contains("service"));
        let failure = newest([silent].into_iter()).unwrap_err();
        assert_eq!(failure.error.kind(), ErrorKind::Unavailable);
    }
}
