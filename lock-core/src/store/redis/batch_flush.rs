//! A batch on its way: sent behind the tasks of its tick, and each of its answers told.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use redis::{Cmd, Value};

use super::batch::{Item, Place, Places, State, Tick};
use super::connection::Connection;
use super::fast_path::push_fence;
use super::keyspace::Keyspace;
use super::reply::as_usual;
use super::scripts::{BATCH, RELEASE};
use super::send_error::Trouble;
use super::{grant_in_millis, in_millis};
use crate::base::sync::lock;
use crate::base::token::Token;
use crate::store::{Acquire, Failure};

/// The task that sends a batch.
pub(super) struct Departure {
    tick: Arc<Tick>,
    connection: Connection,
    names: Arc<Keyspace>,
    /// Those that went, in the order in which the script takes them.
    order: Vec<usize>,
}

impl Departure {
    pub(super) fn new(tick: Arc<Tick>, connection: &Connection, names: &Arc<Keyspace>) -> Self {
        Self {
            tick,
            connection: connection.clone(),
            names: Arc::clone(names),
            order: Vec::new(),
        }
    }

    pub(super) async fn depart(mut self) {
        let Some(command) = self.load() else {
            return;
        };
        let nobodys = match BATCH.ask(&self.connection, command).await {
            Ok(Value::Array(answers)) if answers.len() == self.order.len() => {
                let mut answers = answers.into_iter();
                self.tell(|_| Ok(answers.next().unwrap_or(Value::Nil)))
            }
            Ok(answer) => match as_usual(&answer) {
                Some(fence) => self.tell(|item| {
                    Ok(match item {
                        Item::Release(_) => Value::Int(1),
                        Item::Acquire(_) => Value::Int(fence),
                    })
                }),
                None => self.tell(|_| Err(Trouble::Failed(Failure::not_understood()))),
            },
            // One key that the server refuses costs the others nothing: each is asked by itself.
            Err(Trouble::Failed(failure)) if !failure.ambiguous => {
                self.tell(|_| Ok(Value::Array(vec![Value::Int(3)])))
            }
            Err(trouble) => self.tell(|_| Err(trouble.clone())),
        };
        for acquire in nobodys {
            self.give_back(&acquire).await;
        }
    }

    /// Closes the batch. The releases come first: a key may be given back and taken in one batch. Whoever
    /// is gone sends nothing.
    fn load(&mut self) -> Option<Cmd> {
        let mut places = lock(&self.tick.0);
        places.departed = true;
        let those = |releases: bool| {
            let there = move |place: &Place| {
                matches!(place.item, Item::Release(_)) == releases
                    && !matches!(place.state, State::Left)
            };
            let taken = places.taken.iter().enumerate();
            taken.filter_map(move |(index, place)| there(place).then_some(index))
        };
        self.order.reserve_exact(places.taken.len());
        self.order.extend(those(true));
        let releases = self.order.len();
        self.order.extend(those(false));
        let last = &self.connection.batch().last;
        last.store(self.order.len(), Ordering::Relaxed);
        let (releases, acquires) = self.order.split_at(releases);
        (!self.order.is_empty()).then(|| command(&self.names, &places, releases, acquires))
    }

    /// Tells the answers. What was granted to somebody who is gone is nobody's.
    fn tell(&self, mut answer_to: impl FnMut(&Item) -> Result<Value, Trouble>) -> Vec<Acquire> {
        let mut wakers = Vec::with_capacity(self.order.len());
        let mut nobodys = Vec::new();
        let mut places = lock(&self.tick.0);
        for &index in &self.order {
            let Place { item, state } = &mut places.taken[index];
            let answer = answer_to(item);
            match state {
                State::Waiting(waker) => {
                    wakers.extend(waker.take());
                    *state = State::Answered(answer);
                }
                State::Answered(_) => {}
                State::Left => {
                    if let (Item::Acquire(acquire), Ok(Value::Int(_))) = (item, answer) {
                        nobodys.push(acquire.clone());
                    }
                }
            }
        }
        drop(places);
        for waker in wakers {
            waker.wake();
        }
        nobodys
    }

    /// A task that is gone has undone its acquire behind this batch, unless the batch was sent a second
    /// time after that, because the server did not know the script: then nobody else would, for a while.
    async fn give_back(&self, acquire: &Acquire) {
        let (lock, queue) = (
            self.names.lock(&acquire.key),
            self.names.queue(&acquire.key),
        );
        let keys = [lock.as_str(), self.names.only_mark(), queue.as_str()];
        let token = acquire.token.text();
        let arguments = [token.as_str(), "", self.names.channels(), ""];
        // Unanswered, it is left to the keeper, which undoes such an acquire once more later on.
        let _ = RELEASE.run(&self.connection, &keys, &arguments).await;
    }
}

impl Drop for Departure {
    /// The runtime has ended before the answer: whoever waits elsewhere is told.
    fn drop(&mut self) {
        let mut places = lock(&self.tick.0);
        places.departed = true;
        let mut wakers = Vec::new();
        for place in &mut places.taken {
            if let State::Waiting(waker) = &mut place.state {
                wakers.extend(waker.take());
                let failure = Failure::unanswered("the runtime that carried a question has ended");
                place.state = State::Answered(Err(Trouble::Failed(failure)));
            }
        }
        drop(places);
        for waker in wakers {
            waker.wake();
        }
    }
}

/// See `batch.lua`.
fn command(names: &Keyspace, places: &Places, releases: &[usize], acquires: &[usize]) -> Cmd {
    let releases = releases
        .iter()
        .filter_map(|&index| match &places.taken[index].item {
            Item::Release(release) => Some(release),
            Item::Acquire(_) => None,
        });
    let acquires = acquires
        .iter()
        .filter_map(|&index| match &places.taken[index].item {
            Item::Acquire(acquire) => Some(acquire),
            Item::Release(_) => None,
        });
    let (many, more) = (releases.clone().count(), acquires.clone().count());
    let keys = 1 + 2 * many + more;
    let mut command = BATCH.command(keys, 5 + many + more, 64 * (keys + many + more));
    command.arg(names.only_mark());
    for release in releases.clone() {
        names.push_lock(&release.key, &mut command);
    }
    for release in releases.clone() {
        names.push_queue(&release.key, &mut command);
    }
    for acquire in acquires.clone() {
        names.push_lock(&acquire.key, &mut command);
    }
    command.arg(names.channels()).arg(many);
    let used = releases.clone().filter_map(|release| release.fence);
    push_fence(used.max(), &mut command);
    command.arg(one_or_each(
        releases.clone().map(|release| grant_in_millis(release.ttl)),
    ));
    command.arg(one_or_each(
        acquires.clone().map(|acquire| in_millis(acquire.ttl)),
    ));
    let tokens = releases.map(|release| release.token);
    for token in tokens.chain(acquires.map(|acquire| acquire.token)) {
        command.arg(Token::text(&token).as_bytes());
    }
    command
}

/// One number if all are alike, all of them otherwise.
fn one_or_each(numbers: impl Iterator<Item = u64> + Clone) -> String {
    let mut others = numbers.clone();
    let first = others.next();
    if others.all(|other| Some(other) == first) {
        return first.map_or_else(String::new, |first| first.to_string());
    }
    let texts: Vec<_> = numbers.map(|number| number.to_string()).collect();
    texts.join(" ")
}
