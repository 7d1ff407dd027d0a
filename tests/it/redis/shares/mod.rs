//! Tests shares on a real server: the script by itself, the number of commands, other clients, and failures.

mod clients;
mod downgrades;
mod failures;
mod protocol;
mod refused;
mod trips;

use lock_core::{LockGuard, LockManager, LockRequest};
use lock_tests::RedisServer;

use super::scripts::{run, scripts};
use super::{asked, keys, kind, long, once, proxied, taken};

/// The script, for waiters whose pushes are not counted, so that none of them is dead.
const SHARE: [&str; 6] = scripts!(
    "cluster.lua",
    "share_first.lua",
    "common.lua",
    "stand_in_line.lua",
    "share_set.lua",
    "share.lua"
);
/// The script, for waiters of which none listens.
const SHARE_AMONG_DEAD: [&str; 6] = scripts!(
    "one_server.lua",
    "share_first.lua",
    "common.lua",
    "stand_in_line.lua",
    "share_set.lua",
    "share.lua"
);
const ACQUIRE: [&str; 5] = scripts!(
    "stand_in_line.lua",
    "acquire_first.lua",
    "cluster.lua",
    "common.lua",
    "acquire.lua"
);
const EXTEND: [&str; 1] = scripts!("extend_shares.lua");
const SWAP: [&str; 1] = scripts!("swap.lua");
const RELEASE: [&str; 4] = scripts!(
    "one_server.lua",
    "release_first.lua",
    "common.lua",
    "release.lua"
);

const LOCK: &str = "lockkit:k";
const MARK: &str = "lockkit:!f";
const QUEUE: &str = "lockkit:!q:{k}";
const SHARES: &str = "lockkit:!s:{k}";

/// Makes the token of a share; `limit`: its last digits.
fn token(number: u32, limit: u32) -> String {
    format!("0123456789abcdef/{number:032x}{limit:08x}")
}

const READER: u32 = u32::MAX;

/// Runs the script of a share with a ttl in ms. Returns its answer.
fn share(server: &RedisServer, verb: &str, token: &str, ttl: &str) -> String {
    share_with(server, &SHARE, verb, token, ttl, "")
}

fn share_with(
    server: &RedisServer,
    script: &[&str],
    verb: &str,
    token: &str,
    ttl: &str,
    used: &str,
) -> String {
    let arguments = [verb, token, ttl, "2000", "lockkit:!m:", used];
    run(server, script, &[LOCK, MARK, QUEUE, SHARES], &arguments)
}

/// Returns the tokens in the set of the shares of a key.
fn inside(server: &RedisServer) -> Vec<String> {
    let shares = server.cli(&["ZRANGE", SHARES, "0", "-1"]);
    let mut shares: Vec<_> = shares.lines().map(str::to_owned).collect();
    shares.sort_unstable();
    shares
}

fn is_granted(answer: &str) -> bool {
    answer.lines().count() == 3 && answer.starts_with("1\n")
}

/// Returns whether a refused share stands in the queue.
fn is_queued(answer: &str) -> bool {
    let parts: Vec<_> = answer.lines().collect();
    parts.len() == 7 && (parts[0], parts[4]) == ("0", "1")
}

/// Returns the fencing token of a share that was granted.
fn fence(answer: &str) -> Option<u64> {
    answer.lines().nth(1)?.parse().ok()
}

async fn entered(request: LockRequest) -> LockGuard {
    let entered = request.try_acquire().await.expect("an answer");
    entered.expect("there is room")
}

fn reader(locks: &LockManager) -> LockRequest {
    locks.lock("k").ttl(long()).read()
}

fn permit(locks: &LockManager, count: u32) -> LockRequest {
    locks.lock("k").ttl(long()).permits(count)
}
