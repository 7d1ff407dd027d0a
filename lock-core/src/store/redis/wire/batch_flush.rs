//! Sending a batch behind the tasks that were ready with its first request, and handing out its answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use redis::{Cmd, Value};

use super::batch::{BatchEntry, BatchItem, OpenBatch};
use super::connection::Connection;
use super::keyspace::Keyspace;
use super::reply::as_usual;
use super::scripts::BATCH;
use super::send_error::SendError;
use super::spans::{grant_in_millis, in_millis, push_fence};
use crate::base::sync::lock;
use crate::store::Failure;

/// Sends a batch, as a task of its own.
pub(in crate::store::redis) async fn flush(
    batch: Arc<OpenBatch>,
    connection: Connection,
    names: Arc<Keyspace>,
) {
    let mut entries = close(&batch);
    connection
        .batch()
        .last
        .store(entries.len(), Ordering::Relaxed);
    if entries.is_empty() {
        return;
    }
    let mut answer = connection.send(&command(&names, &entries)).await;
    if let Err(SendError::NoScript) = answer {
        // A task that was dropped meanwhile has undone its acquire behind the first copy.
        leave_out_dropped(&mut entries);
        if entries.is_empty() {
            return;
        }
        answer = Box::pin(BATCH.ask_whole(&connection, &command(&names, &entries))).await;
    }
    match answer {
        Ok(Value::Array(answers)) if answers.len() == entries.len() => {
            let mut answers = answers.into_iter();
            hand_out(entries, |_| Ok(answers.next().unwrap_or(Value::Nil)));
        }
        Ok(answer) => match as_usual(&answer) {
            Some(fence) => hand_out(entries, |item| {
                Ok(match item {
                    BatchItem::Release(_) => Value::Int(1),
                    BatchItem::Acquire(_) => Value::Int(fence),
                })
            }),
            None => hand_out(entries, |_| {
                Err(SendError::Failed(Failure::not_understood()))
            }),
        },
        // One key that the server refuses must not affect the others, so each request is sent alone.
        Err(SendError::Failed(failure)) if !failure.ambiguous => {
            hand_out(entries, |_| Ok(Value::Array(vec![Value::Int(3)])));
        }
        Err(trouble) => hand_out(entries, |_| Err(trouble.clone())),
    }
}

/// Closes the batch. The releases come first, because a key may be released and taken in one batch.
fn close(batch: &OpenBatch) -> Vec<BatchEntry> {
    let mut entries = lock(batch).take().unwrap_or_default();
    leave_out_dropped(&mut entries);
    entries.sort_by_key(|entry| matches!(entry.item, BatchItem::Acquire(_)));
    entries
}

/// Leaves out the requests of dropped tasks.
fn leave_out_dropped(entries: &mut Vec<BatchEntry>) {
    entries.retain(|entry| !entry.answer.is_closed());
}

/// Hands out the answers.
///
/// A grant whose receiver is gone is not undone here. Its task was dropped, and has undone its acquire behind this
/// batch, or has given up this answer and asked again: then the key may be its lock by now.
fn hand_out(
    entries: Vec<BatchEntry>,
    mut answer_to: impl FnMut(&BatchItem) -> Result<Value, SendError>,
) {
    for BatchEntry { item, answer } in entries {
        let _unheard = answer.send(answer_to(&item));
    }
}

/// See `batch.lua`.
fn command(names: &Keyspace, entries: &[BatchEntry]) -> Cmd {
    let mut releases = Vec::with_capacity(entries.len());
    let mut acquires = Vec::with_capacity(entries.len());
    for entry in entries {
        match &entry.item {
            BatchItem::Release(release) => releases.push(release),
            BatchItem::Acquire(acquire) => acquires.push(acquire),
        }
    }
    let keys = 1 + 2 * releases.len() + acquires.len();
    let mut command = BATCH.command(keys, 5 + entries.len(), 64 * (keys + entries.len()));
    command.arg(names.only_mark());
    for release in &releases {
        names.push_lock(&release.key, &mut command);
    }
    for release in &releases {
        names.push_queue(&release.key, &mut command);
    }
    for acquire in &acquires {
        names.push_lock(&acquire.key, &mut command);
    }
    command.arg(names.channels()).arg(releases.len());
    let used = releases.iter().filter_map(|release| release.fence);
    push_fence(used.max(), &mut command);
    command.arg(one_or_each(
        releases.iter().map(|release| grant_in_millis(release.ttl)),
    ));
    command.arg(one_or_each(
        acquires.iter().map(|acquire| in_millis(acquire.ttl)),
    ));
    let tokens = releases.iter().map(|release| release.token);
    for token in tokens.chain(acquires.iter().map(|acquire| acquire.token)) {
        command.arg(token.text().as_bytes());
    }
    command
}

/// One number if all are equal, otherwise all of them.
fn one_or_each(numbers: impl Iterator<Item = u64> + Clone) -> String {
    let mut others = numbers.clone();
    let first = others.next();
    if others.all(|other| Some(other) == first) {
        return first.map_or_else(String::new, |first| first.to_string());
    }
    let texts: Vec<_> = numbers.map(|number| number.to_string()).collect();
    texts.join(" ")
}
