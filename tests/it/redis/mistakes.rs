//! Tests mistakes in the URL that only the server can detect.

use lock_core::ErrorKind;
use lock_tests::{RedisServer, needs};

use crate::steps::refused;

#[tokio::test]
async fn a_database_that_the_server_does_not_have_is_a_mistake() {
    needs!(redis);
    let server = RedisServer::start();
    for url in [
        format!("redis://{}/99", server.address()),
        format!("redis://{}/-1", server.address()),
        format!("{}?db=99", server.socket_url()),
    ] {
        let error = refused(&url, "no database").await;
        assert_eq!(error.kind(), ErrorKind::Misconfigured, "{url}");
    }
}

#[tokio::test]
async fn a_user_that_may_not_choose_the_database_is_a_mistake() {
    needs!(redis);
    let server = RedisServer::start();
    let user = ["ACL", "SETUSER", "alice", "on", ">sesame"];
    let rights = ["+@all", "-select", "~*", "&*"];
    server.cli(&[&user[..], &rights].concat());
    let url = format!("redis://alice:sesame@{}/1", server.address());
    let error = refused(&url, "ACL").await;
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
}
