//! The size that the attribute adds to a future.

use std::mem::size_of_val;

use lock_core::{Error, LockManager, distributed_lock};

/// The size of a cart in bytes.
type Cart = [u8; 1024];

fn look<T>(value: &T) {
    let _ = std::hint::black_box(value);
}

/// A body with a large local, which reads its argument after an await.
macro_rules! work {
    ($argument:expr) => {{
        let local = [0_u8; 2048];
        tokio::task::yield_now().await;
        look(&local);
        look(&$argument);
        Ok(())
    }};
}

async fn plain(cart: Cart) -> Result<(), Error> {
    work!(cart)
}

#[distributed_lock(key = "cart:<cart[0]>", ttl = "10s")]
async fn annotated(cart: Cart) -> Result<(), Error> {
    work!(cart)
}

#[distributed_lock(
    key = "cart:<cart[0]>", ttl = "10s", wait = "1s", max_hold = "30s", cooldown = "2s",
    manager = locks, guard = _lock, release = background, on_error = Err,
)]
async fn with_everything(cart: Cart, locks: LockManager) -> Result<(), Error> {
    work!(cart)
}

async fn plain_pattern((cart, rest): (Cart, u8)) -> Result<(), Error> {
    look(&rest);
    work!(cart)
}

#[distributed_lock(key = "cart:<cart[0]>", ttl = "10s")]
async fn pattern((cart, rest): (Cart, u8)) -> Result<(), Error> {
    look(&rest);
    work!(cart)
}

#[distributed_lock(key = "outer:<cart[0]>", ttl = "10s")]
#[distributed_lock(key = "inner:<cart[0]>", ttl = "10s")]
async fn annotated_twice(cart: Cart) -> Result<(), Error> {
    work!(cart)
}

#[distributed_lock(key = "outer:<cart[0]>", ttl = "10s")]
#[distributed_lock(key = "inner:<cart[0]>", ttl = "10s")]
async fn pattern_twice((cart, rest): (Cart, u8)) -> Result<(), Error> {
    look(&rest);
    work!(cart)
}

#[distributed_lock(key = "result", ttl = "10s")]
async fn result() -> Result<Cart, Error> {
    tokio::task::yield_now().await;
    Ok([0; 1024])
}

#[distributed_lock(key = "small", ttl = "10s")]
async fn small() -> Result<(), Error> {
    tokio::task::yield_now().await;
    Ok(())
}

/// Checks the size of a function's future.
///
/// The body, its arguments and its output are on the heap. The function's own future has the
/// arguments until its first poll, and a request for the lock.
#[track_caller]
fn is_little_larger_than(content: usize, annotated: usize) {
    assert!(
        annotated <= content + 400,
        "{annotated} bytes for a content of {content}"
    );
}

#[test]
fn a_future_contains_its_arguments_once_and_no_local() {
    let cart = [0; 1024];
    is_little_larger_than(1024, size_of_val(&annotated(cart)));
    is_little_larger_than(1025, size_of_val(&pattern((cart, 1))));
    assert!(size_of_val(&plain(cart)) > 3 * 1024);
    assert!(size_of_val(&plain_pattern((cart, 1))) > 3 * 1024);
}

#[test]
fn under_two_locks_a_future_has_its_arguments_once() {
    let cart = [0; 1024];
    is_little_larger_than(1024, size_of_val(&annotated_twice(cart)));
    is_little_larger_than(1025, size_of_val(&pattern_twice((cart, 1))));
}

#[test]
fn every_argument_of_the_attribute_costs_a_few_bytes() {
    let locks = LockManager::in_memory();
    is_little_larger_than(1024, size_of_val(&with_everything([0; 1024], locks)));
}

#[test]
fn a_small_function_stays_small_whatever_it_returns() {
    is_little_larger_than(0, size_of_val(&small()));
    is_little_larger_than(0, size_of_val(&result()));
}
