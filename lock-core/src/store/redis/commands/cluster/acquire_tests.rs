//! A node whose keys move away between the commands of an acquire.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use redis::{IntoConnectionInfo, Value};

use crate::base::settings::Settings;
use crate::base::token::{Address, Token, TokenSource};
use crate::store::redis::commands::RedisStore;
use crate::store::redis::topology::Servers;
use crate::store::redis::wire::send_error::SendError;
use crate::store::{AcquireCommand, Queueing, Store};

/// Answers as a node that had the lock of `owner` and the mark, and gives the lock away before a script arrives.
fn serve(mut connection: &TcpStream, owner: Token) {
    let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
    let mut commands = redis::Parser::new();
    while let Ok(Value::Array(words)) = commands.parse_value(&mut connection) {
        let word = |at: usize| match words.get(at) {
            Some(Value::BulkString(word)) => String::from_utf8_lossy(word).into_owned(),
            _ => String::new(),
        };
        let answer = match (word(0).as_str(), word(1).as_str()) {
            ("HELLO", _) => format!("%1\r\n{}{}", bulk("server"), bulk("redis")),
            ("TIME", _) => format!("*2\r\n{}{}", bulk("1700000000"), bulk("25")),
            ("GET", _) => bulk("4000"),
            ("SET", _) => bulk(owner.text().as_str()),
            ("EVAL", _) => format!("*1\r\n{}", bulk("probed")),
            ("EVALSHA", hash) if hash.bytes().all(|digit| digit == b'0') => {
                "-NOSCRIPT No matching script.\r\n".to_owned()
            }
            ("EVALSHA", _) => "-ASK 3999 127.0.0.1:7002\r\n".to_owned(),
            _ => "+OK\r\n".to_owned(),
        };
        if connection.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The other node may not have the mark yet, and its clock may be behind.
#[tokio::test]
async fn the_mark_of_a_node_goes_along_when_the_lock_moves_before_it_is_lengthened() {
    let manager = Address::random();
    let token = TokenSource::new(manager).fresh();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("redis://{}", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let connection = connection.expect("the kit connects");
            std::thread::spawn(move || serve(&connection, token));
        }
    });
    let info = url.into_connection_info().expect("a URL");
    let store = RedisStore::new(Servers::Single(info), &Settings::default(), None);
    let store = store.expect("settings that fit");
    let lane = store.acquire_route(manager).lane;
    let node = store.topology.known_node_of("").expect("the one server");
    let on = store
        .connection(lane, node)
        .await
        .expect("a node that answers");
    let acquire = AcquireCommand {
        key: "k".into(),
        token,
        ttl: Duration::from_secs(10),
        queueing: Queueing::Never,
        replaces: None,
        repeated: true,
    };
    match store.acquire_one_key(&acquire, &on).await {
        Err(SendError::Elsewhere(elsewhere)) => assert_eq!(elsewhere.mark, 4000),
        other => panic!("{other:?}"),
    }
}
