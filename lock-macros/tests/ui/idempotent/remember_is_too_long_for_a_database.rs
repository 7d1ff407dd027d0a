//! A life of more than 3 650 days.
//! Write `forever`.
#![allow(dead_code)]
use lock_core::Error;
use lock_core::idempotent;
use lock_core::once::{Database, Tx};

// instead: #[idempotent(key = "mail:<message>", remember = forever, tx = tx)]
#[idempotent(key = "mail:<message>", remember = "4000d", tx = tx)]
async fn on_message<D: Database>(tx: &mut Tx<D>, message: u64) -> Result<u64, Error> {
    Ok(message + u64::from(format!("{tx:?}").is_empty()))
}

fn main() {}
