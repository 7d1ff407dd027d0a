//! Helps the implementations of `Database` to send two statements at once, and to end a transaction that is dropped.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use crate::base::machine;

/// Runs a future behind the drop of its owner. Without a runtime it is dropped.
#[doc(hidden)]
pub fn in_background<F>(future: F)
where
    F: Future<Output: Send> + Send + 'static,
{
    if machine::runtime().is_some() {
        drop(machine::spawn(future));
    }
}

/// Sends the second statement before the first one is answered. A driver sends a statement when its future is first polled.
///
/// # Errors
///
/// The first future has failed at once, so its statement was not sent, and the second one is not sent either.
#[doc(hidden)]
pub async fn in_order<T, E, S: Future>(
    first: impl Future<Output = Result<T, E>>,
    second: S,
) -> Result<(Result<T, E>, S::Output), E> {
    let mut first = pin!(first);
    match poll_fn(|context| Poll::Ready(first.as_mut().poll(context))).await {
        Poll::Ready(Err(error)) => Err(error),
        Poll::Ready(Ok(value)) => Ok((Ok(value), second.await)),
        Poll::Pending => {
            let (second, first) = tokio::join!(biased; second, first);
            Ok((first, second))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::ready;

    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn the_second_is_sent_before_the_first_is_answered() {
        let sent = Cell::new(false);
        let first = async {
            yield_now().await;
            Ok::<_, ()>(sent.get())
        };
        let both = in_order(first, async { sent.set(true) }).await;
        assert_eq!(both, Ok((Ok(true), ())));
    }

    #[tokio::test]
    async fn the_second_is_not_sent_if_the_first_could_not_be() {
        let sent = Cell::new(false);
        let both = in_order(ready(Err::<(), _>("too large")), async { sent.set(true) }).await;
        assert_eq!(both, Err("too large"));
        assert!(!sent.get());
    }

    #[tokio::test]
    async fn the_second_is_sent_if_the_first_was_answered_at_once() {
        let both = in_order(ready(Ok::<_, ()>(1)), ready(2)).await;
        assert_eq!(both, Ok((Ok(1), 2)));
    }
}
