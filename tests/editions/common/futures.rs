//! Tests functions that return futures without the keyword `async`, and recursion.

use std::future::Future;
use std::pin::Pin;

use lock_core::{Error, distributed_lock};

use super::witness::at_work;

/// The same alias as in the `futures` crate.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A function that returns a named `impl Future`.
#[distributed_lock(key = "future:<n>", ttl = "10s")]
pub fn opaque(n: u64) -> impl Future<Output = Result<u64, Error>> + Send {
    async move {
        at_work().await;
        Ok(n)
    }
}

/// A function that returns an `impl Future` with a borrow.
#[distributed_lock(key = "future:<text>", ttl = "10s")]
pub fn opaque_borrow<'a>(
    text: &'a str,
) -> impl Future<Output = Result<&'a str, Error>> + Send + 'a {
    async move {
        at_work().await;
        Ok(&text[1..])
    }
}

/// A function that returns a boxed future by its whole name.
#[distributed_lock(key = "boxed:<n>", ttl = "10s")]
pub fn boxed(
    n: u64,
    _: String,
) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + 'static>> {
    Box::pin(async move {
        at_work().await;
        Ok(n)
    })
}

/// A function that returns a boxed future that is not `Send`.
#[distributed_lock(key = "here:<n>", ttl = "10s", on_error = |_| None)]
pub fn boxed_here(n: std::rc::Rc<u64>) -> Pin<Box<dyn Future<Output = Option<u64>>>> {
    Box::pin(async move {
        at_work().await;
        Some(*n)
    })
}

/// A function that returns a boxed future by its usual alias.
#[distributed_lock(key = "alias:<text>", ttl = "10s")]
pub fn aliased<'a>(text: &'a str) -> BoxFuture<'a, Result<usize, Error>> {
    Box::pin(async move {
        at_work().await;
        Ok(text.len())
    })
}

/// A type with a method that returns a boxed future.
#[derive(Debug, Default)]
pub struct Counter {
    count: u64,
}

impl Counter {
    /// `&mut self` in the box.
    #[distributed_lock(key = "counter:<by>", ttl = "10s", guard = lock)]
    pub fn add(
        &mut self,
        by: u64,
    ) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + '_>> {
        Box::pin(async move {
            at_work().await;
            assert!(lock.is_valid());
            self.count += by;
            Ok(self.count)
        })
    }
}

/// Calls itself through a box.
#[distributed_lock(key = "depth:<depth>", ttl = "10s")]
pub async fn recursive(depth: u64) -> Result<u64, Error> {
    if depth == 0 {
        at_work().await;
        return Ok(0);
    }
    Ok(Box::pin(recursive(depth - 1)).await? + 1)
}

/// Calls itself in the box that it returns.
#[distributed_lock(key = "deep:<depth>", ttl = "10s")]
pub fn recursive_box(depth: u64) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send>> {
    Box::pin(async move {
        if depth > 0 {
            return Ok(recursive_box(depth - 1).await? + 1);
        }
        at_work().await;
        Ok(0)
    })
}

/// One of two functions that call each other.
#[distributed_lock(key = "ping:<n>", ttl = "10s")]
pub async fn ping(n: u64) -> Result<u64, Error> {
    if n == 0 {
        at_work().await;
        return Ok(0);
    }
    let next: Pin<Box<dyn Future<Output = _>>> = Box::pin(pong(n - 1));
    next.await
}

/// The other of the two functions.
#[distributed_lock(key = "pong:<n>", ttl = "10s")]
pub async fn pong(n: u64) -> Result<u64, Error> {
    Ok(Box::pin(ping(n)).await? + 1)
}

#[cfg(test)]
mod tests {
    use super::super::witness::{locked, locked_by_all};
    use super::*;

    #[tokio::test]
    async fn returned_futures_are_locked() {
        let done = locked("future:3", opaque(3), opaque(3)).await;
        assert_eq!(done.expect("free"), 3);
        let text = String::from("abc");
        let done = locked("future:abc", opaque_borrow(&text), opaque_borrow(&text)).await;
        assert_eq!(done.expect("free"), "bc");
        let call = || boxed(3, String::new());
        assert_eq!(locked("boxed:3", call(), call()).await.expect("free"), 3);
        let call = || boxed_here(3.into());
        assert_eq!(locked("here:3", call(), call()).await, Some(3));
        let done = locked("alias:abc", aliased(&text), aliased(&text)).await;
        assert_eq!(done.expect("free"), 3);
        let (mut one, mut two) = (Counter::default(), Counter::default());
        let done = locked("counter:2", one.add(2), two.add(2)).await;
        assert_eq!((done.expect("free"), two.count), (2, 0));
    }

    #[tokio::test]
    async fn recursion_takes_a_key_for_each_depth() {
        let keys = ["depth:0", "depth:1", "depth:2"];
        let done = locked_by_all(&keys, recursive(2), recursive(2)).await;
        assert_eq!(done.expect("free"), 2);
        let keys = ["deep:0", "deep:1"];
        let done = locked_by_all(&keys, recursive_box(1), recursive_box(1)).await;
        assert_eq!(done.expect("free"), 1);
        let keys = ["ping:0", "ping:1", "pong:0"];
        let done = locked_by_all(&keys, ping(1), ping(1)).await;
        assert_eq!(done.expect("free"), 1);
    }
}
