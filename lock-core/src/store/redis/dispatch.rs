//! Sending an operation to the server that has its key, wherever that is by now.
//!
//! On one server a broken connection is replaced and the operation sent once more. With sentinels or in
//! a cluster another server may have taken its place: the operation looks for it, for half the time
//! that its caller gives it, so that the caller is told why it failed. Whatever is sent again carries
//! the same token, and is known for a repetition.

use std::time::Duration;

use super::RedisStore;
use super::connection::Connection;
use super::replicas::ACKNOWLEDGED;
use super::send_error::Elsewhere;
use super::send_error::Trouble;
use super::topology::Node;
use crate::base::clock::{Clock, Moment};
use crate::store::{Acquire, BoxFuture, Failure, Lane, Operation, Outcome};

/// What is sent to one server in one go.
#[derive(Clone, Debug)]
pub(super) enum Errand {
    Whole(Operation),
    /// A part of an operation, about one key.
    Part(super::cluster::parts::Part),
}

impl Errand {
    fn key(&self) -> &str {
        match self {
            Errand::Whole(operation) => operation.key(),
            Errand::Part(part) => part.key(),
        }
    }

    fn acquire(&self) -> Option<&Acquire> {
        match self {
            Errand::Whole(Operation::Acquire(acquire)) => Some(acquire),
            Errand::Whole(_) => None,
            Errand::Part(part) => part.acquire(),
        }
    }

    /// After a connection broke it may have been done already.
    fn note_trouble(&mut self, trouble: &Trouble) {
        if let Trouble::Broken(_) = trouble
            && let Errand::Whole(Operation::Acquire(acquire)) = self
        {
            acquire.repeated = true;
        }
    }
}

/// What one operation has met so far.
pub(super) struct Journey {
    pub(super) lane: Lane,
    /// Whether a send of it may have arrived that was not answered.
    pub(super) again: bool,
    patience: Duration,
    trouble_since: Option<Moment>,
    /// How often another node was named.
    redirected: u32,
    /// The node that has the key although its slot is another's still, and the mark there.
    asking: Option<(Node, u64)>,
}

