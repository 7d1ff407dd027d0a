//! Operations of a store as steps of the [`protocol`](crate::protocol), and what the steps say as outcomes.
//!
//! The stores that keep documents share these: the embedded one, and those over cells.

use std::sync::Arc;
use std::time::Duration;

use super::{
    AcquireCommand, ClosedFor, Event, Failure, Force, Forgotten, Grant, Inspected, News, Operation,
    Outcome, Refusal, Release, Remembered, StoredHolder,
};
use crate::base::clock::ServerTime;
use crate::base::fence::FencingToken;
use crate::base::holder_token::HolderToken;
use crate::base::record::StoredRecord;
use crate::base::token::Token;
use crate::lease::cohort::GAP;
use crate::lease::deadline::GRANT;
use crate::protocol::{
    self, Acquire, Document, End, Ended, Millis, News as ProtocolNews, Phase, Push, Refused, Reply,
    Waited, Waiter, Way,
};

/// The number of waiters that an inspection names.
const NAMED: usize = 100;
/// What a client of another library would write.
const STRANGERS_VALUE: &[u8] = b"a stranger's";

/// Returns the step of an operation on one key, with the key; `None` for any other operation.
pub(super) fn step_of(operation: &Operation) -> Option<(&Arc<str>, protocol::Operation)> {
    let end = |release: &Release, way| {
        protocol::Operation::End(End {
            token: release.token,
            fence: release.fence.map(u64::from),
            way,
        })
    };
    Some(match operation {
        Operation::Acquire(acquire) => (&acquire.key, protocol::Operation::Acquire(asked(acquire))),
        Operation::Release(release) => (&release.key, end(release, Way::Release)),
        Operation::Vacate(release) => (&release.key, end(release, Way::Vacate(millis(GAP)))),
        Operation::Leave(release) => (&release.key, end(release, Way::Leave)),
        Operation::Cool(release, cooldown) => {
            let way = Way::Cool {
                span: lasts(cooldown.span),
                until: cooldown.until_millis.saturating_sub(1),
            };
            (&release.key, end(release, way))
        }
        Operation::Remember(release, record) => {
            let stored = StoredRecord {
                fence: release.fence.map_or(0, u64::from),
                bytes: record.bytes.clone().into(),
            };
            let way = Way::Remember {
                record: Arc::new(stored),
                lifetime: lasts(record.lifetime),
                ttl: lasts(release.ttl),
            };
            (&release.key, end(release, way))
        }
        Operation::Forget(key) => (key, protocol::Operation::Forget),
        Operation::Swap(swap) => {
            let step = protocol::Operation::Swap {
                from: swap.from,
                to: swap.to,
                ttl: lasts(swap.ttl),
                fence: swap.fence.map(u64::from),
            };
            (&swap.key, step)
        }
        _ => return None,
    })
}

/// Returns the outcome of such an operation, from the reply of its step and the document after it.
pub(super) fn outcome_of(
    operation: &Operation,
    reply: &Reply,
    document: &Document,
    now: ServerTime,
) -> Outcome {
    match (operation, reply) {
        (_, Reply::Granted(fence)) => granted(*fence),
        (Operation::Acquire(acquire), Reply::Busy(refused)) => {
            Outcome::Busy(refusal(document, refused, acquire.token, now))
        }
        (Operation::Remember(..), Reply::Ended { how, .. }) => Outcome::Remembered(match how {
            Ended::Yes => Remembered::Yes,
            Ended::Absent => Remembered::Absent,
            Ended::Other => Remembered::Other,
        }),
        (_, Reply::Ended { how, .. }) => Outcome::Released(*how),
        (_, Reply::Forgotten(of)) => Outcome::Forgotten(Forgotten::Yes, Some(*of)),
        (Operation::Forget(_), Reply::Done(Ended::Absent)) => {
            Outcome::Forgotten(Forgotten::Nothing, None)
        }
        (Operation::Forget(_), Reply::Done(_)) => Outcome::Forgotten(Forgotten::Held, None),
        (Operation::Swap(_), Reply::Done(how)) => Outcome::Swapped(*how),
        _ => Outcome::Failed(Failure::not_understood()),
    }
}

/// Returns the step of an operator's order; `None`: the holder is no lease.
pub(super) fn order_of(force: &Force) -> Option<protocol::Force> {
    let holder = match force.holder.as_bytes() {
        STRANGERS_VALUE => Token::NOBODY,
        _ => force.holder.token()?,
    };
    Some(protocol::Force {
        holder,
        fence: force.fence.map(u64::from),
        grace: millis(force.grace),
        serves: force.register.is_none(),
    })
}

