//! One multiplexed connection.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::{AsyncPushSender, MultiplexedConnection, SendError};
use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, Pipeline, ProtocolVersion, PushInfo,
    PushKind, RedisError, Value, cmd,
};

use super::batch::Batch;
use super::health::{Health, PendingRequest};
use super::push::PushReceiver;
use super::send_error::{Trouble, failure, not_connected, trouble};
use crate::base::token::Token;
use crate::store::Failure;

/// Data that the server's machine does not acknowledge for this long ends a connection.
pub(super) const UNACKNOWLEDGED: Duration = Duration::from_secs(5);
/// With so many bytes to write it writes, before it takes more: the server then works on one batch while
/// the next is made ready, instead of all of them at once while the client waits.
const FULL: usize = 1024;

/// A client with the settings that a lock needs, whatever it was made with.
pub(super) fn prepared(info: ConnectionInfo) -> Result<Client, RedisError> {
    #[cfg(feature = "tls-rustls")]
    if super::tls::is_spoken(&info) {
        super::tls::choose_cryptography();
    }
    let keepalive = TcpKeepalive::new()
        .with_time(UNACKNOWLEDGED)
        .with_interval(Duration::from_secs(1));
    let tcp = TcpSettings::default()
        .set_nodelay(true)
        .set_keepalive(keepalive);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let tcp = tcp.set_user_timeout(UNACKNOWLEDGED);
    let settings = info
        .redis_settings()
        .clone()
        .set_protocol(ProtocolVersion::RESP3);
    Client::open(info.set_tcp_settings(tcp).set_redis_settings(settings))
}

/// Clones share one socket. Its driver runs on the runtime that opened it.
#[derive(Clone)]
pub(super) struct Connection {
    shared: Arc<SharedConnection>,
    /// Whether one script may be about the keys of several locks.
    batches: bool,
    /// Whether each command is to say that it was sent here from the node that is giving up its slot,
    /// and the mark that was seen there.
    asking: Option<u64>,
}

struct SharedConnection {
    redis: MultiplexedConnection,
    health: Arc<Health>,
    receiver: Option<Arc<PushReceiver>>,
    batch: Batch,
}

impl Connection {
    /// Connects. `receiver`: where to put what the server pushes, once it is [listened to](Self::listen).
    ///
    /// Sets no timer, so that it works in a runtime without any: the caller bounds it.
    pub(super) async fn open(
        client: &Client,
        receiver: Option<&Arc<PushReceiver>>,
    ) -> Result<Self, Failure> {
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
        let redis = client
            .get_multiplexed_async_connection_with_config(&config)
            .await
            .map_err(not_connected)?;
        let shared = Arc::new(SharedConnection {
            redis,
            health,
            receiver: receiver.cloned(),
            batch: Batch::default(),
        });
        Ok(Self {
            shared,
            batches: true,
            asking: None,
        })
    }

    /// From here on what is pushed to its receiver's address arrives here, if this user may listen.
    pub(super) async fn listen(&self) -> Result<(), Failure> {
        let Some(receiver) = &self.shared.receiver else {
            return Ok(());
        };
        let subscribe = cmd("SUBSCRIBE").arg(receiver.channel()).take();
        // No key is tracked: a server tells each client that tracks any when all its data is deleted.
        let track = cmd("CLIENT").arg("TRACKING").arg("ON").arg("OPTIN").take();
        match tokio::join!(self.send(&subscribe), self.send(&track)) {
            (Err(Trouble::Broken(error)), _) | (_, Err(Trouble::Broken(error))) => {
                Err(failure(error))
            }
            (Ok(_), _) => {
                receiver.open();
                Ok(())
            }
            // Without pushes waiters look for themselves: slower, not wrong. The audit tells of it.
            (Err(_), _) => Ok(()),
        }
    }

    /// Whether what is pushed to its receiver's address arrives here at the moment.
    pub(super) fn is_listening(&self) -> bool {
        let receiver = self.shared.receiver.as_ref();
        receiver.is_some_and(|receiver| receiver.is_open())
    }

    /// Whether a waiter is told here what becomes of it; `None`: it would be told elsewhere.
    pub(super) fn tells(&self, waiter: Token) -> Option<bool> {
        let receiver = self.shared.receiver.as_ref();
        let receiver = receiver.filter(|receiver| receiver.address() == waiter.address())?;
        Some(receiver.is_open())
    }

