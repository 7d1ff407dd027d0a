//! Tests features that came with this edition.
//!
//! Closures capture fields, format strings contain names, arrays iterate by value, and
//! or-patterns are allowed anywhere.

use lock_core::{Error, distributed_lock};

use crate::common::witness::at_work;

/// Fields that closures capture separately.
#[distributed_lock(key = "fields:<pair.0>", ttl = "10s")]
pub async fn fields(mut pair: (String, Vec<u64>), texts: [String; 2]) -> Result<String, Error> {
    at_work().await;
    let mut add = || pair.1.push(1);
    let name = pair.0;
    add();
    let all: Vec<String> = texts.into_iter().collect();
    let count = pair.1.len();
    Ok(format!("{name}{count}{}", all.concat()))
}

/// A borrow that the return value does not keep.
#[distributed_lock(key = "captures:<text>", ttl = "10s")]
pub fn captures(text: &str) -> impl Future<Output = Result<usize, Error>> + Send + '_ {
    async move {
        at_work().await;
        Ok(text.len())
    }
}

/// An async closure.
#[distributed_lock(key = "async:<n>", ttl = "10s")]
pub async fn async_closure<F: AsyncFn(u64) -> u64>(n: u64, f: F) -> Result<u64, Error> {
    at_work().await;
    let twice = async |n: u64| f(f(n).await).await;
    Ok(twice(n).await)
}

use std::future::Future;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::witness::locked;

    #[tokio::test]
    async fn captures_work_as_without_the_attribute() {
        let call = || {
            let texts = ["c".to_owned(), "d".to_owned()];
            fields(("a".to_owned(), vec![]), texts)
        };
        let done = locked("fields:a", call(), call()).await;
        assert_eq!(done.expect("free"), "a1cd");
        let text = String::from("abc");
        let done = locked("captures:abc", captures(&text), captures(&text)).await;
        assert_eq!(done.expect("free"), 3);
        let call = || async_closure(3, async |n| n * 2);
        assert_eq!(locked("async:3", call(), call()).await.expect("free"), 12);
    }
}
