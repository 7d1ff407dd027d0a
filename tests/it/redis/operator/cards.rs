//! Tests the identities that managers leave on a server.

use lock_core::LockManager;
use lock_tests::{RedisServer, needs, wait};

use super::{holder, long, operator, served, taken};

/// Returns the names of the identities on a server.
fn cards(server: &RedisServer) -> Vec<String> {
    let mut keys = server.all_keys();
    keys.retain(|key| key.starts_with("lockkit:!h:"));
    keys
}

#[tokio::test]
async fn a_manager_and_its_runtime_leave_an_identity_for_an_hour() {
    needs!(redis);
    let (server, locks) = served().await;
    let guard = taken(&locks, "k", long()).await;
    let cards = cards(&server);
    assert_eq!(cards.len(), 2, "one of the manager, one of this runtime");
    for card in &cards {
        let left = server.time_to_live(card).expect("it ends").as_secs();
        assert!((3_500..=3_600).contains(&left), "{left}");
        let text = server.cli(&["GET", card]);
        assert!(
            text.starts_with(&format!("1 {}", std::process::id())),
            "{text}"
        );
    }
    guard.release().await.expect("held");
}

#[tokio::test]
async fn an_anonymous_manager_leaves_none() {
    needs!(redis);
    let server = RedisServer::start();
    let builder = LockManager::builder(&server.url()).anonymous();
    let locks = builder.connect().await.expect("a manager");
    let guard = taken(&locks, "k", long()).await;
    assert_eq!(cards(&server), Vec::<String>::new());
    guard.release().await.expect("held");
}

#[tokio::test]
async fn an_identity_is_written_again_after_the_server_has_lost_it() {
    needs!(redis);
    let (server, locks) = served().await;
    let before = taken(&locks, "k", long()).await;
    server.restart_empty();
    wait::eventually("the identities are there again", async || {
        // The connection of this runtime is replaced by the next request.
        let guard = locks.lock("other").ttl(long()).try_acquire().await;
        drop(guard);
        cards(&server).len() == 2
    })
    .await;
    drop(before);
}

#[tokio::test]
async fn a_hostile_identity_is_cut_and_shown_as_text() {
    needs!(redis);
    let (server, locks) = served().await;
    let operator = operator(&server).await;
    let guard = taken(&locks, "k", long()).await;
    for card in cards(&server) {
        let label = format!("<script>\u{1b}[31m{}", "x".repeat(10_000));
        server.cli(&["SET", &card, &format!("1 7\nhost\n{label}")]);
    }
    let seen = holder(&operator).await;
    let label = seen.identity().and_then(|it| it.label()).expect("a label");
    assert_eq!(label.chars().count(), 128);
    assert!(!label.contains('\u{1b}'));
    for card in cards(&server) {
        server.cli(&["DEL", &card]);
        server.cli(&["RPUSH", &card, "no identity"]);
    }
    assert_eq!(holder(&operator).await.identity(), None);
    guard.release().await.expect("held");
}
