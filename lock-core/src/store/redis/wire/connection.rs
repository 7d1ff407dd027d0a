//! One multiplexed connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::aio::{AsyncPushSender, MultiplexedConnection};
use redis::{AsyncConnectionConfig, Cmd, Pipeline, PushInfo, PushKind, Value, cmd};

use super::batch::Batch;
use super::health::{Health, PendingRequest};
use super::push::PushReceiver;
use super::reply::text;
use super::send_error::{SendError, classify, failure};
use super::server::Server;
use super::version::version;
use crate::base::machine::RedisConnection;
use crate::base::token::Token;
use crate::store::Failure;

/// Data that the server's machine does not acknowledge for this long ends a connection.
pub(in crate::store::redis) const UNACKNOWLEDGED: Duration = Duration::from_secs(5);
/// With so many bytes to write the connection writes before it takes more. The server then works on one batch
/// while the next is made ready, instead of all of them at once while the client waits.
const FULL: usize = 1024;

/// The first version of Redis that tracks the keys of scripts as it should.
const WATCHES: (u32, u32, u32) = (7, 0, 5);

/// Clones share one socket. Its driver runs on the runtime that opened it.
#[derive(Clone)]
pub(in crate::store::redis) struct Connection {
    shared: Arc<SharedConnection>,
    batches: bool,
    /// Set if the node that gives up a slot has redirected a command here. Each command then begins with `ASKING`.
    asking: bool,
}

struct SharedConnection {
    redis: Arc<RedisConnection>,
    health: Arc<Health>,
    receiver: Option<Arc<PushReceiver>>,
    batch: Batch,
    watch: Watching,
}

/// Whether the server reports changes of keys on a connection.
#[derive(Default)]
struct Watching {
    /// The server has turned tracking on.
    tracks: AtomicBool,
    /// Each renewal asks for it.
    asks: AtomicBool,
}

impl Connection {
    /// Connects. `receiver`: takes the server's pushes, once the connection [listens](Self::listen). `batches`: one
    /// script may be about the keys of several locks, which it may not in a cluster.
    ///
    /// It sets no timer, so that it works in a runtime without any. The caller bounds it.
    pub(in crate::store::redis) async fn open(
        server: &Server,
        receiver: Option<&Arc<PushReceiver>>,
        batches: bool,
    ) -> Result<Self, Failure> {
        let attempt = || {
            let health = Arc::new(Health::default());
            let config = AsyncConnectionConfig::new()
                .set_response_timeout(None)
                .set_connection_timeout(None)
                .set_pipeline_buffer_size(1024)
                .set_write_backpressure_boundary(FULL)
                .set_push_sender(Listener {
                    health: Arc::clone(&health),
                    receiver: receiver.cloned(),
                });
            (config, health)
        };
        let (redis, health) = server.connect(attempt).await?;
        let shared = Arc::new(SharedConnection {
            redis,
            health,
            receiver: receiver.cloned(),
            batch: Batch::default(),
            watch: Watching::default(),
        });
        Ok(Self {
            shared,
            batches,
            asking: false,
        })
    }

    /// Subscribes to the receiver's address, if it has one and this user may.
    pub(in crate::store::redis) async fn listen(&self) -> Result<(), Failure> {
        let Some(receiver) = &self.shared.receiver else {
            return Ok(());
        };
        // No key is tracked before a renewal asks for it. A server reports the deletion of all its data to each client
        // that tracks any. NOLOOP: the connection's own renewals are no news.
        let track = cmd("CLIENT")
            .arg("TRACKING")
            .arg("ON")
            .arg("OPTIN")
            .arg("NOLOOP")
            .take();
        let Some(channel) = receiver.channel() else {
            let tracked = self.send(&track).await;
            return self.note_tracking(tracked);
        };
        let subscribe = cmd("SUBSCRIBE").arg(channel).take();
        let (subscribed, tracked) = tokio::join!(self.send(&subscribe), self.send(&track));
        match (subscribed, self.note_tracking(tracked)) {
            (Err(SendError::Broken(error)), _) => Err(failure(error)),
            (_, Err(failure)) => Err(failure),
            (Ok(_), _) => {
                receiver.open();
                self.leave_card(receiver).await
            }
            // Without pushes waiters poll: slower, not wrong. The audit reports it.
            (Err(_), _) => self.leave_card(receiver).await,
        }
    }

    /// Writes who listens here, for operators. A server that refuses it serves locks all the same.
    async fn leave_card(&self, receiver: &PushReceiver) -> Result<(), Failure> {
        // In a cluster another node may have the card's slot, and the keeper writes it.
        let Some(card) = receiver.card().filter(|_| self.batches) else {
            return Ok(());
        };
        match self.send(&card).await {
            Err(SendError::Broken(error)) => Err(failure(error)),
            _ => Ok(()),
        }
    }

    fn note_tracking(&self, tracked: Result<Value, SendError>) -> Result<(), Failure> {
        match tracked {
            Ok(_) => self.shared.watch.tracks.store(true, Ordering::Relaxed),
            Err(SendError::Broken(error)) => return Err(failure(error)),
            // The owners notice changes at their next renewals.
            Err(_) => {}
        }
        Ok(())
    }

    /// Has each renewal ask the server to report changes of its keys, if this server does that as it should.
    pub(in crate::store::redis) fn watch_if_possible(&self, info: Option<&Value>) {
        let can = info
            .and_then(version)
            .is_some_and(|version| version >= WATCHES);
        let tracks = self.shared.watch.tracks.load(Ordering::Relaxed);
        self.shared
            .watch
            .asks
            .store(can && tracks, Ordering::Relaxed);
    }

