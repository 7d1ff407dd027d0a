//! `PUBLISH` and `SUBSCRIBE`.

use super::resp::{Answer, Protocol, Reply, write_push};
use super::{BEFORE, BEHIND, Bytes, Server};

pub(super) fn publish(server: &mut Server, words: &[&[u8]]) -> Answer {
    let (channel, message) = (words[1], words[2]);
    server.pass_on(channel, message);
    let Some(listeners) = server.listeners.get(channel) else {
        return Ok(Reply::Int(0));
    };
    for conn in listeners {
        let mut bytes = push_to(channel, message, server.sessions[conn].protocol);
        if Some(*conn) == server.current {
            // Earlier servers tell a client that publishes to itself before they reply.
            let place = if server.version.is_7_2() {
                BEHIND
            } else {
                BEFORE
            };
            server.own[place].append(&mut bytes);
        } else {
            server.pushes.push((*conn, bytes));
        }
    }
    Ok(Reply::Int(listeners.len() as i64))
}

/// The bytes of a message to a listener.
pub(super) fn push_to(channel: &[u8], message: &[u8], protocol: Protocol) -> Bytes {
    let [channel, message] = [channel, message].map(Reply::text);
    let mut bytes = Bytes::new();
    write_push(
        &[Reply::text("message"), channel, message],
        protocol,
        &mut bytes,
    );
    bytes
}

pub(super) fn subscribe(server: &mut Server, words: &[&[u8]]) -> Answer {
    let conn = server.current.expect("a command runs");
    let mut confirmed = Vec::new();
    for channel in &words[1..] {
        let channels = &mut server.session().channels;
        if !channels.iter().any(|known| known == channel) {
            channels.push(channel.to_vec());
            let listeners = server.listeners.entry(channel.to_vec()).or_default();
            listeners.push(conn);
        }
        let count = server.session().channels.len();
        confirmed.push(confirmation("subscribe", Reply::text(channel), count));
    }
    Ok(Reply::Pushes(confirmed))
}

pub(super) fn unsubscribe(server: &mut Server, words: &[&[u8]]) -> Answer {
    let conn = server.current.expect("a command runs");
    let mut left: Vec<Bytes> = words[1..].iter().map(|channel| channel.to_vec()).collect();
    if left.is_empty() {
        left.clone_from(&server.session().channels);
    }
    let mut confirmed = Vec::new();
    for channel in &left {
        server.session().channels.retain(|known| known != channel);
        server.leave(conn, channel);
        let count = server.session().channels.len();
        confirmed.push(confirmation("unsubscribe", Reply::text(channel), count));
    }
    if confirmed.is_empty() {
        confirmed.push(confirmation("unsubscribe", Reply::Null, 0));
    }
    Ok(Reply::Pushes(confirmed))
}

fn confirmation(kind: &str, channel: Reply, count: usize) -> Vec<Reply> {
    vec![Reply::text(kind), channel, Reply::Int(count as i64)]
}

impl Server {
    /// Returns whether the present client has subscribed, and so may do nothing else in the older protocol.
    pub(super) fn is_only_listening(&mut self) -> bool {
        self.script.is_none()
            && self.protocol == Protocol::Resp2
            && !self.session().channels.is_empty()
    }

    pub(super) fn leave(&mut self, conn: usize, channel: &[u8]) {
        if let Some(listeners) = self.listeners.get_mut(channel) {
            listeners.retain(|listener| *listener != conn);
            if listeners.is_empty() {
                self.listeners.remove(channel);
            }
        }
    }
}
