//! Tests that the requests of many tasks go in one batch.
//!
//! Each task gets its own answer.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::{Error, ErrorKind, LockGuard, LockManager, LockRequest, Wait};
use lock_tests::{RedisServer, needs, wait};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::fencing::goes_back;
use super::pushes::stopped;
use super::scripts::{run, scripts};
use super::{asked, kind, long, manager, served};

/// The number of requests that go alone. The third one waits for others, and they go as a batch.
const ALONE: usize = 2;
const LARGEST: usize = 16;

/// Sends all requests at once.
async fn acquire_all<'a>(
    requests: impl IntoIterator<Item = (&'a str, LockRequest)>,
) -> BTreeMap<&'a str, Result<LockGuard, Error>> {
    let asked: Vec<_> = requests
        .into_iter()
        .map(|(key, request)| (key, tokio::spawn(request.acquire())))
        .collect();
    let mut answers = BTreeMap::new();
    for (key, answer) in asked {
        answers.insert(key, answer.await.expect("no panic"));
    }
    answers
}

async fn release_all(guards: impl IntoIterator<Item = LockGuard>) {
    let released: Vec<_> = guards
        .into_iter()
        .map(|guard| tokio::spawn(guard.release()))
        .collect();
    for released in released {
        released.await.expect("no panic").expect("held");
    }
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("k{index:03}")).collect()
}

fn plain<'a>(
    locks: &LockManager,
    names: &'a [String],
) -> impl Iterator<Item = (&'a str, LockRequest)> {
    names
        .iter()
        .map(|name| (name.as_str(), locks.lock(name.as_str()).ttl(long())))
}

fn guards(answers: BTreeMap<&str, Result<LockGuard, Error>>) -> Vec<LockGuard> {
    let answers = answers.into_values();
    answers.map(|answer| answer.expect("free")).collect()
}

async fn started() -> (RedisServer, LockManager) {
    let (server, locks) = served().await;
    // The server knows the scripts from here on.
    locks
        .lock("k")
        .acquire()
        .await
        .expect("free")
        .release()
        .await
        .expect("held");
    let names = names(ALONE + 1);
    release_all(guards(acquire_all(plain(&locks, &names)).await)).await;
    (server, locks)
}

#[tokio::test]
async fn requests_of_many_tasks_go_in_a_few_scripts() {
    needs!(redis_7);
    let (server, locks) = started().await;
    let names = names(ALONE + 2 * LARGEST);
    // With one request at a time, no other request goes along with it.
    let guard = locks.lock("first").acquire().await.expect("free");
    guard.release().await.expect("held");

    server.reset_stats();
    let held = guards(acquire_all(plain(&locks, &names)).await);
    let asked_for = asked(&server);
    // Each request that goes alone reads the mark, and so does each script.
    assert_eq!(asked_for.get("get"), Some(&(ALONE as u64 + 2)));
    assert_eq!(asked_for.get("evalsha"), Some(&2));
    assert_eq!(held.len(), names.len());

    server.reset_stats();
    release_all(held).await;
    // No release goes alone, because the number of requests before was high.
    assert_eq!(asked(&server).get("evalsha"), Some(&3));
    assert!(super::keys(&server).is_empty());
}

#[tokio::test]
async fn each_lock_of_a_batch_lasts_as_long_as_it_was_asked_for() {
    needs!(redis);
    let (server, locks) = started().await;
    let names = names(ALONE + LARGEST);
    let ttl = |index: usize| Duration::from_secs(100 + 100 * index as u64);
    let requests = names
        .iter()
        .enumerate()
        .map(|(index, name)| (name.as_str(), locks.lock(name.as_str()).ttl(ttl(index))));
    let held = guards(acquire_all(requests).await);
    for (index, name) in names.iter().enumerate() {
        let left = server.time_to_live(&format!("lockkit:{name}"));
        let left = left.expect("held");
        assert!(left <= ttl(index), "{name}: {left:?}");
        assert!(left > ttl(index) - long(), "{name}: {left:?}");
    }
    release_all(held).await;
}

#[tokio::test]
async fn each_task_of_a_batch_gets_its_own_answer() {
    needs!(redis);
    let (server, locks) = started().await;
    let names = names(ALONE + LARGEST);
    let others = manager(&server.url()).await;
    let (busy, list, cooling) = (&names[5], &names[9], &names[ALONE + LARGEST - 1]);
    let elsewhere = others.lock(busy.as_str()).ttl(long()).acquire();
    let elsewhere = elsewhere.await.expect("free");
    server.cli(&["RPUSH", &format!("lockkit:{list}"), "no", "lock"]);
    let done = others.lock(cooling.as_str()).cooldown(long()).acquire();
    done.await.expect("free").release().await.expect("held");

    let mut answers = acquire_all(plain(&locks, &names)).await;
    let mut take = |name: &String| answers.remove(name.as_str()).expect("an answer");
    assert_eq!(kind(take(busy)), ErrorKind::Busy);
    assert_eq!(kind(take(list)), ErrorKind::Misconfigured);
    let cooling = take(cooling).expect_err("a cooldown");
    assert_eq!(cooling.kind(), ErrorKind::Busy);
    assert!(cooling.retry_after().is_some());
    assert_eq!(answers.len(), names.len() - 3);
    let held = guards(answers);
    assert!(held.iter().all(|guard| guard.is_valid()));
    release_all(held).await;
    elsewhere.release().await.expect("held");
}

