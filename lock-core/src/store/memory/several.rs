//! Several keys at once: all of them, or none.

use super::state::{MemoryState, Owner};
use crate::base::clock::Moment;
use crate::store::{AcquireAll, AcquireCommand, Outcome, Queueing};

impl MemoryState {
    pub(super) fn acquire_all(
        &mut self,
        all: &AcquireAll,
        now: Moment,
        unix_micros: u64,
    ) -> Outcome {
        for (index, (key, token)) in all.leases.iter().enumerate() {
            self.forget_if_over(key, now);
            match self.live(key, now) {
                None => {}
                Some((Owner::Lease(owner) | Owner::Promised(owner), _)) if owner == *token => {}
                Some((owner, expires)) => {
                    let asked = AcquireCommand {
                        key: key.clone(),
                        token: *token,
                        ttl: all.ttl,
                        queueing: Queueing::Never,
                        replaces: None,
                        repeated: false,
                    };
                    let refusal = self.refused(&asked, owner, expires.since(now));
                    return Outcome::BusyAt(index, refusal);
                }
            }
        }
        self.sweep(now);
        let fence = match self.next_fence(unix_micros) {
            Ok(fence) => fence,
            Err(failure) => return Outcome::Failed(failure),
        };
        for (key, token) in &all.leases {
            self.set(key, Owner::Lease(*token), now + all.ttl);
        }
        Outcome::Granted(fence)
    }
}
