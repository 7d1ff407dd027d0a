//! The identities of managers, each in a cell of its own.

use std::sync::Arc;
use std::time::Duration;

use super::codec::{card_bytes, card_of};
use super::driver::CellStore;
use super::{Cells, OwnerFence, Swap, Swapped, Written};
use crate::base::clock::ServerTime;
use crate::base::identity::Identity;
use crate::base::machine::sleep;
use crate::store::Failure;

/// How long an identity stays, in microseconds: an hour, so that it can be read after a crash.
const STAYS: u64 = 60 * 60 * 1_000_000;
/// How often it is written.
const REFRESH: Duration = Duration::from_secs(20 * 60);
/// The pause after an identity could not be written.
const AGAIN: Duration = Duration::from_secs(5);

impl<C: Cells> CellStore<C> {
    /// Keeps the identity of the manager in the store, for as long as the manager lives.
    pub(super) async fn keep_card(&self, identity: Option<Arc<Identity>>) {
        let Some(identity) = identity else {
            return;
        };
        let (key, bytes) = (format!("!h:{}", self.manager), card_bytes(&identity));
        let (key, bytes): (Arc<str>, Arc<[u8]>) = (key.into(), bytes.into());
        let mut seen = Written::default();
        loop {
            let write = Swap {
                key: Arc::clone(&key),
                seen,
                bytes: Arc::clone(&bytes),
                ends: 0,
                lasts: STAYS,
                now: ServerTime(0),
                until: ServerTime(u64::MAX),
                fence: OwnerFence::None,
                ends_a_hold: false,
                may_be_lost: true,
                pushes: Vec::new(),
            };
            let pause = match self.cells.swap(vec![write]).await {
                Ok(Swapped::Done(written)) => {
                    seen = written;
                    REFRESH
                }
                Ok(Swapped::Changed(stored, _)) => {
                    seen = stored.map_or(Written::default(), |stored| stored.written);
                    AGAIN
                }
                _ => AGAIN,
            };
            sleep(pause).await;
        }
    }

    pub(super) async fn card(&self, name: Arc<str>) -> Result<Option<Identity>, Failure> {
        let read = self.cells.read(&[name]).await?;
        let stored = read.stored.into_iter().next().flatten();
        Ok(stored.and_then(|stored| card_of(&stored.bytes)))
    }
}
