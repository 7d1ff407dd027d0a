//! Sending an operation to the server that has its key.
//!
//! On one server a broken connection is replaced and the operation sent once more. With sentinels or in a
//! cluster another server may have taken the place of the first. The operation looks for it during half of its
//! caller's timeout, so that the caller learns why it failed. A repeated operation carries the same token and
//! is marked as repeated.

use std::time::Duration;

use redis::{ErrorKind as RedisKind, RedisError, ServerErrorKind};

use super::RedisStore;
use super::part::Part;
use super::replicas::ACKNOWLEDGED;
use crate::base::clock::{Clock, Moment};
use crate::store::redis::topology::ServerId;
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::send_error::SendError;
use crate::store::redis::wire::slots::HashSlot;
use crate::store::{AcquireCommand, BoxFuture, Failure, Lane, Operation, Outcome};

/// How long the redirection of a key whose slot moves counts, from the question to the node that gives the slot up. The slot may
/// since have moved, and moved away and back again. The other node would then answer for a key that it does not have yet.
const REDIRECTED_FOR: Duration = Duration::from_secs(2);

/// A command that is sent to one server at once.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Whole(Operation),
    /// One part of an operation, about one key.
    Part(Part),
}

impl Command {
    fn key(&self) -> &str {
        match self {
            Command::Whole(operation) => operation.key(),
            Command::Part(part) => part.key(),
        }
    }

    fn acquire(&self) -> Option<&AcquireCommand> {
        match self {
            Command::Whole(Operation::Acquire(acquire)) => Some(acquire),
            Command::Whole(_) => None,
            Command::Part(part) => part.acquire(),
        }
    }

    /// Marks an acquire as repeated after a connection broke, because it may have been done.
    fn note_error(&mut self, trouble: &SendError) {
        if let SendError::Broken(_) = trouble {
            self.may_be_done();
        }
    }

    fn may_be_done(&mut self) {
        if let Command::Whole(Operation::Acquire(acquire)) = self {
            acquire.repeated = true;
        }
    }
}

/// The state of one operation on its way.
pub(super) struct Dispatch {
    pub(super) lane: Lane,
    /// Whether a send may have arrived that was not answered.
    pub(super) again: bool,
    patience: Duration,
    failing_since: Option<Moment>,
    /// How often another node was named.
    redirected: u32,
    /// The node that has the key although its slot still belongs to another node.
    pub(super) asking: Option<ServerId>,
    /// When the node that names the other one was asked.
    pub(super) asked: Moment,
}

