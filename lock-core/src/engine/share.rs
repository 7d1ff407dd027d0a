//! Acquiring a share: the store decides whether it fits beside those that are inside.
//!
//! A caller that waits stands in a line of its process, and asks when it is the first, as one that waits for a lock. A
//! caller that does not wait asks by itself.

use std::sync::Arc;

use super::acquire::contend;
use super::attempt::Attempt;
use super::spec::LockSpec;
use crate::base::error::Error;
use crate::base::options::Wait;
use crate::base::share::ShareLimit;
use crate::queue::Contender;

/// The beginning of a request for a share.
pub(super) enum ShareStart {
    Entered(Attempt),
    /// It stands in the line of this name.
    LinesUp(Arc<str>),
}

/// Chooses the line of a share. One that finds others before it asks once by itself, because they may still be on their
/// way in. It asks nothing if the first of them rests, so that tasks of this process do not overtake one that waits.
pub(super) async fn start_share(spec: &LockSpec, limit: ShareLimit) -> Result<ShareStart, Error> {
    let queue = &spec.engine.queue;
    if spec.wait == Wait::None {
        if !queue.is_draining()
            && let Some(first) = queue.holds_all_permits(&spec.key, limit)
        {
            return Err(Error::full(Some(first)));
        }
        return Ok(ShareStart::LinesUp(queue.own_line(&spec.key)));
    }
    let line = queue.line(&spec.key, limit);
    if line.is_behind_a_question {
        let at_once = LockSpec {
            wait: Wait::None,
            ..spec.clone()
        };
        let contender = queue.enter_own_line(&spec.key);
        let give_up = spec.engine.now() + spec.acquire_timeout;
        // The first of the line meets each failure too.
        if let Ok(Some(attempt)) = contend(&at_once, contender, give_up).await {
            return Ok(ShareStart::Entered(attempt));
        }
    }
    Ok(ShareStart::LinesUp(line.name))
}

/// Waits for releases of this process that may have stood in the way of a question. `confirmed`: the count of confirmed
/// ones when it was sent. `true`: there were such, so the question is asked again.
///
/// `is_over` becomes true unless a push came before they were confirmed. The next question may meet them too.
pub(super) async fn meets_own_release(
    spec: &LockSpec,
    contender: &Contender,
    attempt: &Attempt,
    confirmed: u64,
    is_over: &mut bool,
) -> bool {
    let engine = &spec.engine;
    let met = engine.queue.is_releasing_before(&attempt.lease);
    *is_over = true;
    if met {
        let latest = engine.now() + spec.acquire_timeout;
        *is_over = contender.lets_releases_arrive(&attempt.lease, latest).await;
    }
    met || engine.queue.confirmed_releases() != confirmed
}
