//! Several futures as one.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Polls all futures until each has ended. Returns their outputs in order.
///
/// The first poll polls each of them, so that their requests are sent together.
pub(crate) async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut open: Vec<Pin<Box<F>>> = futures.map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = open.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, output) in open.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let Poll::Ready(ended) = future.as_mut().poll(context)
            {
                *output = Some(ended);
            }
        }
        match outputs.iter().all(Option::is_some) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}
