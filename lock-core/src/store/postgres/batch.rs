//! Swaps of all tasks of a manager, sent together.
//!
//! Those that arrive while some are under way go together in the next statement, because the server flushes its log once for
//! all of them. Two swaps of one key go one after the other.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio_postgres::{Error, Row};

use super::connection::Connection;
use super::failure::{Class, class_of, code, failure, is_standby};
use super::statements::{NOT_ALL, Sql};
use super::{PASSES, PostgresCells, channel};
use crate::base::BoxFuture;
use crate::base::clock::ServerTime;
use crate::base::join::join_all;
use crate::base::machine::{self, timeout};
use crate::base::sync::lock;
use crate::base::token::Address;
use crate::protocol::{News, Push};
use crate::store::Failure;
use crate::store::cells::{OwnerFence, Stored, Swap, Swapped, Written, message};

/// The most swaps in one statement. It waits for the slowest of them.
const MOST: usize = 64;
/// The first write of a key refuses itself later than this. So a copy that was on its way for longer does nothing.
const LATE: u64 = 3_000_000;
/// A server that answers nothing for so long is given up.
const SILENT: Duration = Duration::from_secs(6);

/// The swaps that wait for their turn.
#[derive(Default)]
pub(super) struct Queue {
    pending: Mutex<Vec<Pending>>,
    bell: Notify,
}

enum Pending {
    One(Swap, oneshot::Sender<Result<Swapped, Failure>>),
    /// All of them, or none.
    All(Vec<Swap>, oneshot::Sender<Result<Option<Written>, Failure>>),
}

impl Pending {
    fn swaps(&self) -> &[Swap] {
        match self {
            Pending::One(swap, _) => std::slice::from_ref(swap),
            Pending::All(swaps, _) => swaps,
        }
    }

    /// Returns whether the caller is gone.
    fn is_given_up(&self) -> bool {
        match self {
            Pending::One(_, answer) => answer.is_closed(),
            Pending::All(_, answer) => answer.is_closed(),
        }
    }

    fn fail(self, failure: Failure) {
        match self {
            Pending::One(_, answer) => _ = answer.send(Err(failure)),
            Pending::All(_, answer) => _ = answer.send(Err(failure)),
        }
    }
}

impl Queue {
    pub(super) async fn swap(&self, swap: Swap) -> Result<Swapped, Failure> {
        let (sender, answer) = oneshot::channel();
        self.push(Pending::One(swap, sender));
        answer.await.unwrap_or_else(|_| Err(unanswered()))
    }

    pub(super) async fn swap_all(&self, swaps: Vec<Swap>) -> Result<Option<Written>, Failure> {
        let (sender, answer) = oneshot::channel();
        self.push(Pending::All(swaps, sender));
        answer.await.unwrap_or_else(|_| Err(unanswered()))
    }

    fn push(&self, pending: Pending) {
        lock(&self.pending).push(pending);
        self.bell.notify_one();
    }

    /// Fails all that wait, and those that come, because no server can be reached.
    pub(super) async fn refuse(&self, failure: &Failure) {
        loop {
            for pending in std::mem::take(&mut *lock(&self.pending)) {
                pending.fail(failure.clone());
            }
            self.bell.notified().await;
        }
    }

    /// Takes those that go together. One whose caller is gone is never sent.
    fn take(&self) -> Vec<Pending> {
        let mut pending = lock(&self.pending);
        let mut keys = HashSet::new();
        let (mut taken, mut left) = (Vec::new(), Vec::new());
        for one in pending.drain(..) {
            if one.is_given_up() {
                continue;
            }
            // A key that waits keeps its order.
            let is_free = one.swaps().iter().all(|swap| !keys.contains(&swap.key));
            keys.extend(one.swaps().iter().map(|swap| Arc::clone(&swap.key)));
            match is_free && taken.len() < MOST {
                true => taken.push(one),
                false => left.push(one),
            }
        }
        *pending = left;
        taken
    }
}

fn unanswered() -> Failure {
    Failure::unanswered("the connection to PostgreSQL broke before the answer")
}

impl PostgresCells {
    /// Sends the swaps for as long as the server answers.
    pub(super) async fn send_batches(&self, connection: &Arc<Connection>) {
        loop {
            let batch = self.queue.take();
            if batch.is_empty() {
                self.queue.bell.notified().await;
                continue;
            }
            let sent = timeout(SILENT, self.send_batch(connection, batch)).await;
            if !sent.unwrap_or(false) || connection.client.is_closed() {
                return;
            }
        }
    }

