//! Tests every argument of the attribute, in all its forms.

use std::sync::Arc;
use std::time::Duration;

use lock_core::{AsLockManager, Error, ErrorKind, LockHandle, LockKey, LockManager};
use lock_core::{distributed_lock, lock_key};

use super::witness::{at_work, manager};

const KEY: &str = "by-a-constant";
const TTL: Duration = Duration::from_secs(10);

fn key_of(uid: u64) -> LockKey {
    LockKey::exact(format!("<by>:{uid}"))
}

/// `key` as a `LockKey`.
#[distributed_lock(key = key_of(uid), ttl = "500ms")]
pub async fn by_lock_key(uid: u64) -> Result<u64, Error> {
    at_work().await;
    Ok(uid)
}

/// `key` and `ttl` as constants.
#[distributed_lock(key = KEY, ttl = TTL)]
pub async fn by_constant() -> Result<(), Error> {
    at_work().await;
    Ok(())
}

/// `key` as a text that the call makes.
#[distributed_lock(key = format!("text:{uid}"), ttl = Duration::from_millis(millis))]
pub async fn by_text(uid: u64, millis: u64) -> Result<u64, Error> {
    at_work().await;
    Ok(uid)
}

/// `key` as a template with every kind of expression.
#[allow(clippy::cast_lossless)]
#[distributed_lock(
    key = "t:<<x>>:{<uid>}:<-offset>:<names[1]>:<names.len() + 1>:<(uid * 2) as u128>:<key(\"a>b\")>",
    ttl = "1h"
)]
pub async fn by_template(uid: u64, offset: i64, names: &[String]) -> Result<(), Error> {
    at_work().await;
    Ok(())
}

const fn key(text: &str) -> usize {
    text.len()
}

/// `key` by `lock_key!`.
#[distributed_lock(key = lock_key!("macro:<uid>"), ttl = "2m")]
pub async fn by_macro(uid: u64) -> Result<u64, Error> {
    at_work().await;
    Ok(uid)
}

/// `wait` as text.
#[distributed_lock(key = "wait:<uid>", ttl = "10s", wait = "1m")]
pub async fn waits(uid: u64) -> Result<u64, Error> {
    at_work().await;
    Ok(uid)
}

/// `wait` as an expression.
#[distributed_lock(key = "wait:<uid>", ttl = "10s", wait = longest)]
pub async fn waits_for(uid: u64, longest: Duration) -> Result<u64, Error> {
    at_work().await;
    Ok(uid)
}

/// `wait = forever`
#[distributed_lock(key = "wait:<uid>", ttl = "10s", wait = forever)]
pub async fn waits_for_ever(uid: u64) -> Result<u64, Error> {
    at_work().await;
    Ok(uid)
}

/// `wait = none`
#[distributed_lock(key = "wait:<uid>", ttl = "10s", wait = none)]
pub async fn does_not_wait(uid: u64) -> Result<u64, Error> {
    at_work().await;
    Ok(uid)
}

/// `renew = true`, `release = await`, `on_lost = cancel`: the defaults, by name.
#[distributed_lock(key = "defaults", ttl = "10s", renew = true, release = await, on_lost = cancel)]
pub async fn defaults() -> Result<(), Error> {
    at_work().await;
    Ok(())
}

/// `renew = false`, `release = background`, `on_lost = ignore`.
#[distributed_lock(key = "others", ttl = "10s", renew = false, release = background, on_lost = ignore)]
pub async fn others() -> Result<(), Error> {
    at_work().await;
    Ok(())
}

/// `max_hold`, reached.
#[distributed_lock(key = "hold", ttl = "10s", max_hold = longest)]
pub async fn too_long(longest: Duration) -> Result<(), Error> {
    std::future::pending().await
}

/// `cooldown` as text.
#[distributed_lock(key = "cool:<uid>", ttl = "10s", cooldown = "1m")]
pub async fn cools(uid: u64) -> Result<u64, Error> {
    at_work().await;
    if uid == 0 {
        return Err(manager().lock("").acquire().await.expect_err("empty"));
    }
    Ok(uid)
}

