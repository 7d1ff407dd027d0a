//! Tests functions without a receiver, and with every kind of receiver.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use lock_core::{Error, LockManager, distributed_lock};

use super::witness::at_work;

/// A free function.
#[distributed_lock(key = "order:<uid>", ttl = "10s")]
pub async fn place_order(uid: u64, cart: Vec<String>) -> Result<usize, Error> {
    at_work().await;
    Ok(cart.len())
}

/// A free function without parameters.
#[distributed_lock(key = "nightly-report", ttl = "10s")]
pub async fn nightly() -> Result<u8, Error> {
    at_work().await;
    Ok(1)
}

/// A type with methods.
#[derive(Clone, Debug)]
pub struct Account {
    locks: LockManager,
    id: u64,
    balance: u64,
}

impl Account {
    /// Makes an account with ten coins.
    #[must_use]
    pub const fn new(locks: LockManager, id: u64) -> Self {
        Self {
            locks,
            id,
            balance: 10,
        }
    }

    /// An associated function.
    #[distributed_lock(key = "open:<id>", ttl = "10s", manager = &locks)]
    pub async fn open(locks: LockManager, id: u64) -> Result<Self, Error> {
        at_work().await;
        Ok(Self::new(locks, id))
    }

    /// `&self`
    #[distributed_lock(key = "account:<self.id>", ttl = "10s", manager = self.locks)]
    pub async fn shared(&self) -> Result<u64, Error> {
        at_work().await;
        Ok(self.balance)
    }

    /// `&mut self`, with a borrow of it as the return value.
    #[distributed_lock(key = "account:<self.id>", ttl = "10s", manager = self.locks)]
    pub async fn exclusive(&mut self, by: u64) -> Result<&mut u64, Error> {
        self.balance += by;
        at_work().await;
        Ok(&mut self.balance)
    }

    /// `self`
    #[distributed_lock(key = "account:<self.id>", ttl = "10s", manager = self.locks)]
    pub async fn owned(self) -> Result<u64, Error> {
        at_work().await;
        Ok(self.balance)
    }

    /// `mut self`
    #[distributed_lock(key = "account:<self.id>", ttl = "10s", manager = self.locks)]
    pub async fn changed(mut self) -> Result<Self, Error> {
        self.balance = 0;
        at_work().await;
        Ok(self)
    }

    /// `self: &Self`
    #[allow(clippy::needless_arbitrary_self_type)]
    #[distributed_lock(key = "account:<self.id>", ttl = "10s", manager = self.locks)]
    pub async fn typed(self: &Self) -> Result<u64, Error> {
        at_work().await;
        Ok(self.balance)
    }

    /// `self: Arc<Self>`
    #[distributed_lock(key = "account:<self.id>", ttl = "10s", manager = self.locks)]
    pub async fn counted(self: Arc<Self>) -> Result<usize, Error> {
        at_work().await;
        Ok(Arc::strong_count(&self))
    }

    /// `self: &Arc<Self>`
    #[distributed_lock(key = "account:<self.id>", ttl = "10s", manager = self.locks)]
    pub async fn borrowed_arc(self: &Arc<Self>) -> Result<Arc<Self>, Error> {
        at_work().await;
        Ok(Self::clone(self).into())
    }

    /// `self: Rc<Self>`: not `Send`.
    #[distributed_lock(key = "account:<self.id>", ttl = "10s", manager = self.locks)]
    pub async fn counted_here(self: Rc<Self>) -> Result<usize, Error> {
        at_work().await;
        Ok(Rc::strong_count(&self))
    }

    /// `self: Box<Self>`
    #[distributed_lock(key = "account:<self.id>", ttl = "10s", manager = self.locks)]
    pub async fn boxed(self: Box<Self>) -> Result<u64, Error> {
        at_work().await;
        Ok(self.balance)
    }

