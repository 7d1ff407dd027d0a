//! Clients of other libraries, that try the plain key again and again, beside those who wait in line.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lock_core::Wait;
use lock_tests::{RedisServer, needs, wait};

use super::{its_turn, long, manager, queued};

/// `SET key value NX PX`, as often as the server can.
fn polling(
    server: &RedisServer,
    over: &Arc<AtomicBool>,
    tries: &Arc<AtomicU64>,
) -> std::thread::JoinHandle<u64> {
    let client = lock_core::redis::Client::open(server.url()).expect("a URL");
    let (over, tries) = (Arc::clone(over), Arc::clone(tries));
    std::thread::spawn(move || {
        let mut connection = client.get_connection().expect("a connection");
        let mut taken = 0;
        while !over.load(Ordering::SeqCst) {
            let mut set = lock_core::redis::cmd("SET");
            set.arg("lockkit:k")
                .arg("stranger")
                .arg("NX")
                .arg("PX")
                .arg(60_000);
            let answer: Option<String> = set.query(&mut connection).expect("an answer");
            taken += u64::from(answer.is_some());
            tries.fetch_add(1, Ordering::SeqCst);
        }
        taken
    })
}

#[tokio::test]
async fn a_stranger_that_polls_never_comes_between_two_who_wait_in_line() {
    needs!(redis);
    let server = RedisServer::start();
    let managers = [manager(&server.url()).await, manager(&server.url()).await];
    let request = |turn: usize| {
        let request = managers[turn % 2].lock("k").ttl(long());
        request.wait(Wait::Forever).acquire()
    };
    let mut guard = request(0).await.expect("free");
    let (over, tries) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let stranger = polling(&server, &over, &tries);
    for turn in 1..40 {
        let waiter = tokio::spawn(request(turn));
        queued(&server, 1).await;
        let before = tries.load(Ordering::SeqCst);
        wait::eventually("it tries", async || tries.load(Ordering::SeqCst) > before).await;
        guard.release().await.expect("held");
        guard = its_turn(waiter).await;
    }
    over.store(true, Ordering::SeqCst);
    assert_eq!(stranger.join().expect("no panic"), 0);
    assert_eq!(
        server
            .try_cli(&["SET", "lockkit:k", "stranger", "NX"])
            .as_deref(),
        Ok("(nil)")
    );
    guard.release().await.expect("held");
    // Nobody waits any more: it is the stranger's like anybody's.
    assert_eq!(server.cli(&["SET", "lockkit:k", "stranger", "NX"]), "OK");
}
