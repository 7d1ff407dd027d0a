//! Tests a slot on its way from one node to another.

use std::time::{Duration, Instant, SystemTime};

use lock_core::ErrorKind;
use lock_core::middleware::{Forgotten, RecordOutcome};
use lock_tests::{RedisCluster, needs, wait};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::migration::Move;
use super::{its_turn, long, manager, taken, waits};
use crate::conformance::shared_cluster;
use crate::failover::Load;
use crate::steps::{OUTLIVED, once};

#[tokio::test]
async fn a_slot_that_has_moved_is_followed() {
    needs!(redis_7);
    let cluster = shared_cluster();
    let locks = manager(cluster).await;
    let before = once(&locks, "moved").await;
    let guard = taken(&locks, "moved:held", OUTLIVED).await;
    for tag in ["lockkit:moved", "lockkit:moved:held"] {
        Move::begin(cluster, tag).end();
    }
    assert!(once(&locks, "moved").await > before);
    let name = "lockkit:moved:held";
    let ends = || cluster.cli(name, &["PEXPIRETIME", name]);
    let first = ends();
    assert_ne!(first, "-2", "the lock has moved with its slot");
    wait::eventually("the lock is renewed on the new node", async || {
        ends() != first
    })
    .await;
    guard.release().await.expect("held");
    assert_eq!(cluster.cli(name, &["EXISTS", name]), "0");
}

#[tokio::test]
async fn while_its_slot_moves_a_lock_is_taken_renewed_refused_and_released() {
    needs!(redis);
    let cluster = shared_cluster();
    let (locks, other) = (manager(cluster).await, manager(cluster).await);
    // The slot has a high-water mark and locks that are held.
    let mut last = once(&locks, "{moving}").await;
    let held = taken(&locks, "{moving}:held", OUTLIVED).await;
    let gone = taken(&locks, "{moving}:gone", OUTLIVED).await;
    let cooled = taken(&locks, "{moving}:cooled", OUTLIVED).await;
    let began = Instant::now();
    let moving = Move::begin(cluster, "lockkit:{moving}");
    // The keys are first on both nodes, then the mark is on the target, then no key is left on the source.
    for moves in [
        "lockkit:{moving}:gone",
        "lockkit:!f:",
        "lockkit:{moving}:held",
    ] {
        moving.keys_move(moves);
        for _ in 0..3 {
            let fence = once(&locks, "{moving}").await;
            assert!(fence > last, "fencing tokens rise");
            last = once(&other, "{moving}").await;
            assert!(last > fence, "fencing tokens rise");
        }
        for key in ["{moving}:held", "{moving}:gone"] {
            let error = other.lock(key).acquire().await.expect_err("moved:held");
            assert_eq!(error.kind(), ErrorKind::Busy);
        }
        let waiting = other
            .lock("{moving}")
            .wait(wait::PATIENCE)
            .acquire()
            .await
            .expect("free");
        waiting.release().await.expect("held");
    }
    let handle = cooled.handle();
    handle.cooldown(long());
    cooled.release().await.expect("held");
    let error = other
        .lock("{moving}:cooled")
        .acquire()
        .await
        .expect_err("the lock cools down");
    assert!(error.is_cooling_down());
    // Both locks have been renewed meanwhile, on either node.
    wait::eventually("the locks outlive their ttl", async || {
        began.elapsed() > OUTLIVED * 2 || !held.is_valid() || !gone.is_valid()
    })
    .await;
    assert!(held.is_valid() && gone.is_valid());
    gone.release().await.expect("held");
    assert!(once(&other, "{moving}:gone").await > last);
    moving.end();
    assert!(held.is_valid());
    held.release().await.expect("held");
    assert!(once(&other, "{moving}:held").await > last);
}

#[tokio::test]
async fn while_its_slot_moves_the_key_of_a_completed_run_cools_down_until_its_tick_ends() {
    needs!(redis);
    let cluster = shared_cluster();
    for key in ["{ticking}", "{tick-that-moved}"] {
        let locks = manager(cluster).await;
        let (begun, begins) = oneshot::channel();
        let (ends, ended) = oneshot::channel::<()>();
        let mut signals = Some((begun, ended));
        let job = locks.every(key, Duration::from_secs(7200)).ttl(long());
        let job = tokio::spawn(job.run(move |tick| {
            let signals = signals.take();
            async move {
                if let Some((begun, ended)) = signals {
                    begun.send(tick.ends()).expect("the test waits");
                    let _ = ended.await;
                }
            }
        }));
        let tick = timeout(wait::PATIENCE, begins).await.expect("it runs");
        let name = format!("lockkit:{key}");
        let moving = Move::begin(cluster, &name);
        if key == "{tick-that-moved}" {
            moving.keys_move(&name);
        }
        ends.send(()).expect("the job waits");
        assert!(locks.drain(wait::PATIENCE).await.is_complete());
        job.await.expect("no panic").expect("no error");
        moving.end();
        let since = tick.expect("a tick").duration_since(SystemTime::UNIX_EPOCH);
        let expected = since.expect("after 1970").as_millis().to_string();
        // A key that moves keeps its rest, which may be some milliseconds later on the other node. Its value stays.
        let value = cluster.cli(&name, &["GET", &name]);
        assert!(value.starts_with("cooling/"), "{value}");
        assert_eq!(value.rsplit('/').next(), Some(&*expected));
        manager(cluster).await.forget(key).await.expect("no fault");
    }
}