    /// Notes that the server refuses to report changes.
    pub(in crate::store::redis) fn watches_nothing(&self) {
        self.shared.watch.asks.store(false, Ordering::Relaxed);
    }

    /// Returns whether a renewal has to ask the server to report changes of its keys. A command behind `ASKING` cannot.
    pub(in crate::store::redis) fn is_watching(&self) -> bool {
        !self.asking && self.shared.watch.asks.load(Ordering::Relaxed)
    }

    /// Returns whether pushes to the receiver's address arrive here at the moment.
    pub(in crate::store::redis) fn is_listening(&self) -> bool {
        let receiver = self.shared.receiver.as_ref();
        receiver.is_some_and(|receiver| receiver.is_open())
    }

    /// Returns whether pushes for a waiter arrive here; `None`: they would arrive elsewhere.
    pub(in crate::store::redis) fn tells(&self, waiter: Token) -> Option<bool> {
        let receiver = self.shared.receiver.as_ref();
        let receiver = receiver.filter(|receiver| receiver.tells(waiter))?;
        Some(receiver.is_open())
    }

    /// The same connection for a command that another node redirected here while it gives up the slot.
    pub(in crate::store::redis) fn asking(self) -> Self {
        Self {
            asking: true,
            ..self
        }
    }

    /// Returns whether a key that is not here may be on the node that gives up the slot.
    pub(in crate::store::redis) fn is_asking(&self) -> bool {
        self.asking
    }

    /// Marks a connection to a server that is no longer the one to ask.
    pub(in crate::store::redis) fn retire(&self) {
        self.shared.health.end();
    }

    /// Returns whether sending a request makes sense.
    pub(in crate::store::redis) fn is_usable(&self) -> bool {
        self.shared.health.is_good()
    }

    /// Returns whether so many requests are open that batching pays.
    pub(in crate::store::redis) fn is_busy(&self) -> bool {
        self.batches && (self.shared.health.in_flight() >= 2 || self.shared.batch.was_a_crowd())
    }

    pub(in crate::store::redis) fn batch(&self) -> &Batch {
        &self.shared.batch
    }

    pub(in crate::store::redis) async fn send(&self, command: &Cmd) -> Result<Value, SendError> {
        if self.asking {
            let mut commands = Pipeline::with_capacity(1);
            commands.add_command(command.clone());
            let answer = Box::pin(self.send_many(&commands, 1)).await?.remove(0);
            return match SendError::of(&answer) {
                Some(trouble) => Err(trouble),
                None => Ok(answer),
            };
        }
        let question = PendingRequest::new(&self.shared.health);
        let mut redis = MultiplexedConnection::clone(&self.shared.redis);
        // In a box of its own, because a small future around it is quick to make and to move.
        let answer = Box::pin(redis.send_packed_command(command)).await;
        question.answered(answer).and_then(|value| match value {
            Value::ServerError(error) => Err(classify(error.into())),
            value => Ok(value),
        })
    }

    /// Sends several commands in one write. The answers may hold server errors.
    pub(in crate::store::redis) async fn send_all<const N: usize>(
        &self,
        commands: &Pipeline,
    ) -> Result<[Value; N], SendError> {
        let values = self.send_many(commands, N).await?;
        values
            .try_into()
            .map_err(|_| SendError::Failed(Failure::not_understood()))
    }

    /// As [`Connection::send_all`], for a number of commands that is not known at compile time.
    pub(in crate::store::redis) async fn send_many(
        &self,
        commands: &Pipeline,
        count: usize,
    ) -> Result<Vec<Value>, SendError> {
        if self.asking {
            return Box::pin(self.send_asking(commands, count)).await;
        }
        let question = PendingRequest::new(&self.shared.health);
        let mut redis = MultiplexedConnection::clone(&self.shared.redis);
        question.answered(Box::pin(redis.send_packed_commands(commands, 0, count)).await)
    }

    async fn send_asking(
        &self,
        commands: &Pipeline,
        count: usize,
    ) -> Result<Vec<Value>, SendError> {
        let mut asking = Pipeline::with_capacity(2 * count);
        for command in commands.cmd_iter() {
            asking
                .add_command(cmd("ASKING"))
                .add_command(command.clone());
        }
        let question = PendingRequest::new(&self.shared.health);
        let mut redis = MultiplexedConnection::clone(&self.shared.redis);
        let answers = redis.send_packed_commands(&asking, 0, 2 * count).await;
        let answers = question.answered(answers)?.into_iter();
        // The answers to `ASKING` itself say nothing.
        Ok(answers.skip(1).step_by(2).collect())
    }
}

/// Returns whether the answer to `ROLE` is that of a master.
pub(in crate::store::redis) fn is_master(role: Option<&Value>) -> Result<(), Failure> {
    let role = match role {
        Some(Value::Array(role)) => role.first().and_then(text),
        Some(Value::ServerError(error)) => return Err(failure(error.clone().into())),
        _ => None,
    };
    match role {
        Some("master") => Ok(()),
        Some(_) => Err(Failure::refused(
            "the server that the sentinels name as the master is a replica",
        )),
        None => Err(Failure::not_understood()),
    }
}

/// Receives the pushes of the server, and the end of the driver.
struct Listener {
    health: Arc<Health>,
    receiver: Option<Arc<PushReceiver>>,
}

impl AsyncPushSender for Listener {
    fn send(&self, push: PushInfo) -> Result<(), redis::aio::SendError> {
        if push.kind == PushKind::Disconnection {
            self.health.end();
        }
        if let Some(receiver) = &self.receiver {
            receiver.take(&push);
        }
        Ok(())
    }
}
