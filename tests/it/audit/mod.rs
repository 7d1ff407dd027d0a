//! Tests the audit of a server's settings.

mod clocks;
mod log;
mod rights;
mod settings;
mod several;
mod telling;

use lock_core::{Finding, LockManager};
use lock_tests::{RedisOptions, RedisServer};

/// Returns options for a server that has no findings.
fn well_kept() -> RedisOptions {
    RedisServer::options()
        .config("appendonly", "yes")
        .config("maxmemory", "200mb")
        .config("maxmemory-policy", "noeviction")
}

async fn audit(url: &str) -> Vec<Finding> {
    let locks = LockManager::connect(url).await.expect("a manager");
    locks.audit().await.expect("an answer")
}

fn codes(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(Finding::code).collect()
}
