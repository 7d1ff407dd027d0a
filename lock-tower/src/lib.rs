//! A [tower] layer that refuses duplicate requests.
//!
//! While a request is in flight, the layer answers a second request with the same key with 409. This
//! works across all processes of a service, because the lock is in Redis.
//!
//! ```
//! # mod example {
//! # use axum::{Router, routing::post};
//! # async fn create_order() {}
//! # pub
//! fn app(locks: lock_core::LockManager) -> Result<Router, lock_tower::TemplateError> {
//!     use std::time::Duration;
//!     use lock_tower::LockLayer;
//!
//!     let layer = LockLayer::template(locks, "submit:<bearer>:<method>:<route>")?
//!         .cooldown(Duration::from_secs(2));
//!     Ok(Router::new().route("/orders", post(create_order)).route_layer(layer))
//! }
//! # }
//! # example::app(lock_core::LockManager::in_memory()).unwrap();
//! ```
//!
//! The layer works with any `Service<Request<B>>`: axum, tonic, plain hyper. It reads only the head of
//! a request, unless [its key is made from the body](LockLayer::body_template). It does not change the
//! errors and bodies of the inner service.
//!
//! # The steps of a request
//!
//! 1. If the method is not locked (by default GET, HEAD, OPTIONS, …), the request passes. The store is
//!    not asked.
//! 2. The layer makes the key from the request. If the key's values are missing, ambiguous or
//!    malformed, it refuses the request with **400** and the code `lock_key_missing`
//!    ([which can pass](LockLayer::on_missing_key)), `lock_key_ambiguous` or `lock_key_invalid`. If
//!    the key is made from the body, the layer reads the body now, and may refuse it with
//!    [other codes](LockLayer#layers-that-read-the-body).
//! 3. The layer tries to acquire the lock once ([or waits for it](LockLayer::wait)):
//!    * If another request holds the lock, the layer refuses with **409** `lock_busy`.
//!    * If the layer has [permits](LockLayer::permits) and all of them are taken, it refuses with **429** `lock_full`.
//!    * If the [cooldown](LockLayer::cooldown) of an earlier request runs, it refuses with **409** `lock_cooling_down`.
//!    * If the store does not answer within 250 ms, it refuses with **503** `lock_unavailable`, never
//!      with 409 ([or lets the request pass](LockLayer::on_outage)).
//!    * If the store will never accept the request as it is configured, it answers **500**.
//! 4. The handler runs inside the lock, with a [`LockContext`] in the extensions of the request. The
//!    layer renews the lock while the handler runs.
//! 5. The layer releases the lock before it sends the head of the response. After 2xx and 303 the
//!    cooldown begins. A client that has read the response finds the lock free. If the store does not
//!    confirm the release within 250 ms, the layer sends the response and the release goes on in the
//!    background. A response that is produced while it is sent can [hold the lock to its
//!    end](LockLayer::release_at).
//!
//! A refusal is `application/problem+json` with the [members](Rejection::problem) of RFC 9457 and one of
//! the codes above. These 409 and 503 have a `Retry-After`, which is never 0. It is exact while a key cools
//! down, and [a hint of 1 s](LockLayer::retry_hint) while a request is in flight. A refusal can also be
//! [an HTML page for native forms](LockLayer::refusals) or [your own response](LockLayer::on_reject). A
//! [`Rejection`] in its extensions distinguishes it from the responses of the application.
//!
//! [`LockLayer`] lists all settings with their defaults.
//!
//! # Failures
//!
//! * The client disconnects, or an outer timeout drops the request. If the lock is not granted yet, the
//!   handler does not run and no key stays behind. Otherwise the handler *runs to its end*, and then
//!   the lock is released ([or the handler is dropped](LockLayer::on_disconnect)). The same holds for a handler that runs
//!   without a lock.
//! * The handler fails or panics. The error or panic propagates as without the layer. The lock is
//!   released without a cooldown.
//! * The lock is lost, because an operator deleted the key or because Redis was away for longer than
//!   the ttl. The handler runs on, and its [`LockContext`] reports the loss. Only a database that
//!   checks the [fencing token](LockContext::fencing_token) protects its data from two owners.
//! * The handler hangs. The layer renews its lock and refuses its user for as long as it hangs. [A
//!   timeout inside of the layer](LockLayer::max_hold) ends it. After ten ttls, the log names the
//!   layer and the route.
//! * Redis fails while the handler runs. The response of the handler is sent nevertheless.
//! * The process is killed. The key expires after its [ttl](LockLayer::ttl).
//! * The handler does not wait for its work, for example on a blocking thread. [`LockContext::keep`] holds the lock until
//!   that work has ended.
//!
//! After a disconnect the handler runs on in a task of its own. The extensions of the request and the
//! tracing span are available there. Task-locals of *outer* layers are not, so put such layers inside.
//!
//! # Templates
//!
//! A template is text in which each `<source>` stands for a value of the request. The layer parses it
//! once. `<<` and `>>` stand for the characters. A template looks like those of `#[distributed_lock]`
//! and `lock_key!`, but its sources are parts of a request, not Rust expressions. Text that looks like
//! a placeholder of another language (`[uid]`, `(uid)`, `{}`, `%s`, `${uid}`, `/:id`) is an error that
//! says what to write. A hash tag (`{tag}`) is text.
//!
#![doc = include_str!("docs/sources.md")]
//!
//! * **Different values make different keys.** The layer encodes separators in values. Between two
//!   placeholders there must be a separator (`:`, `{` or `}`). An absent optional part differs from the
//!   empty value and from every other value. If a key exceeds 1 024 bytes, a SHA-256 digest follows the
//!   text at the beginning of the template.
//! * **An empty or blank value counts as missing**, so such requests do not share a lock. A request
//!   also has no key if all its optional parts are absent and the rest is only method, host, route and
//!   path. Blanks around a header's value are not part of it, over HTTP/1 and HTTP/2 alike.
//! * **Keys are readable in Redis.** `<bearer>` and `<session.…>` are digested, because a reader could
//!   use them to log in. A digest does not protect values that can be guessed, such as user numbers.
//! * A name that contains `|` or `>`, or that ends with `?`, needs an [extractor](key). Extractors are
//!   the same sources in Rust. They can also wait for another service, such as a session store.
//!
//! With tower-sessions, an outer layer puts a `Session` into the extensions:
//! `KeyTemplate::new("submit:<ext.session|sha256>:<route>").extension("session", |session: &Session|
//! session.id().map(|id| id.to_string()).unwrap_or_default())`. A new session has no id yet and counts
//! as missing.
//!
//! # Choosing a key
//!
//! Most keys consist of the user and the action. All examples set a cooldown. The lock alone refuses
//! requests that overlap, but not the second click of a double click that comes after a fast response.
//!
//! ## per user and route
//!
//! ```
//! # fn main() -> Result<(), lock_tower::TemplateError> {
//! # let locks = lock_core::LockManager::in_memory();
//! # use {lock_tower::LockLayer, std::time::Duration};
//! let layer = LockLayer::template(locks, "submit:<header.x-user-id>:<method>:<route>")?
//!     .cooldown(Duration::from_secs(2));
//! # let _ = layer; Ok(()) }
//! ```
//!
//! Requests of one user to one route run one at a time, whatever their parameters. `/orders/1/pay` and
//! `/orders/2/pay` exclude each other. With `<path>` in place of `<route>` they run concurrently.
//!
//! ## per idempotency key
//!
//! ```
//! # fn main() -> Result<(), lock_tower::TemplateError> {
//! # let locks = lock_core::LockManager::in_memory();
//! # use {lock_tower::LockLayer, std::time::Duration};
//! let layer = LockLayer::template(locks, "pay:<header.x-user-id>:<idempotency-key>")?
//!     .cooldown(Duration::from_secs(60));
//! # let _ = layer; Ok(()) }
//! ```
//!
//! The key must contain the user. Otherwise one user could block the requests of another. The layer
//! refuses a repeated request. With the feature `replay`, `LockLayer::replay` repeats the first response
//! instead.
//!
//! ## per form token
//!
//! ```
//! # fn main() -> Result<(), lock_tower::TemplateError> {
//! # let locks = lock_core::LockManager::in_memory();
//! # use {lock_tower::LockLayer, std::time::Duration};
//! let layer = LockLayer::body_template(locks, "form:<form.token>", 64 * 1024)?
//!     .cooldown(Duration::from_secs(600));
//! # let _ = layer; Ok(()) }
//! ```
//!
//! This suits a form that was rendered with a random token: `<input type="hidden" name="token"
//! value="…">`. Such a form succeeds once, and can be sent again only if it failed. The layer reads up
//! to 64 KiB of the body, and the handler reads the same body again. If the token is in the form's
//! address (`action="/orders?token=…"`), `<query.token>` makes the key without the body.
//!
//! # The place of the layer
//!
//! From outside to inside:
//!
//! 1. tracing, which then covers refusals
//! 2. CORS, so that a page of another origin can read the 409. A script can read `Retry-After` only if
//!    `Access-Control-Expose-Headers` lists it. The body contains the same time as `retry_after_ms`.
//! 3. authentication, so that the key contains the authenticated user, and not the claim of a header
//! 4. **the lock layer**
//! 5. catch-panic and timeout, which turn a panic or a timeout into a response that releases the lock
//!
//! Two lock layers around one handler, on a router and on one of its routes, need two different keys.
//! If both make the same key, every request is refused with 500, and the log says why. A timeout between the two
//! ends the handler, because the outer layer [decides](Disconnect) whether it runs on.
//!
//! In axum the layer that is added last is the outermost. With [`Router::route_layer`][route_layer] or
//! `Router::layer`, axum has matched the route before the layer runs. Around a whole `Router` it has
//! not, so `<route>` is the path.
//!
//! Use [`probe`] in a test or at startup. It sends a sample request, and finds a layer that is outside
//! of the authentication, around the router, or [out of bounds](LockLayer::checked). Without a probe,
//! the layer logs one error if its first ten requests all lack a value of the key.
//!
//! # Deployment
//!
//! * Start with the [shadow mode](LockLayer::shadow), which shows what the layer would refuse.
//! * A client controls its headers. A client that can choose its key is not locked, so let a proxy or an
//!   authentication layer set, and remove, the header with the user. Better, use the result of the
//!   authentication (`<ext.user>`) or its credential (`<bearer>`).
//! * Of `Forwarded` and `X-Forwarded-For`, name the header that your proxies write, with their number.
//!   The other header contains only the client's text. An address is not a user, because thousands of
//!   users may share one.
//! * All processes of the service need the same store. `memory:` serves one process.
//! * A proxy may repeat a POST that was not answered. Such a request is a duplicate like any other, and
//!   is refused with 409 while the first one runs.
//! * At shutdown, handlers whose clients have disconnected still run. When the server has ended, wait
//!   for them by the [`InFlight`] of each layer, and then for the releases by
//!   [`LockManager::drain`](lock_core::LockManager::drain).
//! * A gRPC client sees the HTTP status of a refusal: `UNKNOWN` for 409, `UNAVAILABLE` for 503. With
//!   [`on_reject`](LockLayer::on_reject) it can be a gRPC status. A failed call has no cooldown if the
//!   head of its response contains the error, as for unary calls. With [`ReleaseAt::BodyEnd`], and in a layer
//!   that replays answers, the trailers count as well.
//! * The services need a tokio runtime with time enabled.
//!
//! # Features
//!
//! * `axum`: `<route>` is the matched route, `<path>` is the original path, and `<param.…>` and
//!   `ConnectInfo` in `<peer>` are available. [`LockContext`] is an extractor, and a handler may return
//!   [`lock_core::Error`] (lock-core's feature `axum`). Services without axum's router see no difference.
//! * `json`: `<json./…>` and `<json>` are available, with their extractors.
//! * `replay`: `LockLayer::replay` answers duplicates with the first response, as the header
//!   `Idempotency-Key` promises.
//! * `once`: with `Replay::in_database` the effect of a handler and its answer are one commit of the application's
//!   database, so a process that is killed at any point causes no second effect.
//! * `metrics`: counters and histograms for the recorder of the `metrics` crate that the application
//!   has installed. [`LockLayer::name`] lists them. It turns on lock-core's feature `metrics` too.
//!
//! [tower]: https://docs.rs/tower
//! [route_layer]: https://docs.rs/axum/0.8/axum/struct.Router.html#method.route_layer
#![cfg_attr(docsrs, feature(doc_cfg))]

