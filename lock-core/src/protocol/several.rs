//! Several keys in one step: all of them, or none.

use std::sync::Arc;

use super::{Around, Document, Millis, Refused, Reply};
use crate::base::token::Token;

/// Takes all keys, each for its own token, or none. A key that already has its token counts as free. The caller enters no
/// queue. `documents`: those of the keys, in their order.
pub(crate) fn acquire_all(
    documents: &mut [Document],
    leases: &[(Arc<str>, Token)],
    ttl: Millis,
    around: &mut Around<'_>,
) -> Reply {
    let now = around.now_ms();
    let tokens = || leases.iter().map(|(_, token)| *token);
    for (index, (document, token)) in documents.iter_mut().zip(tokens()).enumerate() {
        document.settle(now);
        if !document.may_be_had_by(token) {
            let refused = Refused {
                left: document.left(now),
                queued: false,
                is_full: false,
            };
            return Reply::BusyAt(index, refused);
        }
    }
    if !around.has_room {
        return Reply::NoRoom;
    }
    for (document, token) in documents.iter_mut().zip(tokens()) {
        document.enter(token, now + ttl);
    }
    Reply::Granted(around.next_fence())
}
