//! First attempts and releases of many tasks at once, in one script each.
//!
//! While fewer than two requests are out on a connection each goes by itself: nothing is won by
//! waiting. Beyond that, what the tasks of one scheduler tick want is sent together, which costs
//! server and client less than the raw commands would.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use redis::Value;
use tokio::runtime::Handle;

use super::batch_flush::Departure;
use super::connection::Connection;
use super::keyspace::Keyspace;
use super::send_error::Trouble;
use super::wait::NextWait;
use crate::base::sync::lock;
use crate::store::{Acquire, Release};

/// Few enough that client and server work at the same time, and that nobody waits long behind one.
const LARGEST: usize = 16;
/// After a batch of so many the next requests go together too, though nothing is out at the moment: all
/// of them may have been answered at once.
const CROWD: usize = 3;

/// One operation of a batch.
pub(super) enum Item {
    Release(Release),
    Acquire(Acquire),
}

/// Whether the answer says that the operation has to be asked by itself.
pub(super) fn is_alone(answer: &Value) -> bool {
    matches!(answer, Value::Array(parts) if parts.as_slice() == [Value::Int(3)])
}

/// What waits for the next tick on one connection.
#[derive(Default)]
pub(super) struct Batch {
    next: Mutex<Option<Arc<Tick>>>,
    /// How many went together the last time.
    pub(super) last: AtomicUsize,
    pub(super) next_wait: NextWait,
}

impl Batch {
    pub(super) fn was_a_crowd(&self) -> bool {
        self.last.load(Ordering::Relaxed) >= CROWD
    }
}

impl Connection {
    /// A place among what else this tick brings; none, outside of a runtime.
    pub(super) fn ride(&self, names: &Arc<Keyspace>, item: Item) -> Option<Ride> {
        let mut next = lock(&self.batch().next);
        let item = match &*next {
            None => item,
            Some(tick) => match tick.board(item) {
                Ok(ride) => return Some(ride),
                Err(item) => item,
            },
        };
        let runtime = Handle::try_current().ok()?;
        let tick = Arc::new(Tick::default());
        let ride = tick.board(item).ok()?;
        *next = Some(Arc::clone(&tick));
        drop(next);
        // Behind the tasks that are ready by now: what they want goes along.
        runtime.spawn(Departure::new(tick, self, names).depart());
        Some(ride)
    }
}

/// One batch, from its first item until the last answer is taken. One allocation for all of them.
#[derive(Default)]
pub(super) struct Tick(pub(super) Mutex<Places>);

#[derive(Default)]
pub(super) struct Places {
    pub(super) taken: Vec<Place>,
    /// Nobody gets in any more.
    pub(super) departed: bool,
}

pub(super) struct Place {
    pub(super) item: Item,
    pub(super) state: State,
}

pub(super) enum State {
    Waiting(Option<Waker>),
    Answered(Result<Value, Trouble>),
    /// Nobody waits for the answer.
    Left,
}

impl Tick {
    /// Takes a place, if there is one.
    fn board(self: &Arc<Self>, item: Item) -> Result<Ride, Item> {
        let mut places = lock(&self.0);
        if places.departed || places.taken.len() == LARGEST {
            return Err(item);
        }
        if places.taken.is_empty() {
            places.taken.reserve_exact(LARGEST);
        }
        places.taken.push(Place {
            item,
            state: State::Waiting(None),
        });
        Ok(Ride {
            tick: Arc::clone(self),
            place: places.taken.len() - 1,
        })
    }
}

/// An operation in a batch, until it is answered. Dropped before the tick, it is not sent.
pub(super) struct Ride {
    tick: Arc<Tick>,
    place: usize,
}

impl Future for Ride {
    type Output = Result<Value, Trouble>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut places = lock(&self.tick.0);
        let state = &mut places.taken[self.place].state;
        match state {
            State::Waiting(Some(waker)) if waker.will_wake(context.waker()) => Poll::Pending,
            State::Waiting(waker) => {
                let before = waker.replace(context.waker().clone());
                drop(places);
                drop(before);
                Poll::Pending
            }
            State::Answered(_) | State::Left => match std::mem::replace(state, State::Left) {
                State::Answered(answer) => Poll::Ready(answer),
                _ => panic!("a ride was polled after its end"),
            },
        }
    }
}

impl Drop for Ride {
    fn drop(&mut self) {
        let mut places = lock(&self.tick.0);
        let state = std::mem::replace(&mut places.taken[self.place].state, State::Left);
        drop(places);
        drop(state);
    }
}