impl RedisStore {
    /// As quick as it can be for the usual case: one server, to which there is a connection.
    pub(super) fn ask(&self, operation: Operation, lane: Lane) -> BoxFuture<'_, Outcome> {
        let Some((node, connection)) = self.at_hand(lane) else {
            return Box::pin(self.set_out_with(operation, lane, None));
        };
        let quick = self.quick(&operation, &connection);
        Box::pin(async move {
            let answered = match quick {
                Some(quick) => self.ask_quickly(quick, &operation, &connection).await,
                None => Box::pin(self.send(&operation, &connection)).await,
            };
            match answered {
                Ok(outcome) => outcome,
                Err(trouble) => {
                    let met = Some((trouble, node, connection));
                    Box::pin(self.set_out_with(operation, lane, met)).await
                }
            }
        })
    }

    /// The connection that an operation goes by in the usual case, if it is there.
    pub(super) fn at_hand(&self, lane: Lane) -> Option<(Node, Connection)> {
        if self.replicas.is_some() || self.topology.is_cluster() {
            return None;
        }
        self.there("", lane)
    }

    /// Wherever it leads; `met`: after it was sent there once, and that came of it.
    async fn set_out_with(
        &self,
        operation: Operation,
        lane: Lane,
        met: Option<(Trouble, Node, Connection)>,
    ) -> Outcome {
        let mut journey = Journey::new(lane, self.patience);
        if self.topology.is_cluster() {
            return self.ask_cluster(operation, &mut journey).await;
        }
        let mut errand = Errand::Whole(operation);
        if let Some((trouble, node, connection)) = met {
            errand.note_trouble(&trouble);
            let gone_on = self.go_on(trouble, node, &connection, &mut journey).await;
            if let Err(trouble) = gone_on {
                return journey.failed(trouble);
            }
        }
        match self.travel(errand, &mut journey).await {
            Ok(outcome) => outcome,
            Err(trouble) => journey.failed(trouble),
        }
    }

    /// Until a server has answered, or nothing more can be done.
    pub(super) async fn travel(
        &self,
        errand: Errand,
        journey: &mut Journey,
    ) -> Result<Outcome, Trouble> {
        let mut errand = errand;
        let lock = if self.topology.is_cluster() {
            self.names.lock(errand.key())
        } else {
            // There it decides nothing.
            String::new()
        };
        loop {
            let Some((node, connection)) = (match self.there_again(&lock, journey) {
                Some(there) => Some(there),
                None => Box::pin(self.set_out(&lock, journey)).await?,
            }) else {
                continue;
            };
            match self.send_errand(&errand, journey.lane, &connection).await {
                Ok(outcome) if journey.again => return Ok(outcome.of_the_last_send()),
                Ok(outcome) => return Ok(outcome),
                Err(trouble) => {
                    errand.note_trouble(&trouble);
                    Box::pin(self.go_on(trouble, node, &connection, journey)).await?;
                }
            }
        }
    }

    async fn send_errand(
        &self,
        errand: &Errand,
        lane: Lane,
        on: &Connection,
    ) -> Result<Outcome, Trouble> {
        let outcome = match errand {
            Errand::Whole(operation) => self.send(operation, on).await?,
            Errand::Part(part) => Box::pin(self.send_part(part, on)).await?,
        };
        match (&self.replicas, lane) {
            (Some(replicas), lane) if lane.channel() == ACKNOWLEDGED => {
                Box::pin(self.once_acknowledged(replicas, errand.acquire(), outcome, on)).await
            }
            _ => Ok(outcome),
        }
    }

    /// The connection to the server that has the key, where both are known.
    fn there(&self, lock: &str, lane: Lane) -> Option<(Node, Connection)> {
        let node = self.topology.known_node_of(lock)?;
        Some((node, self.open_connection(lane, node)?))
    }

    fn there_again(&self, lock: &str, journey: &Journey) -> Option<(Node, Connection)> {
        if journey.asking.is_some() {
            return None;
        }
        self.there(lock, journey.lane)
    }

    /// Finds the server and connects to it. Nothing: it is another one by now, or better luck next time.
    pub(super) async fn set_out(
        &self,
        lock: &str,
        journey: &mut Journey,
    ) -> Result<Option<(Node, Connection)>, Trouble> {
        if let Some((node, mark)) = journey.asking.take() {
            return match self.connection_at_hand(journey.lane, node).await {
                Ok(connection) => Ok(Some((node, connection.asking(mark)))),
                Err(failure) => self.no_connection(failure, journey).await,
            };
        }
        let node = match self.topology.node_of(lock).await {
            Ok(node) => node,
            Err(failure) => return self.no_connection(failure, journey).await,
        };
        if let Some(connection) = self.open_connection(journey.lane, node) {
            return Ok(Some((node, connection)));
        }
        self.topology.prepare_to_connect().await;
        if self.topology.known_node_of(lock) != Some(node) {
            return Ok(None);
        }
        let opened = tokio::select! {
            biased;
            opened = self.connection(journey.lane, node) => opened,
            () = self.topology.departure(lock, node) => return Ok(None),
        };
        match opened {
            Ok(connection) => Ok(Some((node, connection))),
            Err(failure) => self.no_connection(failure, journey).await,
        }
    }

    async fn connection_at_hand(&self, lane: Lane, node: Node) -> Result<Connection, Failure> {
        match self.open_connection(lane, node) {
            Some(connection) => Ok(connection),
            None => self.connection(lane, node).await,
        }
    }

    async fn no_connection<T>(
        &self,
        failure: Failure,
        journey: &mut Journey,
    ) -> Result<Option<T>, Trouble> {
        self.rest(Trouble::Failed(failure), journey).await?;
        Ok(None)
    }

    /// What to do about trouble with a server: `Ok` to try again.
    async fn go_on(
        &self,
        trouble: Trouble,
        node: Node,
        on: &Connection,
        journey: &mut Journey,
    ) -> Result<(), Trouble> {
        let _ = node;
        match trouble {
            Trouble::Broken(error) => {
                // Most likely it is the connection only, the first time.
                if !std::mem::replace(&mut journey.again, true) {
                    self.topology.doubt();
                    return Ok(());
                }
                self.rest(Trouble::Broken(error), journey).await
            }
            Trouble::Unfit(failure) => {
                if !self.topology.is_one_server() {
                    on.retire();
                }
                self.rest(Trouble::Unfit(failure), journey).await
            }
            Trouble::Elsewhere(elsewhere) => self.follow(elsewhere, node, journey).await,
            trouble => Err(trouble),
        }
    }

    /// Waits until the servers have been looked at again, if it pays and there is time.
    pub(super) async fn rest(
        &self,
        trouble: Trouble,
        journey: &mut Journey,
    ) -> Result<(), Trouble> {
        let for_good = match &trouble {
            Trouble::Failed(failure) | Trouble::Unfit(failure) => failure.is_final(),
            _ => false,
        };
        // Another runtime's link is there or it is not.
        let elsewhere = !journey.lane.is_here();
        if self.topology.is_one_server() || for_good || elsewhere || journey.is_over() {
            return Err(trouble);
        }
        self.topology.look_again().await;
        Ok(())
    }
}

impl RedisStore {
    /// Another node has the key: for good, or until its slot has moved as a whole.
    async fn follow(
        &self,
        elsewhere: Elsewhere,
        node: Node,
        journey: &mut Journey,
    ) -> Result<(), Trouble> {
        let Some(cluster) = self.topology.cluster() else {
            return Err(Trouble::Elsewhere(elsewhere));
        };
        let named = || {
            let (address, slot) = elsewhere.error.redirect_node()?;
            let slot = super::cluster::slots::Slot::numbered(slot.into())?;
            Some((slot, cluster.named(address, node)?))
        };
        let Some((slot, to)) = named() else {
            return Err(Trouble::Failed(Failure::not_understood()));
        };
        if elsewhere.is_for_now() {
            journey.asking = Some((to, elsewhere.mark));
        } else {
            cluster.moved(slot, to);
        }
        journey.redirected += 1;
        // Nodes that send one to each other have to settle it first.
        if journey.redirected > 4 {
            return self.rest(Trouble::Failed(at_odds()), journey).await;
        }
        Ok(())
    }
}

fn at_odds() -> Failure {
    Failure::refused("the nodes of the cluster do not agree which of them has the key's slot")
}

impl Journey {
    fn new(lane: Lane, patience: Duration) -> Self {
        Self {
            lane,
            again: false,
            patience,
            trouble_since: None,
            redirected: 0,
            asking: None,
        }
    }

    fn is_over(&mut self) -> bool {
        let now = Clock::System.now();
        let since = *self.trouble_since.get_or_insert(now);
        now.since(since) >= self.patience
    }

    pub(super) fn failed(&self, trouble: Trouble) -> Outcome {
        let failure = trouble.into_failure();
        Outcome::Failed(Failure {
            // What was sent before may have arrived.
            ambiguous: failure.ambiguous || self.again,
            ..failure
        })
    }
}
