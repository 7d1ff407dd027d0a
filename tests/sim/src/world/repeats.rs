//! A proxy that sends the requests of a process to a server a second time.

use super::State;
use crate::server::Bytes;

/// Commands about their own connection. A second connection would not matter to the first one.
const OF_A_CONNECTION: [&[u8]; 6] = [b"AUTH", b"CLIENT", b"HELLO", b"PING", b"SUBSCRIBE", b"WAIT"];

impl State {
    /// Keeps a command that a proxy may send again.
    pub(super) fn record(&mut self, connection: usize, command: &[Bytes]) {
        let it = &self.connections[connection];
        let Some(recorded) = self.recorded.get_mut(&(it.process, it.server)) else {
            return;
        };
        if !OF_A_CONNECTION
            .iter()
            .any(|it| command[0].eq_ignore_ascii_case(it))
        {
            recorded.push(command.to_vec());
        }
    }

    /// Sends all commands again that the server got since the fault began.
    pub(super) fn repeat(&mut self, process: usize, server: usize) {
        let Some(recorded) = self.recorded.remove(&(process, server)) else {
            return;
        };
        if self.hosts[server].is_up && !self.hosts[server].is_stopped() {
            self.as_stranger(server, &recorded);
            let its = self.connections_between(process, server);
            self.with_postgres(server, |postgres, at| {
                postgres.repeat(at, |connection| its.contains(&connection));
            });
        }
    }
}
