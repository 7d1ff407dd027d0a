//! Tests the exports, of which each tenant has five at a time.

use std::time::Duration;

use lock_tests::http::{self, Response};
use lock_tests::{RedisServer, ShopProcess, needs, wait};
use serde_json::Value;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::{code, retry_after, view};

const AT_ONCE: usize = 5;

async fn export(port: u16, tenant: &str) -> Response {
    let headers = [("x-tenant", tenant)];
    let answer = timeout(wait::PATIENCE, http::post(port, "/exports", &headers, ""));
    answer.await.expect("in time").expect("an answer")
}

fn starts(port: u16, count: usize) -> Vec<JoinHandle<Response>> {
    let one = |_| tokio::spawn(async move { export(port, "acme").await });
    (0..count).map(one).collect()
}

/// Returns the number of exports that these processes hold a permit for.
async fn inside(ports: &[u16]) -> usize {
    let mut inside = 0;
    for port in ports {
        let locks = view(*port, "/locks").await;
        inside += locks
            .iter()
            .filter(|lock| lock["key"] == "exports:acme")
            .count();
    }
    inside
}

/// Returns the largest number of exports that ran at one time, by the times in their answers.
fn most_at_once(exports: &[Value]) -> usize {
    let time = |export: &Value, field: &str| export[field].as_i64().expect("a time");
    let beside = |began: i64| {
        let runs = |other: &&Value| time(other, "began") <= began && began < time(other, "ended");
        exports.iter().filter(runs).count()
    };
    let most = exports
        .iter()
        .map(|export| beside(time(export, "began")))
        .max();
    most.unwrap_or(0)
}

/// Starts five exports by these ports in turn, and tries a sixth at each port while they run.
async fn the_sixth_is_refused(ports: &[u16]) {
    let mut under_way = Vec::new();
    for turn in 0..AT_ONCE {
        under_way.extend(starts(ports[turn % ports.len()], 1));
    }
    wait::eventually("five exports are under way", async || {
        inside(ports).await == AT_ONCE
    })
    .await;
    for port in ports {
        let sixth = export(*port, "acme").await;
        assert_eq!((sixth.status, &*code(&sixth)), (429, "lock_full"));
        assert!(sixth.headers.contains_key("retry-after"), "{sixth:?}");
    }
    assert_eq!(export(ports[0], "zeta").await.status, 200, "another tenant");
    for export in under_way {
        assert_eq!(export.await.expect("no panic").status, 200);
    }
    assert_eq!(
        export(ports[0], "acme").await.status,
        200,
        "all permits are back"
    );
}

#[tokio::test]
async fn the_sixth_export_of_a_tenant_is_refused_with_429() {
    let shop = ShopProcess::start();
    the_sixth_is_refused(&[shop.port()]).await;
    let nameless = http::post(shop.port(), "/exports", &[], "")
        .await
        .expect("an answer");
    assert_eq!(
        (nameless.status, &*code(&nameless)),
        (400, "lock_key_missing")
    );
}

#[tokio::test]
async fn two_processes_share_the_five_permits_of_a_tenant() {
    needs!(redis);
    let redis = RedisServer::start();
    let pair = super::on(&redis);
    the_sixth_is_refused(pair.ports()).await;
}

#[tokio::test]
async fn of_many_exports_in_two_processes_never_more_than_five_run_at_once() {
    needs!(redis);
    let redis = RedisServer::start();
    let pair = super::on(&redis);
    let mut clients = JoinSet::new();
    for client in 0..14 {
        let port = pair.ports()[client % 2];
        clients.spawn(async move {
            loop {
                let answer = export(port, "acme").await;
                if answer.status == 200 {
                    return serde_json::from_str(&answer.body).expect("JSON");
                }
                let pause = match (answer.status, &*code(&answer)) {
                    (429, "lock_full") => retry_after(&answer),
                    // On a busy machine Redis may answer later than the shop waits for it.
                    (503, "lock_unavailable") => 1,
                    other => panic!("{other:?}"),
                };
                sleep(Duration::from_secs(pause)).await;
            }
        });
    }
    let exports: Vec<Value> = clients.join_all().await;
    let most = most_at_once(&exports);
    assert!((2..=AT_ONCE).contains(&most), "{most} at once: {exports:?}");
}
