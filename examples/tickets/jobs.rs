//! A queue of jobs: a list in Redis, or a channel of this process.

use std::sync::Arc;

use lock_core::redis1::aio::MultiplexedConnection;
use lock_core::redis1::{Client, RedisError, cmd};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, mpsc};

/// The list in Redis.
const LIST: &str = "reports:jobs";

/// One report to write.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Job {
    pub(crate) report: String,
    /// The text of the ticket. Its bearer can go on with the lock, so it is as secret as a password.
    pub(crate) ticket: String,
}

#[derive(Clone)]
pub(crate) enum Jobs {
    Here(
        mpsc::UnboundedSender<String>,
        Arc<Mutex<mpsc::UnboundedReceiver<String>>>,
    ),
    Redis(MultiplexedConnection),
}

impl Jobs {
    pub(crate) async fn connect(url: &str) -> Result<Self, RedisError> {
        if url.starts_with("memory:") {
            let (push, pop) = mpsc::unbounded_channel();
            return Ok(Self::Here(push, Arc::new(Mutex::new(pop))));
        }
        let client = Client::open(url)?;
        // Without a limit for an answer, because a worker waits for its next job.
        let config = lock_core::redis1::AsyncConnectionConfig::new().set_response_timeout(None);
        let connection = client.get_multiplexed_async_connection_with_config(&config);
        Ok(Self::Redis(connection.await?))
    }

    /// Returns whether only this process sees the jobs.
    pub(crate) fn are_here(&self) -> bool {
        matches!(self, Self::Here(..))
    }

    pub(crate) async fn push(&self, job: &Job) -> Result<(), RedisError> {
        let job = serde_json::to_string(job).expect("two strings");
        match self {
            Self::Here(push, _) => {
                let _the_worker_has_ended = push.send(job);
                Ok(())
            }
            Self::Redis(redis) => {
                let mut redis = redis.clone();
                cmd("LPUSH").arg(LIST).arg(job).exec_async(&mut redis).await
            }
        }
    }

    /// Waits for the next job, and leaves out what is no job. `None`: there will be none.
    pub(crate) async fn pop(&self) -> Result<Option<Job>, RedisError> {
        while let Some(text) = self.next_text().await? {
            match serde_json::from_slice(&text) {
                Ok(job) => return Ok(Some(job)),
                // The text may have a ticket in it, so it is not printed.
                Err(_) => eprintln!("worker: a text in the queue is no job, and is left out"),
            }
        }
        Ok(None)
    }

    async fn next_text(&self) -> Result<Option<Vec<u8>>, RedisError> {
        match self {
            Self::Here(_, pop) => Ok(pop.lock().await.recv().await.map(String::into_bytes)),
            Self::Redis(redis) => {
                let mut redis = redis.clone();
                let mut brpop = cmd("BRPOP");
                brpop.arg(LIST).arg(0);
                let (_list, text): (String, Vec<u8>) = brpop.query_async(&mut redis).await?;
                Ok(Some(text))
            }
        }
    }
}
