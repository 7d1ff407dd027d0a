//! Tests of what an operation's failure says.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use redis::IntoConnectionInfo;

use super::RedisStore;
use crate::base::settings::Settings;
use crate::base::token::{Address, TokenSource};
use crate::store::redis::topology::Servers;
use crate::store::{AcquireCommand, Operation, Outcome, Queueing, Store};

/// The answers to `HELLO` and to the two commands that name the client.
const WELCOME: &[u8] = b"%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n+OK\r\n+OK\r\n";

/// The server breaks the connection when the kit asks what the user may do.
#[tokio::test]
async fn an_operation_whose_connection_was_never_ready_was_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("redis://{}", listener.local_addr().expect("bound"));
    let server = std::thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("the kit connects");
        let _hello = connection.read(&mut [0; 4096]).expect("a greeting");
        connection.write_all(WELCOME).expect("it is read");
        connection.read(&mut [0; 65_536]).expect("questions")
    });
    let info = url.into_connection_info().expect("a URL");
    let store = RedisStore::new(Servers::Single(info), &Settings::default(), None);
    let store: Arc<dyn Store> = store.expect("settings that fit");
    let manager = Address::random();
    let acquire = AcquireCommand {
        key: "k".into(),
        token: TokenSource::new(manager).fresh(),
        ttl: Duration::from_secs(10),
        queueing: Queueing::Never,
        replaces: None,
        repeated: false,
    };
    let lane = store.acquire_route(manager).lane;
    let outcome = store.execute(Operation::Acquire(acquire), lane).await;
    let asked = server.join().expect("no panic");
    assert!(asked > 0, "the connection was made");
    let Outcome::Failed(failure) = outcome else {
        panic!("{outcome:?}");
    };
    assert!(!failure.ambiguous, "{:?}", failure.error);
}
