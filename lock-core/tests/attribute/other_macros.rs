//! Functions whose body another macro passes on, and two attributes on one function.

use std::pin::Pin;
use std::time::Duration;

use lock_core::{Error, LockManager, distributed_lock};

macro_rules! whole {
    ($name:ident($parameter:ident: $type:ty), $key:literal, $returned:ty, $body:block) => {
        #[distributed_lock(key = $key, ttl = "10s")]
        async fn $name($parameter: $type) -> $returned $body
    };
}

macro_rules! deeper {
    ($name:ident($parameter:ident), $key:literal, $body:block) => {
        whole!($name($parameter: u64), $key, Result<u64, Error>, $body);
    };
}

macro_rules! boxed {
    ($name:ident($parameter:ident), $body:block) => {
        #[distributed_lock(key = "boxed", ttl = "10s")]
        fn $name($parameter: u64) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send>> {
            Box::pin(async move $body)
        }
    };
}

whole!(of_a_block(uid: u64), "whole:<uid>", Result<u64, Error>, { Ok(uid) });
deeper!(of_a_block_within(uid), "deeper:<uid>", { Ok(uid + 1) });
boxed!(of_a_block_in_a_box(uid), { Ok(uid + 2) });

#[tokio::test]
async fn a_block_that_macro_rules_pass_on_is_a_body() {
    let locks = LockManager::in_memory();
    assert_eq!(locks.scope(of_a_block(7)).await.expect("free"), 7);
    assert_eq!(locks.scope(of_a_block_within(7)).await.expect("free"), 8);
    assert_eq!(locks.scope(of_a_block_in_a_box(7)).await.expect("free"), 9);
}

#[distributed_lock(key = "first:<a>", ttl = "10s", guard = outer)]
#[distributed_lock(key = "second:<a>", ttl = "10s", guard = inner)]
async fn stacked(a: u8) -> Result<(String, String), Error> {
    assert_eq!(a, 1);
    Ok((outer.key().to_owned(), inner.key().to_owned()))
}

#[tokio::test]
async fn two_attributes_stack_and_the_nearest_to_the_function_is_acquired_first() {
    let locks = LockManager::in_memory();
    let keys = locks.scope(stacked(1)).await.expect("free");
    assert_eq!(keys, ("first:1".to_owned(), "second:1".to_owned()));

    let ttl = Duration::from_secs(10);
    let _first = locks
        .lock("first:1")
        .ttl(ttl)
        .acquire()
        .await
        .expect("free");
    let _second = locks
        .lock("second:1")
        .ttl(ttl)
        .acquire()
        .await
        .expect("free");
    let error = locks.scope(stacked(1)).await.expect_err("both are held");
    assert_eq!(error.key(), Some("second:1"));
}
