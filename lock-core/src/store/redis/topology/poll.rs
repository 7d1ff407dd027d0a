//! Asking servers about servers: each on a connection of its own, all at once, for a bounded time.
//!
//! Questions and connections live on from one round to the next. A server that hangs delays one round only. The
//! late answer of a distant server still counts.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Pipeline, Value};

use super::refresh::ANSWER;
use crate::base::clock::{Clock, Moment};
use crate::base::machine::{self, JoinSet, RedisConnection, sleep, timeout};
use crate::store::Failure;
use crate::store::redis::wire::send_error::failure;
use crate::store::redis::wire::server::Server;

/// How long the first answer may take. Connecting takes several trips, maybe over a long distance or on a busy
/// machine.
pub(super) const FIRST_ANSWER: Duration = Duration::from_secs(1);
/// A question that is unanswered for this long is given up with its connection. A manager that has had no answer since its
/// start waits for the first one as long.
pub(super) const GIVEN_UP: Duration = Duration::from_secs(5);

/// The answers to all questions, which may be server errors.
pub(super) type Answers = Result<Vec<Value>, Failure>;

/// Servers that are asked the same questions from time to time, each with a key.
pub(super) struct Survey<K> {
    questions: Arc<Pipeline>,
    servers: Vec<PolledServer<K>>,
    asked: JoinSet<(K, Option<Arc<RedisConnection>>, Answers)>,
    round: u64,
    /// When the first answer of this round arrived.
    first_answer: Option<Moment>,
}

struct PolledServer<K> {
    key: K,
    server: Server,
    /// Present while no question is open.
    connection: Option<Arc<RedisConnection>>,
    /// The round of the open question.
    owes: Option<u64>,
    /// Whether the server answered its last question in time, so that a round waits for it.
    is_prompt: bool,
}

impl<K: Copy + Eq + Send + 'static> Survey<K> {
    pub(super) fn new(questions: Pipeline) -> Self {
        Self {
            questions: Arc::new(questions),
            servers: Vec::new(),
            asked: machine::join_set(),
            round: 0,
            first_answer: None,
        }
    }

    /// Adds a server, unless it is known.
    pub(super) fn add(&mut self, key: K, at: impl FnOnce() -> Server) {
        if self.servers.iter().all(|server| server.key != key) {
            self.servers.push(PolledServer {
                key,
                server: at(),
                connection: None,
                owes: None,
                is_prompt: true,
            });
        }
    }

    /// Forgets all other servers, except those that owe an answer.
    pub(super) fn keep(&mut self, wanted: &[K]) {
        let keep = |server: &PolledServer<K>| server.owes.is_some() || wanted.contains(&server.key);
        self.servers.retain(keep);
    }

    /// Asks all servers that owe no answer. Returns the answers since the last round, and those that arrive
    /// soon: the first within `patience`, the others soon after it.
    pub(super) async fn ask(&mut self, patience: Duration) -> Vec<(K, Answers)> {
        self.round += 1;
        self.first_answer = None;
        for server in self.servers.iter_mut().filter(|it| it.owes.is_none()) {
            server.owes = Some(self.round);
            let (key, at) = (server.key, server.server.clone());
            let connection = server.connection.take();
            let questions = Arc::clone(&self.questions);
            self.asked.spawn(async move {
                let asked = timeout(GIVEN_UP, ask(at, connection, &questions)).await;
                match asked {
                    Ok(Ok((connection, answers))) => (key, Some(connection), Ok(answers)),
                    Ok(Err(failure)) => (key, None, Err(failure)),
                    Err(_) => (key, None, Err(no_answer())),
                }
            });
        }
        let mut told = Vec::with_capacity(self.servers.len());
        let mut time_is_up = pin!(sleep(patience));
        let mut is_answered = false;
        loop {
            while let Some(done) = self.asked.try_join_next() {
                told.extend(done.ok().and_then(|done| self.take(done)));
            }
            let mut servers = self.servers.iter();
            if !servers.any(|server| server.is_prompt && server.owes.is_some()) {
                break;
            }
            if self.first_answer.is_some() && !std::mem::replace(&mut is_answered, true) {
                // Servers at a similar distance have answered by then.
                time_is_up.set(sleep(ANSWER));
            }
            tokio::select! {
                biased;
                Some(done) = self.asked.join_next() => told.extend(done.ok().and_then(|done| self.take(done))),
                () = &mut time_is_up => break,
            }
        }
        for server in self.servers.iter_mut().filter(|it| it.owes.is_some()) {
            server.is_prompt = false;
        }
        told
    }

    /// Returns the next answer that is too late for its round.
    pub(super) async fn late(&mut self) -> (K, Answers) {
        loop {
            let Some(done) = self.asked.join_next().await else {
                return std::future::pending().await;
            };
            if let Some(told) = done.ok().and_then(|done| self.take(done)) {
                return told;
            }
        }
    }

    fn take(
        &mut self,
        (key, connection, answers): (K, Option<Arc<RedisConnection>>, Answers),
    ) -> Option<(K, Answers)> {
        let server = self.servers.iter_mut().find(|server| server.key == key)?;
        server.connection = connection;
        let of_this_round = server.owes.take() == Some(self.round);
        server.is_prompt = of_this_round;
        if of_this_round && answers.is_ok() {
            let now = Clock::System.now();
            let first = *self.first_answer.get_or_insert(now);
            server.is_prompt = now.since(first) < ANSWER;
        }
        Some((key, answers))
    }
}

/// Asks one server once.
pub(super) async fn ask_once(server: Server, questions: &Pipeline) -> Answers {
    let asked = timeout(FIRST_ANSWER, ask(server, None, questions)).await;
    let (_, answers) = asked.unwrap_or_else(|_| Err(no_answer()))?;
    Ok(answers)
}

async fn ask(
    server: Server,
    connection: Option<Arc<RedisConnection>>,
    questions: &Pipeline,
) -> Result<(Arc<RedisConnection>, Vec<Value>), Failure> {
    let connection = match connection {
        Some(connection) => connection,
        None => server.connect(|| (untimed(), ())).await?.0,
    };
    let count = questions.cmd_iter().count();
    let mut asked = MultiplexedConnection::clone(&connection);
    let answers = asked.send_packed_commands(questions, 0, count).await;
    Ok((connection, answers.map_err(failure)?))
}

/// The settings of a connection that its caller bounds.
fn untimed() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_connection_timeout(None)
}

fn no_answer() -> Failure {
    Failure::unanswered("a server gave no answer in time")
}
