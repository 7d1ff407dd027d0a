//! Tests lists of locks on a server that has other keys too.

use lock_core::LockManager;
use lock_core::operator::{Inspection, KeyState};
use lock_tests::{RedisServer, needs};

use super::{long, served, taken};

async fn listed(locks: &LockManager, pattern: &str) -> Vec<Inspection> {
    let operator = locks.operator("ops@example");
    let (mut list, mut all) = (operator.list(pattern), Vec::new());
    while let Some(page) = list.next_page().await.expect("the server answers") {
        all.extend(page);
    }
    all.sort_by(|one, other| one.key().cmp(other.key()));
    all
}

fn keys(seen: &[Inspection]) -> Vec<&str> {
    seen.iter().map(Inspection::key).collect()
}

#[tokio::test]
async fn a_list_has_locks_and_none_of_the_servers_other_keys() {
    needs!(redis);
    let (server, locks) = served().await;
    let guard = taken(&locks, "held", long()).await;
    let cooling = locks.lock("cooling").ttl(long()).cooldown(long());
    cooling
        .acquire()
        .await
        .expect("free")
        .release()
        .await
        .expect("held");
    server.cli(&["SET", "lockkit:foreign", "another client's", "PX", "60000"]);
    server.cli(&["RPUSH", "lockkit:list", "data"]);
    server.cli(&["SET", "other:held", "data"]);
    for number in 0..5_000 {
        server.cli(&["SET", &format!("noise:{number}"), "data"]);
    }
    let seen = listed(&locks, "*").await;
    assert_eq!(keys(&seen), ["cooling", "foreign", "held"]);
    assert_eq!(seen[0].state(), KeyState::CoolingDown);
    guard.release().await.expect("held");
}

#[tokio::test]
async fn without_a_namespace_only_values_of_the_kit_are_locks() {
    needs!(redis);
    let server = RedisServer::start();
    let builder = LockManager::builder(&server.url()).namespace("");
    let locks = builder.connect().await.expect("a manager");
    let guard = taken(&locks, "held", long()).await;
    server.cli(&["SET", "session:7", "a user's data"]);
    assert_eq!(keys(&listed(&locks, "*").await), ["held"]);
    guard.release().await.expect("held");
}

#[tokio::test]
async fn a_namespace_with_the_servers_wildcards_is_taken_literally() {
    needs!(redis);
    let server = RedisServer::start();
    let builder = LockManager::builder(&server.url()).namespace("a?[x]*:");
    let locks = builder.connect().await.expect("a manager");
    let other = LockManager::builder(&server.url()).namespace("abxy:");
    let other = other.connect().await.expect("a manager");
    let guards = [
        taken(&locks, "k", long()).await,
        taken(&other, "l", long()).await,
    ];
    assert_eq!(keys(&listed(&locks, "*").await), ["k"]);
    assert_eq!(keys(&listed(&other, "*").await), ["l"]);
    for guard in guards {
        guard.release().await.expect("held");
    }
}