/// `cooldown` as an expression.
#[distributed_lock(key = "cool:<uid>", ttl = "10s", cooldown = Duration::from_secs(uid))]
pub async fn cools_for(uid: u64) -> Result<u64, Error> {
    at_work().await;
    Ok(uid)
}

/// `on_error` as a closure.
#[distributed_lock(key = "error", ttl = "10s", on_error = |error| Err(error.kind()))]
pub async fn by_closure() -> Result<u64, ErrorKind> {
    at_work().await;
    Ok(1)
}

/// `on_error` as a function.
#[distributed_lock(key = "error", ttl = "10s", on_error = kind_of)]
pub async fn by_function() -> Result<u64, ErrorKind> {
    at_work().await;
    Ok(1)
}

#[allow(clippy::needless_pass_by_value)]
fn kind_of(error: Error) -> Result<u64, ErrorKind> {
    Err(error.kind())
}

/// `on_error` with a value of the call.
#[distributed_lock(key = "error", ttl = "10s", on_error = |_| otherwise)]
pub async fn by_value(otherwise: Option<u64>) -> Option<u64> {
    at_work().await;
    otherwise.map(|n| n + 1)
}

/// `on_error` that owns what it needs.
#[distributed_lock(key = "error:<name>", ttl = "10s", on_error = { let name = name.clone(); move |_| Err(name) })]
pub async fn by_owned(name: String) -> Result<usize, String> {
    at_work().await;
    Ok(name.len())
}

/// A type that has locks.
#[derive(Clone, Debug)]
pub struct Shop {
    locks: LockManager,
    shared: Arc<LockManager>,
}

impl AsLockManager for Shop {
    fn as_lock_manager(&self) -> LockManager {
        self.locks.clone()
    }
}

impl Shop {
    /// `manager` as a field.
    #[distributed_lock(key = "manager", ttl = "10s", manager = self.locks)]
    pub async fn by_field(&self) -> Result<(), Error> {
        at_work().await;
        Ok(())
    }

    /// `manager` as a reference to an `Arc`.
    #[distributed_lock(key = "manager", ttl = "10s", manager = &self.shared)]
    pub async fn by_arc(&self) -> Result<(), Error> {
        at_work().await;
        Ok(())
    }

    /// `manager` as a trait.
    #[distributed_lock(key = "manager", ttl = "10s", manager = self)]
    pub async fn by_self(&mut self) -> Result<(), Error> {
        at_work().await;
        Ok(())
    }

    /// `manager` as a call.
    #[distributed_lock(key = "manager", ttl = "10s", manager = self.locks())]
    pub async fn by_call(self) -> Result<usize, Error> {
        at_work().await;
        Ok(Arc::strong_count(&self.shared))
    }

    const fn locks(&self) -> &LockManager {
        &self.locks
    }
}

/// `guard`
#[distributed_lock(key = "guard:<uid>", ttl = "10s", guard = lock)]
pub async fn guarded(uid: u64) -> Result<LockHandle, Error> {
    at_work().await;
    assert!(lock.is_valid() && u64::from(lock.fencing_token()) > uid);
    Ok(lock.clone())
}

/// `guard` with a name for an unused guard.
#[distributed_lock(key = "guard", ttl = "10s", guard = _lock)]
pub async fn unused_guard() -> Result<(), Error> {
    at_work().await;
    Ok(())
}

/// `crate` through another crate.
#[distributed_lock(key = "facade:<uid>", ttl = "10s", cooldown = "1ms", guard = lock, crate = facade::kit)]
pub async fn facade(uid: u64) -> Result<String, Error> {
    at_work().await;
    Ok(lock.key().to_owned())
}

