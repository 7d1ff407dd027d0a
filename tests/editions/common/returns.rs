//! Tests return types that can report that the lock was taken.

use std::error::Error as StdError;

use lock_core::{Error, FromLockError, distributed_lock};

use super::errors::{Answer, DeriveError, ShopError};
use super::witness::at_work;

/// An alias with one parameter, as `io::Result` is.
pub type Answered<T> = Result<T, ShopError>;

/// An alias without parameters.
pub type Number = Answered<u64>;

/// An alias with an error by default.
pub type Either<T, E = ShopError> = Result<T, E>;

/// An alias of `Result`.
#[distributed_lock(key = "alias:<n>", ttl = "10s")]
pub async fn alias(n: u64) -> Answered<u64> {
    at_work().await;
    if n == 0 {
        return Err(ShopError::SoldOut);
    }
    Ok(n)
}

/// An alias of a whole `Result`.
#[distributed_lock(key = "number:<n>", ttl = "10s")]
pub async fn number(n: u64) -> Number {
    at_work().await;
    Ok(n)
}

/// An alias with a default.
#[distributed_lock(key = "either:<n>", ttl = "10s")]
pub async fn either(n: u64) -> Either<u64> {
    at_work().await;
    Ok(n)
}

/// `anyhow::Result`
#[distributed_lock(key = "anyhow:<text>", ttl = "10s")]
pub async fn any(text: &str) -> anyhow::Result<u64> {
    use anyhow::Context as _;
    at_work().await;
    let number = text.parse().context("a number")?;
    anyhow::ensure!(number > 0, "a number above {}", 0);
    Ok(number)
}

/// `Result<T, Box<dyn Error + Send + Sync>>`
#[distributed_lock(key = "boxed:<text>", ttl = "10s")]
pub async fn boxed(text: &str) -> Result<u64, Box<dyn StdError + Send + Sync>> {
    at_work().await;
    if text.is_empty() {
        return Err("a text becomes an error".into());
    }
    Ok(text.parse()?)
}

/// `Result<T, Box<dyn Error>>`: not `Send`.
#[distributed_lock(key = "boxed:<text>", ttl = "10s")]
pub async fn boxed_here(text: &str) -> Result<u64, Box<dyn StdError>> {
    at_work().await;
    Ok(text.parse()?)
}

/// An error by thiserror.
#[distributed_lock(key = "derive:<text>", ttl = "10s")]
pub async fn derived(text: &str) -> Result<u64, DeriveError<u8>> {
    at_work().await;
    let number: u64 = text.parse()?;
    if number == 0 {
        return Err(DeriveError::Other(0));
    }
    Ok(number)
}

/// Any error type that is `From` the lock's error.
#[distributed_lock(key = "generic:<n>", ttl = "10s")]
pub async fn generic<E: From<Error> + From<ShopError>>(n: u64) -> Result<u64, E> {
    at_work().await;
    if n == 0 {
        Err(ShopError::SoldOut)?;
    }
    Ok(n)
}

/// The outcome of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// The job ran.
    Done,
    /// The job did not run.
    Skipped,
}

impl FromLockError for Job {
    fn from_lock_error(_: Error) -> Self {
        Self::Skipped
    }
}

impl Answer for Job {
    fn says_busy(&self) -> bool {
        *self == Self::Skipped
    }
}

/// A type that implements `FromLockError`.
#[distributed_lock(key = "own", ttl = "10s")]
pub async fn own() -> Job {
    at_work().await;
    Job::Done
}

/// A job that returns nothing.
#[distributed_lock(key = "nothing", ttl = "10s", on_error = |_| ())]
pub async fn nothing(ran: &std::cell::Cell<u64>) {
    at_work().await;
    ran.set(ran.get() + 1);
}

/// A job that returns nothing, with an explicit type.
#[allow(clippy::unused_unit)]
#[distributed_lock(key = "unit", ttl = "10s", on_error = drop)]
pub async fn unit() -> () {
    at_work().await;
}

