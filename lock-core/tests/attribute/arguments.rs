//! Each argument of the attribute has its documented effect.

use std::{sync::Arc, time::Duration};

use lock_core::{Error, ErrorKind, FencingToken, LockHandle, LockManager, distributed_lock};

struct Shop {
    locks: LockManager,
    shared: Arc<LockManager>,
    sold: u32,
}

impl Shop {
    fn new() -> Shop {
        let locks = LockManager::in_memory();
        Shop {
            shared: Arc::new(locks.clone()),
            locks,
            sold: 0,
        }
    }

    #[distributed_lock(key = "sku:<sku>", ttl = "5s", manager = self.locks, guard = lock)]
    async fn deduct(&mut self, sku: &str) -> Result<LockHandle, Error> {
        self.sold += 1;
        assert!(lock.is_valid());
        Ok(lock.clone())
    }

    #[distributed_lock(key = "sku:<sku>", ttl = "5s", manager = &self.shared)]
    async fn by_arc(&self, sku: &str) -> Result<usize, Error> {
        assert_eq!(sku, "A1");
        Ok(self.locks.held().len())
    }

    #[distributed_lock(key = "sku:<sku>", ttl = "5s", manager = self.shared.clone())]
    async fn by_value(self, sku: &str) -> Result<usize, Error> {
        assert_eq!(sku, "A1");
        Ok(self.locks.held().len())
    }
}

#[tokio::test]
async fn a_guard_is_a_handle_of_the_body_to_its_lock() {
    let mut shop = Shop::new();
    let handle = shop.deduct("A1").await.expect("the lock is free");
    assert_eq!((handle.key(), shop.sold), ("sku:A1", 1));
    assert!(u64::from(handle.fencing_token()) > 0);
    let later = shop.deduct("A1").await.expect("the lock is free again");
    assert!(later.fencing_token() > handle.fencing_token());
}

#[tokio::test]
async fn a_manager_is_a_value_a_reference_or_an_arc() {
    let shop = Shop::new();
    assert_eq!(shop.by_arc("A1").await.expect("the lock is free"), 1);
    assert_eq!(shop.by_value("A1").await.expect("the lock is free"), 1);
}

#[tokio::test]
async fn a_manager_argument_precedes_the_manager_in_scope() {
    let shop = Shop::new();
    let other = LockManager::in_memory();
    assert_eq!(
        other
            .scope(shop.by_arc("A1"))
            .await
            .expect("the lock is free"),
        1
    );
}

#[distributed_lock(key = "nightly", ttl = "10s", on_error = |error| Err(error.kind()))]
async fn error_by_kind(name: String) -> Result<String, ErrorKind> {
    Ok(name)
}

#[distributed_lock(key = "nightly", ttl = "10s", on_error = |_| ())]
async fn skipped(ran: &mut bool) {
    *ran = true;
}

#[distributed_lock(key = "nightly", ttl = "10s", on_error = |_| vec![0].into_iter())]
async fn opaque() -> impl Iterator<Item = u8> {
    vec![1, 2].into_iter()
}

#[tokio::test]
async fn on_error_turns_the_error_into_any_return_value() {
    let locks = LockManager::in_memory();
    let mut ran = false;
    let held = locks
        .lock("nightly")
        .ttl(Duration::from_secs(10))
        .acquire()
        .await
        .expect("the lock is free");
    assert_eq!(
        locks.scope(error_by_kind("x".into())).await,
        Err(ErrorKind::Busy)
    );
    locks.scope(skipped(&mut ran)).await;
    assert!(!ran);
    assert_eq!(locks.scope(opaque()).await.collect::<Vec<_>>(), [0]);

    held.release().await.expect("it was held");
    assert_eq!(locks.scope(error_by_kind("x".into())).await, Ok("x".into()));
    locks.scope(skipped(&mut ran)).await;
    assert!(ran);
    assert_eq!(locks.scope(opaque()).await.collect::<Vec<_>>(), [1, 2]);
}

#[distributed_lock(key = "click:<user>", ttl = "10s", cooldown = pause)]
async fn click(user: &str, pause: Duration, answer: Result<u8, Error>) -> Result<u8, Error> {
    assert!(!user.is_empty() && !pause.is_zero());
    answer
}

