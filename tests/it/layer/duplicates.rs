//! Tests a double click on two servers.

use std::sync::Arc;

use lock_tests::{RedisServer, needs, wait};

use super::client::VERSIONS;
use super::{Gate, nothing_is_left, server_on};
use crate::shop::{code, retry_after};

#[tokio::test]
async fn only_one_of_fifty_clicks_on_two_servers_runs() {
    needs!(redis);
    let redis = RedisServer::start();
    let gate = Gate::closed();
    let (here, there) = (
        server_on(&redis, &gate).await,
        server_on(&redis, &gate).await,
    );
    let servers = [Arc::new(here), Arc::new(there)];
    let clicks: Vec<_> = (0..50)
        .map(|number| {
            let server = Arc::clone(&servers[number % 2]);
            tokio::spawn(async move { VERSIONS[number / 2 % 2].click(&server, "42").await })
        })
        .collect();
    // The click that runs stays inside until all others have been answered.
    let refused = || clicks.iter().filter(|click| click.is_finished()).count();
    wait::eventually("all others are answered", async || refused() == 49).await;
    gate.let_through(1);
    let mut made = 0;
    for click in clicks {
        let answer = click.await.expect("an answer");
        match answer.status {
            201 => made += 1,
            _ => assert_eq!((&*code(&answer), retry_after(&answer)), ("lock_busy", 1)),
        }
    }
    assert_eq!((made, gate.counts()), (1, (1, 1)));
    nothing_is_left(&redis, &[&servers[0], &servers[1]]).await;
}
