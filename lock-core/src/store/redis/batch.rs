//! First attempts and releases of many tasks at once, in one script each.
//!
//! While fewer than two requests are open on a connection, each is sent by itself. Beyond that, the requests of
//! one scheduler batch are sent together, up to 16 keys a script, because client and server spend less on the
//! script than on the raw commands. A batch is sent as soon as there is another behind it. If all were sent at
//! once, they would be answered at once, and client and server would wait for each other. A request that is not
//! simple in a batch (a clock behind the mark, a key of another type) is sent again alone. A task that is
//! dropped before its batch is sent has sent nothing.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use redis::Value;
use tokio::runtime::Handle;

use super::batch_flush::BatchFlush;
use super::connection::Connection;
use super::keyspace::Keyspace;
use super::send_error::SendError;
use super::wait::NextWait;
use crate::base::sync::lock;
use crate::store::{AcquireCommand, Release};

/// Few enough that client and server work at the same time, and no task waits long behind the others.
const LARGEST: usize = 16;
/// After a batch of so many the next requests are batched too, although none is open at the moment, because all
/// of them may have been answered at once.
const CROWD: usize = 3;

/// One request of a batch.
pub(super) enum BatchItem {
    Release(Release),
    Acquire(AcquireCommand),
}

/// Whether the answer says that the request must be sent alone.
pub(super) fn is_alone(answer: &Value) -> bool {
    matches!(answer, Value::Array(parts) if parts.as_slice() == [Value::Int(3)])
}

/// The batches of one connection.
#[derive(Default)]
pub(super) struct Batch {
    next: Mutex<Option<Arc<OpenBatch>>>,
    /// How many requests the last batch had.
    pub(super) last: AtomicUsize,
    pub(super) next_wait: NextWait,
}

impl Batch {
    pub(super) fn was_a_crowd(&self) -> bool {
        self.last.load(Ordering::Relaxed) >= CROWD
    }
}

impl Connection {
    /// Adds a request to the batch of this batch; `None` outside of a runtime.
    pub(super) fn batched(&self, names: &Arc<Keyspace>, item: BatchItem) -> Option<BatchRequest> {
        let mut next = lock(&self.batch().next);
        let item = match &*next {
            None => item,
            Some(batch) => match batch.join(item) {
                Ok(request) => return Some(request),
                Err(item) => item,
            },
        };
        let runtime = Handle::try_current().ok()?;
        let batch = Arc::new(OpenBatch::default());
        let request = batch.join(item).ok()?;
        *next = Some(Arc::clone(&batch));
        drop(next);
        // Spawned behind the tasks that are ready by now, so that their requests join.
        runtime.spawn(BatchFlush::new(batch, self, names).flush());
        Some(request)
    }
}

/// One batch, from its first request until its last answer is taken, in one allocation.
#[derive(Default)]
pub(super) struct OpenBatch(pub(super) Mutex<BatchEntries>);

#[derive(Default)]
pub(super) struct BatchEntries {
    pub(super) taken: Vec<BatchEntry>,
    /// No further request can join.
    pub(super) closed: bool,
}

pub(super) struct BatchEntry {
    pub(super) item: BatchItem,
    pub(super) state: EntryState,
}

pub(super) enum EntryState {
    Waiting(Option<Waker>),
    Answered(Result<Value, SendError>),
    /// No task waits for the answer.
    Abandoned,
}

impl OpenBatch {
    /// Adds a request, if there is room.
    fn join(self: &Arc<Self>, item: BatchItem) -> Result<BatchRequest, BatchItem> {
        let mut entries = lock(&self.0);
        if entries.closed || entries.taken.len() == LARGEST {
            return Err(item);
        }
        if entries.taken.is_empty() {
            entries.taken.reserve_exact(LARGEST);
        }
        entries.taken.push(BatchEntry {
            item,
            state: EntryState::Waiting(None),
        });
        Ok(BatchRequest {
            batch: Arc::clone(self),
            index: entries.taken.len() - 1,
        })
    }
}

/// A request in a batch, until it is answered. Dropped before the batch is sent, it is not sent.
pub(super) struct BatchRequest {
    batch: Arc<OpenBatch>,
    index: usize,
}

impl Future for BatchRequest {
    type Output = Result<Value, SendError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut entries = lock(&self.batch.0);
        let state = &mut entries.taken[self.index].state;
        match state {
            EntryState::Waiting(Some(waker)) if waker.will_wake(context.waker()) => Poll::Pending,
            EntryState::Waiting(waker) => {
                let before = waker.replace(context.waker().clone());
                drop(entries);
                drop(before);
                Poll::Pending
            }
            EntryState::Answered(_) | EntryState::Abandoned => {
                match std::mem::replace(state, EntryState::Abandoned) {
                    EntryState::Answered(answer) => Poll::Ready(answer),
                    _ => panic!("a request was polled after its end"),
                }
            }
        }
    }
}

impl Drop for BatchRequest {
    fn drop(&mut self) {
        let mut entries = lock(&self.batch.0);
        let state = std::mem::replace(&mut entries.taken[self.index].state, EntryState::Abandoned);
        drop(entries);
        drop(state);
    }
}
