//! Tests a standby that takes the place of its primary, with a synchronous standby and with an asynchronous one.
//!
//! `LOCK_TESTS_POSTGRES_OWNERS` sets the number of owners.

use std::net::SocketAddr;
use std::time::Duration;

use lock_core::{FencingToken, LockGuard, LockManager, Renew, Wait};
use lock_tests::{Proxy, SqlServer, needs, wait};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{its_turn, long, setting, table};

/// The owners of one promotion.
const OWNERS: u64 = 500;
const TASKS: u64 = 8;

/// A primary, and a standby that follows it through a proxy.
struct Pair {
    primary: SqlServer,
    standby: SqlServer,
    link: Proxy,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Commit {
    WaitsForTheStandby,
    DoesNotWait,
}

impl Pair {
    fn start(commit: Commit) -> Pair {
        let primary = SqlServer::postgres();
        let link = Proxy::to(primary.address());
        let standby = primary.standby(link.address(), &["fsync=off"]);
        if commit == Commit::WaitsForTheStandby {
            primary.waits_for_a_standby();
        }
        Pair {
            primary,
            standby,
            link,
        }
    }

    /// Returns the URL that names both servers.
    fn url(&self) -> String {
        let hosts: [SocketAddr; 2] = [self.primary.address(), self.standby.address()];
        let [first, second] = hosts.map(|host| host.to_string());
        format!("postgres://locks@{first},{second}/postgres?target_session_attrs=read-write")
    }

    fn fails_over(&mut self) {
        self.primary.kill();
        self.standby.promote();
    }
}

async fn patient(url: &str) -> LockManager {
    let builder = LockManager::builder(url).operation_timeout(Duration::from_secs(3));
    builder.connect().await.expect("a manager")
}

/// An owner, as its client believes. It is cut off with its server, and releases nothing.
struct Owner {
    key: String,
    guard: LockGuard,
}

/// Makes so many owners, and more until the primary is killed. Before that, the link to the standby is cut for a moment.
/// Returns how many owners there were, and the fencing tokens of those that got a second one.
async fn owners_over_a_promotion(commit: Commit, wanted: u64) -> (usize, Vec<[FencingToken; 2]>) {
    let mut pair = tokio::task::block_in_place(|| Pair::start(commit));
    let (count, counted) = watch::channel(0_u64);
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        // Its client knows the primary only, so it ends with it.
        let locks = patient(pair.primary.url()).await;
        let count = count.clone();
        tasks.spawn(async move {
            let mut owned = Vec::new();
            for number in 0.. {
                let key = format!("order:{task}:{number}");
                let request = locks.lock(key.clone()).ttl(10 * long()).renew(Renew::Off);
                let Ok(guard) = request.acquire().await else {
                    break;
                };
                owned.push(Owner { key, guard });
                count.send_modify(|count| *count += 1);
            }
            owned
        });
    }
    let reach = async |number: u64| {
        let mut counted = counted.clone();
        let reached = tokio::time::timeout(
            wait::PATIENCE * 3,
            counted.wait_for(|count| *count >= number),
        );
        reached.await.expect("in time").map(|_| ()).expect("owners");
    };
    reach(wanted).await;
    pair.link.black_hole();
    match commit {
        // Their acquires hang, so no owner comes.
        Commit::WaitsForTheStandby => tokio::time::sleep(Duration::from_millis(300)).await,
        Commit::DoesNotWait => {
            let now = *counted.borrow();
            reach(now + 20).await;
        }
    }
    tokio::task::block_in_place(|| pair.fails_over());

    let owned: Vec<Owner> = tasks.join_all().await.into_iter().flatten().collect();
    let locks = patient(&pair.url()).await;
    let mut doubled = Vec::new();
    for owner in &owned {
        let request = locks.lock(owner.key.clone()).ttl(long());
        let again = request.try_acquire().await.expect("an answer");
        if let Some(second) = again {
            doubled.push([owner.guard.fencing_token(), second.fencing_token()]);
        }
    }
    (owned.len(), doubled)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_synchronous_standby_no_owner_gets_a_second_one() {
    needs!(postgres);
    let wanted = setting("LOCK_TESTS_POSTGRES_OWNERS", 200);
    let (mut all, mut promotions) = (0, 0);
    while (all as u64) < wanted {
        let next = OWNERS.min(wanted - all as u64);
        let (owners, doubled) = owners_over_a_promotion(Commit::WaitsForTheStandby, next).await;
        assert!(doubled.is_empty(), "{doubled:?} of {owners}");
        all += owners;
        promotions += 1;
    }
    println!("{all} owners over {promotions} promotions: none has a second one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_an_asynchronous_standby_fencing_tokens_tell_two_owners_apart() {
    needs!(postgres);
    let wanted = setting("LOCK_TESTS_POSTGRES_OWNERS", 200).min(OWNERS);
    let (owners, doubled) = owners_over_a_promotion(Commit::DoesNotWait, wanted).await;
    println!("{} of {owners} owners have a second one", doubled.len());
    assert!(!doubled.is_empty(), "the link was cut while owners came");
    for [first, second] in doubled {
        assert!(first < second, "{first} and then {second}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_the_new_primary_has_is_kept_and_renewed_there() {
    needs!(postgres);
    let mut pair = Pair::start(Commit::WaitsForTheStandby);
    let (locks, other) = (patient(&pair.url()).await, patient(&pair.url()).await);
    let request = locks.lock("k").ttl(Duration::from_secs(12));
    let guard = request.acquire().await.expect("free");
    let waiter = tokio::spawn(other.lock("k").wait(Wait::Forever).acquire());
    table(&pair.primary).queued(1).await;
    pair.fails_over();
    let table = table(&pair.standby);
    let ends = table.ends("k").expect("the standby had it");
    wait::eventually("the lock is renewed there", async || {
        table.ends("k").expect("kept") > ends
    })
    .await;
    assert!(guard.is_valid());
    let fence = guard.fencing_token();
    guard.release().await.expect("held");
    let next = its_turn(waiter).await;
    assert!(next.fencing_token() > fence);
    next.release().await.expect("held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_grants_no_lock_and_is_left_for_the_primary() {
    needs!(postgres);
    let pair = Pair::start(Commit::DoesNotWait);
    let alone = LockManager::builder(pair.standby.url()).connect_timeout(Duration::from_secs(1));
    let refused = match alone.connect().await {
        Ok(locks) => locks.lock("k").acquire().await.map(drop),
        Err(error) => Err(error),
    };
    let kind = refused.expect_err("a standby").kind();
    assert_eq!(kind, lock_core::ErrorKind::Unavailable);
    let [first, second] = [pair.standby.address(), pair.primary.address()];
    let url = format!("postgres://locks@{first},{second}/postgres?target_session_attrs=read-write");
    let locks = patient(&url).await;
    let guard = locks.lock("k").acquire().await.expect("free");
    guard.release().await.expect("held");
}
