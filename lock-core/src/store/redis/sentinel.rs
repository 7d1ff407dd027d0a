//! Sentinels: who is the master, and who is it now.
//!
//! They are asked all at once, on the keeper's thread, every half second and whenever a server turns
//! out not to be what it was taken for. The one with the newest configuration is believed, if the
//! server that it names takes itself for a master too.

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "tls-rustls")]
use redis::ConnectionInfo;
use redis::{Client, Pipeline, Value, cmd};
use tokio::sync::watch;

use super::answers::{number, text};
use super::asking::{Informant, ask_all};
use super::connection::{Connection, Probe, prepared};
use super::inbox::Inbox;
use super::lookout::Lookout;
use super::names::Names;
use super::nodes::Nodes;
use super::tls;
use super::topology::Node;
use super::trouble::failure;
use super::url::SentinelUrl;
use crate::error::Error;
use crate::store::Failure;

/// A master that was replaced while it lives on, cut off from its sentinels, is left within this.
const INTERVAL: Duration = Duration::from_millis(500);

pub(super) struct Sentinel {
    sentinels: Vec<Client>,
    service: String,
    nodes: Nodes,
    master: watch::Sender<Master>,
    lookout: Lookout,
}

#[derive(Clone)]
enum Master {
    Unsought,
    At(Node),
    /// None was ever found: why.
    Nowhere(Failure),
}

/// What a sentinel says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    host: String,
    port: u16,
    /// Of its configuration: raised by every failover.
    epoch: u64,
}

impl Sentinel {
    pub(super) fn new(url: SentinelUrl) -> Result<Self, Error> {
        let sentinels = url.sentinels.into_iter().map(prepared);
        let sentinels = sentinels.collect::<Result<_, _>>();
        Ok(Self {
            sentinels: sentinels.map_err(|error| failure(error).error)?,
            service: url.service,
            nodes: Nodes::new(url.master),
            master: watch::Sender::new(Master::Unsought),
            lookout: Lookout::new(),
        })
    }

    /// The same, with settings that are made of its own.
    #[cfg(feature = "tls-rustls")]
    pub(super) fn spoken_to(
        self,
        with: impl Fn(ConnectionInfo) -> Result<ConnectionInfo, Error>,
    ) -> Result<Self, Error> {
        let infos = self.sentinels.iter();
        let infos = infos.map(|client| with(client.get_connection_info().clone()));
        Self::new(SentinelUrl {
            sentinels: infos.collect::<Result<_, _>>()?,
            service: self.service,
            master: with(self.nodes.settings().clone())?,
        })
    }

    pub(super) fn known_master(&self) -> Option<Node> {
        match &*self.master.borrow() {
            Master::At(node) => Some(*node),
            Master::Unsought | Master::Nowhere(_) => None,
        }
    }

    /// The master, when it has been sought.
    pub(super) async fn master(&self) -> Result<Node, Failure> {
        let mut master = self.master.subscribe();
        let sought = master.wait_for(|master| !matches!(master, Master::Unsought));
        match sought.await.map(|master| master.clone()) {
            Ok(Master::At(node)) => Ok(node),
            Ok(Master::Nowhere(failure)) => Err(failure),
            Ok(Master::Unsought) | Err(_) => Err(Failure::refused("the lock manager has ended")),
        }
    }

    /// The master, by a look that begins now: the one before may have been left for a reason.
    pub(super) async fn home(&self) -> Result<Node, Failure> {
        self.lookout.look_again().await;
        self.master().await
    }

    /// Until another server is the master.
    pub(super) async fn departure(&self, from: Node) {
        let mut master = self.master.subscribe();
        let gone = |master: &Master| matches!(master, Master::At(node) if *node != from);
        let _ = master.wait_for(gone).await;
    }

    pub(super) fn uses(&self, node: Node) -> bool {
        self.known_master() == Some(node)
    }

    pub(super) fn lookout(&self) -> &Lookout {
        &self.lookout
    }

    pub(super) async fn open(
        &self,
        node: Node,
        names: &Names,
        inbox: Option<&Arc<Inbox>>,
    ) -> Result<Connection, Failure> {
        let mark = names.any_mark();
        let connection = Connection::open(&self.nodes.client(node), inbox).await?;
        connection.probe(&mark, Probe::Master).await?;
        Ok(connection)
    }

    pub(super) fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Where the sentinels are.
    pub(super) fn addresses(&self) -> String {
        let addresses = self.sentinels.iter();
        let addresses = addresses.map(|client| client.get_connection_info().addr().to_string());
        addresses.collect::<Vec<_>>().join(",")
    }

