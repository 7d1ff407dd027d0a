//! One client and the kit on one redis-server.

use std::time::Duration;

use lock_core::{Interop, LockGuard, LockKey, LockManager, LockRequest};
use lock_tests::RedisServer;

use crate::Failure;
use crate::clients::Client;
use crate::foreign::Foreign;

/// The name of the lock, for the client and for the kit.
pub(crate) const LOCK: &str = "order:42";

pub(crate) struct Stage {
    pub(crate) client: &'static Client,
    pub(crate) server: RedisServer,
    pub(crate) locks: LockManager,
    pub(crate) foreign: Foreign,
    /// The key of the lock in Redis.
    pub(crate) key: String,
}

impl Stage {
    pub(crate) async fn start(client: &'static Client) -> Result<Stage, Failure> {
        lock_tests::missing::redis()?;
        let server = RedisServer::start();
        let locks = LockManager::builder(&server.url())
            .namespace(client.namespace)
            .operation_timeout(Duration::from_secs(5))
            .connect()
            .await
            .map_err(|error| error.to_string())?;
        let foreign = Foreign::start(client, &server.port().to_string(), LOCK).await?;
        Ok(Stage {
            client,
            server,
            locks,
            foreign,
            key: format!("{}{LOCK}", client.namespace),
        })
    }

    /// Starts the client again after its process was killed.
    pub(crate) async fn restart_client(&mut self) -> Result<(), Failure> {
        self.foreign = Foreign::start(self.client, &self.server.port().to_string(), LOCK).await?;
        Ok(())
    }

    pub(crate) fn request(&self, ttl: Duration) -> LockRequest {
        request(&self.locks, ttl)
    }

    /// Takes the lock, which must be free.
    pub(crate) async fn taken(&self, ttl: Duration) -> Result<LockGuard, Failure> {
        let guard = self.request(ttl).acquire().await;
        guard.map_err(|error| format!("the kit does not get a free lock: {error}"))
    }

    pub(crate) async fn is_busy(&self) -> Result<(), Failure> {
        match self.request(LONG).try_acquire().await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err("the kit gets the lock that the client holds".to_owned()),
            Err(error) => Err(format!("the kit is not refused with Busy: {error}")),
        }
    }

    /// Returns the value of the key, which is the token of its owner; `(nil)` if the lock is free.
    pub(crate) fn value(&self) -> String {
        self.server.cli(&["GET", &self.key])
    }

    pub(crate) fn is_free(&self) -> bool {
        self.server.cli(&["EXISTS", &self.key]) == "0"
    }

    /// Returns the rest of the owner's ttl, in ms.
    pub(crate) fn rest(&self) -> i64 {
        self.number(&["PTTL", &self.key])
    }

    /// Returns the time at which the server frees the key, in ms of its clock.
    pub(crate) fn expires_at(&self) -> i64 {
        self.number(&["PEXPIRETIME", &self.key])
    }

    /// Returns the time of the server, in ms.
    pub(crate) fn now(&self) -> i64 {
        let script = "local t = redis.call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000)";
        self.number(&["EVAL", script, "0"])
    }

    fn number(&self, command: &[&str]) -> i64 {
        let answer = self.server.cli(command);
        let number = answer.trim_start_matches("(integer) ").parse();
        number.unwrap_or_else(|_| panic!("{command:?} is answered with {answer}"))
    }
}

/// Makes a request for the lock, by which the kit shares the key with other clients.
pub(crate) fn request(locks: &LockManager, ttl: Duration) -> LockRequest {
    let request = locks.lock(LockKey::exact(LOCK));
    request.ttl(ttl).interop(Interop::On)
}

/// A ttl that does not run out in a check that is not about time.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Fails with these words unless the condition holds.
pub(crate) fn ensure(condition: bool, words: &str) -> Result<(), Failure> {
    condition.then_some(()).ok_or_else(|| words.to_owned())
}
