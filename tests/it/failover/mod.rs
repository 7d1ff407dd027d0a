//! Tests servers that take each other's place under load.
//!
//! This module makes the load and checks its invariants for every kind of server.

mod load;
mod windows;

use std::time::Instant;

use lock_tests::wait;

pub(crate) use load::{Load, TTL};

/// The number of plain writes that the servers may accept between the first write and the first lock.
///
/// The test sends the writes one after the other with 2 ms between them, so that they take a second. A busy machine
/// delays the writes as much as the clients.
const WRITES: u32 = 400;

/// The fate of the server that has the locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The server is killed by `kill -9`.
    Killed,
    /// The server is stopped by SIGSTOP, so that its connections stay open and it answers nothing.
    Frozen,
    /// The server is told to give way, and lives on as a replica.
    Replaced,
}

/// Breaks the service under load, and checks that it returns soon and without a violation.
///
/// `serves` asks the servers themselves by a plain write.
pub(crate) async fn service_goes_on(
    load: Load,
    break_it: impl FnOnce(),
    mut serves: impl FnMut() -> bool,
) {
    wait::eventually("the load runs", async || load.granted() > 20).await;
    let broken = Instant::now();
    tokio::task::block_in_place(break_it);
    let back = tokio::task::block_in_place(|| {
        wait::until("the servers serve again", &mut serves);
        Instant::now()
    });
    let mut writes = 0;
    let granted = tokio::task::block_in_place(|| {
        wait::until("a lock is granted", || {
            writes += u32::from(serves());
            load.first_asked_after(back).is_some()
        });
        load.first_asked_after(back).expect("granted")
    });
    let (servers, clients) = (back - broken, granted - broken);
    let said = format!("the servers were back after {servers:?}, the locks after {clients:?}");
    println!("{said}, {writes} writes");
    assert!(writes <= WRITES, "{said} only, {writes} writes");
    // The load continues, so the first grant was not chance.
    let before = load.granted();
    wait::eventually("the load runs", async || load.granted() > before + 20).await;
    load.end().await;
}