    /// Looks after the master, for as long as the keeper runs.
    pub(super) async fn watch(&self) {
        let mut sentinels: Vec<_> = self.sentinels.iter().cloned().map(Informant::new).collect();
        loop {
            let begun = self.lookout.begin();
            match self.look(&mut sentinels).await {
                Ok(node) => {
                    self.master.send_if_modified(|master| {
                        let other = !matches!(master, Master::At(known) if *known == node);
                        *master = Master::At(node);
                        other
                    });
                }
                // A master that is known is the master, until another one is.
                Err(failure) => {
                    self.master.send_if_modified(|master| {
                        let unknown = !matches!(master, Master::At(_));
                        if unknown {
                            *master = Master::Nowhere(failure);
                        }
                        unknown
                    });
                }
            }
            self.lookout.end(begun);
            self.lookout.rest(INTERVAL).await;
        }
    }

    async fn look(&self, sentinels: &mut [Informant]) -> Result<Node, Failure> {
        let mut questions = Pipeline::with_capacity(2);
        for question in ["GET-MASTER-ADDR-BY-NAME", "MASTER"] {
            questions.add_command(cmd("SENTINEL").arg(question).arg(&self.service).take());
        }
        let answers = ask_all(sentinels, &questions, 2).await;
        let answers = answers.into_iter();
        let answers = answers.map(|(_, answers)| said(&answers.map_err(not_let_in)?));
        let mut why = None;
        for said in newest(answers)? {
            let node = self.nodes.at(&said.host, said.port).map_err(failure)?;
            // Known already: its connections tell what becomes of it.
            if self.uses(node) {
                return Ok(node);
            }
            match self.check(node).await {
                Ok(()) => return Ok(node),
                Err(failure) => why = Some(failure),
            }
        }
        Err(why.unwrap_or_else(unreachable))
    }

    /// Whether the server takes itself for a master.
    async fn check(&self, node: Node) -> Result<(), Failure> {
        let mut server = [Informant::new(self.nodes.client(node))];
        let mut question = Pipeline::with_capacity(1);
        question.add_command(cmd("ROLE"));
        let answer = ask_all(&mut server, &question, 1).await.pop();
        match answer {
            Some((_, answers)) => super::connection::is_master(answers?.first()),
            None => Err(Failure::refused(
                "the server that the sentinels name as the master does not answer",
            )),
        }
    }
}

/// Of what the sentinels say, that of the newest configuration: one master, or several where they do
/// not agree. Or what most of all says why there is none.
fn newest(answers: impl Iterator<Item = Result<Said, Failure>>) -> Result<Vec<Said>, Failure> {
    let mut failed = None;
    let mut newest: Vec<Said> = Vec::new();
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
                // A definite answer says more than none.
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

/// A sentinel that cannot be connected to, or does not want to be.
fn not_let_in(failure: Failure) -> Failure {
    if failure.is_final() && !tls::is_refusal(&failure) {
        Failure::misconfigured(
            "the sentinels do not let this user in; write the user and password that they ask for \
             as `&sentinel_username=…&sentinel_password=…`: those before the `@` are for the master",
        )
    } else {
        failure
    }
}

fn unreachable() -> Failure {
    Failure::refused("none of the sentinels of the URL can be reached")
}

/// What one sentinel says.
fn said(answers: &[Value]) -> Result<Said, Failure> {
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
    let Value::Array(parts) = address else {
        return Err(Failure::not_understood());
    };
    let [host, port] = parts.as_slice() else {
        return Err(Failure::not_understood());
    };
    let port = number(port).and_then(|port| u16::try_from(port).ok());
    match (text(host), port) {
        (Some(host), Some(port)) => Ok(Said {
            host: host.to_owned(),
            port,
            epoch: epoch(master).unwrap_or(0),
        }),
        _ => Err(Failure::not_understood()),
    }
}

/// The field of `SENTINEL MASTER`, a map or a list of names and values.
fn epoch(master: &Value) -> Option<u64> {
    let is_epoch = |name: &Value| text(name) == Some("config-epoch");
    match master {
        Value::Map(fields) => {
            let field = fields.iter().find(|(name, _)| is_epoch(name))?;
            number(&field.1)
        }
        Value::Array(parts) => {
            let mut fields = parts.chunks_exact(2);
            number(&fields.find(|field| is_epoch(&field[0]))?[1])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn named(host: &str, epoch: u64) -> Result<Said, Failure> {
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
