//! The command that leaves a manager's identity on a server.

use std::time::Duration;

use redis::{Cmd, cmd};

use super::keyspace::Keyspace;
use super::spans::in_millis;
use crate::base::identity::Identity;
use crate::store::CardName;

/// How long an identity stays in the store: long enough to be read after a crash.
pub(in crate::store::redis) const CARD: Duration = Duration::from_secs(60 * 60);
/// The command that writes an identity.
pub(in crate::store::redis) fn card(names: &Keyspace, name: &CardName, identity: &Identity) -> Cmd {
    let mut command = cmd("SET");
    let text = identity.text();
    command.arg(names.card(name)).arg(text);
    command.arg("PX").arg(in_millis(CARD));
    command
}