/// Every argument at once.
#[distributed_lock(
    key = "all:<uid>",
    ttl = "10s",
    wait = none,
    renew = true,
    max_hold = "1m",
    cooldown = "1m",
    on_lost = ignore,
    on_error = |_| None,
    manager = &locks,
    guard = lock,
    release = background,
    crate = ::lock_core
)]
pub async fn all(uid: u64, locks: LockManager) -> Option<String> {
    at_work().await;
    assert!(!locks.held().is_empty());
    Some(lock.key().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::witness::{cooling, is_free, locked, locked_by_all, waiting};
    use super::*;

    #[tokio::test]
    async fn each_form_of_a_key_gives_the_expected_key() {
        let done = locked_by_all(&["<by>:3"], by_lock_key(3), by_lock_key(3)).await;
        assert_eq!(done.expect("free"), 3);
        locked("by-a-constant", by_constant(), by_constant())
            .await
            .expect("free");
        let done = locked("text:3", by_text(3, 9000), by_text(3, 9000)).await;
        assert_eq!(done.expect("free"), 3);
        let names = ["a".to_owned(), "b".to_owned()];
        let call = || by_template(130, 4, &names);
        let key = ["t:<x>:{130}:-4:b:3:260:3"];
        locked_by_all(&key, call(), call()).await.expect("free");
        let done = locked("macro:3", by_macro(3), by_macro(3)).await;
        assert_eq!(done.expect("free"), 3);
    }

    #[tokio::test]
    async fn each_form_of_a_wait_waits() {
        let (one, two) = waiting(waits(3), waits(3)).await;
        assert_eq!((one.expect("free"), two.expect("its turn")), (3, 3));
        let call = || waits_for(3, TTL);
        let (one, two) = waiting(call(), call()).await;
        assert_eq!((one.expect("free"), two.expect("its turn")), (3, 3));
        let (one, two) = waiting(waits_for_ever(3), waits_for_ever(3)).await;
        assert_eq!((one.expect("free"), two.expect("its turn")), (3, 3));
        let done = locked("wait:3", does_not_wait(3), does_not_wait(3)).await;
        assert_eq!(done.expect("free"), 3);
    }

    #[tokio::test]
    async fn each_keyword_of_an_argument_works() {
        locked("defaults", defaults(), defaults())
            .await
            .expect("free");
        locked("others", others(), others()).await.expect("free");
        let held = manager().scope(too_long(Duration::from_millis(20))).await;
        assert!(held.expect_err("too long").is_max_hold());
        assert!(is_free("hold").await);
    }

    #[tokio::test]
    async fn a_cooldown_follows_a_success() {
        let done = cooling("cool:3", cools(3), cools(3)).await;
        assert_eq!(done.expect("free"), 3);
        let done = cooling("cool:60", cools_for(60), cools_for(60)).await;
        assert_eq!(done.expect("free"), 60);
        // An error has no cooldown.
        let done = locked("cool:0", cools(0), cools(0)).await;
        assert_eq!(
            done.expect_err("an error of the body").kind(),
            ErrorKind::Invalid
        );
    }

    #[tokio::test]
    async fn on_error_converts_the_error() {
        let done = locked("error", by_closure(), by_closure()).await;
        assert_eq!(done, Ok(1));
        let done = locked("error", by_function(), by_function()).await;
        assert_eq!(done, Ok(1));
        assert_eq!(
            locked("error", by_value(Some(1)), by_value(None)).await,
            Some(2)
        );
        let held = manager().lock("error:ada").ttl(TTL).acquire().await;
        let refused = manager().scope(by_owned("ada".into())).await;
        assert_eq!(refused, Err("ada".to_owned()));
        drop(held);
    }

    #[tokio::test]
    async fn each_form_of_a_manager_works() {
        let shop = || Shop {
            locks: manager(),
            shared: Arc::new(manager()),
        };
        let (mut one, mut two) = (shop(), shop());
        locked("manager", one.by_field(), two.by_field())
            .await
            .expect("free");
        locked("manager", one.by_arc(), two.by_arc())
            .await
            .expect("free");
        locked("manager", one.by_self(), two.by_self())
            .await
            .expect("free");
        let done = locked("manager", one.by_call(), two.by_call()).await;
        assert_eq!(done.expect("free"), 1);
    }

    #[tokio::test]
    async fn guards_and_paths_have_the_given_names() {
        let done = locked("guard:3", guarded(3), guarded(3)).await;
        assert_eq!(done.expect("free").key(), "guard:3");
        locked("guard", unused_guard(), unused_guard())
            .await
            .expect("free");
        let done = locked_by_all(&["facade:3"], facade(3), facade(3)).await;
        assert_eq!(done.expect("free"), "facade:3");
        let call = || all(3, manager());
        let done = cooling("all:3", call(), call()).await;
        assert_eq!(done.as_deref(), Some("all:3"));
    }
}
