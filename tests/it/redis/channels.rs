//! Tests that waiters get their pushes on the connection of their own runtime, by a channel of
//! its own.

use lock_core::Wait;
use lock_tests::{RedisServer, needs, wait};
use tokio::time::timeout;

use super::pushes::{channel, first};
use super::{keys, long, manager, queued, served, waits};

/// Returns the ids of the connections that are subscribed.
fn listening(server: &RedisServer) -> Vec<String> {
    let clients = server.cli(&["CLIENT", "LIST"]);
    let listening = clients.lines().filter(|client| client.contains(" sub=1 "));
    let numbers = listening.filter_map(|client| client.strip_prefix("id=")?.split(' ').next());
    numbers.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_waiter_whose_runtimes_connection_is_killed_asks_again() {
    needs!(redis);
    let (server, owner) = served().await;
    for _ in 0..5 {
        let locks = manager(&server.url()).await;
        let guard = owner.lock("k").ttl(long()).acquire().await.expect("free");
        let before = listening(&server);
        // This is the first request of this runtime.
        let waiter = waits(&server, &locks, "k", 1).await;
        let its_own = listening(&server);
        let its_own = its_own.iter().find(|number| !before.contains(number));
        server.cli(&["CLIENT", "KILL", "ID", its_own.expect("a new connection")]);
        guard.release().await.expect("held");
        let next = timeout(wait::PATIENCE, waiter)
            .await
            .expect("the waiter asked again");
        let next = next.expect("no panic").expect("free");
        next.release().await.expect("still held");
        wait::eventually("no waiter is left", async || keys(&server).is_empty()).await;
    }
}

#[test]
fn each_runtime_is_told_on_a_channel_of_its_own() {
    needs!(redis);
    let server = RedisServer::start();
    let runtime = || {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(1).enable_all().build().expect("one")
    };
    let (home, one, two) = (runtime(), runtime(), runtime());
    let locks = home.block_on(manager(&server.url()));
    let owner = home.block_on(manager(&server.url()));
    let hold = async |key: &str| owner.lock(key).ttl(long()).acquire().await.expect("free");
    let held = ["a", "b"].map(|key| home.block_on(hold(key)));
    let wants = |key: &str| locks.lock(key).ttl(long()).wait(Wait::Forever).acquire();
    let waiters = [one.spawn(wants("a")), two.spawn(wants("b"))];
    home.block_on(async {
        queued(&server, "a", 1).await;
        queued(&server, "b", 1).await;
    });
    let channels = ["a", "b"].map(|key| channel(&first(&server, key)));
    assert_ne!(channels[0], channels[1]);
    for channel in &channels {
        let heard = server.cli(&["PUBSUB", "NUMSUB", channel]);
        assert!(heard.ends_with('1'), "one connection listens: {heard}");
    }
    // A runtime that ends takes its own channel along, and no other.
    one.shutdown_background();
    home.block_on(wait::eventually(
        "the runtime's connection is closed",
        async || {
            let heard = server.cli(&["PUBSUB", "NUMSUB", &channels[0]]);
            heard.ends_with('0')
        },
    ));
    let [first, second] = waiters;
    home.block_on(async {
        assert!(first.await.is_err(), "the task ended with its runtime");
        for guard in held {
            guard.release().await.expect("held");
        }
        let next = timeout(wait::PATIENCE, second).await.expect("told");
        let next = next.expect("no panic").expect("its turn");
        next.release().await.expect("held");
        wait::eventually("nothing is left", async || keys(&server).is_empty()).await;
    });
}