impl RedisStore {
    /// Sends an operation. As little as possible is done for the usual case, an open connection to one server.
    pub(in crate::store::redis) fn ask(
        &self,
        operation: Operation,
        lane: Lane,
    ) -> BoxFuture<'_, Outcome> {
        let Some((node, connection)) = self.at_hand(lane) else {
            return Box::pin(self.dispatch_with(operation, lane, None));
        };
        Box::pin(async move {
            let mut fast = self.fast_path(&operation, &connection);
            let answered = match &mut fast {
                Some(fast) => self.send_fast(fast, &connection).await,
                None => Box::pin(self.send(&operation, &connection)).await,
            };
            drop(fast);
            match answered {
                Ok(outcome) => outcome,
                Err(trouble) => {
                    let met = Some((trouble, node, connection));
                    Box::pin(self.dispatch_with(operation, lane, met)).await
                }
            }
        })
    }

    /// Returns the connection of the usual case, if it is open.
    pub(in crate::store::redis) fn at_hand(&self, lane: Lane) -> Option<(ServerId, Connection)> {
        if self.replicas.is_some() || self.topology.is_cluster() {
            return None;
        }
        self.there("", lane)
    }

    /// Sends an operation anywhere. `met`: the error of its first send.
    async fn dispatch_with(
        &self,
        operation: Operation,
        lane: Lane,
        met: Option<(SendError, ServerId, Connection)>,
    ) -> Outcome {
        let mut dispatch = Dispatch::new(lane, self.patience);
        if self.topology.is_cluster() {
            return self.ask_cluster(operation, &mut dispatch).await;
        }
        let mut command = Command::Whole(operation);
        if let Some((trouble, node, connection)) = met {
            command.note_error(&trouble);
            let gone_on = self.go_on(trouble, node, &connection, &mut dispatch).await;
            if let Err(trouble) = gone_on {
                return dispatch.failed(trouble);
            }
        }
        let sent = self.send_until_answered(command, &mut dispatch).await;
        sent.unwrap_or_else(|trouble| dispatch.failed(trouble))
    }

    /// Repeats the command until a server has answered, or nothing more can be done.
    pub(super) async fn send_until_answered(
        &self,
        mut command: Command,
        dispatch: &mut Dispatch,
    ) -> Result<Outcome, SendError> {
        let lock = if self.topology.is_cluster() {
            self.names.lock(command.key())
        } else {
            // It decides nothing there.
            String::new()
        };
        // A redirection is about the keys of one command. Those of the next part of an operation may be on the first node.
        dispatch.asking = None;
        loop {
            let is_redirected = dispatch.asking.is_some();
            let there = match is_redirected {
                false => self.there(&lock, dispatch.lane),
                true => None,
            };
            let there = match there {
                Some(there) => Some(there),
                None => Box::pin(self.find_connection(&lock, dispatch)).await?,
            };
            let Some((node, connection)) = there else {
                continue;
            };
            match is_redirected {
                true if dispatch.is_redirection_old() => continue,
                false if self.topology.is_cluster() => dispatch.asked = Clock::System.now(),
                _ => {}
            }
            let answered = self
                .send_command(&command, dispatch.lane, &connection)
                .await;
            if is_redirected && dispatch.is_redirection_old() {
                command.may_be_done();
                dispatch.again = true;
                continue;
            }
            match answered {
                // The later parts of an operation need the answer as it is.
                Ok(outcome) if dispatch.again && matches!(command, Command::Whole(_)) => {
                    return Ok(outcome.of_the_last_send());
                }
                Ok(outcome) => return Ok(outcome),
                Err(trouble) => {
                    command.note_error(&trouble);
                    Box::pin(self.go_on(trouble, node, &connection, dispatch)).await?;
                }
            }
        }
    }

    async fn send_command(
        &self,
        command: &Command,
        lane: Lane,
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        let outcome = match command {
            Command::Whole(operation) => self.send(operation, on).await?,
            Command::Part(part) => Box::pin(self.send_part(part, on)).await?,
        };
        match &self.replicas {
            Some(replicas) if lane.channel() == ACKNOWLEDGED => {
                Box::pin(self.once_acknowledged(replicas, command.acquire(), outcome, on)).await
            }
            _ => Ok(outcome),
        }
    }

    /// Returns the connection to the server that has the key, where both are known.
    fn there(&self, lock: &str, lane: Lane) -> Option<(ServerId, Connection)> {
        let node = self.topology.known_node_of(lock)?;
        Some((node, self.open_connection(lane, node)?))
    }

    /// Finds the server and connects to it. `None`: another server has the key by now, so try again.
    pub(super) async fn find_connection(
        &self,
        lock: &str,
        dispatch: &mut Dispatch,
    ) -> Result<Option<(ServerId, Connection)>, SendError> {
        if let Some(node) = dispatch.asking.take() {
            return match self.connection(dispatch.lane, node).await {
                Ok(connection) => Ok(Some((node, connection.asking()))),
                Err(failure) => self.without_connection(failure, dispatch).await,
            };
        }
        let node = match self.topology.node_of(lock).await {
            Ok(node) => node,
            Err(failure) => return self.without_connection(failure, dispatch).await,
        };
        if let Some(connection) = self.open_connection(dispatch.lane, node) {
            return Ok(Some((node, connection)));
        }
        self.topology.prepare_to_connect().await;
        if self.topology.known_node_of(lock) != Some(node) {
            return Ok(None);
        }
        let opened = tokio::select! {
            biased;
            opened = self.connection(dispatch.lane, node) => opened,
            () = self.topology.departure(lock, node) => return Ok(None),
        };
        match opened {
            Ok(connection) => Ok(Some((node, connection))),
            Err(failure) => self.without_connection(failure, dispatch).await,
        }
    }

    async fn without_connection<T>(
        &self,
        failure: Failure,
        dispatch: &mut Dispatch,
    ) -> Result<Option<T>, SendError> {
        // What a new connection begins with may have arrived, but not the operation.
        let not_sent = Failure {
            ambiguous: false,
            ..failure
        };
        self.rest(SendError::Failed(not_sent), dispatch).await?;
        Ok(None)
    }

    /// Decides what follows an error; `Ok`: try again.
    async fn go_on(
        &self,
        trouble: SendError,
        node: ServerId,
        on: &Connection,
        dispatch: &mut Dispatch,
    ) -> Result<(), SendError> {
        match trouble {
            SendError::Broken(error) => {
                // The first time it is most likely only the connection.
                if !std::mem::replace(&mut dispatch.again, true) {
                    self.topology.doubt();
                    return Ok(());
                }
                self.rest(SendError::Broken(error), dispatch).await
            }
            SendError::Unfit(failure) => {
                if !self.topology.is_one_server() {
                    on.retire();
                }
                self.rest(SendError::Unfit(failure), dispatch).await
            }
            SendError::Elsewhere(error) => self.follow(error, node, dispatch).await,
            trouble => Err(trouble),
        }
    }

    /// Waits until the servers have been looked at again, if that may help and there is time.
    pub(super) async fn rest(
        &self,
        trouble: SendError,
        dispatch: &mut Dispatch,
    ) -> Result<(), SendError> {
        let for_good = match &trouble {
            SendError::Failed(failure) | SendError::Unfit(failure) => failure.is_final(),
            _ => false,
        };
        // The connection of another runtime is open, or it cannot be used.
        let elsewhere = !dispatch.lane.is_here();
        if self.topology.is_one_server() || for_good || elsewhere || dispatch.is_over() {
            return Err(trouble);
        }
        self.topology.look_again().await;
        Ok(())
    }

    /// Follows a redirection to another node, which has the key for good or until its slot has moved.
    async fn follow(
        &self,
        error: RedisError,
        node: ServerId,
        dispatch: &mut Dispatch,
    ) -> Result<(), SendError> {
        let Some(cluster) = self.topology.cluster() else {
            return Err(SendError::Elsewhere(error));
        };
        let named = || {
            let (address, slot) = error.redirect_node()?;
            let slot = HashSlot::numbered(slot.into())?;
            Some((slot, cluster.named(address, node)?))
        };
        let Some((slot, to)) = named() else {
            return Err(SendError::Failed(Failure::not_understood()));
        };
        // The slot still belongs to the node that redirected.
        let is_for_now = error.kind() == RedisKind::Server(ServerErrorKind::Ask);
        if is_for_now {
            dispatch.asking = Some(to);
        } else {
            cluster.moved(slot, to);
        }
        dispatch.redirected += 1;
        // Nodes that redirect to each other need time to agree.
        if dispatch.redirected > 4 {
            let at_odds = Failure::refused(
                "the nodes of the cluster do not agree which of them has the key's slot",
            );
            return self.rest(SendError::Failed(at_odds), dispatch).await;
        }
        Ok(())
    }
}

impl Dispatch {
    pub(super) fn new(lane: Lane, patience: Duration) -> Self {
        Self {
            lane,
            again: false,
            patience,
            failing_since: None,
            redirected: 0,
            asking: None,
            asked: Moment(0),
        }
    }

    fn is_redirection_old(&self) -> bool {
        Clock::System.now().since(self.asked) >= REDIRECTED_FOR
    }

    fn is_over(&mut self) -> bool {
        let now = Clock::System.now();
        let since = *self.failing_since.get_or_insert(now);
        now.since(since) >= self.patience
    }

    pub(super) fn failed(&self, trouble: SendError) -> Outcome {
        let failure = trouble.into_failure();
        Outcome::Failed(Failure {
            // An earlier send may have arrived.
            ambiguous: failure.ambiguous || self.again,
            ..failure
        })
    }
}

#[cfg(test)]
#[path = "dispatch_tests.rs"]
mod tests;
