//! Tests the attribute in a module that gives other meanings to all names that the expansion
//! could need.

use super::witness::at_work;
use lock_core::distributed_lock;

/// Shadows the usual item of this name.
pub type Result<T> = ::std::result::Result<T, lock_core::Error>;

/// Shadows the usual item of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Option {
    /// Nothing.
    None,
    /// Something.
    Some,
}

/// Shadows the usual item of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct String(pub u64);

/// Shadows the usual item of this name.
#[derive(Debug)]
pub struct Box;

/// Shadows the usual item of this name.
#[derive(Debug)]
pub struct Error;

/// Shadows the usual item of this name.
#[derive(Debug)]
pub struct Duration;

/// Shadows the usual item of this name.
#[derive(Debug)]
pub struct LockHandle;

/// Shadows the usual item of this name.
pub trait FnOnce {}

/// Shadows the usual item of this name.
pub trait Into<T> {}

/// Shadows the usual item of this name.
pub trait Display {}

/// Shadows the usual item of this name.
pub mod core {
    /// Shadows the usual item of this name.
    pub mod result {}
}

/// Shadows the usual item of this name.
pub mod std {
    /// Shadows the usual item of this name.
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

/// A trait that gives every value the methods that the expansion calls on its own values.
pub trait Everywhere: Sized {
    /// Shadows a method of requests.
    fn ttl(self) {}
    /// Shadows a method of requests.
    fn wait(self) {}
    /// Shadows a method of outcomes.
    fn succeeded(&self) {}
    /// Shadows a method of key builders.
    fn text(&self) {}
    /// Shadows a method of key builders.
    fn value(&self) {}
    /// Shadows a method of key builders.
    fn finish(self) {}
    /// Shadows a method of return types.
    #[allow(clippy::wrong_self_convention)]
    #[must_use]
    fn from_lock_error(self) -> Self {
        self
    }
    /// Shadows a method of managers.
    fn as_lock_manager(&self) {}
    /// Shadows a method of views.
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

/// The same with a return value that the body makes.
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
    async fn no_name_is_confused_with_another() {
        let call = || everything(3, (String(4), Option::Some));
        let done = cooling("shadowed:3:4", call(), call()).await;
        assert_eq!(done.expect("free"), 7);
        let done = locked("option:3", own_option(3), own_option(3)).await;
        assert_eq!(done, Option::Some);
    }
}
