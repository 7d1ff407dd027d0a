//! Runs several futures at once.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// Returns the first `wanted` results. The other futures are dropped, although their commands
/// are sent.
pub(super) async fn together<T>(
    futures: impl IntoIterator<Item = impl Future<Output = T>>,
    wanted: usize,
) -> Vec<T> {
    let mut open: Vec<Pin<Box<_>>> = futures.into_iter().map(Box::pin).collect();
    let mut come = Vec::with_capacity(wanted);
    poll_fn(|context| {
        open.retain_mut(|future| match future.as_mut().poll(context) {
            Poll::Ready(value) => {
                come.push(value);
                false
            }
            Poll::Pending => true,
        });
        if come.len() >= wanted {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    come
}
