//! A locked future is as `Send` as the plain one.

use std::rc::Rc;

use lock_core::{Error, LockManager, distributed_lock};

struct Shop {
    name: String,
}

impl Shop {
    #[distributed_lock(key = "shop:<self.name>", ttl = "10s")]
    async fn by_reference<'a>(&self, text: &'a str, _other: &str) -> Result<&'a str, Error> {
        tokio::task::yield_now().await;
        Ok(text)
    }

    #[distributed_lock(key = "shop:<self.name>", ttl = "10s", cooldown = "1ms")]
    async fn by_mutable_reference(
        &mut self,
        names: &mut Vec<String>,
    ) -> Result<&mut String, Error> {
        names.push(self.name.clone());
        tokio::task::yield_now().await;
        Ok(&mut self.name)
    }
}

#[distributed_lock(key = "each:<items.len()>", ttl = "10s")]
async fn each<T: Send + Sync, F: AsyncFn(&T)>(items: &[T], f: F) -> Result<(), Error> {
    for item in items {
        f(item).await;
    }
    Ok(())
}

#[distributed_lock(key = "depth:<depth>", ttl = "10s")]
async fn recursive(depth: u32) -> Result<u32, Error> {
    if depth == 0 {
        return Ok(0);
    }
    Ok(Box::pin(recursive(depth - 1)).await? + 1)
}

#[distributed_lock(key = "local", ttl = "10s")]
async fn local(value: Rc<u32>) -> Result<u32, Error> {
    tokio::task::yield_now().await;
    Ok(*value)
}

fn is_send<T: Send>(value: T) -> T {
    value
}

#[test]
fn references_generics_and_recursion_stay_send() {
    let mut shop = Shop { name: "s".into() };
    let mut names = Vec::new();
    drop(is_send(shop.by_reference("a", "b")));
    drop(is_send(shop.by_mutable_reference(&mut names)));
    drop(is_send(recursive(3)));
}

#[tokio::test]
async fn a_locked_call_can_be_spawned() {
    let locks = LockManager::in_memory();
    let done = tokio::spawn(async move { locks.scope(recursive(3)).await }).await;
    assert_eq!(done.expect("the task ends").expect("the locks are free"), 3);
}

#[tokio::test]
async fn a_call_that_is_not_send_runs_on_its_own_thread() {
    let locks = LockManager::in_memory();
    assert_eq!(
        locks
            .scope(local(Rc::new(3)))
            .await
            .expect("the lock is free"),
        3
    );
    assert!(locks.scope(each(&[1, 2], async |_: &u8| ())).await.is_ok());
    let mut shop = Shop { name: "s".into() };
    let mut names = Vec::new();
    locks
        .scope(shop.by_mutable_reference(&mut names))
        .await
        .expect("the lock is free")
        .push('!');
    assert_eq!((shop.name.as_str(), names.len()), ("s!", 1));
}
