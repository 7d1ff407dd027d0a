//! Tests that a server has one vote, under any number of names.

use lock_core::ErrorKind;
use lock_tests::{Proxy, RedisServer, needs};

use super::{Nodes, builder};

#[tokio::test]
async fn one_server_under_two_names_is_refused() {
    needs!(redis);
    let nodes = Nodes::start(2);
    let [server, other] = [&nodes.0[0], &nodes.0[1]].map(RedisServer::url);
    let renamed = format!("redis://localhost:{}", nodes.0[0].port());
    let error = builder([server, renamed, other]).connect().await;
    let error = error.expect_err("one server twice");
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("one server"), "{error}");
}

#[tokio::test]
async fn one_server_behind_two_ports_is_refused() {
    needs!(redis);
    let nodes = Nodes::start(2);
    let doors = [nodes.0[0].address(), nodes.0[0].address()].map(Proxy::to);
    let mut urls = doors.each_ref().map(Proxy::redis_url).to_vec();
    urls.push(nodes.0[1].url());
    // Neither data nor the order of the URLs makes a difference.
    drop(nodes.manager().await);
    for urls in [urls.clone(), urls.into_iter().rev().collect()] {
        let error = builder(urls).connect().await;
        let error = error.expect_err("one server twice");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
}
