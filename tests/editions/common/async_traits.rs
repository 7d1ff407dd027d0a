//! Tests methods of `async_trait`, which turns them into plain functions before the attribute
//! sees them.

use std::rc::Rc;
use std::sync::Arc;

use async_trait::async_trait;
use lock_core::{Error, LockManager, distributed_lock};

use super::errors::ShopError;
use super::patterns::Pair;
use super::witness::at_work;

/// A service behind a pointer.
#[async_trait]
pub trait Service: Send + Sync {
    /// A method without a default.
    async fn save(&self, id: u64, text: &str) -> Result<String, ShopError>;

    /// Arguments with patterns.
    async fn apart(&self, (id, _): (u64, String), Pair { second, .. }: Pair) -> Result<u64, Error>;

    /// `&mut self`
    async fn exclusive(&mut self, by: u64) -> Result<&mut u64, Error>;

    /// `self: Arc<Self>`
    async fn counted(self: Arc<Self>) -> Result<usize, Error>;

    /// Type parameters and lifetimes of the method.
    async fn generic<'a, T: Send + Sync + Clone>(&self, many: &'a [T]) -> Result<&'a T, Error>
    where
        Self: Sized;

    /// A method that returns nothing.
    async fn skipped(&self, ran: &mut bool);

    /// A default method.
    #[distributed_lock(key = "default:<self.name()>:<id>", ttl = "10s", guard = lock)]
    async fn default_method(&self, mut id: u64, _: String) -> Result<String, Error> {
        at_work().await;
        id += 1;
        Ok(format!("{} {id}", lock.key()))
    }

    /// A default function without a receiver.
    #[distributed_lock(key = "associated:<id>", ttl = "10s")]
    async fn associated(id: u64) -> Result<u64, Error>
    where
        Self: Sized,
    {
        at_work().await;
        Ok(id)
    }

    /// Returns the name for the key of the default method.
    fn name(&self) -> &'static str;
}

/// A service with its locks.
#[derive(Debug)]
pub struct Shop {
    locks: LockManager,
    sold: u64,
}

#[async_trait]
impl Service for Shop {
    #[distributed_lock(key = "save:<id>:<text>", ttl = "10s", manager = self.locks)]
    async fn save(&self, id: u64, text: &str) -> Result<String, ShopError> {
        at_work().await;
        if text.is_empty() {
            return Err(ShopError::SoldOut);
        }
        Ok(format!("{id}{text}{}", self.sold))
    }

    #[distributed_lock(key = "apart:<id>:<second>", ttl = "10s", manager = self.locks)]
    async fn apart(&self, (id, _): (u64, String), Pair { second, .. }: Pair) -> Result<u64, Error> {
        at_work().await;
        Ok(id + u64::from(second.is_empty()))
    }

    #[distributed_lock(key = "exclusive:<by>", ttl = "10s", manager = &self.locks)]
    async fn exclusive(&mut self, by: u64) -> Result<&mut u64, Error> {
        at_work().await;
        self.sold += by;
        Ok(&mut self.sold)
    }

    #[distributed_lock(key = "counted:<self.sold>", ttl = "10s", manager = self.locks)]
    async fn counted(self: Arc<Self>) -> Result<usize, Error> {
        at_work().await;
        Ok(Arc::strong_count(&self))
    }

    #[distributed_lock(key = "generic:<many.len()>", ttl = "10s", manager = self.locks)]
    async fn generic<'a, T: Send + Sync + Clone>(&self, many: &'a [T]) -> Result<&'a T, Error> {
        at_work().await;
        Ok(&many[0])
    }

    #[distributed_lock(key = "skipped", ttl = "10s", manager = self.locks, on_error = |_| ())]
    async fn skipped(&self, ran: &mut bool) {
        at_work().await;
        *ran = true;
    }

    fn name(&self) -> &'static str {
        "shop"
    }
}

/// A trait for one thread.
#[async_trait(?Send)]
pub trait Local {
    /// A method with an argument that is not `Send`.
    async fn local(&self, value: Rc<u64>) -> Result<u64, Error>;

    /// The same as a default method.
    #[distributed_lock(key = "default:<value>", ttl = "10s")]
    async fn local_default(&self, value: Rc<u64>) -> Result<u64, Error> {
        at_work().await;
        Ok(*value)
    }
}

#[async_trait(?Send)]
impl Local for Shop {
    #[distributed_lock(key = "local:<value>", ttl = "10s", manager = self.locks)]
    async fn local(&self, value: Rc<u64>) -> Result<u64, Error> {
        at_work().await;
        Ok(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::witness::{locked, manager};
    use super::*;

    fn shop() -> Shop {
        Shop {
            locks: manager(),
            sold: 2,
        }
    }

    #[tokio::test]
    async fn implemented_methods_are_locked() {
        let (mut one, mut two) = (shop(), shop());
        let done = locked("save:3:a", one.save(3, "a"), two.save(3, "a")).await;
        assert_eq!(done.expect("free"), "3a2");
        let pair = || Pair {
            first: (0, String::new()),
            second: "x".into(),
        };
        let call = |shop: Arc<Shop>| async move { shop.apart((3, String::new()), pair()).await };
        let done = locked("apart:3:x", call(shop().into()), call(shop().into())).await;
        assert_eq!(done.expect("free"), 3);
        let done = locked("exclusive:5", one.exclusive(5), two.exclusive(5)).await;
        *done.expect("free") += 1;
        assert_eq!(one.sold, 8);
        let (one, two) = (shop(), shop());
        let done = locked("generic:2", one.generic(&[4, 5]), two.generic(&[4, 5])).await;
        assert_eq!(*done.expect("free"), 4);
        let arc = || Arc::new(shop());
        let done = locked("counted:2", arc().counted(), arc().counted()).await;
        assert_eq!(done.expect("free"), 1);
        let (mut first, mut second) = (false, false);
        locked("skipped", one.skipped(&mut first), two.skipped(&mut second)).await;
        assert!(first && !second);
    }

    #[tokio::test]
    async fn default_methods_are_locked() {
        let shop: Box<dyn Local> = Box::new(shop());
        let call = || shop.local_default(Rc::new(6));
        assert_eq!(locked("default:6", call(), call()).await.expect("free"), 6);
        let call = || Shop::associated(6);
        let done = locked("associated:6", call(), call()).await;
        assert_eq!(done.expect("free"), 6);
        let shop = self::shop();
        let call = || shop.default_method(6, String::new());
        let done = locked("default:shop:6", call(), call()).await;
        assert_eq!(done.expect("free"), "default:shop:6 7");
    }

    #[tokio::test]
    async fn methods_for_one_thread_are_locked() {
        let shop = shop();
        let call = || shop.local(Rc::new(6));
        assert_eq!(locked("local:6", call(), call()).await.expect("free"), 6);
    }
}