/// Returns all that an operator sees of a key whose document has settled.
pub(super) fn inspected(document: &Document, mark: u64, now: ServerTime) -> Inspected {
    let (holders, closed) = holders(document, now);
    let waiters = document.queue.iter().take(NAMED);
    Inspected {
        holder_count: holders.len(),
        holders,
        closed,
        waiters: waiters
            .map(|waiter| (waiter.token.address(), waited(waiter, now)))
            .collect(),
        waiter_count: document.queue.len(),
        mark,
    }
}

/// Returns the event for the receiver of a push, where the push was sent at `now`.
pub(super) fn event(key: &Arc<str>, push: &Push, now: ServerTime) -> Option<Event> {
    let token = push.token;
    let (grant, news) = match push.news {
        ProtocolNews::Given { grant, fence } => {
            let given = Grant {
                fence: FencingToken::new(fence)?,
                given: now,
                ends: ServerTime((now.0 / 1000 + grant) * 1000),
                asks: false,
            };
            (grant, News::Given(given))
        }
        ProtocolNews::Next { grant, after } => (grant, News::Next(Duration::from_millis(after))),
        ProtocolNews::Forced => {
            return Some(Event::Forced {
                key: Arc::clone(key),
                holder: token.into(),
            });
        }
    };
    Some(Event::News {
        key: Arc::clone(key),
        token,
        grant: Duration::from_millis(grant),
        news,
    })
}

/// A span in whole milliseconds, and never less than it.
pub(super) fn millis(span: Duration) -> Millis {
    u64::try_from(span.as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
}

/// As [`millis`], for the end of a key. The key exists in the whole last millisecond of the protocol, and is to be free
/// when the span is over.
///
/// The key may end a part of a millisecond too early, and its owner counts on 2 ms less.
pub(super) fn lasts(span: Duration) -> Millis {
    millis(span).saturating_sub(1)
}

/// The time until a key is free that ends after so many milliseconds.
pub(super) fn free_after(left: Millis) -> Duration {
    Duration::from_millis(left.saturating_add(1))
}

/// The question of an acquire.
pub(super) fn asked(acquire: &AcquireCommand) -> Acquire {
    let replaces = acquire.replaces;
    Acquire {
        token: acquire.token,
        ttl: lasts(acquire.ttl),
        grant: millis(acquire.ttl.min(GRANT)),
        waits: acquire.queues(),
        replaces: replaces.map(|before| before.token),
        used: replaces.and_then(|before| before.fence).map(u64::from),
    }
}

pub(super) fn granted(fence: u64) -> Outcome {
    match FencingToken::new(fence) {
        Some(fence) => Outcome::Granted(fence),
        None => Outcome::Failed(Failure::not_understood()),
    }
}

pub(super) fn refusal(
    document: &Document,
    refused: &Refused,
    token: Token,
    now: ServerTime,
) -> Refusal {
    let is_a_strangers =
        matches!(&document.phase, Phase::Held(hold) if hold.token == Token::NOBODY);
    Refusal {
        cooling: matches!(document.phase, Phase::Closed(_)),
        record: document.record().cloned(),
        remaining: refused.left.map(free_after),
        queued: refused.queued,
        // A client of another library pushes nothing when it releases.
        pushed: refused.queued && !is_a_strangers,
        shared: document.is_shared(),
        full: token.share().filter(|_| refused.is_full),
        server_time: refused.queued.then_some(now),
    }
}

fn holders(document: &Document, now: ServerTime) -> (Vec<StoredHolder>, Option<ClosedFor>) {
    let remaining = |ends: u64| Some(free_after(ends.saturating_sub(now.0 / 1000)));
    let holder = |token: Token, ends| StoredHolder {
        token: match token {
            Token::NOBODY => HolderToken::new(STRANGERS_VALUE),
            token => token.into(),
        },
        remaining: remaining(ends),
    };
    let closed = |ends, has_record| ClosedFor {
        remaining: remaining(ends),
        has_record,
    };
    match &document.phase {
        Phase::Free => (Vec::new(), None),
        Phase::Held(hold) => (vec![holder(hold.token, hold.ends)], None),
        Phase::Closed(it) => (Vec::new(), Some(closed(it.until, it.record.is_some()))),
        Phase::Shared(shares) => {
            let live = shares.inside.iter().filter(|place| !place.is_freed);
            let holders = live.map(|place| holder(place.token, place.ends));
            let freed = shares.inside.iter().rfind(|place| place.is_freed);
            let closed = freed.map(|place| closed(place.ends, false));
            (holders.collect(), closed)
        }
    }
}

/// The time since the arrival of a waiter. One that was asked whether it still waits has waited for longer.
fn waited(waiter: &Waiter, now: ServerTime) -> Duration {
    let since = match waiter.waited {
        Waited::Since(arrival) => arrival,
        Waited::Asked(at) | Waited::Answered(at) => at * 1000,
    };
    Duration::from_micros(now.0.saturating_sub(since))
}
