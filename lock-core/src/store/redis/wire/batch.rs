//! First attempts and releases of many tasks at once, in one script each.
//!
//! While fewer than two requests are open on a connection, each is sent by itself. Beyond that, the requests of
//! one turn of the scheduler are sent together, up to 16 keys a script, because client and server spend less on the
//! script than on the raw commands. A batch is sent as soon as there is another behind it. If all were sent at
//! once, they would be answered at once, and client and server would wait for each other. A request that is not
//! simple in a batch (a clock behind the mark, a key of another type) is sent again alone. A task that is
//! dropped before its batch is sent has sent nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use redis::Value;
use tokio::sync::oneshot;

use super::batch_flush::flush;
use super::connection::Connection;
use super::keyspace::Keyspace;
use super::send_error::SendError;
use super::wait::NextWait;
use crate::base::machine;
use crate::base::sync::lock;
use crate::store::{AcquireCommand, Failure, Release};

/// Few enough that client and server work at the same time, and no task waits long behind the others.
const LARGEST: usize = 16;
/// After a batch of so many the next requests are batched too, although none is open at the moment, because all
/// of them may have been answered at once.
const CROWD: usize = 3;

/// One request of a batch.
pub(in crate::store::redis) enum BatchItem {
    Release(Release),
    Acquire(AcquireCommand),
}

/// Returns whether the answer says that the request must be sent alone.
pub(in crate::store::redis) fn is_alone(answer: &Value) -> bool {
    matches!(answer, Value::Array(parts) if parts.as_slice() == [Value::Int(3)])
}

/// The batches of one connection.
#[derive(Default)]
pub(in crate::store::redis) struct Batch {
    /// Its task keeps it alive, so that no request joins a batch whose runtime has ended.
    next: Mutex<Weak<OpenBatch>>,
    /// How many requests the last batch had.
    pub(in crate::store::redis) last: AtomicUsize,
    pub(in crate::store::redis) next_wait: NextWait,
}

impl Batch {
    pub(in crate::store::redis) fn was_a_crowd(&self) -> bool {
        self.last.load(Ordering::Relaxed) >= CROWD
    }
}

impl Connection {
    /// Adds a request to the next batch; `None` outside of a runtime.
    pub(in crate::store::redis) fn batched(
        &self,
        names: &Arc<Keyspace>,
        item: BatchItem,
    ) -> Option<BatchRequest> {
        let mut next = lock(&self.batch().next);
        let (answer, request) = oneshot::channel();
        let entry = BatchEntry { item, answer };
        if let Some(batch) = next.upgrade()
            && let Some(entries) = &mut *lock(&batch)
            && entries.len() < LARGEST
        {
            entries.push(entry);
            return Some(BatchRequest(request));
        }
        let runtime = machine::runtime()?;
        let mut entries = Vec::with_capacity(LARGEST);
        entries.push(entry);
        let batch = Arc::new(Mutex::new(Some(entries)));
        *next = Arc::downgrade(&batch);
        drop(next);
        // Spawned behind the tasks that are ready by now, so that their requests join.
        runtime.spawn(flush(batch, self.clone(), Arc::clone(names)));
        Some(BatchRequest(request))
    }
}

/// The requests of a batch, until it is sent.
pub(in crate::store::redis) type OpenBatch = Mutex<Option<Vec<BatchEntry>>>;

pub(in crate::store::redis) struct BatchEntry {
    pub(in crate::store::redis) item: BatchItem,
    pub(in crate::store::redis) answer: oneshot::Sender<Result<Value, SendError>>,
}

/// A request in a batch, until it is answered. Dropped before the batch is sent, it is not sent.
pub(in crate::store::redis) struct BatchRequest(oneshot::Receiver<Result<Value, SendError>>);

impl BatchRequest {
    pub(in crate::store::redis) async fn answer(&mut self) -> Result<Value, SendError> {
        let answer = (&mut self.0).await;
        answer.unwrap_or_else(|_| {
            let failure = Failure::unanswered("the runtime that carried a question has ended");
            Err(SendError::Failed(failure))
        })
    }
}
