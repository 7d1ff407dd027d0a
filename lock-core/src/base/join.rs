//! Several futures as one.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Runs futures at the same time, and returns their outputs in order. For a few hundred at most.
pub(crate) async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut open: Vec<_> = futures.into_iter().map(|it| Some(Box::pin(it))).collect();
    let mut outputs: Vec<_> = open.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, output) in open.iter_mut().zip(&mut outputs) {
            let polled = future.as_mut().map(|it| Pin::new(it).poll(context));
            if let Some(Poll::Ready(ready)) = polled {
                *output = Some(ready);
                *future = None;
            }
        }
        match open.iter().any(Option::is_some) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn outputs_are_in_the_order_of_the_futures() {
        let (send, receive) = tokio::sync::oneshot::channel();
        let mut send = Some(send);
        let mut receive = Some(receive);
        let joined = join_all([0, 1].map(|index| {
            let (send, receive) = match index {
                0 => (None, receive.take()),
                _ => (send.take(), None),
            };
            async move {
                match (send, receive) {
                    (_, Some(receive)) => receive.await.expect("sent"),
                    (Some(send), None) => send.send("first").map(|()| "second").expect("received"),
                    _ => unreachable!(),
                }
            }
        }));
        assert_eq!(joined.await, ["first", "second"]);
    }
}
