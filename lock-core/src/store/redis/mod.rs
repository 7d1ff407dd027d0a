//! Locks on one Redis server. All that the kit knows of Redis is in this folder and in `scripts/`.

mod acquire;
mod answers;
mod connection;
mod keeper_link;
mod links;
mod names;
mod scripts;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Client, Value};
use tokio::runtime::Handle;

use self::answers::{Trouble, failure};
use self::connection::{Connection, prepared};
use self::keeper_link::KeeperLink;
use self::links::Links;
use self::names::Names;
use super::{
    BoxFuture, Events, Extension, Failure, Lane, Operation, Outcome, Release, Released, Store,
};
use crate::error::Error;

pub(crate) struct RedisStore {
    client: Client,
    names: Names,
    links: Links,
    keeper: Arc<KeeperLink>,
}

impl RedisStore {
    pub(crate) fn new(
        client: Client,
        namespace: String,
        connect_timeout: Duration,
    ) -> Result<Arc<Self>, Error> {
        let client = prepared(&client).map_err(|error| failure(error).error)?;
        Ok(Arc::new(Self {
            links: Links::new(client.clone()),
            keeper: Arc::new(KeeperLink::new(connect_timeout)),
            names: Names::new(namespace),
            client,
        }))
    }

    async fn connection(&self, lane: Lane) -> Result<Connection, Failure> {
        if let Lane::Runtime(runtime) = lane {
            if Handle::try_current().is_ok_and(|handle| handle.id() == runtime) {
                return self.links.here(runtime).await;
            }
            // The keeper undoes on the link of another runtime, while that lives.
            if let Some(connection) = self.links.of(runtime) {
                return Ok(connection);
            }
        }
        self.keeper.connection().await
    }

    /// Sends the operation; once more on a new connection, if the one at hand turns out broken.
    async fn ask(&self, operation: Operation, lane: Lane) -> Outcome {
        let mut operation = operation;
        let mut again = false;
        loop {
            let connection = match self.connection(lane).await {
                Ok(connection) => connection,
                // What was sent before may have arrived.
                Err(failure) => {
                    return Outcome::Failed(Failure {
                        ambiguous: failure.ambiguous || again,
                        ..failure
                    });
                }
            };
            match self.send(&operation, &connection).await {
                Ok(Outcome::Released(Released::Absent | Released::Other)) if again => {
                    // The first send may have been the one that released it.
                    return Outcome::Released(Released::Yes);
                }
                Ok(outcome) => return outcome,
                Err(Trouble::Broken(_)) if !again => {
                    again = true;
                    if let Operation::Acquire(acquire) = &mut operation {
                        acquire.repeated = true;
                    }
                }
                Err(Trouble::Broken(error)) => return Outcome::Failed(failure(error)),
                Err(Trouble::Failed(failure)) => {
                    return Outcome::Failed(Failure {
                        ambiguous: failure.ambiguous || again,
                        ..failure
                    });
                }
                Err(Trouble::NoScript) => return answers::not_understood(),
            }
        }
    }

    async fn send(&self, operation: &Operation, on: &Connection) -> Result<Outcome, Trouble> {
        match operation {
            Operation::Acquire(acquire) => self.acquire(acquire, on).await,
            Operation::Extend(extensions) => self.extend(extensions, on).await,
            Operation::Release(release) => {
                let (keys, arguments) = self.release_arguments(release);
                let answer = scripts::RELEASE.run(on, &keys, &arguments).await?;
                Ok(answers::released(&answer))
            }
            Operation::Cool(release, cooldown) => {
                let (keys, [token, fence, channels]) = self.release_arguments(release);
                let arguments = [token, fence, channels, cooldown.as_millis().to_string()];
                let answer = scripts::COOL.run(on, &keys, &arguments).await?;
                Ok(answers::released(&answer))
            }
        }
    }

    async fn extend(&self, extensions: &[Extension], on: &Connection) -> Result<Outcome, Trouble> {
        let keys: Vec<String> = extensions
            .iter()
            .map(|extension| self.names.lock(&extension.key))
            .collect();
        let arguments: Vec<String> = extensions
            .iter()
            .flat_map(|extension| {
                [
                    extension.token.to_string(),
                    extension.ttl.as_millis().to_string(),
                ]
            })
            .collect();
        let answer: Value = scripts::EXTEND.run(on, &keys, &arguments).await?;
        Ok(answers::extended(&answer))
    }

    fn release_arguments(&self, release: &Release) -> ([String; 3], [String; 3]) {
        let fence = release
            .fence
            .map(|fence| fence.to_string())
            .unwrap_or_default();
        (
            self.keys(&release.key),
            [release.token.to_string(), fence, self.names.channels()],
        )
    }

    fn keys(&self, key: &str) -> [String; 3] {
        [
            self.names.lock(key),
            self.names.mark(),
            self.names.queue(key),
        ]
    }
}

impl Store for RedisStore {
    fn execute(&self, operation: Operation, lane: Lane) -> BoxFuture<'_, Outcome> {
        Box::pin(self.ask(operation, lane))
    }

    fn background(self: Arc<Self>, events: Events) -> BoxFuture<'static, ()> {
        let link = Arc::clone(&self.keeper);
        Box::pin(link.run(self.client.clone(), self.names.clone(), events))
    }

    fn ready(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move { self.keeper.connection().await.map(drop) })
    }

    fn lane(&self) -> Lane {
        Handle::try_current().map_or(Lane::Keeper, |handle| Lane::Runtime(handle.id()))
    }
}

impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address only: the client knows the password.
        let address = self.client.get_connection_info().addr().to_string();
        f.debug_struct("RedisStore")
            .field("address", &address)
            .finish_non_exhaustive()
    }
}
