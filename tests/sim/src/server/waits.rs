//! `WAIT`: clients that wait until replicas have their writes.

use super::numbers::integer;
use super::resp::{Answer, Reply};
use super::{Bytes, Server};

/// A `WAIT` that is not answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// The offset that replicas must have acknowledged.
    written: u64,
    wanted: usize,
    /// The Unix time in microseconds when the client gives up.
    until: Option<i64>,
}

const UNBLOCKED: &str = "UNBLOCKED force unblock from blocking operation, instance state changed (master -> \
                         replica?)";

pub(super) fn wait(server: &mut Server, words: &[&[u8]]) -> Answer {
    if server.is_replica() {
        return Err(server.version.words().wait_on_replica.into());
    }
    let wanted = integer(words[1])?;
    let timeout = integer(words[2]).map_err(|_| "ERR timeout is not an integer or out of range")?;
    if timeout < 0 {
        return Err("ERR timeout is negative".into());
    }
    let written = server.session().written;
    let count = server.acknowledged(written);
    let wanted = usize::try_from(wanted).unwrap_or(0);
    if count >= wanted {
        return Ok(Reply::Int(count as i64));
    }
    // The last millisecond counts in full.
    let until = (timeout > 0).then_some(1_000 * (server.now + timeout + 1));
    server.session().waiting = Some(Waiting {
        written,
        wanted,
        until,
    });
    Ok(Reply::Later)
}

impl Server {
    /// Returns whether a connection waits for replicas, so that its next commands have to wait too.
    pub fn is_blocked(&self, conn: usize) -> bool {
        let session = self.sessions.get(&conn);
        session.is_some_and(|session| session.waiting.is_some())
    }

    /// Notes that a replica has all changes up to an offset. Replies to clients that have waited for it are among the
    /// pushes.
    pub fn acknowledge(&mut self, replica: usize, offset: u64) {
        let known = &mut self.replicas[replica].acknowledged;
        *known = offset.max(*known);
        self.answer_waits(None);
    }

    /// Answers the clients that have waited long enough.
    pub fn end_waits(&mut self, micros: i64) {
        self.answer_waits(Some(micros));
    }

    /// The Unix time in microseconds when the next client gives up waiting.
    pub fn next_wait_end(&self) -> Option<i64> {
        let waiting = self.sessions.values().filter_map(|session| session.waiting);
        waiting.filter_map(|waiting| waiting.until).min()
    }

    /// Ends all waiting, because the server has become a replica.
    pub(super) fn unblock(&mut self) -> Vec<usize> {
        let waiting = self.sessions.iter_mut();
        let waiting = waiting.filter_map(|(conn, session)| {
            session.waiting.take()?;
            Some((*conn, session.protocol))
        });
        let waiting: Vec<_> = waiting.collect();
        for (conn, protocol) in &waiting {
            let mut reply = Bytes::new();
            Reply::Error(UNBLOCKED.into()).write(*protocol, &mut reply);
            self.pushes.push((*conn, reply));
        }
        waiting.into_iter().map(|(conn, _)| conn).collect()
    }

    fn answer_waits(&mut self, micros: Option<i64>) {
        let waiting = self.sessions.iter().filter_map(|(conn, session)| {
            let waiting = session.waiting?;
            let count = self.acknowledged(waiting.written);
            let is_over = waiting
                .until
                .zip(micros)
                .is_some_and(|(until, now)| now >= until);
            (count >= waiting.wanted || is_over).then_some((*conn, count, session.protocol))
        });
        for (conn, count, protocol) in waiting.collect::<Vec<_>>() {
            let mut reply = Bytes::new();
            Reply::Int(count as i64).write(protocol, &mut reply);
            self.pushes.push((conn, reply));
            self.sessions
                .entry(conn)
                .and_modify(|session| session.waiting = None);
        }
    }

    /// Counts the replicas that have all changes up to an offset.
    fn acknowledged(&self, offset: u64) -> usize {
        let replicas = self.replicas.iter();
        replicas
            .filter(|replica| replica.acknowledged >= offset)
            .count()
    }
}
