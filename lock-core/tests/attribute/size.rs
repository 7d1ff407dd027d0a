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

async fn plain_small() {
    tokio::task::yield_now().await;
}

#[distributed_lock(key = "small", ttl = "10s")]
async fn small() -> Result<(), Error> {
    tokio::task::yield_now().await;
    Ok(())
}

/// What a plain function keeps twice, the compiler's way, is kept no more often; what is added is ours.
#[track_caller]
fn is_little_more_than<P, A>(plain: P, annotated: A) {
    let (plain, annotated) = (size_of_val(&plain), size_of_val(&annotated));
    assert!(
        annotated <= plain + 400,
        "{annotated} bytes, the plain one {plain}"
    );
}

#[test]
fn a_large_argument_and_a_large_local_are_kept_as_often_as_without_the_attribute() {
    let cart = [0; 1024];
    is_little_more_than(plain(cart), annotated(cart));
    is_little_more_than(plain_pattern((cart, 1)), pattern((cart, 1)));
    let ratio = size_of_val(&annotated(cart)) as f64 / size_of_val(&plain(cart)) as f64;
    assert!(ratio <= 1.1, "{ratio}");
}

#[test]
fn every_argument_of_the_attribute_costs_a_few_bytes() {
    let locks = LockManager::in_memory();
    is_little_more_than(plain([0; 1024]), with_everything([0; 1024], locks));
}

#[test]
fn a_small_function_stays_small() {
    is_little_more_than(plain_small(), small());
}
