//! One multiplexed connection, and whether it still answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use redis::aio::{AsyncPushSender, MultiplexedConnection, SendError};
use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{
    AsyncConnectionConfig, Client, Cmd, Pipeline, ProtocolVersion, PushInfo, PushKind, RedisError,
    Value, cmd,
};
use tokio::sync::mpsc;

use super::answers::{Trouble, failure, trouble};
use super::batch::Batch;
use crate::clock::{Clock, Moment};
use crate::store::Failure;

/// Data that the server's machine does not acknowledge for this long ends a connection.
const UNACKNOWLEDGED: Duration = Duration::from_secs(5);
/// A connection that has left questions unanswered for this long is replaced by a new one.
const SILENT: Duration = Duration::from_millis(500);

/// The client with the settings that a lock needs, whatever it was made with.
pub(super) fn prepared(client: &Client) -> Result<Client, RedisError> {
    let info = client.get_connection_info().clone();
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
    redis: MultiplexedConnection,
    health: Arc<Health>,
    batch: Arc<Batch>,
}

#[derive(Debug, Default)]
struct Health {
    closed: AtomicBool,
    /// Questions sent and not answered.
    in_flight: AtomicUsize,
    /// When the first question was sent that was given up on, since the last answer; 0: none was.
    silent_since: AtomicU64,
}

impl Connection {
    /// Connects, and sees to it that the server lets this user do what a lock needs. `pushes`: where
    /// to put what the server says unasked.
    ///
    /// Sets no timer, so that it works in a runtime without any: the caller bounds it.
    pub(super) async fn open(
        client: &Client,
        mark: &str,
        pushes: Option<mpsc::UnboundedSender<PushInfo>>,
    ) -> Result<Self, Failure> {
        let health = Arc::new(Health::default());
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_connection_timeout(None)
            .set_pipeline_buffer_size(1024)
            .set_push_sender(Listener {
                health: Arc::clone(&health),
                pushes,
            });
        let redis = client
            .get_multiplexed_async_connection_with_config(&config)
            .await
            .map_err(not_connected)?;
        let batch = Arc::default();
        let connection = Self {
            redis,
            health,
            batch,
        };
        connection
            .probe(mark)
            .await
            .map_err(|trouble| match trouble {
                Trouble::Failed(failure) => failure,
                Trouble::Broken(error) => failure(error),
                Trouble::NoScript => Failure::not_understood(),
            })?;
        Ok(connection)
    }

    /// What every lock needs and may be forbidden: better refused before a key is set than after.
    async fn probe(&self, mark: &str) -> Result<(), Trouble> {
        let mut commands = Pipeline::with_capacity(3);
        commands
            .add_command(cmd("TIME"))
            .add_command(cmd("GET").arg(mark).take())
            .add_command(cmd("EVAL").arg("return 1").arg(1).arg(mark).take());
        let answers: [Value; 3] = self.send_all(&commands).await?;
        for answer in answers {
            if let Value::ServerError(error) = answer {
                return Err(trouble(error.into()));
            }
        }
        Ok(())
    }

    /// Whether there is any point in sending something.
    pub(super) fn is_usable(&self) -> bool {
        let silent_since = self.health.silent_since.load(Ordering::Relaxed);
        !self.health.closed.load(Ordering::Relaxed)
            && (silent_since == 0 || Clock::System.now().since(Moment(silent_since)) < SILENT)
    }

    /// Whether so much is under way that going together pays.
    pub(super) fn is_busy(&self) -> bool {
        self.health.in_flight.load(Ordering::Relaxed) >= 2
    }

    pub(super) fn batch(&self) -> &Batch {
        &self.batch
    }

    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, Trouble> {
        let question = Question::new(&self.health);
        let answer = self.redis.clone().send_packed_command(command).await;
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
        let question = Question::new(&self.health);
        let answer = self
            .redis
            .clone()
            .send_packed_commands(commands, 0, N)
            .await;
        let values = question.answered(answer)?;
        values
            .try_into()
            .map_err(|_| Trouble::Failed(Failure::not_understood()))
    }
}

/// A connection that was never made has carried nothing.
fn not_connected(error: RedisError) -> Failure {
    Failure {
        ambiguous: false,
        ..failure(error)
    }
}

/// One question, until it is answered or given up on.
struct Question<'a> {
    health: &'a Health,
    sent: Moment,
    over: bool,
}

impl<'a> Question<'a> {
    fn new(health: &'a Health) -> Self {
        health.in_flight.fetch_add(1, Ordering::Relaxed);
        Self {
            health,
            sent: Clock::System.now(),
            over: false,
        }
    }

    fn answered<T>(mut self, answer: Result<T, RedisError>) -> Result<T, Trouble> {
        self.over = true;
        let answer = answer.map_err(trouble);
        if let Err(Trouble::Broken(_)) = answer {
            self.health.closed.store(true, Ordering::Relaxed);
        } else {
            self.health.silent_since.store(0, Ordering::Relaxed);
        }
        answer
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.health.in_flight.fetch_sub(1, Ordering::Relaxed);
        if !self.over {
            let _ = self.health.silent_since.compare_exchange(
                0,
                self.sent.0,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }
}

/// Hears what the server, or the driver at its end, says unasked.
struct Listener {
    health: Arc<Health>,
    pushes: Option<mpsc::UnboundedSender<PushInfo>>,
}

impl AsyncPushSender for Listener {
    fn send(&self, push: PushInfo) -> Result<(), SendError> {
        if push.kind == PushKind::Disconnection {
            self.health.closed.store(true, Ordering::Relaxed);
        }
        match &self.pushes {
            Some(pushes) => pushes.send(push).map_err(|_| SendError),
            None => Ok(()),
        }
    }
}
