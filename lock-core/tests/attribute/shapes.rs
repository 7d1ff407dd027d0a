//! The attribute works on functions of every shape.

use std::{fmt::Display, pin::Pin, sync::Arc, time::Duration};

use lock_core::{Error, LockManager, distributed_lock};

struct Account {
    locks: LockManager,
    id: u64,
    balance: u64,
}

impl Account {
    fn new(id: u64) -> Account {
        Account {
            locks: LockManager::in_memory(),
            id,
            balance: 10,
        }
    }

    #[distributed_lock(key = "account:<self.id>", ttl = "10s", manager = self.locks)]
    async fn shared(&self) -> Result<u64, Error> {
        Ok(self.balance)
    }

    #[distributed_lock(key = "account:<self.id>", ttl = "10s", manager = self.locks)]
    async fn exclusive(&mut self, by: u64) -> Result<&mut u64, Error> {
        self.balance += by;
        Ok(&mut self.balance)
    }

    #[distributed_lock(key = "account:<self.id>", ttl = "10s", manager = self.locks)]
    async fn owned(self) -> Result<u64, Error> {
        Ok(self.balance)
    }

    #[distributed_lock(key = "account:<self.id>", ttl = "10s", manager = self.locks)]
    async fn owned_and_changed(mut self) -> Result<Self, Error> {
        self.balance = 0;
        Ok(self)
    }

    #[distributed_lock(key = "account:<self.id>", ttl = "10s", manager = self.locks)]
    async fn counted(self: Arc<Self>) -> Result<u64, Error> {
        Ok(self.balance)
    }

    #[distributed_lock(key = "account:<self.id>", ttl = "10s", manager = self.locks)]
    async fn boxed(self: Box<Self>) -> Result<u64, Error> {
        Ok(self.balance)
    }

    #[distributed_lock(key = "account:<id>", ttl = "10s")]
    async fn associated(id: u64) -> Result<Self, Error> {
        Ok(Self::new(id))
    }
}

#[tokio::test]
async fn every_receiver_works() {
    let mut account = Account::new(7);
    *account.exclusive(5).await.expect("free") += 1;
    assert_eq!(account.shared().await.expect("free"), 16);
    assert_eq!(account.owned_and_changed().await.expect("free").balance, 0);
    assert_eq!(Account::new(1).owned().await.expect("free"), 10);
    assert_eq!(Arc::new(Account::new(1)).counted().await.expect("free"), 10);
    assert_eq!(Box::new(Account::new(1)).boxed().await.expect("free"), 10);
    let locks = LockManager::in_memory();
    assert_eq!(
        locks.scope(Account::associated(3)).await.expect("free").id,
        3
    );
}

struct Path<T>(T);
struct State<T>(T);

struct App {
    name: String,
    secret: String,
}

#[distributed_lock(key = "uid:<uid>", ttl = "10s", guard = lock)]
async fn handler(
    Path(uid): Path<u64>,
    State(App { name, .. }): State<App>,
) -> Result<String, Error> {
    Ok(format!("{} {uid} {name}", lock.key()))
}

#[distributed_lock(key = "<uid>:<name>:<inner.0>", ttl = "10s", guard = lock)]
async fn taken_apart(
    Path((mut uid, _)): Path<(u64, String)>,
    State(App {
        ref name,
        secret: _,
    }): State<App>,
    inner @ (_, _): (u8, u8),
    &(one, _): &(u8, String),
    [_, mut last]: [u8; 2],
) -> Result<String, Error> {
    uid += 1;
    last += 1;
    Ok(format!(
        "{} {uid} {name} {} {one} {last}",
        lock.key(),
        inner.1
    ))
}

fn app() -> State<App> {
    State(App {
        name: "shop".into(),
        secret: "s".into(),
    })
}

#[tokio::test]
async fn every_pattern_keeps_its_bindings() {
    let locks = LockManager::in_memory();
    assert_eq!(app().0.secret, "s");
    assert_eq!(
        locks.scope(handler(Path(4), app())).await.expect("free"),
        "uid:4 4 shop"
    );
    let pair = (6, String::new());
    let call = taken_apart(Path((4, String::new())), app(), (5, 9), &pair, [1, 2]);
    assert_eq!(
        locks.scope(call).await.expect("free"),
        "4:shop:5 5 shop 9 6 3"
    );
}

#[distributed_lock(key = "generic:<T::NAME>:<N>:<value>", ttl = "10s", guard = lock)]
async fn generic<T, const N: usize>(
    value: T,
    f: impl FnOnce(T) -> [u8; N],
) -> Result<(String, [u8; N]), Error>
where
    T: Display + Named,
{
    Ok((lock.key().to_owned(), f(value)))
}

trait Named {
    const NAME: &'static str;
}

impl Named for u8 {
    const NAME: &'static str = "u8";
}

#[distributed_lock(key = "longest", ttl = "10s")]
async fn longest<'a, 'b: 'a>(
    a: &'a str,
    b: &'b str,
) -> Result<impl Iterator<Item = char> + use<'a, 'b>, Error> {
    Ok(if a.len() > b.len() {
        a.chars()
    } else {
        b.chars()
    })
}

