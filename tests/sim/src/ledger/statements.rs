//! The simulated PostgreSQL server knows each statement.

use super::Ledger;
use crate::world::State;

impl Ledger {
    pub fn check_statements(&mut self, state: &State) {
        let servers = state.hosts.iter().filter_map(|host| host.postgres.as_ref());
        if let Some(text) = servers.flat_map(|it| &it.unknown).next() {
            self.violates("the simulated server does not know a statement", text);
        }
    }
}
