//! One writer among more readers than a server lets in at once.

use std::time::Duration;

use lock_core::machine::sleep;

use super::{Draw, End, Worker, end, name};
use crate::ledger::Owning;
use crate::world::{MILLI, SECOND};

/// How long the writer has the key: all readers have come by then.
const WRITES: u64 = 500 * MILLI;
/// How long a reader has the key.
const READS: u64 = 2 * SECOND;
/// The readers are among themselves for so long.
const PAUSE: u64 = 3 * SECOND;

impl Worker {
    pub(super) async fn crowd(&mut self) {
        let writes = (self.process, self.task) == (0, 0);
        let request = self.locks.lock(name(0));
        let (request, owning, hold) = match writes {
            true => (request, Owning::Alone, WRITES),
            false => (request.read(), Owning::READER, READS),
        };
        let draw = Draw {
            key: 0,
            ttl: 10 * SECOND,
            wait: None,
            hold,
            cancel: None,
            rests: None,
            watched: false,
            end: End::Release,
            awaits: false,
        };
        if let Some((call, guard)) = self.ask(request, &draw, vec![0], owning).await {
            let handle = guard.handle();
            self.hold(call, &handle, 0).await;
            sleep(Duration::from_nanos(draw.hold)).await;
            self.hold(call, &handle, 0).await;
            end(call, guard, draw.end).await;
        }
        if writes {
            sleep(Duration::from_nanos(PAUSE)).await;
        }
    }
}