#[tokio::test]
async fn while_its_slot_moves_a_lock_cools_down_on_a_node_without_memory() {
    needs!(redis);
    let cluster = RedisCluster::start(long());
    let locks = manager(&cluster).await;
    let guard = locks.lock("{cools}").ttl(long()).cooldown(long());
    let guard = guard.acquire().await.expect("free");
    let name = "lockkit:{cools}";
    let moving = Move::begin(&cluster, name);
    let node = cluster.master_of(name);
    node.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    guard.release().await.expect("a cooldown needs no memory");
    node.cli(&["CONFIG", "SET", "maxmemory", "0"]);
    moving.end();
    let value = cluster.cli(name, &["GET", name]);
    assert!(value.starts_with("cooling/"), "{value}");
}

#[tokio::test]
async fn a_waiter_for_a_lock_whose_slot_moves_is_told_of_the_release() {
    needs!(redis);
    let cluster = shared_cluster();
    let (locks, other) = (manager(cluster).await, manager(cluster).await);
    let guard = taken(&locks, "{awaited}", long()).await;
    let waiter = waits(cluster, &other, "{awaited}", 1).await;
    let from = cluster.master_of("lockkit:{awaited}");
    let moving = Move::begin(cluster, "lockkit:{awaited}");
    moving.keys_move("lockkit:{awaited}");
    guard.release().await.expect("held");
    let next = its_turn(waiter).await;
    // Its release would hand the key to its own entry.
    let queue = "lockkit:!qt:{awaited}";
    let queues = from.keys().into_iter().filter(|key| key == queue);
    assert_eq!(queues.count(), 0, "it has left the queue");
    moving.end();
    next.release().await.expect("held");
}

#[tokio::test]
async fn while_its_slot_moves_a_lock_leaves_its_record_and_all_waiters_are_told() {
    needs!(redis);
    let cluster = shared_cluster();
    // The lock is on the source, and on the target.
    for key in ["{recorded}", "{record-that-moved}"] {
        let locks = manager(cluster).await;
        let guard = taken(&locks, key, long()).await;
        let fence = guard.fencing_token();
        let mut waiters = Vec::new();
        for process in 1..=4 {
            let other = manager(cluster).await;
            waiters.push(waits(cluster, &other, key, process).await);
        }
        let name = format!("lockkit:{key}");
        let moving = Move::begin(cluster, &name);
        if key == "{record-that-moved}" {
            moving.keys_move(&name);
        }
        let handle = guard.handle();
        guard.remember("the answer", long()).expect("in bounds");
        guard.release().await.expect("held");
        assert_eq!(handle.record_outcome(), Some(RecordOutcome::Stored));
        for waiter in waiters {
            let refused = timeout(wait::PATIENCE, waiter).await.expect("told");
            let refused = refused.expect("no panic").expect_err("done");
            assert_eq!(refused.record(), Some(&b"the answer"[..]));
        }
        let other = manager(cluster).await;
        moving.end();
        let refused = other.lock(key).acquire().await.expect_err("done");
        assert_eq!(refused.record(), Some(&b"the answer"[..]));
        assert_eq!(other.forget(key).await.expect("no fault"), Forgotten::Yes);
        assert!(once(&other, key).await > fence);
    }
}

#[tokio::test]
async fn a_ticket_is_made_and_used_once_while_its_slot_moves() {
    needs!(redis);
    let cluster = shared_cluster();
    let (locks, worker) = (manager(cluster).await, manager(cluster).await);
    let name = "lockkit:{passed on}";
    // The key moves before the ticket is made, before it is used, and behind both.
    for moves in 0..3 {
        let guard = taken(&locks, "{passed on}", long()).await;
        let moving = Move::begin(cluster, name);
        if moves == 0 {
            moving.keys_move(name);
        }
        let ticket = guard.ticket(long()).await.expect("held");
        if moves == 1 {
            moving.keys_move(name);
        }
        let calls: Vec<_> = (0..8)
            .map(|index| {
                let user = [&locks, &worker][index % 2].clone();
                let ticket = ticket.clone();
                tokio::spawn(async move { user.resume(ticket).await })
            })
            .collect();
        let mut owners = Vec::new();
        for call in calls {
            match call.await.expect("no panic") {
                Ok(owner) => owners.push(owner),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Lost),
            }
        }
        moving.end();
        assert_eq!(owners.len(), 1);
        let owner = owners.remove(0);
        assert_eq!(owner.fencing_token(), guard.fencing_token());
        let refused = locks.lock("{passed on}").acquire().await;
        assert_eq!(refused.expect_err("held").kind(), ErrorKind::Busy);
        owner.release().await.expect("held");
        assert!(once(&worker, "{passed on}").await > guard.fencing_token());
    }
}