#[tokio::test]
async fn a_cooldown_follows_only_a_success() {
    let locks = LockManager::in_memory();
    let pause = Duration::from_secs(60);
    let error = locks
        .lock("")
        .acquire()
        .await
        .expect_err("an empty key is invalid");
    assert!(locks.scope(click("ada", pause, Err(error))).await.is_err());
    assert_eq!(
        locks
            .scope(click("ada", pause, Ok(1)))
            .await
            .expect("an error starts no cooldown"),
        1
    );
    let refused = locks
        .scope(click("ada", pause, Ok(2)))
        .await
        .expect_err("it cools down");
    assert_eq!(refused.kind(), ErrorKind::Busy);
    assert!(refused.is_cooling_down());
    assert_eq!(
        locks
            .scope(click("bob", pause, Ok(3)))
            .await
            .expect("another user has another key"),
        3
    );
}

#[cfg(feature = "axum")]
#[distributed_lock(key = "pay", ttl = "10s", cooldown = "1m")]
async fn pay(status: u16) -> Result<axum_core::response::Response, Error> {
    let mut response = axum_core::response::Response::default();
    *response.status_mut() = http::StatusCode::from_u16(status).expect("a status");
    Ok(response)
}

#[cfg(feature = "axum")]
#[tokio::test]
async fn a_response_in_ok_that_is_no_success_starts_no_cooldown() {
    let locks = LockManager::in_memory();
    for status in [402, 500, 201] {
        let response = locks.scope(pay(status)).await;
        assert_eq!(response.expect("no cooldown").status(), status);
    }
    let refused = locks.scope(pay(201)).await.expect_err("it cools down");
    assert!(refused.is_cooling_down());
}

#[distributed_lock(key = "paced", ttl = "10s", wait = forever, cooldown = "100ms", guard = lock)]
async fn paced() -> Result<FencingToken, Error> {
    Ok(lock.fencing_token())
}

#[tokio::test]
async fn a_call_that_waits_outlasts_a_cooldown_and_runs() {
    let locks = LockManager::in_memory();
    let first = locks.scope(paced()).await.expect("free");
    let second = locks.scope(paced()).await.expect("it waits");
    assert!(first < second);
}

#[distributed_lock(key = "cool", ttl = "10s", cooldown = "1m", on_error = |_| 0, guard = lock)]
async fn no_result() -> u8 {
    assert!(lock.is_valid());
    1
}

#[tokio::test]
async fn every_value_other_than_a_result_is_a_success() {
    let locks = LockManager::in_memory();
    assert_eq!(locks.scope(no_result()).await, 1);
    assert_eq!(locks.scope(no_result()).await, 0);
}

#[distributed_lock(key = "queue", ttl = "10s", wait = "30s")]
async fn waits() -> Result<(), Error> {
    Ok(())
}

#[distributed_lock(key = "queue", ttl = "10s", wait = forever, release = background, renew = false, on_lost = ignore)]
async fn waits_for_ever() -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn a_wait_lasts_until_the_owner_releases() {
    let locks = LockManager::in_memory();
    let held = locks
        .lock("queue")
        .ttl(Duration::from_secs(10))
        .acquire()
        .await
        .expect("the lock is free");
    let (first, second, released) =
        tokio::join!(locks.scope(waits()), locks.scope(waits_for_ever()), async {
            tokio::task::yield_now().await;
            held.release().await
        });
    first.expect("the lock came free");
    second.expect("the lock came free");
    released.expect("it was held");
}

#[distributed_lock(key = "long", ttl = "10s", max_hold = "20ms")]
async fn too_long() -> Result<(), Error> {
    std::future::pending().await
}

#[tokio::test]
async fn max_hold_drops_a_body_that_hangs() {
    let locks = LockManager::in_memory();
    let error = locks
        .scope(too_long())
        .await
        .expect_err("the body never ends by itself");
    assert_eq!(error.kind(), ErrorKind::Lost);
    assert!(error.is_max_hold());
}

mod renamed {
    pub(super) use lock_core as kit;
}

#[distributed_lock(key = "elsewhere:<uid>", ttl = "10s", crate = renamed::kit)]
async fn elsewhere(uid: u64) -> Result<u64, Error> {
    Ok(uid)
}

#[tokio::test]
async fn the_library_may_have_another_path() {
    let locks = LockManager::in_memory();
    assert_eq!(
        locks.scope(elsewhere(1)).await.expect("the lock is free"),
        1
    );
}
