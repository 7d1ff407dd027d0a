//! The attribute works on functions of every shape, and their futures are as `Send` as the plain ones.

use std::fmt::Display;
use std::pin::Pin;
use std::rc::Rc;

use lock_core::{Error, LockManager, distributed_lock, idempotent};
use serde::Serialize;
use serde::de::DeserializeOwned;

type Answer<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

struct Shop {
    locks: LockManager,
    id: u64,
}

impl Shop {
    fn new(id: u64) -> Shop {
        Shop {
            locks: LockManager::in_memory(),
            id,
        }
    }

    #[idempotent(key = "shared:<self.id>", ttl = "10s", remember = "1h", manager = self.locks)]
    async fn shared(&self) -> Answer<u64> {
        Ok(self.id)
    }

    #[idempotent(key = "exclusive:<self.id>", ttl = "10s", remember = "1h", fingerprint = "<by>", manager = self.locks)]
    async fn exclusive(&mut self, by: u64) -> Result<u64, Error> {
        tokio::task::yield_now().await;
        self.id += by;
        Ok(self.id)
    }

    #[idempotent(key = "owned:<self.id>", ttl = "10s", remember = "1h", manager = self.locks)]
    async fn owned(mut self, (_, _note): (u8, String)) -> Result<u64, Error> {
        self.id += 1;
        Ok(self.id)
    }

    /// The expansion by `async_trait` of `async fn pop(&self, (id, _): (u64, String)) -> …`.
    #[idempotent(key = "pop:<self.id>:<id>", ttl = "10s", remember = "1h", manager = self.locks)]
    fn as_async_trait_has_it<'life0, 'async_trait>(
        &'life0 self,
        __arg1: (u64, String),
    ) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            if let ::core::option::Option::Some(__ret) =
                ::core::option::Option::None::<Result<u64, Error>>
            {
                return __ret;
            }
            let __self = self;
            let (id, _) = __arg1;
            let __ret: Result<u64, Error> = { Ok(__self.id + id) };
            #[allow(unreachable_code)]
            __ret
        })
    }
}

#[idempotent(key = "generic:<name>:<N>", ttl = "10s", remember = "1h", fingerprint = none, manager = locks)]
async fn generic<'a, T, const N: usize>(
    locks: &LockManager,
    name: impl Display + Send + 'a,
    value: T,
    all: [u8; N],
) -> Result<(T, usize), Error>
where
    T: Serialize + DeserializeOwned + Send,
{
    tokio::task::yield_now().await;
    Ok((value, all.len()))
}

#[idempotent(key = "boxed:<n>", ttl = "10s", remember = "1h", manager = locks)]
fn boxed(n: u64, locks: LockManager) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send>> {
    Box::pin(async move { Ok(n) })
}

#[idempotent(key = "returned:<n>", ttl = "10s", remember = "1h", manager = locks)]
fn returned(n: u64, locks: LockManager) -> impl Future<Output = Result<u64, Error>> + Send {
    async move { Ok(n) }
}

#[distributed_lock(key = "outer:<n>", ttl = "10s", manager = locks)]
#[idempotent(key = "inner:<n>", ttl = "10s", remember = "1h", manager = locks)]
async fn under_another_lock(locks: &LockManager, n: u64) -> Result<u64, Error> {
    Ok(n)
}

#[idempotent(key = "local", ttl = "10s", remember = "1h", fingerprint = none, manager = locks)]
async fn local(locks: &LockManager, value: Rc<u32>) -> Result<u32, Error> {
    tokio::task::yield_now().await;
    Ok(*value)
}

/// Names of the standard library that the expansion uses mean something else here.
mod shadowed {
    #![allow(dead_code, non_camel_case_types)]

    use lock_core::{LockManager, idempotent};

    struct Option;
    struct Some;
    struct Ok;
    struct Err;
    struct Vec;

    #[idempotent(
        key = "shadowed:<n>", ttl = "10s", remember = "1h", errors = |_| false, on_error = |_| Result::Err(0), manager = locks,
    )]
    pub(super) async fn double(locks: &LockManager, n: u64) -> Result<u64, u64> {
        Result::Ok(n * 2)
    }
}

fn is_send<F: Future + Send>(future: F) -> F {
    future
}

#[tokio::test]
async fn every_receiver_works() {
    let mut shop = Shop::new(7);
    assert_eq!(is_send(shop.shared()).await.expect("free"), 7);
    assert_eq!(shop.shared().await.expect("kept"), 7);
    assert_eq!(is_send(shop.exclusive(5)).await.expect("free"), 12);
    assert_eq!(
        shop.as_async_trait_has_it((1, String::new()))
            .await
            .expect("free"),
        13
    );
    assert_eq!(
        is_send(shop.owned((1, String::new()))).await.expect("free"),
        13
    );
}

#[tokio::test]
async fn generic_functions_work() {
    let locks = LockManager::in_memory();
    let first = is_send(generic(&locks, "a", vec![1, 2], [0; 3])).await;
    assert_eq!(first.expect("free"), (vec![1, 2], 3));
    let second = generic(&locks, "a", vec![9], [0; 3]).await;
    assert_eq!(second.expect("kept"), (vec![1, 2], 3));
    let text = generic(&locks, "b", String::from("x"), []).await;
    assert_eq!(text.expect("free"), (String::from("x"), 0));
}

#[tokio::test]
async fn returned_futures_and_stacked_attributes_work() {
    let locks = LockManager::in_memory();
    for _ in 0..2 {
        assert_eq!(boxed(1, locks.clone()).await.expect("one run"), 1);
        assert_eq!(returned(2, locks.clone()).await.expect("one run"), 2);
        assert_eq!(under_another_lock(&locks, 3).await.expect("one run"), 3);
        assert_eq!(local(&locks, Rc::new(4)).await.expect("one run"), 4);
        assert_eq!(shadowed::double(&locks, 5).await, Ok(10));
    }
}

#[tokio::test]
async fn a_spawned_call_works() {
    let locks = LockManager::in_memory();
    let call = tokio::spawn(async move { returned(5, locks).await });
    assert_eq!(call.await.expect("no panic").expect("free"), 5);
}
