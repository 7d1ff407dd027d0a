//! Whether anybody in the store's queue waits for a lease that goes from task to task here.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use crate::active::Hold;
use crate::engine::Core;
use crate::keeper::Job;
use crate::store::{Lane, Operation, Outcome, Release};

/// Asked once: without an answer the lease is given back in good time, as if somebody waited.
///
/// On the runtime of whoever ends the tenure, where its acquires go too: the keeper's thread would come
/// between this tenure and the next.
pub(super) fn look_around(hold: &Hold) {
    let core = &hold.core;
    #[cfg(feature = "redis")]
    if let lane @ Lane::Runtime(_) = core.store.acquiring_lane()
        && let Ok(runtime) = tokio::runtime::Handle::try_current()
    {
        runtime.spawn(look(Arc::clone(core), hold.release(), lane));
        return;
    }
    core.keeper.submit(Job::look(hold));
}

pub(crate) async fn look(core: Arc<Core>, release: Release, lane: Lane) {
    let asked = core.keeper.clock.now();
    let mut answer = core.store.execute(Operation::Look(release.clone()), lane);
    let mut over = pin!(core.keeper.timer(asked + core.operation_timeout));
    let outcome = poll_fn(|context| match answer.as_mut().poll(context) {
        Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
        Poll::Pending => over.as_mut().poll(context).map(|()| None),
    })
    .await;
    if let Some(Outcome::Waiting(waits)) = outcome {
        let local = &core.local;
        local.has_looked(&release.key, release.token, asked, waits);
    }
}