#[tokio::test]
async fn a_release_of_a_lost_lock_in_a_batch_fails_and_the_others_are_released() {
    needs!(redis);
    let (server, locks) = started().await;
    let names = names(ALONE + LARGEST);
    let held = guards(acquire_all(plain(&locks, &names)).await);
    let (gone, strangers) = (&names[4], &names[12]);
    server.cli(&["DEL", &format!("lockkit:{gone}")]);
    server.cli(&["SET", &format!("lockkit:{strangers}"), "another library's"]);
    let released: Vec<_> = held
        .into_iter()
        .map(|guard| tokio::spawn(guard.release()))
        .collect();
    for (name, released) in names.iter().zip(released) {
        let released = released.await.expect("no panic");
        if name == gone || name == strangers {
            assert_eq!(kind(released), ErrorKind::Lost, "{name}");
        } else {
            released.expect("held");
        }
    }
    assert_eq!(super::keys(&server), [format!("lockkit:{strangers}")]);
}

#[tokio::test]
async fn a_batch_of_releases_leaves_the_mark_at_the_highest_token_used() {
    needs!(redis);
    let (server, locks) = started().await;
    let names = names(ALONE + LARGEST);
    let held = guards(acquire_all(plain(&locks, &names)).await);
    let tokens = held.iter().map(|guard| u64::from(guard.fencing_token()));
    let highest = tokens.max().expect("some");
    server.cli(&["DEL", "lockkit:!f"]);
    release_all(held).await;
    assert_eq!(server.get("lockkit:!f"), Some(highest.to_string()));
}

#[tokio::test]
async fn tokens_of_a_batch_are_above_a_mark_that_is_ahead_of_the_clock() {
    needs!(redis);
    let (server, locks) = started().await;
    let names = names(ALONE + LARGEST);
    let ahead = goes_back(&server);
    let held = guards(acquire_all(plain(&locks, &names)).await);
    for guard in &held {
        assert!(u64::from(guard.fencing_token()) > ahead, "{guard:?}");
    }
    release_all(held).await;
}

/// Locks of one batch that are held, and waiters for some of them.
struct Wanted {
    held: Vec<LockGuard>,
    waiting: Vec<JoinHandle<Result<LockGuard, Error>>>,
    /// The highest fencing token that was used.
    used: u64,
}

impl Wanted {
    async fn new(server: &RedisServer, locks: &LockManager) -> Self {
        let names = names(LARGEST);
        let held = guards(acquire_all(plain(locks, &names)).await);
        let others = manager(&server.url()).await;
        let wanted = [&names[3], &names[LARGEST - 1]];
        let waiting = wanted.map(|name| {
            let request = others.lock(name.as_str()).ttl(long()).wait(Wait::Forever);
            tokio::spawn(request.acquire())
        });
        wait::eventually("both waiters are queued", async || {
            wanted
                .iter()
                .all(|name| server.cli(&["ZCARD", &format!("lockkit:!q:{{{name}}}")]) == "1")
        })
        .await;
        let used = held.iter().map(|guard| u64::from(guard.fencing_token()));
        Self {
            used: used.max().expect("some"),
            held,
            waiting: waiting.into(),
        }
    }

    /// Releases all locks, and returns those of the waiters, which have higher tokens.
    async fn change_hands(self) -> Vec<LockGuard> {
        release_all(self.held).await;
        let mut next = Vec::new();
        for waiting in self.waiting {
            let told = timeout(wait::PATIENCE / 2, waiting).await;
            let guard = told.expect("the push comes before the timer of last resort");
            let guard = guard.expect("no panic").expect("its turn");
            assert!(u64::from(guard.fencing_token()) > self.used, "{guard:?}");
            next.push(guard);
        }
        next
    }
}

#[tokio::test]
async fn a_batch_of_releases_gives_the_keys_to_waiters() {
    needs!(redis);
    let (server, locks) = started().await;
    let next = Wanted::new(&server, &locks).await.change_hands().await;
    release_all(next).await;
    assert!(super::keys(&server).is_empty());
}

#[tokio::test]
async fn the_mark_covers_tokens_above_the_clock_that_a_batch_hands_over() {
    needs!(redis);
    let (server, locks) = started().await;
    goes_back(&server);
    let wanted = Wanted::new(&server, &locks).await;
    // The high-water mark is deleted, so that it contains only the numbers of this batch.
    server.cli(&["DEL", "lockkit:!f"]);
    let next = wanted.change_hands().await;
    let mark = server.get("lockkit:!f").expect("a mark");
    let mark: u64 = mark.parse().expect("a number");
    for guard in &next {
        // The mark also covers the numbers that the lease may use for tasks of its process.
        let highest = u64::from(guard.fencing_token()) + 32;
        assert!(mark >= highest, "{mark} {highest}");
    }
    release_all(next).await;
}

/// The script of a batch as the client sends it.
///
/// A test cannot choose which releases meet in one batch. These two releases are of two attempts of
/// one process that were given up while another client had the lock.
const BATCH: [&str; 3] = scripts!("one_server.lua", "common.lua", "batch.lua");

#[tokio::test]
async fn a_key_that_two_releases_of_a_batch_find_free_goes_to_one_waiter() {
    needs!(redis);
    let server = RedisServer::start();
    let _deaf = stopped(&server, 2, 60_000);
    let given_up = [7, 8].map(|lease| format!("{0:016x}/{lease:032x}", 9));
    let keys = [
        "lockkit:!f",
        "lockkit:k",
        "lockkit:k",
        "lockkit:!q:{k}",
        "lockkit:!q:{k}",
    ];
    let arguments = [
        "lockkit:!m:",
        "2",
        "",
        "2000",
        "",
        &given_up[0],
        &given_up[1],
    ];
    run(&server, &BATCH, &keys, &arguments);
    let token = |process: u64| format!("{process:016x}/{process:032x}");
    assert_eq!(server.get("lockkit:k"), Some(token(0)));
    let queue = server.cli(&["ZRANGE", "lockkit:!q:{k}", "0", "-1"]);
    assert_eq!(queue.trim(), format!("{} 60000", token(1)));
}