    /// `mut self: Box<Self>`
    #[distributed_lock(key = "account:<self.id>", ttl = "10s", manager = self.locks)]
    pub async fn boxed_and_changed(mut self: Box<Self>) -> Result<Box<Self>, Error> {
        self.balance += 1;
        at_work().await;
        Ok(self)
    }

    /// `self: Pin<&mut Self>`
    #[distributed_lock(key = "account:<self.id>", ttl = "10s", manager = self.locks)]
    pub async fn pinned(self: Pin<&mut Self>) -> Result<&mut u64, Error> {
        at_work().await;
        Ok(&mut self.get_mut().balance)
    }

    /// `mut self: Pin<&mut Self>`
    #[distributed_lock(key = "account:<self.id>", ttl = "10s", manager = self.locks)]
    pub async fn pinned_and_changed(mut self: Pin<&mut Self>, by: u64) -> Result<u64, Error> {
        self.as_mut().get_mut().balance += by;
        at_work().await;
        Ok(self.balance)
    }
}

#[cfg(test)]
mod tests {
    use super::super::witness::{locked, manager};
    use super::*;

    fn account() -> Account {
        Account::new(manager(), 7)
    }

    #[tokio::test]
    async fn functions_without_a_receiver_are_locked() {
        let cart = || vec!["tea".to_owned()];
        let done = locked("order:3", place_order(3, cart()), place_order(3, vec![])).await;
        assert_eq!(done.expect("free"), 1);
        assert_eq!(
            locked("nightly-report", nightly(), nightly())
                .await
                .expect("free"),
            1
        );
        let open = || Account::open(manager(), 3);
        let done = locked("open:3", open(), open()).await;
        assert_eq!(done.expect("free").id, 3);
    }

    #[tokio::test]
    async fn methods_by_reference_are_locked() {
        let (mut one, mut two) = (account(), account());
        let done = locked("account:7", one.exclusive(5), two.exclusive(5)).await;
        *done.expect("free") += 1;
        let done = locked("account:7", one.shared(), two.shared()).await;
        assert_eq!(done.expect("free"), 16);
        let done = locked("account:7", one.typed(), two.typed()).await;
        assert_eq!(done.expect("free"), 16);
    }

    #[tokio::test]
    async fn methods_by_value_are_locked() {
        let done = locked("account:7", account().owned(), account().owned()).await;
        assert_eq!(done.expect("free"), 10);
        let done = locked("account:7", account().changed(), account().changed()).await;
        assert_eq!(done.expect("free").balance, 0);
    }

    #[tokio::test]
    async fn methods_of_smart_pointers_are_locked() {
        let arc = || Arc::new(account());
        let done = locked("account:7", arc().counted(), arc().counted()).await;
        assert_eq!(done.expect("free"), 1);
        let (one, two) = (arc(), arc());
        let done = locked("account:7", one.borrowed_arc(), two.borrowed_arc()).await;
        assert_eq!(done.expect("free").balance, 10);
        let rc = || Rc::new(account());
        let done = locked("account:7", rc().counted_here(), rc().counted_here()).await;
        assert_eq!(done.expect("free"), 1);
        let boxed = || Box::new(account());
        let done = locked("account:7", boxed().boxed(), boxed().boxed()).await;
        assert_eq!(done.expect("free"), 10);
        let call = || boxed().boxed_and_changed();
        assert_eq!(
            locked("account:7", call(), call())
                .await
                .expect("free")
                .balance,
            11
        );
    }

    #[tokio::test]
    async fn methods_of_pins_are_locked() {
        let (mut one, mut two) = (account(), account());
        let done = locked(
            "account:7",
            Pin::new(&mut one).pinned(),
            Pin::new(&mut two).pinned(),
        )
        .await;
        *done.expect("free") += 1;
        let (one, two) = (Pin::new(&mut one), Pin::new(&mut two));
        let done = locked(
            "account:7",
            one.pinned_and_changed(2),
            two.pinned_and_changed(2),
        )
        .await;
        assert_eq!(done.expect("free"), 13);
    }
}
