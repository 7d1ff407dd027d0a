//! Two statements on their way to the server at once.

use std::future::Future;

/// Runs both, and polls the first one first, so that a driver sends its statement first.
#[doc(hidden)]
pub async fn in_order<A: Future, B: Future>(first: A, second: B) -> (A::Output, B::Output) {
    tokio::join!(biased; first, second)
}
