//! Tests clients that go away in the middle of a request.

use lock_tests::{RedisServer, needs};
use tokio::io::AsyncReadExt;

use super::client::{Rest, WAYS};
use super::{Gate, click, nothing_is_left, server_on};

#[tokio::test]
async fn the_order_of_a_client_that_left_is_made_once_and_its_lock_released() {
    needs!(redis);
    for how in WAYS {
        let redis = RedisServer::start();
        let gate = Gate::closed();
        let (here, there) = (
            server_on(&redis, &gate).await,
            server_on(&redis, &gate).await,
        );
        let client = how.click(&here, "42").await;
        let lock = gate.entered(1).await;
        let rest = client.leave();
        here.left(1).await;
        if let Rest::Listens(mut stream) = rest {
            let mut nothing = Vec::new();
            stream.read_to_end(&mut nothing).await.expect("closed");
            assert!(nothing.is_empty(), "{how:?}");
        }
        for server in [&here, &there] {
            assert_eq!(click(server, "42").await.status, 409, "{how:?}");
        }
        assert!(lock.is_valid());
        gate.let_through(1);
        nothing_is_left(&redis, &[&here, &there]).await;
        assert_eq!(gate.counts(), (1, 1), "{how:?}");
    }
}
