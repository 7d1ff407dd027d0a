//! Asking servers about servers: each on a connection of its own, all at once, for a bounded time.

use std::pin::pin;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Pipeline, Value};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::lookout::ANSWER;
use super::trouble::{failure, not_connected};
use crate::store::Failure;

/// How long the first answer may take: a connection to be made first takes several trips, over a long way or by
/// a busy machine.
const FIRST_ANSWER: Duration = Duration::from_secs(1);

/// A server that is asked from time to time.
#[derive(Clone)]
pub(super) struct Informant {
    client: Client,
    connection: Option<MultiplexedConnection>,
}

impl Informant {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            connection: None,
        }
    }

    /// The answers to all of `questions`; they may be server errors.
    async fn ask(&mut self, questions: &Pipeline, count: usize) -> Result<Vec<Value>, Failure> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(connect(&self.client).await?),
        };
        let answers = connection.send_packed_commands(questions, 0, count).await;
        answers.map_err(|error| {
            self.connection = None;
            failure(error)
        })
    }
}

async fn connect(client: &Client) -> Result<MultiplexedConnection, Failure> {
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_connection_timeout(None);
    let connected = client.get_multiplexed_async_connection_with_config(&config);
    connected.await.map_err(not_connected)
}

/// Puts the same questions to all, and answers what each of them said, in no order. Who does not
/// answer soon after the first is left out, and connected to anew the next time.
pub(super) async fn ask_all(
    informants: &mut [Informant],
    questions: &Pipeline,
    count: usize,
) -> Vec<(usize, Result<Vec<Value>, Failure>)> {
    let mut asked = JoinSet::new();
    for (index, informant) in informants.iter_mut().enumerate() {
        let mut informant = Informant {
            connection: informant.connection.take(),
            ..informant.clone()
        };
        let questions = questions.clone();
        asked.spawn(async move {
            let answers = informant.ask(&questions, count).await;
            (index, informant, answers)
        });
    }
    let mut said = Vec::with_capacity(informants.len());
    let mut time_is_up = pin!(sleep(FIRST_ANSWER));
    let mut is_answered = false;
    loop {
        let answered = tokio::select! {
            biased;
            answered = asked.join_next() => answered,
            () = &mut time_is_up => return said,
        };
        let Some(answered) = answered else {
            return said;
        };
        if let Ok((index, informant, answers)) = answered {
            if answers.is_ok() && !std::mem::replace(&mut is_answered, true) {
                // Whoever is as near has answered by then.
                time_is_up.set(sleep(ANSWER));
            }
            informants[index] = informant;
            said.push((index, answers));
        }
    }
}
