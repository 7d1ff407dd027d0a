//! Functions under `distributed_lock`, of every shape with every argument. Clippy reports some of them, with or without their
//! attribute.

use std::{
    fmt::Display,
    pin::{Pin, pin},
    rc::Rc,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use lock_core::{Error, ErrorKind, LockManager, distributed_lock};

const LEASE: Duration = Duration::from_secs(10);

struct Shop {
    locks: LockManager,
    id: u64,
}

impl Shop {
    #[distributed_lock(key = "shop:<self.id>", ttl = "10s", manager = self.locks)]
    async fn shared(&self) -> Result<u64, Error> {
        step().await;
        Ok(self.id)
    }

    #[distributed_lock(
        key = "shop:<self.id>:<by>",
        ttl = LEASE,
        wait = "2s",
        max_hold = "30s",
        cooldown = "1s",
        manager = &self.locks,
        guard = _lock,
    )]
    async fn exclusive(&mut self, by: u64) -> Result<&mut u64, Error> {
        step().await;
        self.id += by;
        Ok(&mut self.id)
    }

    #[distributed_lock(key = "shop:<self.id>", ttl = "10s", manager = self.locks.clone())]
    async fn owned(mut self) -> Result<Self, Error> {
        step().await;
        self.id = 0;
        Ok(self)
    }

    #[distributed_lock(key = "shop:<self.id>", ttl = "10s", wait = forever, reentrant = false)]
    async fn counted(self: Arc<Self>) -> Result<u64, Error> {
        step().await;
        Ok(self.id)
    }

    #[distributed_lock(key = "shop:<self.id>", ttl = "10s", wait = none, renew = true)]
    async fn boxed(self: Box<Self>) -> Result<u64, Error> {
        step().await;
        Ok(self.id)
    }

    #[distributed_lock(key = "shop:<self.id>", ttl = "10s", reentrant = true)]
    async fn pinned(mut self: Pin<&mut Self>, by: u64) -> Result<u64, Error> {
        step().await;
        self.as_mut().get_mut().id += by;
        Ok(self.id)
    }

    #[distributed_lock(key = format!("shop:{id}"), ttl = "10s")]
    async fn associated(id: u64, locks: LockManager) -> Result<Self, Error> {
        step().await;
        Ok(Self { locks, id })
    }
}

async fn step() {
    std::future::ready(()).await;
}

struct Path<T>(T);

struct Cart {
    lines: Vec<u32>,
    note: String,
}

#[distributed_lock(key = "order:<uid>", ttl = "10s", release = background, on_lost = ignore)]
async fn patterns(
    Path(uid): Path<u64>,
    (first, _): (u32, u32),
    Cart { lines, .. }: Cart,
    [a, rest @ ..]: [u8; 3],
    mut more: Vec<u32>,
    _: String,
    _unused: String,
) -> Result<usize, Error> {
    step().await;
    more.push(first + u32::from(a));
    Ok(lines.len() + more.len() + rest.len() + usize::try_from(uid).unwrap_or(0))
}

#[distributed_lock(key = "note:<note.len()>", ttl = "10s", release = await, on_lost = cancel)]
async fn a_reference_inside(Cart { ref note, .. }: Cart) -> Result<usize, Error> {
    step().await;
    Ok(note.len())
}

#[distributed_lock(key = "job", ttl = "10s", renew = false, on_error = |_| ())]
async fn nothing(n: u64) {
    step().await;
    println!("{n}");
}

#[distributed_lock(key = "job", ttl = "10s", on_error = |error| error.kind())]
async fn the_errors_kind() -> ErrorKind {
    step().await;
    ErrorKind::Lost
}

fn refuse(error: Error) -> Result<u64, Error> {
    Err(error)
}

#[distributed_lock(key = "job", ttl = "10s", on_error = refuse)]
async fn a_function_for_errors(n: u64) -> Result<u64, Error> {
    step().await;
    Ok(n)
}

#[distributed_lock(key = "job", ttl = "10s", on_error = {
    let name = name.clone();
    move |_| name
})]
async fn a_block_for_errors(name: String) -> String {
    step().await;
    name
}

#[distributed_lock(key = "many:<first>:<second>:<N>", ttl = "10s")]
async fn generics<'a, T, const N: usize>(
    first: &'a T,
    second: impl Display,
    all: [u8; N],
) -> Result<&'a T, Error>
where
    T: Display + Sync,
{
    step().await;
    println!("{second} {all:?}");
    Ok(first)
}

#[distributed_lock(key = "hidden:<n>", ttl = "10s")]
async fn a_hidden_type(n: u64) -> Result<impl Iterator<Item = u64>, Error> {
    step().await;
    Ok((0..n).map(|n| n * 2))
}

#[distributed_lock(key = "future", ttl = "10s")]
async fn a_future_as_parameter<F: Future<Output = u64>>(future: F) -> Result<u64, Error> {
    let future = pin!(future);
    Ok(future.await)
}

#[distributed_lock(key = "not send", ttl = "10s")]
async fn not_send(shared: Rc<u64>, guard: MutexGuard<'_, u8>) -> Result<u64, Error> {
    step().await;
    Ok(*shared + u64::from(*guard))
}

#[distributed_lock(key = "cast:<n>", ttl = "10s")]
async fn casts(n: u64) -> Result<u32, Error> {
    step().await;
    Ok(n as u32)
}

#[distributed_lock(key = "early", ttl = "10s")]
async fn leaves_early(n: u64) -> Result<u64, Error> {
    step().await;
    if n == 0 {
        return Ok(1);
    }
    let found = 'search: {
        for i in 0..n {
            if i * i == n {
                break 'search i;
            }
        }
        return Ok(0);
    };
    Ok(found)
}

