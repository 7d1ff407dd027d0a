//! Messages to waiters of other managers, behind the commits of which they tell.
//!
//! They are statements of their own, because a transaction that notifies keeps all others of the cluster that do from their
//! commits. A release is answered when its messages are on the server, so that a process may exit behind it.

use std::sync::Mutex;

use tokio::sync::{Notify, watch};

use super::connection::Connection;
use crate::base::sync::lock;

#[derive(Default)]
pub(super) struct Outbox {
    /// Channels and texts.
    waiting: Mutex<Vec<(String, String)>>,
    bell: Notify,
    /// How many messages have left.
    gone: watch::Sender<usize>,
}

impl Outbox {
    pub(super) fn add(&self, messages: impl Iterator<Item = (String, String)>) {
        lock(&self.waiting).extend(messages);
        self.bell.notify_one();
    }

    /// Waits until all messages so far are on the server, or no server can be reached.
    pub(super) async fn is_sent(&self) {
        let mut gone = self.gone.subscribe();
        let last = {
            let waiting = lock(&self.waiting);
            *gone.borrow() + waiting.len()
        };
        let _ = gone.wait_for(|gone| *gone >= last).await;
    }

    /// Gives all messages up, because no server can be reached. A waiter asks by itself when it listens again.
    pub(super) fn clear(&self) {
        self.leave(usize::MAX);
    }

    /// Sends the messages for as long as the connection lasts. Those that are not confirmed are left to the next connection.
    pub(super) async fn send(&self, connection: &Connection) {
        loop {
            let (channels, texts) = self.next();
            if channels.is_empty() {
                self.bell.notified().await;
                continue;
            }
            let notify = &connection.sql.notify;
            let sent = notify.run(&connection.client, &[&channels, &texts]).await;
            if sent.is_err() && connection.client.is_closed() {
                return;
            }
            // A server that refuses them would refuse them again.
            self.leave(channels.len());
        }
    }

    pub(super) fn next(&self) -> (Vec<String>, Vec<String>) {
        lock(&self.waiting).iter().cloned().unzip()
    }

    /// Lets the first of them leave.
    fn leave(&self, count: usize) {
        let mut waiting = lock(&self.waiting);
        let count = count.min(waiting.len());
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
        assert_eq!(outbox.next().1, ["one"]);
        let mut sent = pin!(outbox.is_sent());
        let mut is_sent = || {
            let mut context = Context::from_waker(Waker::noop());
            sent.as_mut().poll(&mut context).is_ready()
        };
        assert!(!is_sent());
        add("two");
        // The connection has broken.
        assert_eq!(outbox.next().1, ["one", "two"]);
        assert!(!is_sent());
        outbox.leave(1);
        assert!(is_sent(), "later messages are no part of it");
        assert_eq!(outbox.next().1, ["two"]);
    }
}
