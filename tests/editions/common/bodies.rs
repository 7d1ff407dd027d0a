//! Tests the constructs of bodies.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use lock_core::{Error, distributed_lock};

use super::errors::ShopError;
use super::receivers::nightly;
use super::witness::at_work;

/// `?`, `return` and their conversions.
#[distributed_lock(key = "jumps:<text>", ttl = "10s")]
pub async fn jumps(text: &str) -> Result<Option<u64>, anyhow::Error> {
    at_work().await;
    if text.is_empty() {
        return Ok(None);
    }
    let Ok(number) = text.parse::<u64>() else {
        return Err(ShopError::SoldOut.into());
    };
    let lock: u64 = async { Err(ShopError::SoldOut) }
        .await
        .or_else(|_: ShopError| text.parse())?;
    Ok(Some(number + lock))
}

/// Labels, with and without values.
#[distributed_lock(key = "labels:<wanted>", ttl = "10s")]
pub async fn labels(rows: &[[u64; 3]], wanted: u64) -> Result<Option<(usize, usize)>, Error> {
    let found = 'rows: loop {
        for (y, row) in rows.iter().enumerate() {
            'cells: for (x, cell) in row.iter().enumerate() {
                at_work().await;
                if *cell == 0 {
                    continue 'cells;
                }
                if *cell == wanted {
                    break 'rows Some((y, x));
                }
            }
        }
        if rows.len() < 9 {
            break None;
        }
    };
    Ok(found)
}

/// A body that is only a loop.
#[distributed_lock(key = "endless:<up_to>", ttl = "10s")]
pub async fn endless(up_to: u64) -> Result<u64, Error> {
    let mut n = 0;
    loop {
        at_work().await;
        n += 1;
        if n == up_to {
            return Ok(n);
        }
    }
}

/// Values that are not `Send`, across an await.
#[distributed_lock(key = "here:<list.len()>", ttl = "10s")]
pub async fn here(list: Rc<Vec<u64>>, sum: &Cell<u64>) -> Result<Rc<Vec<u64>>, Error> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    for n in list.iter() {
        at_work().await;
        seen.borrow_mut().push(*n);
        sum.set(sum.get() + n);
    }
    Ok(list)
}

/// Borrows of the arguments, across an await.
#[distributed_lock(key = "borrows:<text>", ttl = "10s")]
pub async fn borrows(text: String, map: &mut BTreeMap<String, u64>) -> Result<usize, Error> {
    let words: Vec<&str> = text.split(' ').collect();
    at_work().await;
    for word in &words {
        *map.entry((*word).to_owned()).or_default() += 1;
    }
    Ok(words.len())
}

/// Closures over the arguments.
#[distributed_lock(key = "closures:<text>", ttl = "10s")]
pub async fn closures(text: String, mut n: u64) -> Result<(String, u64), Error> {
    let mut add = |m: u64| n += m;
    add(1);
    add(2);
    at_work().await;
    let owned = move || text;
    Ok((owned(), n))
}

/// Futures inside: blocks, `join!`, `select!`, and a task.
#[distributed_lock(key = "futures:<text>", ttl = "10s")]
pub async fn futures(text: Arc<str>, n: u64) -> Result<u64, Error> {
    let own = Arc::clone(&text);
    let task = tokio::spawn(async move { own.len() as u64 });
    let (one, two) = tokio::join!(async { n }, async {
        at_work().await;
        text.len() as u64
    });
    let three = tokio::select! {
        biased;
        n = async move { n } => n,
        () = std::future::pending() => 0,
    };
    Ok(one + two + three + task.await.expect("no panic"))
}

/// Items inside.
#[distributed_lock(key = "items:<n>", ttl = "10s")]
pub async fn items(n: u64) -> Result<u64, Error> {
    use std::collections::BTreeSet;

    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    struct Step(u64);

    const STEPS: u64 = 3;

    const fn step(n: u64) -> Step {
        Step(n)
    }

    macro_rules! add {
        ($a:expr) => {
            n + $a
        };
    }

    at_work().await;
    let steps: BTreeSet<Step> = (0..STEPS).map(step).collect();
    Ok(add!(steps.last().map_or(0, |step| step.0)))
}

/// Unsafe code inside.
#[distributed_lock(key = "unsafe:<n>", ttl = "10s")]
pub async fn unsafe_inside(n: u64) -> Result<u64, Error> {
    at_work().await;
    let pointer = &raw const n;
    // SAFETY: `n` lives, and no code writes to it.
    Ok(unsafe { *pointer })
}

