//! Renewals, and the server's hints that a key was changed.
//!
//! A server can tell a client that a key was changed which the client has read (`CLIENT TRACKING`, with `OPTIN`). The
//! keeper's connection reads the keys of its leases in each renewal, and asks for a hint with `CLIENT CACHING YES` before
//! the script, which reads them last. From then on a `DEL`, another value or the end of the key is pushed, once, until
//! the next renewal. `NOLOOP` leaves the connection's own renewals out. A hint makes a renewal due, and its answer decides.
//!
//! A lock that is released before its first renewal costs nothing for this. A server older than 7.0.5, whose tracking of
//! keys in scripts is incomplete, and one that refuses a command, gives no hints. Their owners notice a change at the
//! next renewal, as before.

use redis::{Cmd, Pipeline, Value, cmd};

use super::RedisStore;
use crate::base::token::Token;
use crate::store::redis::wire::connection::Connection;
use crate::store::redis::wire::send_error::SendError;
use crate::store::redis::wire::spans::in_millis;
use crate::store::redis::wire::{reply, scripts};
use crate::store::{Extension, Outcome};

/// The command that has the server report changes of the keys that the next command reads.
pub(super) fn caching() -> Cmd {
    cmd("CLIENT").arg("CACHING").arg("YES").take()
}

impl RedisStore {
    pub(super) async fn extend(
        &self,
        extensions: &[Extension],
        on: &Connection,
    ) -> Result<Outcome, SendError> {
        if extensions.iter().any(|one| one.token.share().is_some()) {
            return Box::pin(self.extend_with_shares(extensions, on)).await;
        }
        let answer = self.extend_locks(extensions.iter(), on).await?;
        Ok(reply::extended(&answer))
    }

    /// Lengthens leases of which none is a share.
    pub(super) async fn extend_locks<'a>(
        &self,
        extensions: impl ExactSizeIterator<Item = &'a Extension> + Clone,
        on: &Connection,
    ) -> Result<Value, SendError> {
        let command = self.extending(extensions, on);
        match on.is_watching() {
            true => Box::pin(watched(&command, on)).await,
            false => scripts::EXTEND.ask(on, &command).await,
        }
    }

    /// The command that lengthens these leases. Where replicas acknowledge, it writes each key.
    pub(super) fn extending<'a>(
        &self,
        extensions: impl ExactSizeIterator<Item = &'a Extension> + Clone,
        on: &Connection,
    ) -> Cmd {
        let count = extensions.len();
        let keys = extensions.clone().map(|extension| extension.key.len() + 32);
        let bytes = keys.sum::<usize>() + count * (Token::LENGTH + 8) + 8;
        let script = match on.is_watching() {
            true => &scripts::EXTEND_AND_WATCH,
            false => &scripts::EXTEND,
        };
        let mut command = script.command(count, 2 * count + 1, bytes);
        for extension in extensions.clone() {
            self.names.push_lock(&extension.key, &mut command);
        }
        for extension in extensions {
            command.arg(extension.token.text().as_bytes());
            command.arg(in_millis(extension.ttl));
        }
        if self.replicas.is_some() {
            command.arg("write");
        }
        command
    }
}

/// Sends a renewal whose keys the server watches from then on.
async fn watched(command: &Cmd, on: &Connection) -> Result<Value, SendError> {
    match watched_once(command, on).await {
        Err(SendError::NoScript) => {
            watched_once(&scripts::EXTEND_AND_WATCH.whole_of(command), on).await
        }
        answer => answer,
    }
}

async fn watched_once(command: &Cmd, on: &Connection) -> Result<Value, SendError> {
    let mut commands = Pipeline::with_capacity(2);
    commands.add_command(caching()).add_command(command.clone());
    let [cached, answer] = on.send_all(&commands).await?;
    if SendError::of(&cached).is_some() {
        on.watches_nothing();
    }
    match SendError::of(&answer) {
        Some(trouble) => Err(trouble),
        None => Ok(answer),
    }
}
