//! Runs the least possible lock on several servers.
//!
//! On each server a key is set if it is free, and deleted if it still has the token. Each command is
//! encoded once and sent to all servers at once.

use std::time::Instant;

use lock_core::redis1::aio::MultiplexedConnection;
use lock_core::redis1::{Cmd, FromRedisValue, cmd};
use std::cell::Cell;

use super::Pair;
use super::together::together;
use crate::free_pair::connect_raw;

const KEY: &str = "lockkit:raw";
const RELEASE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";

pub(crate) struct Raw {
    connections: Vec<MultiplexedConnection>,
    release: String,
    pairs: Cell<u64>,
}

impl Raw {
    pub(crate) async fn connect(urls: &[String]) -> Self {
        let mut raw = Self {
            connections: Vec::new(),
            release: String::new(),
            pairs: Cell::new(0),
        };
        for url in urls {
            let mut connection = connect_raw(url).await;
            let load = cmd("SCRIPT").arg("LOAD").arg(RELEASE).take();
            raw.release = load.query_async(&mut connection).await.expect("a hash");
            raw.connections.push(connection);
        }
        raw
    }

    /// Acquires and releases, and waits for `wanted` answers each time.
    pub(crate) async fn pair(&self, wanted: usize) -> Pair {
        let number = self.pairs.replace(self.pairs.get() + 1);
        let start = Instant::now();
        let token = format!("0123456789abcdef/{number:032x}");
        let mut set = cmd("SET");
        set.arg(KEY).arg(&token).arg("NX").arg("PX").arg(30_000);
        let set = self.send::<Option<String>>(&set, wanted).await;
        assert!(set.iter().all(Option::is_some));
        let acquired = Instant::now();
        let mut release = cmd("EVALSHA");
        release.arg(&self.release).arg(1).arg(KEY).arg(&token);
        let deleted = self.send::<i64>(&release, wanted).await;
        assert!(deleted.iter().all(|deleted| *deleted == 1));
        Pair::new(start, acquired)
    }

    async fn send<T: FromRedisValue>(&self, command: &Cmd, wanted: usize) -> Vec<T> {
        let sends = self.connections.iter().cloned();
        let sends = sends.map(async |mut connection| {
            let answer = command.query_async(&mut connection).await;
            answer.expect("an answer")
        });
        together(sends, wanted).await
    }
}
