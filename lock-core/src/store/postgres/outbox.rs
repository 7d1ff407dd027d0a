//! Messages to waiters of other managers, behind the commits of which they tell.
//!
//! They are statements of their own, because a transaction that notifies keeps all others of the cluster that do from their
//! commits. A release is answered when its messages are on the server, so that a process may exit behind it.

use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::connection::Connection;
use super::failure::is_standby;
use crate::base::clock::{Clock, Moment};
use crate::base::sync::lock;

/// A message is given up after this time. Its waiter has asked by itself then.
const KEPT: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct Outbox {
    waiting: Mutex<Vec<Waiting>>,
    bell: Notify,
    /// How many messages have left.
    gone: watch::Sender<usize>,
}

struct Waiting {
    channel: String,
    text: String,
    since: Moment,
}

impl Outbox {
    /// Adds messages: channels and texts.
    pub(super) fn add(&self, messages: impl Iterator<Item = (String, String)>) {
        let since = Clock::System.now();
        lock(&self.waiting).extend(messages.map(|(channel, text)| Waiting {
            channel,
            text,
            since,
        }));
        self.bell.notify_one();
    }

    /// Waits until all messages so far are on the server, or are given up.
    pub(super) async fn is_sent(&self) {
        let mut gone = self.gone.subscribe();
        let last = {
            let waiting = lock(&self.waiting);
            *gone.borrow() + waiting.len()
        };
        let _ = gone.wait_for(|gone| *gone >= last).await;
    }

    /// Sends the messages for as long as the connection lasts. Those that are not confirmed are left to the next connection.
    pub(super) async fn send(&self, connection: &Connection) {
        let mut most = usize::MAX;
        loop {
            let (channels, texts) = self.next(most);
            if channels.is_empty() {
                most = usize::MAX;
                self.bell.notified().await;
                continue;
            }
            let notify = &connection.sql.notify;
            let sent = notify.run(&connection.client, &[&channels, &texts]).await;
            match sent {
                Err(error) if connection.client.is_closed() || is_standby(&error) => return,
                // The server may refuse one of them only.
                Err(_) if channels.len() > 1 => most = 1,
                // It would refuse the message again.
                _ => self.leave(channels.len()),
            }
        }
    }

    /// Returns the first messages, and gives those up that are old.
    pub(super) fn next(&self, most: usize) -> (Vec<String>, Vec<String>) {
        let now = Clock::System.now();
        let is_old = |it: &&Waiting| now.since(it.since) >= KEPT;
        let old = lock(&self.waiting).iter().take_while(is_old).count();
        self.leave(old);
        let waiting = lock(&self.waiting);
        let each = waiting.iter().take(most);
        each.map(|it| (it.channel.clone(), it.text.clone())).unzip()
    }

    /// Lets the first of them leave.
    fn leave(&self, count: usize) {
        let mut waiting = lock(&self.waiting);
        waiting.drain(..count);
        self.gone.send_modify(|gone| *gone += count);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn messages_that_are_not_confirmed_come_before_later_ones() {
        let outbox = Outbox::default();
        let add = |text: &str| outbox.add([("channel".to_owned(), text.to_owned())].into_iter());
        add("one");
        assert_eq!(outbox.next(9).1, ["one"]);
        let mut sent = pin!(outbox.is_sent());
        let mut is_sent = || {
            let mut context = Context::from_waker(Waker::noop());
            sent.as_mut().poll(&mut context).is_ready()
        };
        assert!(!is_sent());
        add("two");
        // The connection has broken.
        assert_eq!(outbox.next(1).1, ["one"]);
        assert_eq!(outbox.next(9).1, ["one", "two"]);
        assert!(!is_sent());
        outbox.leave(1);
        assert!(is_sent(), "later messages are no part of it");
        assert_eq!(outbox.next(9).1, ["two"]);
    }
}
