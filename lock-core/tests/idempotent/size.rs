//! The size that the attribute adds to a future.

use std::mem::size_of_val;

use lock_core::{Error, idempotent};

/// The size of a cart in bytes.
type Cart = [u8; 1024];

#[idempotent(key = "cart:<cart[0]>", ttl = "10s", remember = "1h")]
async fn annotated(cart: Cart) -> Result<u64, Error> {
    let local = [0_u8; 2048];
    tokio::task::yield_now().await;
    std::hint::black_box(&local);
    Ok(u64::from(std::hint::black_box(cart)[0]))
}

#[idempotent(
    key = "list", ttl = "10s", remember = "1h", fingerprint = "<name>", wait = "1s", errors = |_| true, on_error = |_| Err(0),
    guard = _lock,
)]
async fn with_everything(name: String) -> Result<Vec<[u64; 32]>, u8> {
    tokio::task::yield_now().await;
    Ok(vec![[name.len() as u64; 32]])
}

/// The body, its arguments and its result are on the heap, as under a lock. The function's own future has the arguments until its
/// first poll, a request for the lock and the memory of the call.
#[track_caller]
fn is_little_larger_than(content: usize, annotated: usize) {
    assert!(
        annotated <= content + 500,
        "{annotated} bytes for a content of {content}"
    );
}

#[test]
fn a_future_contains_its_arguments_once_and_neither_a_local_nor_the_result() {
    is_little_larger_than(1024, size_of_val(&annotated([0; 1024])));
    let name = String::from("list");
    is_little_larger_than(size_of_val(&name), size_of_val(&with_everything(name)));
}
