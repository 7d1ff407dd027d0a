//! What the attribute adds to the size of a future.

use std::mem::size_of_val;

use lock_core::{Error, LockManager, distributed_lock};

/// What a cart weighs.
type Cart = [u8; 1024];

fn look<T>(value: &T) {
    let _ = std::hint::black_box(value);
}

/// Some work with a large local, that reads what it was given afterwards.
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

/// The body, its arguments and its output are on the heap. The function's own future has the arguments
/// until its first poll, and a request for the lock.
#[track_caller]
fn has_room_for(content: usize, annotated: usize) {
    assert!(
        annotated <= content + 400,
        "{annotated} bytes for a content of {content}"
    );
}

#[test]
fn a_future_has_its_arguments_once_and_no_local() {
    let cart = [0; 1024];
    has_room_for(1024, size_of_val(&annotated(cart)));
    has_room_for(1025, size_of_val(&pattern((cart, 1))));
    assert!(size_of_val(&plain(cart)) > 3 * 1024);
    assert!(size_of_val(&plain_pattern((cart, 1))) > 3 * 1024);
}

#[test]
fn under_two_locks_a_future_has_its_arguments_once() {
    let cart = [0; 1024];
    has_room_for(1024, size_of_val(&annotated_twice(cart)));
    has_room_for(1025, size_of_val(&pattern_twice((cart, 1))));
}

#[test]
fn every_argument_of_the_attribute_costs_a_few_bytes() {
    let locks = LockManager::in_memory();
    has_room_for(1024, size_of_val(&with_everything([0; 1024], locks)));
}

#[test]
fn a_small_function_stays_small_whatever_it_returns() {
    has_room_for(0, size_of_val(&small()));
    has_room_for(0, size_of_val(&result()));
}
