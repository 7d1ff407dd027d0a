//! Tests features that only this edition has.
//!
//! A closure captures whole variables, `gen` is a name, an array iterates by reference, and
//! `panic!` accepts any text.

use lock_core::{Error, distributed_lock};

use crate::common::witness::at_work;

/// A name that is a keyword in later editions.
#[allow(keyword_idents_2024)]
#[distributed_lock(key = "gen:<gen>", ttl = "10s")]
pub async fn words(gen: u64) -> Result<u64, Error> {
    at_work().await;
    Ok(gen)
}

/// A closure that uses a part of an argument, beside the rest of it.
#[distributed_lock(key = "whole:<pair.0>", ttl = "10s")]
pub async fn whole(mut pair: (u64, String)) -> Result<(u64, String), Error> {
    at_work().await;
    let number = pair.0;
    let mut add = || pair.1.push('!');
    add();
    Ok((number, pair.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::witness::locked;

    #[tokio::test]
    async fn old_names_and_captures_work() {
        let done = locked("gen:3", words(3), words(3)).await;
        assert_eq!(done.expect("free"), 3);
        let call = || whole((3, "a".to_owned()));
        let done = locked("whole:3", call(), call()).await;
        assert_eq!(done.expect("free"), (3, "a!".to_owned()));
    }
}