    /// For a cluster: keys of different slots are never sent in one script.
    pub(super) fn one_by_one(self) -> Self {
        Self {
            batches: false,
            ..self
        }
    }

    /// For what another node has sent here, which is giving up the slot to this one and has said that
    /// the mark stands at `mark`.
    pub(super) fn asking(self, mark: u64) -> Self {
        Self {
            asking: Some(mark),
            ..self
        }
    }

    /// The least that the mark can be, whatever this node says.
    pub(super) fn least_mark(&self) -> u64 {
        if let Some(mark) = self.asking {
            return mark;
        }
        0
    }

    /// It leads to a server that is not the one to ask any more.
    pub(super) fn retire(&self) {
        self.shared.health.end();
    }

    /// Whether there is any point in sending something.
    pub(super) fn is_usable(&self) -> bool {
        self.shared.health.is_good()
    }

    /// Whether so much is under way that going together pays.
    pub(super) fn is_busy(&self) -> bool {
        self.batches && (self.shared.health.in_flight() >= 2 || self.shared.batch.was_a_crowd())
    }

    pub(super) fn batch(&self) -> &Batch {
        &self.shared.batch
    }

    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, Trouble> {
        if self.asking.is_some() {
            let mut commands = Pipeline::with_capacity(1);
            commands.add_command(command.clone());
            let answer = Box::pin(self.send_many(&commands, 1)).await?.remove(0);
            return match Trouble::of(&answer) {
                Some(trouble) => Err(trouble),
                None => Ok(answer),
            };
        }
        let question = PendingRequest::new(&self.shared.health);
        let mut redis = self.shared.redis.clone();
        // In a box of its own: a future around it that is small is also quick to make and to move.
        let answer = Box::pin(redis.send_packed_command(command)).await;
        question.answered(answer).and_then(|value| match value {
            Value::ServerError(error) => Err(trouble(error.into())),
            value => Ok(value),
        })
    }

    /// Sends several commands in one write. The answers may hold server errors.
    pub(super) async fn send_all<const N: usize>(
        &self,
        commands: &Pipeline,
    ) -> Result<[Value; N], Trouble> {
        let values = self.send_many(commands, N).await?;
        values
            .try_into()
            .map_err(|_| Trouble::Failed(Failure::not_understood()))
    }

    /// As [`Connection::send_all`], for a number of commands that is not known before.
    pub(super) async fn send_many(
        &self,
        commands: &Pipeline,
        count: usize,
    ) -> Result<Vec<Value>, Trouble> {
        if self.asking.is_some() {
            return Box::pin(self.send_asking(commands, count)).await;
        }
        let question = PendingRequest::new(&self.shared.health);
        let mut redis = self.shared.redis.clone();
        question.answered(Box::pin(redis.send_packed_commands(commands, 0, count)).await)
    }

    async fn send_asking(&self, commands: &Pipeline, count: usize) -> Result<Vec<Value>, Trouble> {
        let mut asking = Pipeline::with_capacity(2 * count);
        for command in commands.cmd_iter() {
            asking
                .add_command(cmd("ASKING"))
                .add_command(command.clone());
        }
        let question = PendingRequest::new(&self.shared.health);
        let mut redis = self.shared.redis.clone();
        let answers = redis.send_packed_commands(&asking, 0, 2 * count).await;
        let answers = question.answered(answers)?.into_iter();
        // Those of ASKING are no answers to anything.
        Ok(answers.skip(1).step_by(2).collect())
    }
}

/// Whether the answer to `ROLE` is that of a master.
pub(super) fn is_master(role: Option<&Value>) -> Result<(), Failure> {
    let role = match role {
        Some(Value::Array(role)) => role.first().and_then(super::reply::text),
        Some(Value::ServerError(error)) => {
            return Err(super::send_error::failure(error.clone().into()));
        }
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

/// Hears what the server, or the driver at its end, says unasked.
struct Listener {
    health: Arc<Health>,
    receiver: Option<Arc<PushReceiver>>,
}

impl AsyncPushSender for Listener {
    fn send(&self, push: PushInfo) -> Result<(), SendError> {
        if push.kind == PushKind::Disconnection {
            self.health.end();
        }
        if let Some(receiver) = &self.receiver {
            receiver.take(&push);
        }
        Ok(())
    }
}
