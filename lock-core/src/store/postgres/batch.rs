//! Swaps of all tasks of a manager, sent together.
//!
//! Those that arrive while some are under way go together in the next statement, because the server flushes its log once for
//! all of them. Two swaps of one key go one after the other, and the second one is made anew behind the first.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_postgres::{Error, Row};

use super::connection::Connection;
use super::failure::{Class, class_of, code, is_standby};
use super::outbox::Outbox;
use super::queue::Pending;
use super::statements::Sql;
use super::{PostgresCells, channel};
use crate::base::clock::ServerTime;
use crate::base::join::join_all;
use crate::base::machine::timeout;
use crate::base::token::Address;
use crate::protocol::{News, Push};
use crate::store::Failure;
use crate::store::cells::{Cells, OwnerFence, Stored, Swap, Swapped, Written, message};

/// The first write of a key refuses itself later than this. So a copy that was on its way for longer does nothing.
const LATE: u64 = 3_000_000;
/// A server that answers nothing for so long is given up.
const SILENT: Duration = Duration::from_secs(6);

impl PostgresCells {
    /// Sends the swaps for as long as the server answers.
    pub(super) async fn send_batches(&self, connection: &Arc<Connection>) {
        while !connection.is_over() {
            let batch = self.queue.take();
            if batch.is_empty() {
                self.queue.bell.notified().await;
                continue;
            }
            let sent = timeout(SILENT, self.send_batch(connection, batch)).await;
            if sent.is_err() {
                return;
            }
        }
    }

    async fn send_batch(&self, connection: &Arc<Connection>, batch: Vec<Pending>) {
        let (mut keeping, mut ending, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        let sql = &connection.sql;
        for pending in batch {
            match pending.swaps.as_slice() {
                [one] if one.ends_a_hold => ending.push(pending),
                [_] => keeping.push(pending),
                _ => groups.push((vec![pending], &sql.together)),
            }
        }
        groups.extend([(keeping, &sql.keeping), (ending, &sql.ending)]);
        let groups = groups.into_iter().filter(|(group, _)| !group.is_empty());
        join_all(groups.map(|(group, sql)| self.send_group(connection, group, sql))).await;
    }

    /// Sends one statement, and answers its callers.
    async fn send_group(&self, connection: &Arc<Connection>, mut group: Vec<Pending>, sql: &Sql) {
        // Two managers that insert the same keys wait for each other in one order.
        group.sort_by(|one, other| one.swaps[0].key.cmp(&other.swaps[0].key));
        let outbox = &self.queue.outbox;
        let mut sent = Sent { outbox, group };
        let swaps: Vec<&Swap> = sent.group.iter().flat_map(|it| &it.swaps).collect();
        let swapped = self.swapped(connection, &swaps, sql).await;
        let newest = match &swapped {
            Ok((results, _)) => self.queue.newest(&swaps, results),
            Err(_) => HashMap::new(),
        };
        let mut swapped = swapped.map(|(results, is_local)| (results.into_iter(), is_local));
        for Pending { swaps, answer } in std::mem::take(&mut sent.group) {
            let result = match &mut swapped {
                Err(failure) => {
                    if failure.ambiguous {
                        outbox.add(doubtful_texts(&swaps));
                    }
                    Err(failure.clone())
                }
                // Those that go together have one result, unless none of them was done.
                Ok((results, is_local)) => match results.by_ref().take(swaps.len()).last() {
                    Some(Swapped::Done(written)) => {
                        // Before the answer, behind which the process may exit.
                        let texts = swaps
                            .iter()
                            .flat_map(|swap| texts_of(swap, written, *is_local));
                        outbox.add(texts);
                        match *is_local {
                            true => Err(Failure::unanswered(
                                "PostgreSQL has not confirmed the commit on its synchronous standbys",
                            )),
                            false => Ok(Swapped::Done(written)),
                        }
                    }
                    result => Ok(result.unwrap_or(Swapped::Again)),
                },
            };
            let _ = answer.send(result);
        }
        // Behind these answers, so that an operation that has to run again keeps its place.
        self.queue.outrun(&newest);
    }

    /// Returns a result for each swap, and whether those that are done may be on this server only; or the failure of all of them.
    async fn swapped(
        &self,
        connection: &Connection,
        swaps: &[&Swap],
        sql: &Sql,
    ) -> Result<(Vec<Swapped>, bool), Failure> {
        let before = connection.warnings.load(Ordering::Relaxed);
        let mut results: Vec<_> = swaps.iter().map(|_| Swapped::Again).collect();
        let rows = match self.run(connection, swaps, sql).await {
            Err(error) if class_of(code(&error)) == Class::Again => Vec::new(),
            Err(error) => {
                if is_standby(&error) {
                    connection.is_left.store(true, Ordering::Relaxed);
                }
                return Err(error.into());
            }
            Ok(rows) => rows,
        };
        for row in &rows {
            let read = self.read_result(row, &mut results);
            read.ok_or_else(Failure::not_understood)?;
        }
        let warned = connection.warnings.load(Ordering::Relaxed) != before;
        Ok((results, warned))
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

    async fn run(
        &self,
        connection: &Connection,
        swaps: &[&Swap],
        sql: &Sql,
    ) -> Result<Vec<Row>, Error> {
        let keys: Vec<_> = swaps.iter().map(|swap| self.name(&swap.key)).collect();
        let bytes: Vec<&[u8]> = swaps.iter().map(|swap| &*swap.bytes).collect();
        let numbers =
            |of: fn(&Swap) -> i64| -> Vec<i64> { swaps.iter().map(|swap| of(swap)).collect() };
        let fences = numbers(|swap| match swap.fence {
            OwnerFence::None => -1,
            OwnerFence::New => 0,
            OwnerFence::Kept(fence) => number(fence),
        });
        let mut receivers = BTreeSet::new();
        for (swap, place) in swaps.iter().zip(1_i64..) {
            let others = swap.pushes.iter().map(|push| push.to);
            let others = others.filter(|to| *to != self.manager);
            receivers.extend(others.map(|to| (place, u64::from(to).cast_signed())));
        }
        let (places, addresses): (Vec<_>, Vec<_>) = receivers.into_iter().unzip();
        let late = number(self.clock().0.saturating_add(LATE));
        let may_be_lost = swaps.iter().all(|swap| swap.may_be_lost);
        sql.run(
            &connection.client,
            &[
                &keys,
                &numbers(|swap| number(swap.seen.revision)),
                &bytes,
                &numbers(|swap| number(swap.ends)),
                &numbers(|swap| number(swap.lasts)),
                &fences,
                &places,
                &addresses,
                &late,
                &may_be_lost,
                &numbers(|swap| number(swap.now.0)),
                &numbers(|swap| number(swap.until.0)),
                &numbers(|swap| number(swap.seen.at.0)),
            ],
        )
        .await
    }
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
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

/// Returns the channels and the texts of the pushes of a write. A waiter that is given the key by a commit that may be on this
/// server only has to ask for it.
fn texts_of(
    swap: &Swap,
    written: Written,
    is_local: bool,
) -> impl Iterator<Item = (String, String)> + '_ {
    swap.pushes.iter().map(move |push| {
        let news = match push.news {
            News::Given { grant, .. } if is_local => News::Next { grant, after: 0 },
            news => news,
        };
        let text = message::of_push(&Push { news, ..*push }, &swap.key, written);
        (channel(push.to), text)
    })
}

/// The writes that a connection has sent. If the connection ends before the answer, the next connection sends their messages.
struct Sent<'a> {
    outbox: &'a Outbox,
    group: Vec<Pending>,
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        for pending in &self.group {
            self.outbox.add(doubtful_texts(&pending.swaps));
        }
    }
}

