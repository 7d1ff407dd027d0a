//! A parameter that is no transaction.
//! Give the parameter the type `&mut Tx<Db>`.
#![allow(dead_code)]
use lock_core::Error;
use lock_core::idempotent;
use lock_core::once::Database;

#[idempotent(key = "mail:<message>", remember = "7d", tx = tx)]
// instead: async fn on_message<D: Database>(tx: &mut lock_core::once::Tx<D>, message: u64) -> Result<u64, Error> {
async fn on_message<D: Database>(tx: &mut D, message: u64) -> Result<u64, Error> {
    let _ = tx;
    Ok(message)
}

fn main() {}
