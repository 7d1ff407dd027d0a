//! Tests the console's commands for the terminal.

use std::process::Output;
use std::time::Duration;

use lock_core::LockManager;
use lock_tests::{RedisServer, needs};
use tokio::time::timeout;

use super::command;
use crate::steps::{long, taken};

/// Runs the console with these words to its end.
async fn console(redis: &RedisServer, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = command(redis, words);
    let output = tokio::task::spawn_blocking(move || command.output());
    let Output {
        status,
        stdout,
        stderr,
    } = output.await.expect("no panic").expect("the console starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (status.code(), text(stdout), text(stderr))
}

async fn checkout(redis: &RedisServer) -> LockManager {
    let builder = LockManager::builder(&redis.url()).label("checkout");
    builder.connect().await.expect("a manager")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_is_listed_inspected_and_freed() {
    needs!(redis);
    let redis = RedisServer::start();
    let locks = checkout(&redis).await;
    let guard = taken(&locks, "order:42", long()).await;
    let other = taken(&locks, "import:7", long()).await;
    let (code, list, _) = console(&redis, &["list", "order:*"]).await;
    assert_eq!((code, list.lines().count()), (Some(0), 1), "{list}");
    let pid = format!("process {}", std::process::id());
    let fence = guard.fencing_token().to_string();
    for part in [
        "order:42\theld\t",
        &pid,
        "\tcheckout",
        &fence,
        "\t0 waiting",
    ] {
        assert!(list.contains(part), "{part}: {list}");
    }
    let (code, seen, _) = console(&redis, &["inspect", "order:42"]).await;
    assert_eq!(code, Some(0));
    assert!(
        seen.contains(&pid) && seen.contains("holds the lock"),
        "{seen}"
    );

    let (code, _, why) = console(&redis, &["force", "order:42", "it hangs"]).await;
    assert_eq!(code, Some(1), "{why}");
    assert!(why.contains("--yes") && guard.is_valid(), "{why}");
    let wrong = [
        "force",
        "order:42",
        "it hangs",
        "--yes",
        "--holder",
        "0123456789abcdef",
    ];
    let (code, _, why) = console(&redis, &wrong).await;
    assert_eq!(code, Some(3), "{why}");
    assert!(guard.is_valid());
    let (code, freed, why) = console(&redis, &["force", "order:42", "it hangs", "--yes"]).await;
    assert_eq!(code, Some(0), "{why}");
    assert!(
        freed.contains(&pid) && freed.contains("was told"),
        "{freed}"
    );
    let lost = timeout(Duration::from_secs(8), guard.lost()).await;
    lost.expect("long before the first renewal");
    assert!(other.is_valid());
    let (code, ..) = console(&redis, &["force", "free", "it hangs", "--yes"]).await;
    assert_eq!(code, Some(3), "nothing was freed");
    other.release().await.expect("held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_with_control_characters_do_not_reach_the_terminal() {
    needs!(redis);
    let redis = RedisServer::start();
    let locks = checkout(&redis).await;
    let guard = taken(&locks, "a\u{1b}[2Jb\nc\td", long()).await;
    let (_, list, _) = console(&redis, &["list"]).await;
    assert!(
        !list.contains('\u{1b}') && list.lines().count() == 1,
        "{list:?}"
    );
    assert!(list.starts_with("a\\u{1b}[2Jb\\nc\\td\theld"), "{list:?}");
    guard.release().await.expect("held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_command_and_a_server_that_is_down_have_their_exit_codes() {
    needs!(redis);
    let redis = RedisServer::start();
    let (code, _, why) = console(&redis, &["free", "order:42"]).await;
    assert_eq!(code, Some(2));
    assert!(
        why.contains("no command free") && why.contains("usage:"),
        "{why}"
    );
    redis.kill();
    let (code, _, why) = console(&redis, &["list"]).await;
    assert_eq!(code, Some(1));
    assert!(!why.is_empty());
}