/// Returns the messages of writes without an answer, which the server may have done, or may still do. No other process sends
/// them. They tell a waiter to ask, because the key may not be its own.
fn doubtful_texts(swaps: &[Swap]) -> impl Iterator<Item = (String, String)> + '_ {
    let unknown = Written::default();
    swaps.iter().flat_map(move |it| texts_of(it, unknown, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    use crate::base::token::{Token, TokenSource};

    /// A write that gives the key to a waiter.
    fn giving(token: Token) -> Swap {
        let news = News::Given {
            grant: 2_000,
            fence: 0,
        };
        let to = token.address();
        Swap {
            key: "k".into(),
            seen: Written::default(),
            bytes: Vec::new().into(),
            ends: 0,
            lasts: 0,
            now: ServerTime(0),
            until: ServerTime(u64::MAX),
            fence: OwnerFence::New,
            ends_a_hold: true,
            may_be_lost: false,
            pushes: vec![Push { to, token, news }],
        }
    }

    #[test]
    fn a_waiter_asks_for_a_key_that_a_commit_without_its_standbys_gives() {
        let token = TokenSource::new(Address::random()).fresh();
        let swap = giving(token);
        let written = Written {
            revision: 7,
            at: ServerTime(5),
        };
        let text = |is_local| texts_of(&swap, written, is_local).next().expect("a push").1;
        assert_eq!(text(false), format!("g 5 2000 448 {token} 6b"));
        assert_eq!(text(true), format!("n 2000 0 {token} 6b"));
    }

    #[test]
    fn a_waiter_asks_for_a_key_that_a_write_without_an_answer_may_give() {
        let token = TokenSource::new(Address::random()).fresh();
        let outbox = Outbox::default();
        let (answer, _answered) = oneshot::channel();
        let swaps = vec![giving(token)];
        drop(Sent {
            outbox: &outbox,
            group: vec![Pending { swaps, answer }],
        });
        let (_, texts) = outbox.next(9);
        assert_eq!(texts, [format!("n 2000 0 {token} 6b")]);
    }
}
