//! Several keys in one step: all of them, or none.

use super::{Around, Document, Millis, Phase, Refused, Reply};
use crate::base::token::Token;

/// One of several keys, with the token that is to have it.
pub(crate) struct Wanted<'a> {
    pub(crate) document: &'a mut Document,
    pub(crate) token: Token,
}

/// Takes all keys, or none. A key that already has its token counts as free. The caller enters no queue.
pub(crate) fn acquire_all(
    wanted: &mut [Wanted<'_>],
    ttl: Millis,
    around: &mut Around<'_>,
) -> Reply {
    let now = around.now_ms();
    for (index, key) in wanted.iter_mut().enumerate() {
        key.document.settle(now);
        let may_have_it = match &key.document.phase {
            Phase::Free => true,
            Phase::Held(hold) => hold.token == key.token,
            Phase::Shared(_) | Phase::Closed(_) => false,
        };
        if !may_have_it {
            let refused = Refused {
                left: key.document.left(now),
                queued: false,
                is_full: false,
            };
            return Reply::BusyAt(index, refused);
        }
    }
    if !around.has_room {
        return Reply::NoRoom;
    }
    for key in wanted.iter_mut() {
        key.document.enter(key.token, now + ttl);
    }
    Reply::Granted(around.next_fence())
}
