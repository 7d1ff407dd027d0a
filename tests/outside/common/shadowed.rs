//! A module in which everything that the expansion could need has another meaning.

use super::witness::at_work;
use lock_core::distributed_lock;

/// Not the usual one.
pub type Result<T> = ::std::result::Result<T, lock_core::Error>;

/// Not the usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Option {
    /// Nothing.
    None,
    /// Something.
    Some,
}

/// Not the usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct String(pub u64);

/// Not the usual one.
#[derive(Debug)]
pub struct Box;

/// Not the usual one.
#[derive(Debug)]
pub struct Error;

/// Not the usual one.
#[derive(Debug)]
pub struct Duration;

/// Not the usual one.
#[derive(Debug)]
pub struct LockHandle;

/// Not the usual one.
pub trait FnOnce {}

/// Not the usual one.
pub trait Into<T> {}

/// Not the usual one.
pub trait Display {}

/// Not the usual one.
pub mod core {
    /// Not the usual one.
    pub mod result {}
}

/// Not the usual one.
pub mod std {
    /// Not the usual one.
    pub mod time {}
}

#[allow(unused_macros)]
macro_rules! matches {
    () => {};
}

#[allow(unused_macros)]
macro_rules! format {
    () => {};
}

/// Every value has a method that the expansion calls on its own values.
pub trait Everywhere: Sized {
    /// Of requests, too.
    fn ttl(self) {}
    /// Of requests, too.
    fn wait(self) {}
    /// Of outcomes, too.
    fn succeeded(&self) {}
    /// Of key builders, too.
    fn text(&self) {}
    /// Of key builders, too.
    fn value(&self) {}
    /// Of key builders, too.
    fn finish(self) {}
    /// Of return types, too.
    #[allow(clippy::wrong_self_convention)]
    #[must_use]
    fn from_lock_error(self) -> Self {
        self
    }
    /// Of managers, too.
    fn as_lock_manager(&self) {}
    /// Of views, too.
    fn view(&self) {}
}

impl<T> Everywhere for T {}

#[allow(non_snake_case, unused_variables)]
const fn Ok(n: u64) {}

#[allow(non_snake_case, unused_variables)]
const fn Err(n: u64) {}

#[allow(non_snake_case, unused_variables)]
const fn Some(n: u64) {}

/// Uses none of the shadowed names itself.
#[distributed_lock(
    key = "shadowed:<n>:<m.0>",
    ttl = "10s",
    max_hold = "1m",
    renew = true,
    on_lost = cancel,
    release = await,
    cooldown = "50ms",
    guard = lock,
)]
pub async fn everything(n: u64, (m, _): (String, Option)) -> Result<u64> {
    Ok(n);
    Err(n);
    Some(n);
    at_work().await;
    assert!(lock.is_valid());
    ::core::result::Result::Ok(n + m.0)
}

/// The same with an answer that is made by hand.
#[distributed_lock(key = "option:<n>", ttl = "10s", on_error = |_| Option::None)]
pub async fn own_option(n: u64) -> Option {
    at_work().await;
    if n == 0 { Option::None } else { Option::Some }
}

impl super::errors::Answer for Option {
    fn says_busy(&self) -> bool {
        *self == Self::None
    }
}

#[cfg(test)]
mod tests {
    use super::super::witness::{cooling, locked};
    use super::{Option, String, everything, own_option};

    #[tokio::test]
    async fn no_name_is_taken_for_another() {
        let call = || everything(3, (String(4), Option::Some));
        let done = cooling("shadowed:3:4", call(), call()).await;
        assert_eq!(done.expect("free"), 7);
        let done = locked("option:3", own_option(3), own_option(3)).await;
        assert_eq!(done, Option::Some);
    }
}
