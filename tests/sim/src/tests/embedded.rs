//! The same calls on the embedded store and on a server take the same steps. So a test on `memory:` shows what happens on
//! Redis: a waiter is given its lock, and does not ask for it.
//!
//! A step is an operation of a manager with its answer, or a push to one of its waiters. Refused questions do not count,
//! because a store may save some of them, and because a waiter asks again at a time that depends on the network. Renewals do
//! not count either, because they come by the time.

use std::future::Future;
use std::time::Duration;

use lock_core::machine::{JoinHandle, sleep, spawn};
use lock_core::{LockGuard, LockManager, LockRequest, Wait};

use crate::world::{MILLI, SECOND, Settings, Sim};

/// Managers as of three processes: each has a queue of its own.
type Managers = [LockManager; 3];

const TTL: Duration = Duration::from_secs(20);

/// Starts a caller that waits, and returns when it stands in the queue.
async fn waiting(request: LockRequest) -> JoinHandle<LockGuard> {
    let acquire = request.ttl(TTL).wait(Wait::Forever).acquire();
    let waiter = spawn(async move { acquire.await.expect("its turn") });
    settled().await;
    waiter
}

async fn taken(request: LockRequest) -> LockGuard {
    request.ttl(TTL).acquire().await.expect("free")
}

async fn its_turn(waiter: JoinHandle<LockGuard>) -> LockGuard {
    waiter.await.expect("no panic")
}

async fn released(guard: LockGuard) {
    guard.release().await.expect("held");
    settled().await;
}

/// All requests are answered, and all pushes have arrived.
async fn settled() {
    sleep(Duration::from_millis(400)).await;
}

async fn hand_over([a, b, c]: Managers) {
    let owner = taken(a.lock("k")).await;
    let second = waiting(b.lock("k")).await;
    let third = waiting(c.lock("k")).await;
    released(owner).await;
    released(its_turn(second).await).await;
    let dropped = its_turn(third).await;
    drop(dropped);
    settled().await;
}

async fn a_waiter_that_leaves([a, b, c]: Managers) {
    let owner = taken(a.lock("k")).await;
    let second = waiting(b.lock("k")).await;
    let third = waiting(c.lock("k")).await;
    second.abort();
    settled().await;
    released(owner).await;
    released(its_turn(third).await).await;
}

/// The reader that was let in first leaves last.
async fn readers_behind_a_writer([a, b, c]: Managers) {
    let writer = taken(a.lock("k")).await;
    let second = waiting(b.lock("k").read()).await;
    let third = waiting(c.lock("k").read()).await;
    released(writer).await;
    let (second, third) = (its_turn(second).await, its_turn(third).await);
    let writer = waiting(a.lock("k")).await;
    released(third).await;
    released(second).await;
    released(its_turn(writer).await).await;
}

async fn a_writer_behind_readers([a, b, c]: Managers) {
    let one = taken(a.lock("k").read()).await;
    let two = taken(b.lock("k").read()).await;
    let writer = waiting(c.lock("k")).await;
    let third = waiting(a.lock("k").read()).await;
    released(one).await;
    released(two).await;
    released(its_turn(writer).await).await;
    released(its_turn(third).await).await;
}

async fn permits([a, b, c]: Managers) {
    let one = taken(a.lock("k").permits(2)).await;
    let two = taken(b.lock("k").permits(2)).await;
    let third = waiting(c.lock("k").permits(2)).await;
    released(one).await;
    released(two).await;
    released(its_turn(third).await).await;
}

async fn a_downgrade([a, b, c]: Managers) {
    let writer = taken(a.lock("k")).await;
    let reader = waiting(b.lock("k").read()).await;
    let other = waiting(c.lock("k")).await;
    let own = writer.downgrade().await.expect("held");
    released(its_turn(reader).await).await;
    released(own).await;
    released(its_turn(other).await).await;
}

async fn several_keys([a, b, c]: Managers) {
    let owner = taken(a.lock("y")).await;
    let both = waiting(b.lock_all(["x", "y"])).await;
    let one = waiting(c.lock("y")).await;
    released(owner).await;
    released(its_turn(both).await).await;
    released(its_turn(one).await).await;
}

async fn a_ticket([a, b, c]: Managers) {
    let owner = taken(a.lock("k")).await;
    let waiter = waiting(c.lock("k")).await;
    let ticket = owner.ticket(TTL).await.expect("held");
    drop(owner);
    let resumed = b.resume(ticket).await.expect("kept");
    released(resumed).await;
    released(its_turn(waiter).await).await;
}