    /// Returns whether to go on with the connection.
    async fn send_batch(&self, connection: &Arc<Connection>, batch: Vec<Pending>) -> bool {
        let (mut keeping, mut ending, mut together) = (Vec::new(), Vec::new(), Vec::new());
        for pending in batch {
            match pending {
                Pending::One(swap, answer) if swap.ends_a_hold => ending.push((swap, answer)),
                Pending::One(swap, answer) => keeping.push((swap, answer)),
                Pending::All(swaps, answer) => together.push((swaps, answer)),
            }
        }
        // Two managers that insert the same keys wait for each other in one order.
        keeping.sort_by(|(one, _), (other, _)| one.key.cmp(&other.key));
        ending.sort_by(|(one, _), (other, _)| one.key.cmp(&other.key));
        let groups = [
            (keeping, &connection.sql.keeping),
            (ending, &connection.sql.ending),
        ];
        let groups = groups.into_iter().filter(|(group, _)| !group.is_empty());
        let mut sent: Vec<BoxFuture<'_, bool>> = Vec::new();
        for (group, sql) in groups {
            sent.push(Box::pin(self.send_each(connection, group, sql)));
        }
        for (swaps, answer) in together {
            sent.push(Box::pin(async move {
                let outcome = self.send_all(connection, &swaps).await;
                let goes_on = !matches!(&outcome, Err(Trouble { is_over: true, .. }));
                let _ = answer.send(outcome.map_err(|trouble| trouble.failure));
                goes_on
            }));
        }
        join_all(sent).await.into_iter().all(|goes_on| goes_on)
    }

    async fn send_each(
        &self,
        connection: &Arc<Connection>,
        group: Vec<(Swap, oneshot::Sender<Result<Swapped, Failure>>)>,
        sql: &Sql,
    ) -> bool {
        let (swaps, answers): (Vec<_>, Vec<_>) = group.into_iter().unzip();
        let result = self.swapped(connection, &swaps, sql).await;
        let (results, goes_on) = match result {
            Ok(results) => (results, true),
            Err(trouble) => {
                let failed = swaps.iter().map(|_| Err(trouble.failure.clone()));
                (failed.collect(), !trouble.is_over)
            }
        };
        let mut messages = Vec::new();
        for ((swap, answer), result) in swaps.iter().zip(answers).zip(results) {
            if let Ok(Swapped::Done(written)) = &result {
                messages.extend(swap.pushes.iter().map(|push| text_of(push, swap, *written)));
            }
            let _ = answer.send(result);
        }
        if !messages.is_empty() {
            // Behind the commit, because a transaction that notifies keeps all others of the cluster that do from their
            // commits.
            machine::spawn(notify(Arc::clone(connection), messages));
        }
        goes_on
    }

    async fn swapped(
        &self,
        connection: &Connection,
        swaps: &[Swap],
        sql: &Sql,
    ) -> Result<Vec<Result<Swapped, Failure>>, Trouble> {
        let before = connection.warnings.load(Ordering::Relaxed);
        let rows = match self.run(connection, swaps, sql).await {
            Ok(rows) => rows,
            Err(error) if class_of(code(&error)) == Class::Again => {
                return Ok(swaps.iter().map(|_| Ok(Swapped::Again)).collect());
            }
            Err(error) => return Err(Trouble::of(&error)),
        };
        let mut results: Vec<_> = swaps.iter().map(|_| Swapped::Again).collect();
        for row in &rows {
            let read = self.read_result(row, &mut results);
            read.ok_or_else(Trouble::not_understood)?;
        }
        let warned = connection.warnings.load(Ordering::Relaxed) != before;
        let results = results.into_iter().map(|result| match result {
            Swapped::Done(_) if warned => Err(local_only()),
            result => Ok(result),
        });
        Ok(results.collect())
    }

    /// Reads one row of the answer: a write, a receiver that does not listen, or what the server has.
    fn read_result(&self, row: &Row, results: &mut [Swapped]) -> Option<()> {
        let number = |index: usize| row.try_get::<_, i64>(index).ok().map(i64::cast_unsigned);
        let place = usize::try_from(number(1)?.checked_sub(1)?).ok()?;
        let result = results.get_mut(place)?;
        match row.try_get::<_, i32>(0).ok()? {
            0 => {
                let written = written(row, 2, 3)?;
                self.note(written.at);
                *result = Swapped::Done(written);
            }
            1 => match result {
                Swapped::Deaf(addresses) => addresses.push(Address::from(number(2)?)),
                _ => *result = Swapped::Deaf(vec![Address::from(number(2)?)]),
            },
            // The guard of swaps that go together.
            3 => {}
            _ => {
                let now = ServerTime(number(5)?);
                self.note(now);
                *result = Swapped::Changed(stored(row, 2)?, now);
            }
        }
        Some(())
    }

