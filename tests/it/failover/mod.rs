//! Servers that take each other's place while many ask them for locks: the load, and what is checked of
//! it, whatever the servers are.

mod load;
mod windows;

use std::time::{Duration, Instant};

use lock_tests::wait;

pub(crate) use load::{Load, TTL};

/// How long a client may need, after the servers have settled it among them.
const AFTER_THE_SERVERS: Duration = Duration::from_secs(1);

/// What happens to the one that has the locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// `kill -9`.
    Killed,
    /// SIGSTOP: its connections stay open, and nothing is ever answered.
    Frozen,
    /// It is told to give way, and lives on as a replica.
    Replaced,
}

/// Breaks the service under load, and sees to it that it is back as soon as can be, and that nothing
/// went wrong meanwhile. `serves` asks the servers themselves, by a plain write.
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
    let granted = load.granted_after(back).await;
    let (servers, clients) = (back - broken, granted - broken);
    println!("the servers were back after {servers:?}, the locks after {clients:?}");
    assert!(
        clients <= servers + AFTER_THE_SERVERS,
        "the servers were back after {servers:?}, the locks after {clients:?} only"
    );
    // And not by chance.
    let before = load.granted();
    wait::eventually("the load runs", async || load.granted() > before + 20).await;
    load.end().await;
}
