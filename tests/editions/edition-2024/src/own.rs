//! Tests features that came with this edition.
//!
//! These are `impl Trait` that keeps every lifetime by default, chains of `if let`,
//! temporaries that end earlier, and `Future` in the prelude.

use lock_core::{Error, distributed_lock};

use crate::common::witness::at_work;

/// A return type that keeps the lifetime implicitly.
#[distributed_lock(key = "captures:<text>", ttl = "10s")]
pub fn captures(text: &str) -> impl Future<Output = Result<&str, Error>> + Send {
    async move {
        at_work().await;
        Ok(&text[1..])
    }
}

/// A return type that keeps only the named lifetime.
#[distributed_lock(key = "precise:<a>", ttl = "10s")]
pub async fn precise<'a, 'b>(
    a: &'a str,
    b: &'b str,
) -> Result<impl Iterator<Item = char> + use<'a, 'b>, Error> {
    at_work().await;
    Ok(a.chars().chain(b.chars()))
}

/// `if let` in a chain.
#[distributed_lock(key = "chain:<n>", ttl = "10s")]
pub async fn chain(n: u64, text: Option<&str>) -> Result<u64, Error> {
    at_work().await;
    if let Some(text) = text
        && let Ok(m) = text.parse::<u64>()
        && m > n
    {
        return Ok(m);
    }
    Ok(n)
}

/// A temporary at the end of the body.
#[distributed_lock(key = "tail:<n>", ttl = "10s")]
pub async fn tail(n: u64) -> Result<u64, Error> {
    let cell = std::sync::Mutex::new(n);
    at_work().await;
    Ok(*cell.lock().expect("no thread panics"))
}

/// Async closures: one in the body, and one as an argument.
#[distributed_lock(key = "async:<n>", ttl = "10s")]
pub async fn async_closure<F: AsyncFn(u64) -> u64>(n: u64, f: F) -> Result<u64, Error> {
    at_work().await;
    let twice = async |n: u64| f(f(n).await).await;
    Ok(twice(n).await)
}

/// A function that is unsafe to call, with an unsafe block inside.
///
/// # Safety
///
/// `pointer` must be valid for as long as this runs.
#[distributed_lock(key = "unsafe:<n>", ttl = "10s")]
pub async unsafe fn not_safe(n: u64, pointer: *const u64) -> Result<u64, Error> {
    at_work().await;
    // SAFETY: the caller guarantees it.
    Ok(n + unsafe { *pointer })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::witness::locked;

    #[tokio::test]
    async fn captures_work_as_without_the_attribute() {
        let text = String::from("abc");
        let done = locked("captures:abc", captures(&text), captures(&text)).await;
        assert_eq!(done.expect("free"), "bc");
        let done = locked("precise:abc", precise(&text, "d"), precise(&text, "d")).await;
        assert_eq!(done.expect("free").collect::<String>(), "abcd");
        let call = || async_closure(3, async |n| n * 2);
        assert_eq!(locked("async:3", call(), call()).await.expect("free"), 12);
    }

    #[tokio::test]
    async fn chains_tails_and_pointers_work_as_without_the_attribute() {
        let call = || chain(3, Some("4"));
        assert_eq!(locked("chain:3", call(), call()).await.expect("free"), 4);
        assert_eq!(locked("tail:3", tail(3), tail(3)).await.expect("free"), 3);
        let n = 4;
        // SAFETY: `n` lives on.
        let call = || unsafe { not_safe(3, &raw const n) };
        assert_eq!(locked("unsafe:3", call(), call()).await.expect("free"), 7);
    }
}