#[tokio::test]
async fn generics_lifetimes_and_impl_trait_are_kept() {
    let locks = LockManager::in_memory();
    let (key, array) = locks.scope(generic(3u8, |n| [n; 2])).await.expect("free");
    assert_eq!((key.as_str(), array), ("generic:u8:2:3", [3, 3]));
    let chars = locks.scope(longest("ab", "c")).await.expect("free");
    assert_eq!(chars.collect::<String>(), "ab");
}

trait Repository {
    fn name(&self) -> String;

    async fn save(&self, text: &str) -> Result<usize, Error>;

    #[distributed_lock(key = "trait:<self.name()>", ttl = "10s")]
    async fn save_twice(&self, text: &str) -> Result<usize, Error> {
        Ok(self.save(text).await? + self.save(text).await?)
    }
}

impl Repository for Account {
    fn name(&self) -> String {
        self.id.to_string()
    }

    #[distributed_lock(key = "save:<self.id>", ttl = "10s", manager = self.locks)]
    async fn save(&self, text: &str) -> Result<usize, Error> {
        Ok(text.len())
    }
}

#[tokio::test]
async fn default_and_implemented_async_methods_of_traits_work() {
    let locks = LockManager::in_memory();
    assert_eq!(
        locks
            .scope(Account::new(1).save_twice("abc"))
            .await
            .expect("free"),
        6
    );
}

impl Account {
    #[distributed_lock(key = "account:<self.id>:<by>", ttl = "10s", manager = self.locks, guard = lock)]
    fn boxed_by_hand(
        &mut self,
        by: u64,
    ) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + '_>> {
        Box::pin(async move {
            assert!(lock.is_valid());
            self.balance += by;
            Ok(self.balance)
        })
    }

    #[expect(clippy::let_and_return, reason = "a macro writes such code")]
    /// The expansion by `async_trait` of `async fn deposit(&self, (by, _): (u64, String)) -> …`.
    #[distributed_lock(key = "account:<self.id>:<by>", ttl = "10s", manager = self.locks, guard = lock)]
    fn as_async_trait_has_it<'life0, 'async_trait>(
        &'life0 self,
        __arg1: (u64, String),
    ) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            if let Some(__ret) = None::<Result<u64, Error>> {
                #[allow(unreachable_code)]
                return __ret;
            }
            let __self = self;
            let (by, _) = {
                let __arg1 = __arg1;
                __arg1
            };
            let __ret: Result<u64, Error> = {
                if by == 0 {
                    return Ok(0);
                }
                assert_eq!(lock.key(), format!("account:{}:{by}", __self.id));
                Ok(__self.balance + by)
            };
            #[allow(unreachable_code)]
            __ret
        })
    }
}

#[distributed_lock(key = "returned:<n>", ttl = "10s")]
fn returned(n: u64) -> impl Future<Output = Result<u64, Error>> + Send {
    async move { Ok(n) }
}

#[tokio::test]
async fn returned_futures_run_under_the_lock() {
    let mut account = Account::new(7);
    assert_eq!(account.boxed_by_hand(5).await.expect("free"), 15);
    assert_eq!(
        account
            .as_async_trait_has_it((2, String::new()))
            .await
            .expect("free"),
        17
    );
    assert_eq!(
        account
            .as_async_trait_has_it((0, String::new()))
            .await
            .expect("free"),
        0
    );
    let locks = LockManager::in_memory();
    assert_eq!(locks.scope(returned(3)).await.expect("free"), 3);
    let _held = locks
        .lock("returned:3")
        .ttl(Duration::from_secs(10))
        .acquire()
        .await
        .expect("free");
    assert!(locks.scope(returned(3)).await.is_err());
}

#[distributed_lock(key = "depth:<depth>", ttl = "10s")]
async fn recursive(depth: u32) -> Result<u32, Error> {
    match depth {
        0 => Ok(0),
        _ => Ok(1 + Box::pin(recursive(depth - 1)).await?),
    }
}

#[tokio::test]
async fn a_recursive_function_locks_one_key_for_each_depth() {
    let locks = LockManager::in_memory();
    assert_eq!(locks.scope(recursive(4)).await.expect("free"), 4);
    assert!(locks.held().is_empty());
}

#[distributed_lock(key = "hidden:<n>", ttl = "10s")]
async fn a_hidden_item_behind_dyn(
    n: u64,
) -> Result<Box<dyn Iterator<Item = impl std::fmt::Display>>, Error> {
    Ok(Box::new(0..n))
}

#[tokio::test]
async fn a_return_type_may_hide_a_type_inside_a_trait_object() {
    let locks = LockManager::in_memory();
    let items = locks.scope(a_hidden_item_behind_dyn(3)).await;
    let items = items.expect("the lock is free");
    assert_eq!(
        items.map(|item| item.to_string()).collect::<String>(),
        "012"
    );
}
