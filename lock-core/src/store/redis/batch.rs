//! First attempts and releases of many tasks at once, in one script each.
//!
//! While fewer than two requests are out on a connection each goes by itself: nothing is won by
//! waiting. Beyond that, what the tasks of one scheduler tick want is sent together, which costs
//! server and client less than the raw commands would.

use std::sync::{Arc, Mutex};

use redis::Value;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::connection::Connection;
use super::names::Names;
use super::scripts::{BATCH, RELEASE};
use super::trouble::Trouble;
use super::wait::NextWait;
use crate::store::Failure;
use crate::sync::lock;
use crate::token::Token;

/// Few enough that client and server work at the same time, and that nobody waits long behind one.
const LARGEST: usize = 16;

/// One operation of a batch.
pub(super) enum Item {
    Release {
        lock: String,
        queue: String,
        token: Token,
        /// The fencing token, or nothing.
        fence: String,
        grant: String,
    },
    Acquire {
        key: Arc<str>,
        lock: String,
        token: Token,
        ttl_millis: String,
    },
}

impl Item {
    fn is_release(&self) -> bool {
        matches!(self, Item::Release { .. })
    }

    fn token(&self) -> Token {
        match self {
            Item::Release { token, .. } | Item::Acquire { token, .. } => *token,
        }
    }
}

struct Waiting {
    item: Item,
    answer: oneshot::Sender<Result<Value, Trouble>>,
}

/// What waits for the next tick on one connection.
#[derive(Default)]
pub(super) struct Batch {
    waiting: Mutex<Vec<Waiting>>,
    pub(super) next_wait: NextWait,
}

impl Connection {
    /// Sends the item with what else this tick brings; `None` if it has to go by itself.
    ///
    /// Dropped before the tick, it is not sent.
    pub(super) async fn send_in_batch(
        &self,
        names: &Arc<Names>,
        item: Item,
    ) -> Result<Option<Value>, Trouble> {
        let Ok(runtime) = Handle::try_current() else {
            return Ok(None);
        };
        let (answer, answered) = oneshot::channel();
        let first = {
            let mut waiting = lock(&self.batch().waiting);
            waiting.push(Waiting { item, answer });
            waiting.len() == 1
        };
        if first {
            // Behind the tasks that are ready by now: what they want goes along.
            runtime.spawn(flush(self.clone(), Arc::clone(names)));
        }
        match answered.await {
            Ok(Ok(answer)) if is_alone(&answer) => Ok(None),
            Ok(answer) => answer.map(Some),
            // The runtime of the tick has ended.
            Err(_) => Err(Trouble::Failed(Failure::not_understood())),
        }
    }
}

/// Whether the answer says that the operation has to be asked by itself.
pub(super) fn is_alone(answer: &Value) -> bool {
    matches!(answer, Value::Array(parts) if parts.as_slice() == [Value::Int(3)])
}

async fn flush(connection: Connection, names: Arc<Names>) {
    let mut waiting = std::mem::take(&mut *lock(&connection.batch().waiting));
    // Whoever is gone has sent nothing.
    waiting.retain(|waiting| !waiting.answer.is_closed());
    while waiting.len() > LARGEST {
        let part = waiting.split_off(waiting.len() - LARGEST);
        tokio::spawn(send(connection.clone(), Arc::clone(&names), part));
    }
    if !waiting.is_empty() {
        send(connection, names, waiting).await;
    }
}

async fn send(connection: Connection, names: Arc<Names>, mut waiting: Vec<Waiting>) {
    // The script takes the releases first: a key may be given back and taken in one batch.
    waiting.sort_by_key(|waiting| !waiting.item.is_release());
    let releases = waiting.iter().filter(|waiting| waiting.item.is_release());
    let releases = releases.count().to_string();
    let tokens: Vec<_> = waiting
        .iter()
        .map(|waiting| waiting.item.token().text())
        .collect();
    let mut keys = vec![names.only_mark()];
    let mut queues = Vec::new();
    let mut acquires = Vec::new();
    let mut arguments = vec![names.channels(), releases.as_str()];
    for (Waiting { item, .. }, token) in waiting.iter().zip(&tokens) {
        match item {
            Item::Release {
                lock,
                queue,
                fence,
                grant,
                ..
            } => {
                keys.push(lock);
                queues.push(queue.as_str());
                arguments.extend([token.as_str(), fence, grant]);
            }
            Item::Acquire {
                lock, ttl_millis, ..
            } => {
                acquires.push(lock.as_str());
                arguments.extend([token.as_str(), ttl_millis]);
            }
        }
    }
    keys.extend(queues);
    keys.extend(acquires);
    match BATCH.run(&connection, &keys, &arguments).await {
        Ok(Value::Array(answers)) if answers.len() == waiting.len() => {
            for (Waiting { item, answer: tell }, answer) in waiting.into_iter().zip(answers) {
                let granted = matches!(answer, Value::Int(_));
                if tell.send(Ok(answer)).is_err() && granted {
                    give_back(&connection, &names, &item).await;
                }
            }
        }
        Ok(_) => tell_all(waiting, &Trouble::Failed(Failure::not_understood())),
        // One key that the server refuses costs the others nothing: each is asked by itself.
        Err(Trouble::Failed(failure)) if !failure.ambiguous => {
            for waiting in waiting {
                let alone = Value::Array(vec![Value::Int(3)]);
                drop(waiting.answer.send(Ok(alone)));
            }
        }
        Err(trouble) => tell_all(waiting, &trouble),
    }
}

/// A task that is gone has undone its acquire behind this batch, unless the batch was sent a second
/// time after that, because the server did not know the script: then nobody else would, for a while.
async fn give_back(connection: &Connection, names: &Names, item: &Item) {
    if let Item::Acquire {
        key, lock, token, ..
    } = item
    {
        let queue = names.queue(key);
        let keys = [lock.as_str(), names.only_mark(), queue.as_str()];
        let token = token.text();
        let arguments = [token.as_str(), "", names.channels(), ""];
        // Unanswered, it is left to the keeper, which undoes such an acquire once more later on.
        let _ = RELEASE.run(connection, &keys, &arguments).await;
    }
}

fn tell_all(waiting: Vec<Waiting>, trouble: &Trouble) {
    for waiting in waiting {
        drop(waiting.answer.send(Err(trouble.clone())));
    }
}