    async fn send_all(
        &self,
        connection: &Connection,
        swaps: &[Swap],
    ) -> Result<Option<Written>, Trouble> {
        match self
            .swapped(connection, swaps, &connection.sql.together)
            .await
        {
            Err(trouble) if trouble.not_all => Ok(None),
            Err(trouble) => Err(trouble),
            Ok(mut results) => match results.pop() {
                Some(Ok(Swapped::Done(written))) => Ok(Some(written)),
                Some(Err(failure)) => Err(failure.into()),
                _ => Ok(None),
            },
        }
    }

    async fn run(
        &self,
        connection: &Connection,
        swaps: &[Swap],
        sql: &Sql,
    ) -> Result<Vec<Row>, Error> {
        let keys: Vec<_> = swaps.iter().map(|swap| self.name(&swap.key)).collect();
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let numbers = |of: fn(&Swap) -> u64| -> Vec<i64> {
            swaps.iter().map(|swap| number(of(swap))).collect()
        };
        let bytes: Vec<&[u8]> = swaps.iter().map(|swap| &*swap.bytes).collect();
        let fences: Vec<i64> = swaps
            .iter()
            .map(|swap| match swap.fence {
                OwnerFence::None => -1,
                OwnerFence::New => 0,
                OwnerFence::Kept(fence) => number(fence),
            })
            .collect();
        let mut receivers: Vec<(i64, i64)> = Vec::new();
        for (swap, place) in swaps.iter().zip(1..) {
            let others = swap.pushes.iter().map(|push| push.to);
            let others = others.filter(|to| *to != self.manager);
            receivers.extend(others.map(|to| (place, u64::from(to).cast_signed())));
        }
        receivers.sort_unstable();
        receivers.dedup();
        let (places, addresses): (Vec<_>, Vec<_>) = receivers.into_iter().unzip();
        let late = number(self.estimate().0.saturating_add(LATE));
        let may_be_lost = swaps.iter().all(|swap| swap.may_be_lost);
        sql.run(
            &connection.client,
            &[
                &keys,
                &numbers(|swap| swap.revision),
                &bytes,
                &numbers(|swap| swap.ends),
                &numbers(|swap| swap.lasts),
                &fences,
                &places,
                &addresses,
                &late,
                &may_be_lost,
            ],
        )
        .await
    }
}

/// The failure of a whole statement.
struct Trouble {
    failure: Failure,
    /// Whether the connection is of no use any more.
    is_over: bool,
    /// Swaps that were to be done together were not done.
    not_all: bool,
}

impl Trouble {
    fn of(error: &Error) -> Self {
        Self {
            failure: failure(error),
            is_over: is_standby(error),
            not_all: code(error) == Some(NOT_ALL),
        }
    }

    fn not_understood() -> Self {
        Failure::not_understood().into()
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            is_over: false,
            not_all: false,
        }
    }
}

fn local_only() -> Failure {
    Failure::unanswered("PostgreSQL has not confirmed the commit on its synchronous standbys")
}

/// Reads the number and the time of a write.
pub(super) fn written(row: &Row, revision: usize, at: usize) -> Option<Written> {
    let number = |index| row.try_get::<_, Option<i64>>(index).ok().flatten();
    Some(Written {
        revision: number(revision)?.cast_unsigned(),
        at: ServerTime(number(at)?.cast_unsigned()),
    })
}

/// Reads what the server has of a key from three columns. The inner `None`: nothing.
pub(super) fn stored(row: &Row, first: usize) -> Option<Option<Stored>> {
    let bytes: Option<Vec<u8>> = row.try_get(first + 2).ok()?;
    let Some(bytes) = bytes else {
        return Some(None);
    };
    let written = written(row, first, first + 1)?;
    Some(Some(Stored { written, bytes }))
}

/// Returns the channel and the text of a push.
fn text_of(push: &Push, swap: &Swap, written: Written) -> (String, String) {
    let news = match push.news {
        News::Given { grant, .. } => News::Given {
            grant,
            fence: written.revision * PASSES,
        },
        news => news,
    };
    let push = Push { news, ..*push };
    let text = message::of_push(&push, &swap.key, written.at);
    (channel(push.to), text)
}

async fn notify(connection: Arc<Connection>, messages: Vec<(String, String)>) {
    let (channels, texts): (Vec<_>, Vec<_>) = messages.into_iter().unzip();
    let notify = &connection.sql.notify;
    let sent = notify.run(&connection.client, &[&channels, &texts]).await;
    if sent.is_err() {
        tracing::debug!("a message to a waiter was lost; it asks when its grant is over");
    }
}