/// A locked function inside a locked function.
#[distributed_lock(key = "outer:<n>", ttl = "10s")]
pub async fn outer(n: u64) -> Result<u64, ShopError> {
    #[distributed_lock(key = "inner:<n>", ttl = "10s")]
    async fn inner(n: u64) -> Result<u64, Error> {
        at_work().await;
        Ok(n)
    }

    Ok(inner(n).await? + u64::from(nightly().await?))
}

/// A return type that infers the types of the body.
#[distributed_lock(key = "inferred", ttl = "10s")]
pub async fn inferred() -> Result<(u8, Vec<i64>, Box<dyn Fn(u64) -> u64 + Send>), Error> {
    at_work().await;
    Ok((
        1,
        (1..3).map(Into::into).collect::<Vec<_>>(),
        Box::new(|n| n + 1),
    ))
}

/// Many large locals across many awaits.
#[distributed_lock(key = "large:<seed>", ttl = "10s")]
pub async fn large(seed: u64, buffer: [u64; 128]) -> Result<u64, Error> {
    let mut one = [seed; 64];
    at_work().await;
    let mut two = [0; 64];
    for (n, (a, b)) in one.iter_mut().zip(&mut two).enumerate() {
        tokio::task::yield_now().await;
        *a += buffer[n];
        match *a % 3 {
            0 => *b = *a,
            1 if *a > 100 => {
                tokio::task::yield_now().await;
                *b = 1;
            }
            1 => *b = 2,
            _ => {
                let text = format!("{a}");
                tokio::task::yield_now().await;
                *b = text.len() as u64;
            }
        }
    }
    tokio::task::yield_now().await;
    Ok(one.iter().sum::<u64>() + two.iter().sum::<u64>() + buffer[127])
}

#[cfg(test)]
mod tests {
    use super::super::witness::{locked, locked_by_all};
    use super::*;

    #[tokio::test]
    async fn jumps_work_as_without_the_attribute() {
        let done = locked("jumps:3", jumps("3"), jumps("3")).await;
        assert_eq!(done.expect("free"), Some(6));
        let done = locked("jumps:x", jumps("x"), jumps("x")).await;
        assert_eq!(done.expect_err("no number").to_string(), "sold out");
        let rows = [[1, 0, 9], [2, 9, 3]];
        let done = locked("labels:9", labels(&rows, 9), labels(&rows, 9)).await;
        assert_eq!(done.expect("free"), Some((0, 2)));
        let done = locked("endless:3", endless(3), endless(3)).await;
        assert_eq!(done.expect("free"), 3);
    }

    #[tokio::test]
    async fn values_live_as_long_as_without_the_attribute() {
        let list = Rc::new(vec![1, 2]);
        let sum = Cell::new(0);
        let call = || here(Rc::clone(&list), &sum);
        let done = locked("here:2", call(), call()).await;
        assert_eq!((done.expect("free").len(), sum.get()), (2, 3));
        let (mut one, mut two) = (BTreeMap::new(), BTreeMap::new());
        let text = || "a b a".to_owned();
        let done = locked(
            "borrows:a%20b%20a",
            borrows(text(), &mut one),
            borrows(text(), &mut two),
        )
        .await;
        assert_eq!((done.expect("free"), one["a"], two.len()), (3, 2, 0));
        let call = || closures("ab".into(), 1);
        let done = locked("closures:ab", call(), call()).await;
        assert_eq!(done.expect("free"), ("ab".to_owned(), 4));
        let done = Box::pin(locked("large:1", large(1, [2; 128]), large(1, [2; 128]))).await;
        assert_eq!(done.expect("free"), 3 * 64 + 3 * 64 + 2);
    }

    #[tokio::test]
    async fn items_futures_and_unsafe_code_work_inside() {
        let call = || futures("ab".into(), 3);
        assert_eq!(
            locked("futures:ab", call(), call()).await.expect("free"),
            10
        );
        let done = locked("items:3", items(3), items(3)).await;
        assert_eq!(done.expect("free"), 5);
        let done = locked("unsafe:3", unsafe_inside(3), unsafe_inside(3)).await;
        assert_eq!(done.expect("free"), 3);
        let (small, list, f) = locked("inferred", inferred(), inferred())
            .await
            .expect("free");
        assert_eq!((small, list, f(1)), (1, vec![1, 2], 2));
        let done = locked_by_all(&["inner:3", "outer:3"], outer(3), outer(3)).await;
        assert_eq!(done.expect("free"), 4);
    }
}