#[distributed_lock(key = "deep:<n>", ttl = "10s")]
async fn recursive(n: u64) -> Result<u64, Error> {
    match n {
        0 => Ok(0),
        n => Ok(1 + Box::pin(recursive(n - 1)).await?),
    }
}

#[distributed_lock(key = "boxed:<n>", ttl = "10s")]
fn a_boxed_future(n: u64) -> Pin<Box<dyn Future<Output = Result<u64, Error>> + Send>> {
    Box::pin(async move {
        step().await;
        Ok(n)
    })
}

#[distributed_lock(key = "returned:<n>", ttl = "10s")]
fn a_returned_future(n: u64) -> impl Future<Output = Result<u64, Error>> + Send {
    async move {
        step().await;
        Ok(n)
    }
}

#[distributed_lock(key = "outer:<n>", ttl = "10s")]
#[distributed_lock(key = "inner:<n>", ttl = "10s")]
async fn stacked(n: u64) -> Result<u64, Error> {
    step().await;
    Ok(n)
}

#[tracing::instrument(skip(secret))]
#[distributed_lock(key = "span:<n>", ttl = "10s")]
async fn instrumented_above(n: u64, secret: String) -> Result<usize, Error> {
    step().await;
    Ok(secret.len())
}

#[distributed_lock(key = "span:<n>", ttl = "10s")]
#[tracing::instrument(skip(secret))]
async fn instrumented_below(n: u64, secret: String) -> Result<usize, Error> {
    step().await;
    Ok(secret.len())
}

trait Store {
    async fn save(&self, id: (u64, &str)) -> Result<u64, Error>;

    #[distributed_lock(key = "load:<id>", ttl = "10s")]
    async fn load(&self, id: u64) -> Result<u64, Error> {
        step().await;
        Ok(id)
    }
}

impl Store for Shop {
    #[distributed_lock(key = "save:<self.id>:<id>:<text>", ttl = "10s", manager = self.locks)]
    async fn save(&self, (id, text): (u64, &str)) -> Result<u64, Error> {
        step().await;
        println!("{text}");
        Ok(self.id + id)
    }
}

#[async_trait::async_trait]
trait Queue {
    async fn push(&self, id: (u64, String)) -> Result<u64, Error>;

    #[distributed_lock(key = "pop", ttl = "10s")]
    async fn pop(&self) -> Result<u64, Error> {
        step().await;
        Ok(1)
    }
}

#[async_trait::async_trait]
impl Queue for Shop {
    #[distributed_lock(key = "push:<self.id>:<id>", ttl = "10s", manager = self.locks)]
    async fn push(&self, (id, _): (u64, String)) -> Result<u64, Error> {
        step().await;
        Ok(self.id + id)
    }
}

macro_rules! locked {
    ($name:ident, $key:literal, $arg:ident) => {
        #[distributed_lock(key = $key, ttl = "10s")]
        async fn $name($arg: u64) -> Result<u64, Error> {
            step().await;
            Ok($arg)
        }
    };
}

locked!(made_by_a_macro, "made:<n>", n);

/// Has as many branches and lines as clippy accepts for one function.
#[distributed_lock(key = "branches:<n>", ttl = "10s")]
async fn many_branches(n: u64) -> Result<u64, Error> {
    step().await;
    let mut sum = 0;
    if n > 1 {
        sum += 1;
    }
    if n > 2 {
        sum += 2;
    }
    if n > 3 {
        sum += 3;
    }
    if n > 4 {
        sum += 4;
    }
    if n > 5 {
        sum += 5;
    }
    if n > 6 {
        sum += 6;
    }
    if n > 7 {
        sum += 7;
    }
    if n > 8 {
        sum += 8;
    }
    if n > 9 {
        sum += 9;
    }
    if n > 10 {
        sum += 10;
    }
    if n > 11 {
        sum += 11;
    }
    if n > 12 {
        sum += 12;
    }
    if n > 13 {
        sum += 13;
    }
    if n > 14 {
        sum += 14;
    }
    if n > 15 {
        sum += 15;
    }
    if n > 16 {
        sum += 16;
    }
    if n > 17 {
        sum += 17;
    }
    if n > 18 {
        sum += 18;
    }
    if n > 19 {
        sum += 19;
    }
    if n > 20 {
        sum += 20;
    }
    if n > 21 {
        sum += 21;
    }
    if n > 22 {
        sum += 22;
    }
    if n > 23 {
        sum += 23;
    }
    if n > 24 {
        sum += 24;
    }
    Ok(sum)
}

fn main() {
    let _ = LockManager::in_memory;
    let held = Mutex::new(1);
    drop((held.lock().map(|guard| not_send(Rc::new(1), guard)).is_ok(), the_errors_kind));
    drop((patterns, a_reference_inside, nothing, a_function_for_errors, a_block_for_errors));
    drop((leaves_early, casts, recursive, a_boxed_future, stacked, made_by_a_macro));
    drop((instrumented_above, instrumented_below, many_branches));
    drop((a_future_as_parameter(step_of(1)), generics(&1, 2, [3])));
    drop(a_hidden_type(1));
    drop(a_returned_future(1));
    let _ = Cart { lines: Vec::new(), note: String::new() };
    let _ = (Shop::shared, Shop::exclusive, Shop::owned, Shop::counted, Shop::boxed);
    let _ = (Shop::pinned, Shop::associated);
    let _ = (<Shop as Store>::save, <Shop as Store>::load);
    let _ = (<Shop as Queue>::push, <Shop as Queue>::pop);
}

async fn step_of(n: u64) -> u64 {
    step().await;
    n
}