// Modules in layers, from the top to the bottom: layer, service, replay, response, probe, policy, record,
// once, lock, telemetry, rejection, key, options. A module imports only from those below it.
#[cfg(feature = "replay")]
#[doc = include_str!("docs/idempotency.md")]
pub mod idempotency {
    #[cfg(feature = "once")]
    #[doc = include_str!("docs/in_database.md")]
    pub mod in_database {}
}
pub mod key;
mod layer;
mod lock;
#[cfg(feature = "once")]
mod once;
mod options;
mod policy;
mod probe;
#[cfg(feature = "replay")]
mod record;
mod rejection;
#[cfg(feature = "replay")]
mod replay;
mod response;
mod service;
mod telemetry;

pub use key::{KeyTemplate, RequestBody, TemplateError};
pub use layer::LockLayer;
#[cfg(feature = "axum")]
pub use lock::NotLocked;
#[cfg(feature = "replay")]
pub use lock::Replayed;
pub use lock::{KeptContext, LockContext};
pub use lock_core::OperationId;
#[cfg(feature = "once")]
pub use once::{Once, OnceTx, Refused};
#[cfg(feature = "replay")]
pub use options::Remember;
pub use options::{Disconnect, MissingKey, Outage, RefusalFormat, ReleaseAt};
pub use probe::{ProbeError, probe};
#[cfg(feature = "replay")]
pub use record::{Fingerprint, Replay, Seal};
pub use rejection::{Rejection, RejectionKind};
#[cfg(feature = "replay")]
pub use replay::{RecordedBody, Recorder};
pub use response::{ResponseBody, ResponseFuture};
pub use service::LockService;
#[cfg(feature = "replay")]
pub use service::Replaying;
pub use telemetry::InFlight;

/// Compiles and runs the examples of the README.
#[cfg(all(doctest, feature = "axum", feature = "once"))]
#[doc = include_str!("../../README.md")]
#[derive(Debug)]
struct Readme;
