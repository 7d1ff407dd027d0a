//! Tests releases that the server refuses completely or half-way, because the owner's user lacks a right at that moment.
//!
//! In each case no waiter loses its ticket, and each gets the lock soon after the right is back.

use std::time::Duration;

use lock_core::test_util::ManualClock;
use lock_core::{Interop, LockGuard, LockManager, LockRequest};
use lock_tests::{RedisServer, needs, wait};
use tokio::task::JoinSet;

use super::{Waiter, its_turn, keys, long, manager, millis, on, waits};

/// The commands of scripts on a lock, its queue and the high-water mark. In pairs, the undo of the first command is
/// refused too.
const COMMANDS: [&[&str]; 16] = [
    &["evalsha"],
    &["time"],
    &["time", "zadd"],
    &["get"],
    &["mget"],
    &["set"],
    &["set", "zadd"],
    &["del"],
    &["exists"],
    &["pttl"],
    &["zadd"],
    &["zrem"],
    &["zrange"],
    &["zpopmin"],
    &["publish"],
    &["publish", "del"],
];

/// A server with the user of an owner, and a manager of waiters with all rights.
struct Scene {
    server: RedisServer,
    locks: LockManager,
}

impl Scene {
    async fn begin() -> Scene {
        let server = RedisServer::start();
        server.cli(&["ACL", "SETUSER", "kit", "on", ">kit", "~*", "&*", "+@all"]);
        let locks = manager(&server.url()).await;
        Scene { server, locks }
    }

    fn owners_url(&self) -> String {
        format!("redis://kit:kit@{}", self.server.address())
    }

    async fn waits(&self, key: &str) -> Waiter {
        waits(&self.server, &self.locks, key, 1).await
    }

    /// Forbids the owner these commands.
    fn refuse(&self, commands: &[&str]) {
        self.say('-', commands);
        self.server.cli(&["ACL", "LOG", "RESET"]);
    }

    fn allow(&self, commands: &[&str]) {
        self.say('+', commands);
    }

    fn say(&self, sign: char, commands: &[&str]) {
        for command in commands {
            let right = format!("{sign}{command}");
            self.server.cli(&["ACL", "SETUSER", "kit", &right]);
        }
    }

    fn has_refused(&self) -> bool {
        !self.server.cli(&["ACL", "LOG"]).is_empty()
    }

    /// Gives the rights back after a release without them, and checks that the waiters get their locks.
    async fn have_their_turns(&self, commands: &[&str], waiters: Vec<Waiter>) {
        println!("without {commands:?}");
        wait::eventually(
            "the server has refused a command, or the waiters are served",
            async || self.has_refused() || waiters.iter().all(Waiter::is_finished),
        )
        .await;
        self.allow(commands);
        for waiter in waiters {
            its_turn(waiter).await.release().await.expect("held");
        }
    }

    async fn nothing_is_left(&self) {
        wait::eventually("no key is left", async || keys(&self.server).is_empty()).await;
    }
}

/// Releases one lock after the other, each without one of the rights.
async fn come_after(
    request: impl Fn(&LockManager, &str) -> LockRequest,
    give_back: impl AsyncFn(LockGuard),
) {
    let scene = Scene::begin().await;
    let owner = manager(&scene.owners_url()).await;
    for commands in COMMANDS {
        let key = commands.concat();
        let guard = request(&owner, &key).acquire().await.expect("free");
        let waiter = scene.waits(&key).await;
        scene.refuse(commands);
        give_back(guard).await;
        scene.have_their_turns(commands, vec![waiter]).await;
    }
    scene.nothing_is_left().await;
}

fn plain(locks: &LockManager, key: &str) -> LockRequest {
    locks.lock(key).ttl(long())
}

#[tokio::test]
async fn a_waiter_gets_a_lock_whose_release_was_refused_half_way_soon_after_the_right_is_back() {
    needs!(redis);
    // The result depends on the right.
    come_after(plain, async |guard| drop(guard.release().await)).await;
}

#[tokio::test]
async fn a_waiter_gets_a_lock_that_was_dropped_without_a_right_soon_after_the_right_is_back() {
    needs!(redis);
    come_after(plain, async |guard| drop(guard)).await;
}

#[tokio::test]
async fn a_waiter_gets_a_lock_whose_background_release_was_refused_soon_after_the_right_is_back() {
    needs!(redis);
    come_after(plain, async |guard| guard.release_in_background()).await;
}

#[tokio::test]
async fn a_waiter_gets_a_lock_whose_cooldown_was_refused_half_way_soon_after_the_cooldown() {
    needs!(redis);
    let request = |locks: &LockManager, key: &str| plain(locks, key).cooldown(millis(200));
    come_after(request, async |guard| drop(guard.release().await)).await;
}

#[tokio::test]
async fn waiters_get_locks_whose_batched_releases_were_refused_soon_after_the_right_is_back() {
    needs!(redis);
    let scene = Scene::begin().await;
    let owner = manager(&scene.owners_url()).await;
    for commands in COMMANDS {
        let (mut guards, mut waiters) = (Vec::new(), Vec::new());
        for name in ["a", "b", "c", "d", "e", "f"] {
            let key = format!("{name}-{}", commands.concat());
            guards.push(plain(&owner, &key).acquire().await.expect("free"));
            waiters.push(scene.waits(&key).await);
        }
        scene.refuse(commands);
        let releases: JoinSet<_> = guards.into_iter().map(LockGuard::release).collect();
        drop(releases.join_all().await);
        scene.have_their_turns(commands, waiters).await;
    }
    scene.nothing_is_left().await;
}

#[tokio::test]
async fn a_waiter_gets_a_lock_whose_gap_was_refused_half_way_soon_after_the_gap() {
    needs!(redis);
    let scene = Scene::begin().await;
    let clock = ManualClock::new();
    let owner = on(&clock, &scene.owners_url()).await;
    for commands in COMMANDS {
        let key = commands.concat();
        let request = plain(&owner, &key).interop(Interop::On);
        let guard = request.acquire().await.expect("free");
        let waiter = scene.waits(&key).await;
        // From here on, a gap is due.
        clock.advance(Duration::from_secs(2));
        scene.refuse(commands);
        drop(guard.release().await);
        scene.have_their_turns(commands, vec![waiter]).await;
    }
    scene.nothing_is_left().await;
}

#[tokio::test]
async fn the_manager_repeats_refused_hand_overs_until_the_server_allows_them() {
    needs!(redis);
    let scene = Scene::begin().await;
    let owner = manager(&scene.owners_url()).await;
    let guard = plain(&owner, "k").acquire().await.expect("free");
    let waiter = scene.waits("k").await;
    scene.refuse(&["zpopmin"]);
    guard.release().await.expect("the lock itself is free");
    for look in ["first", "second"] {
        scene.server.cli(&["ACL", "LOG", "RESET"]);
        wait::eventually(&format!("the {look} attempt is refused"), async || {
            scene.has_refused()
        })
        .await;
    }
    assert_eq!(scene.server.cli(&["ZCARD", "lockkit:!q:{k}"]), "1");
    scene.have_their_turns(&["zpopmin"], vec![waiter]).await;
    scene.nothing_is_left().await;
}
