//! One `WAIT` for all writes of a connection in one scheduler tick.

use std::sync::Mutex;
use std::time::Duration;

use redis::cmd;
use tokio::sync::watch;

use super::connection::Connection;
use super::reply::number;
use super::send_error::SendError;
use crate::base::machine::Handle;
use crate::base::sync::lock;
use crate::store::Failure;

type Acknowledgement = watch::Receiver<Option<Result<u64, SendError>>>;

/// The `WAIT` of one connection that is about to be sent.
#[derive(Default)]
pub(in crate::store::redis) struct NextWait(Mutex<Option<Acknowledgement>>);

impl Connection {
    /// Counts the replicas that have all writes which were answered on this connection so far. The server waits
    /// for `wanted` of them, for `patience` at most. Sent from `runtime`.
    ///
    /// Callers that come before it is sent share it. One that was sent says nothing about a write behind it,
    /// even if both are answered in one tick.
    pub(in crate::store::redis) async fn acknowledged(
        &self,
        runtime: &Handle,
        wanted: u16,
        patience: Duration,
    ) -> Result<u64, SendError> {
        let mut answer = self.next_wait(runtime, wanted, patience);
        let told = answer.wait_for(Option::is_some).await;
        let told = told.ok().and_then(|answer| answer.clone());
        told.unwrap_or_else(|| {
            let message = "the runtime ended while replicas were to acknowledge a lock";
            Err(SendError::Failed(Failure::unanswered(message)))
        })
    }

    fn next_wait(&self, runtime: &Handle, wanted: u16, patience: Duration) -> Acknowledgement {
        let mut next = lock(&self.batch().next_wait.0);
        if let Some(answer) = &*next
            && answer.has_changed().is_ok()
        {
            return answer.clone();
        }
        let (tell, answer) = watch::channel(None);
        *next = Some(answer.clone());
        drop(next);
        let connection = self.clone();
        runtime.spawn(async move {
            *lock(&connection.batch().next_wait.0) = None;
            let wait = cmd("WAIT")
                .arg(wanted)
                .arg(u64::try_from(patience.as_millis()).unwrap_or(u64::MAX))
                .take();
            let replicas = connection.send(&wait).await;
            let count = replicas.and_then(|count| {
                number(&count).ok_or_else(|| SendError::Failed(Failure::not_understood()))
            });
            tell.send_replace(Some(count));
        });
        answer
    }
}
