//! A request that has its lock: the handler, the cooldown, the release.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use tower_service::Service;
use tracing::{Instrument, Span};

use crate::context::LockContext;
use crate::options::ReleaseAt;
use crate::policy::Policy;
use crate::taking::BoxFuture;
use crate::tenure::Tenure;

/// What waits for the lock.
pub(crate) struct Work<S, B> {
    pub(crate) inner: S,
    pub(crate) request: Request<B>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) span: Span,
}

/// What the handler has made, and the lock, if it is held until the body's end.
pub(crate) struct Done<T, E> {
    pub(crate) result: Result<T, E>,
    pub(crate) tenure: Option<Tenure>,
}

impl<S, B, R> Work<S, B>
where
    S: Service<Request<B>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
    R: Send + 'static,
{
    /// In a box, so that it can go on elsewhere: a server drops the future of a request whose client
    /// has gone, and a handler that was dropped half way would leave an order paid and not booked.
    pub(crate) fn start(self, tenure: Tenure) -> BoxFuture<Done<Response<R>, S::Error>> {
        let span = self.span.clone();
        Box::pin(self.run(tenure).instrument(span))
    }

    /// The tenure lives here and nowhere else: as long as the handler runs, the lock is renewed, and
    /// however that ends, the lock is given back after the handler was dropped.
    async fn run(self, tenure: Tenure) -> Done<Response<R>, S::Error> {
        let Self {
            mut inner,
            mut request,
            policy,
            ..
        } = self;
        let context = LockContext::new(Arc::clone(tenure.shared()));
        request.extensions_mut().insert(context);
        let lock = tenure.shared();
        // Inside the lock, so that what locks the same key in there enters it. `call` may do the
        // work itself, before it returns a future: it belongs there too.
        let handler = async move {
            let result = inner.call(request).await;
            drop(inner);
            result
        };
        let result = lock.handle.scope(handler).await;
        let held_for = lock.handle.held_for();
        let result = result.map(|response| {
            let (head, body) = response.into_parts();
            tenure.decide(policy.cooldown.after(&head, held_for));
            Response::from_parts(head, body)
        });
        if policy.release_at == ReleaseAt::BodyEnd && result.is_ok() {
            let tenure = Some(tenure);
            return Done { result, tenure };
        }
        give_back(tenure, policy.release_timeout).await;
        Done {
            result,
            tenure: None,
        }
    }
}

/// The work is done: nothing that happens to the release changes its answer. Dropped before the
/// store has answered, the release goes on in the background.
pub(crate) async fn give_back(tenure: Tenure, patience: Duration) {
    let record = tenure.shared().record;
    let outcome = match tenure.release_within(patience).await {
        Some(Ok(())) => "released",
        Some(Err(error)) => error.code(),
        None => "background",
    };
    record.released(outcome);
}
