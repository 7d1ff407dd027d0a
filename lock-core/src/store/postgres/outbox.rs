//! Messages to waiters of other managers, behind the commits of which they tell.
//!
//! They are statements of their own, because a transaction that notifies keeps all others of the cluster that do from their
//! commits. A release is answered when its messages are on the server, so that a process may exit behind it.

use std::mem;
use std::sync::Mutex;

use tokio::sync::{Notify, oneshot};

use super::connection::Connection;
use crate::base::sync::lock;

#[derive(Default)]
pub(super) struct Outbox {
    waiting: Mutex<Waiting>,
    bell: Notify,
}

#[derive(Default)]
struct Waiting {
    /// Channels and texts.
    messages: Vec<(String, String)>,
    /// Those that go on when the messages before are sent. They are dropped then.
    callers: Vec<oneshot::Sender<()>>,
}

impl Outbox {
    pub(super) fn add(&self, messages: impl Iterator<Item = (String, String)>) {
        lock(&self.waiting).messages.extend(messages);
        self.bell.notify_one();
    }

    /// Waits until all messages so far are on the server, or no server can be reached.
    pub(super) async fn is_sent(&self) {
        let (caller, sent) = oneshot::channel();
        lock(&self.waiting).callers.push(caller);
        self.bell.notify_one();
        let _ = sent.await;
    }

    /// Gives all messages up, because no server can be reached. A waiter asks by itself when it listens again.
    pub(super) fn clear(&self) {
        let given_up = mem::take(&mut *lock(&self.waiting));
        drop(given_up);
    }

    /// Sends the messages for as long as the connection lasts. Those that are not confirmed are left to the next connection.
    pub(super) async fn send(&self, connection: &Connection) {
        loop {
            let Waiting { messages, callers } = mem::take(&mut *lock(&self.waiting));
            if messages.is_empty() {
                drop(callers);
                self.bell.notified().await;
                continue;
            }
            let mut unsent = Unsent {
                outbox: self,
                messages,
                callers,
            };
            let (channels, texts): (Vec<_>, Vec<_>) = unsent.messages.iter().cloned().unzip();
            let notify = &connection.sql.notify;
            let sent = notify.run(&connection.client, &[&channels, &texts]).await;
            match sent {
                Err(_) if connection.client.is_closed() => return,
                // A server that refuses them would refuse them again.
                _ => unsent.messages.clear(),
            }
        }
    }
}

/// Messages that are under way. If they are not confirmed, they come before all later ones.
struct Unsent<'a> {
    outbox: &'a Outbox,
    messages: Vec<(String, String)>,
    callers: Vec<oneshot::Sender<()>>,
}

impl Drop for Unsent<'_> {
    fn drop(&mut self) {
        if self.messages.is_empty() {
            return;
        }
        let mut waiting = lock(&self.outbox.waiting);
        let Waiting { messages, callers } = &mut *waiting;
        messages.splice(..0, mem::take(&mut self.messages));
        callers.append(&mut self.callers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_are_not_confirmed_come_before_later_ones() {
        let outbox = Outbox::default();
        let message = |text: &str| ("channel".to_owned(), text.to_owned());
        let unsent = Unsent {
            outbox: &outbox,
            messages: vec![message("one")],
            callers: Vec::new(),
        };
        outbox.add([message("two")].into_iter());
        drop(unsent);
        let waiting = lock(&outbox.waiting);
        let texts: Vec<_> = waiting.messages.iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["one", "two"]);
    }
}
