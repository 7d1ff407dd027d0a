//! Values and small tools that all other folders use.

pub(crate) mod acks;
#[cfg(any(feature = "tls-rustls", feature = "postgres-tls"))]
pub(crate) mod certificates;
#[cfg(feature = "postgres-tls")]
pub(crate) mod client_tls;
pub(crate) mod clock;
#[cfg(any(feature = "redis", feature = "postgres"))]
pub(crate) mod credentials;
#[cfg(feature = "cron")]
pub(crate) mod cron;
pub(crate) mod error;
pub(crate) mod fence;
pub(crate) mod from_error;
pub(crate) mod holder_token;
pub(crate) mod identity;
pub(crate) mod join;
pub(crate) mod key;
pub(crate) mod machine;
#[cfg(feature = "test-util")]
pub(crate) mod manual_clock;
#[cfg(feature = "operation-id")]
pub(crate) mod operation;
pub(crate) mod options;
pub(crate) mod record;
pub(crate) mod schedule;
pub(crate) mod settings;
pub(crate) mod share;
pub(crate) mod sync;
pub(crate) mod telemetry;
pub(crate) mod ticket;
#[cfg(any(feature = "tls-rustls", feature = "postgres-tls"))]
pub(crate) mod tls_refusal;
pub(crate) mod token;
pub(crate) mod url_query;

use std::future::Future;
use std::pin::Pin;

pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