#[tokio::test]
async fn a_waiter_for_a_lock_whose_slot_moves_is_told_although_the_server_refused_the_push_at_the_release()
 {
    needs!(redis);
    let cluster = shared_cluster();
    let say = |words: &[&str]| {
        for node in cluster.masters() {
            node.cli(&[&["ACL", "SETUSER", "mover"], words].concat());
        }
    };
    say(&["on", ">mover", "~*", "&*", "+@all"]);
    let owner = cluster.url().replacen("://", "://mover:mover@", 1);
    let (owner, other) = (crate::steps::manager(&owner).await, manager(cluster).await);
    for command in ["zrem", "zrange", "publish"] {
        let key = format!("{{untold-{command}}}");
        let guard = taken(&owner, &key, long()).await;
        let waiter = waits(cluster, &other, &key, 1).await;
        let name = format!("lockkit:{key}");
        let moving = Move::begin(cluster, &name);
        moving.keys_move(&name);
        // The owner's manager is connected to both nodes from here on.
        once(&owner, &format!("{key}:other")).await;
        say(&[&format!("-{command}")]);
        moving.from.cli(&["ACL", "LOG", "RESET"]);
        guard.release().await.expect("the lock itself is free");
        let log = moving.from.cli(&["ACL", "LOG"]);
        assert!(log.contains(command), "{command} is refused: {log}");
        say(&[&format!("+{command}")]);
        let next = its_turn(waiter).await;
        moving.end();
        next.release().await.expect("held");
    }
}

#[tokio::test]
async fn a_waiter_asks_again_when_its_ticket_may_have_been_lost() {
    needs!(redis);
    let cluster = shared_cluster();
    let (locks, other) = (manager(cluster).await, manager(cluster).await);
    let guard = taken(&locks, "{lost}", long()).await;
    let waiter = waits(cluster, &other, "{lost}", 1).await;
    let queue = "lockkit:!qt:{lost}";
    // The deletion plays a new master that knows neither the waiter nor the lock.
    cluster.cli(queue, &["DEL", queue, "lockkit:{lost}"]);
    Move::begin(cluster, "lockkit:{lost}").end();
    // Another call of its process notices the move.
    once(&other, "{lost}:other").await;
    let next = timeout(wait::PATIENCE, waiter)
        .await
        .expect("the waiter asks");
    let next = next.expect("no panic").expect("free");
    drop(guard);
    next.release().await.expect("held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_slots_move_without_a_failed_call() {
    needs!(redis);
    let cluster = shared_cluster();
    let load = Load::start(&cluster.url(), "{moving load}").await;
    wait::eventually("the load runs", async || load.granted() > 20).await;
    for _ in 0..3 {
        let moving = tokio::task::block_in_place(|| Move::begin(cluster, "lockkit:{moving load}"));
        let before = load.granted();
        wait::eventually("locks are taken while the slot moves", async || {
            load.granted() > before + 20
        })
        .await;
        tokio::task::block_in_place(|| moving.end());
        let before = load.granted();
        wait::eventually("locks are taken on the new node", async || {
            load.granted() > before + 20
        })
        .await;
    }
    load.end().await;
}

#[tokio::test]
async fn a_mark_that_has_not_moved_yet_counts_on_the_new_node() {
    needs!(redis);
    let cluster = shared_cluster();
    let locks = manager(cluster).await;
    once(&locks, "{ahead}").await;
    // The clock passes the mark in a moment. Until then, only a script could count on from it.
    let slot = cluster.slot("lockkit:{ahead}");
    let from = cluster.master_of("lockkit:{ahead}");
    let marks = from
        .keys()
        .into_iter()
        .filter(|key| key.starts_with("lockkit:!f:"));
    let mark = marks.into_iter().find(|key| cluster.slot(key) == slot);
    let mark = mark.expect("the mark of the lock's slot");
    let ahead = u64::from(once(&locks, "{ahead}").await) + 1_500_000;
    from.cli(&["SET", &mark, &ahead.to_string()]);
    let moving = Move::begin(cluster, "lockkit:{ahead}");
    wait::eventually("the clock has passed the mark", async || {
        match locks.lock("{ahead}").ttl(long()).acquire().await {
            Ok(guard) => {
                assert!(u64::from(guard.fencing_token()) > ahead);
                true
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unavailable);
                false
            }
        }
    })
    .await;
    moving.end();
}