async fn a_cooldown([a, b, c]: Managers) {
    let owner = taken(a.lock("k").cooldown(Duration::from_secs(2))).await;
    let waiter = waiting(b.lock("k")).await;
    released(owner).await;
    let refused = c.lock("k").ttl(TTL).acquire().await;
    refused.expect_err("it cools down");
    released(its_turn(waiter).await).await;
}

/// Returns the steps of each manager, in the order in which the managers began.
fn steps_of<F>(url: &str, seed: u64, calls: fn(Managers) -> F) -> Vec<Vec<String>>
where
    F: Future<Output = ()> + Send + 'static,
{
    let sim = Sim::start(Settings {
        seed,
        latency: MILLI,
        logs: true,
        ..Settings::default()
    });
    sim.change(|state| state.add_server());
    let process = sim.add_process(0);
    let url = url.to_owned();
    sim.start_runtime(process, async move {
        let mut managers = Vec::new();
        for _ in 0..3 {
            managers.push(LockManager::connect(&url).await.expect("a store"));
        }
        calls(managers.try_into().expect("three")).await;
    });
    sim.run_until(60 * SECOND);
    let log = sim.change(|state| state.take_log());
    sim.end();
    let mut steps: Vec<(&str, Vec<String>)> = Vec::new();
    for line in &log {
        let Some((_, step)) = line.split_once(" manager ") else {
            continue;
        };
        let (manager, step) = step.split_once(' ').expect("a manager and its step");
        let place = steps.iter().position(|known| known.0 == manager);
        let place = place.unwrap_or_else(|| {
            steps.push((manager, Vec::new()));
            steps.len() - 1
        });
        let (asked, answer) = step.split_once(": ").expect("an answer");
        if !answer.starts_with("busy") && !asked.starts_with("extend") {
            let (asked, _) = asked.split_once(',').unwrap_or((asked, ""));
            steps[place].1.push(format!("{asked}: {answer}"));
        }
    }
    steps.into_iter().map(|(_, steps)| steps).collect()
}

fn steps_on_a_server<F>(calls: fn(Managers) -> F) -> Vec<Vec<String>>
where
    F: Future<Output = ()> + Send + 'static,
{
    let steps = steps_of("redis://10.0.0.0:6379", 0, calls);
    for seed in 1..10 {
        assert_eq!(steps_of("redis://10.0.0.0:6379", seed, calls), steps);
    }
    steps
}

/// Checks that the calls take the same steps on the embedded store. Returns the steps.
fn are_the_same<F>(name: &str, calls: fn(Managers) -> F) -> Vec<Vec<String>>
where
    F: Future<Output = ()> + Send + 'static,
{
    let embedded = steps_of(&format!("memory:{name}"), 0, calls);
    assert_eq!(embedded, steps_on_a_server(calls), "{name}");
    embedded
}

#[test]
fn a_lock_goes_from_owner_to_owner_on_the_embedded_store_as_on_a_server() {
    let steps = are_the_same("hand-over", hand_over);
    let owner = ["acquire k: granted", "release k: Yes"];
    let waiter = ["is told of k: given", "release k: Yes"];
    assert_eq!(steps, [owner, waiter, waiter]);
    are_the_same("leaving", a_waiter_that_leaves);
    are_the_same("cooldown", a_cooldown);
}

#[test]
fn shares_several_keys_and_tickets_take_the_same_steps_on_the_embedded_store_as_on_a_server() {
    are_the_same("readers", a_writer_behind_readers);
    are_the_same("permits", permits);
    are_the_same("downgrade", a_downgrade);
    are_the_same("several", several_keys);
    are_the_same("ticket", a_ticket);
}

/// The only step that the embedded store saves. On a server, a release that knows no shares gives the key to the first
/// reader, whose question lets in the others.
#[test]
fn the_first_reader_behind_a_writer_asks_once_more_on_a_server_only() {
    let embedded = steps_of("memory:writer", 0, readers_behind_a_writer);
    let mut redis = steps_on_a_server(readers_behind_a_writer);
    let [given, asked] = ["is told of k: given", "acquire k: granted"];
    assert_eq!(redis[1][..2], [given, asked]);
    redis[1].remove(1);
    assert_eq!(embedded, redis);
}
