//! A transaction that is given away.
//! Lend it, because the caller commits it.
#![allow(dead_code)]
use lock_core::Error;
use lock_core::idempotent;
use lock_core::once::{Database, Tx};

#[idempotent(key = "mail:<message>", remember = "7d", tx = tx)]
// instead: async fn on_message<D: Database>(tx: &mut Tx<D>, message: u64) -> Result<u64, Error> {
async fn on_message<D: Database>(tx: Tx<D>, message: u64) -> Result<u64, Error> {
    Ok(message + u64::from(format!("{tx:?}").is_empty()))
}

fn main() {}