/// A job that returns whether it ran.
#[distributed_lock(key = "bool", ttl = "10s", on_error = |_| false)]
pub async fn flag() -> bool {
    at_work().await;
    true
}

/// A job that returns a value if it ran.
#[distributed_lock(key = "option", ttl = "10s", on_error = |_| None)]
pub async fn option(n: u64) -> Option<u64> {
    at_work().await;
    Some(Some(n)? + 1)
}

/// A job that ends only with the process.
#[distributed_lock(key = "never", ttl = "10s", on_error = |error| panic!("not started: {}", error))]
pub async fn never() -> ! {
    loop {
        at_work().await;
        tokio::task::yield_now().await;
    }
}

/// The same, with a function that never returns.
#[distributed_lock(key = "never", ttl = "10s", on_error = |error| give_up(&error))]
pub async fn never_by_a_call(_: String) -> ! {
    at_work().await;
    std::future::pending::<()>().await;
    std::process::abort()
}

fn give_up(error: &Error) -> ! {
    panic!("given up: {}", error)
}

#[cfg(test)]
mod tests {
    use super::super::witness::{cancelled, locked, manager};
    use super::*;

    #[tokio::test]
    async fn aliases_of_result_carry_the_error() {
        let done = locked("alias:3", alias(3), alias(3)).await;
        assert_eq!(done.expect("free"), 3);
        let done = locked("alias:0", alias(0), alias(0)).await;
        assert!(matches!(done, Err(ShopError::SoldOut)));
        let done = locked("number:3", number(3), number(3)).await;
        assert_eq!(done.expect("free"), 3);
        let done = locked("either:3", either(3), either(3)).await;
        assert_eq!(done.expect("free"), 3);
    }

    #[tokio::test]
    async fn errors_of_every_kind_carry_the_error() {
        let done = locked("anyhow:3", any("3"), any("3")).await;
        assert_eq!(done.expect("free"), 3);
        let done = locked("anyhow:0", any("0"), any("0")).await;
        assert_eq!(done.expect_err("too small").to_string(), "a number above 0");
        let done = locked("boxed:3", boxed("3"), boxed("3")).await;
        assert_eq!(done.expect("free"), 3);
        let done = locked("boxed:x", boxed_here("x"), boxed_here("x")).await;
        assert!(done.is_err_and(|error| !error.says_busy()));
        let done = locked("derive:3", derived("3"), derived("3")).await;
        assert_eq!(done.expect("free"), 3);
        let done = locked("derive:x", derived("x"), derived("x")).await;
        assert!(matches!(done, Err(DeriveError::NotANumber(_))));
        let call = || generic::<anyhow::Error>(0);
        let done = locked("generic:0", call(), call()).await;
        assert_eq!(done.expect_err("sold out").to_string(), "sold out");
    }

    #[tokio::test]
    async fn jobs_report_whether_they_ran_or_report_nothing() {
        assert_eq!(locked("own", own(), own()).await, Job::Done);
        let ran = std::cell::Cell::new(0);
        locked("nothing", nothing(&ran), nothing(&ran)).await;
        assert_eq!(ran.get(), 1);
        locked("unit", unit(), unit()).await;
        assert!(locked("bool", flag(), flag()).await);
        assert_eq!(locked("option", option(3), option(3)).await, Some(4));
    }

    #[tokio::test]
    #[should_panic(expected = "not started")]
    async fn a_job_that_never_ends_panics_if_it_does_not_start() {
        let locks = manager();
        let held = locks.lock("never").acquire().await.expect("free");
        assert!(held.is_valid());
        locks.scope(never()).await;
    }

    #[tokio::test]
    #[should_panic(expected = "given up")]
    async fn a_job_that_never_ends_may_call_a_function_that_never_returns() {
        let locks = manager();
        let held = locks.lock("never").acquire().await.expect("free");
        assert!(held.is_valid());
        locks.scope(never_by_a_call(String::new())).await;
    }

    #[tokio::test]
    async fn a_job_that_never_ends_holds_its_lock_until_it_is_dropped() {
        cancelled("never", never()).await;
        cancelled("never", never_by_a_call(String::new())).await;
    }
}
