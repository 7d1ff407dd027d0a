//! A [tower] layer that refuses duplicate requests: while a request is under way, a second one with
//! the same key gets a 409, whichever process of the service it reaches.
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
//!     let layer = LockLayer::template(locks, "submit:<header.x-user-id>:<method>:<route>")?
//!         .cooldown(Duration::from_secs(2));
//!     Ok(Router::new().route("/orders", post(create_order)).route_layer(layer))
//! }
//! # }
//! # example::app(lock_core::LockManager::in_memory()).unwrap();
//! ```
//!
//! It works in front of any `Service<Request<B>>`: axum, tonic, plain hyper. It reads the head of a
//! request and nothing of its body, unless [it is told to](LockLayer::body_template); the inner
//! service's errors and bodies stay what they are.
//!
//! # What happens to a request
//!
//! 1. A method that is not locked (by default GET, HEAD, OPTIONS, …) passes, without a question to the
//!    store.
//! 2. The key is made from the request. One that names nothing to lock is answered with **400**
//!    `lock_key_missing` ([or passes](LockLayer::on_missing_key)), one that names it twice and
//!    differently with **400** `lock_key_ambiguous`, one that names it in a way that is not
//!    understood with **400** `lock_key_invalid`. If the key is made of the body, the body is read
//!    now, and may be refused with [answers of its own](LockLayer#layers-that-read-the-body).
//! 3. The lock is asked for, once ([or waited for](LockLayer::wait)). If another request holds it:
//!    **409** `lock_busy`. If one that succeeded [a moment ago](LockLayer::cooldown) does: **409**
//!    `lock_cooling_down`. If the store gives no answer within 250 ms: **503** `lock_unavailable`,
//!    never a 409 ([or it runs](LockLayer::on_outage)). If the store will never accept this: **500**.
//! 4. The handler runs inside the lock, with a [`LockContext`] in the request's extensions. The lock
//!    is renewed as long as it runs.
//! 5. The lock is released, and with a cooldown after 2xx and 303, before the head of the answer is
//!    sent: a client that has read the answer finds the lock free. If the store takes longer than
//!    250 ms to confirm that, the answer is sent and the release goes on in the background. Answers
//!    that are made while they are sent [hold the lock to their end](LockLayer::release_at).
//!
//! Refusals are `application/problem+json` with the [members](Rejection::problem) of RFC 9457, the code
//! above and, for 409 and 503, `Retry-After`: exact while a key cools down,
//! [a hint of 1 s](LockLayer::retry_hint) while a request is in flight, never 0. They can be
//! [HTML for native forms](LockLayer::refusals) or [your own](LockLayer::on_reject). A [`Rejection`]
//! in the response's extensions tells them from the application's own answers.
//!
//! [`LockLayer`] lists what else can be chosen, with the defaults.
//!
//! # If something goes wrong
//!
//! * The client disconnects, or a timeout outside drops the request: before the lock is there,
//!   nothing runs and no key is left. After that the handler *runs to its end*, and the lock is
//!   released when it has ([or it is dropped](LockLayer::on_disconnect)).
//! * The handler fails or panics: the error or panic goes on as without the layer; the lock is
//!   released, without a cooldown.
//! * The lock is lost (somebody deleted the key, Redis was gone for longer than the ttl): the
//!   handler goes on, and can see it in its [`LockContext`]. Only a database that checks the
//!   [fencing token](LockContext::fencing_token) keeps a second owner from its effect.
//! * The handler hangs: its lock is renewed, and its user refused, for as long as it hangs. [A timeout
//!   inside of the layer](LockLayer::max_hold) ends it; the log names the layer and the route after ten
//!   ttls.
//! * Redis dies while the handler runs: its answer is sent all the same.
//! * The process is killed: the key ends with its [ttl](LockLayer::ttl).
//!
//! A handler whose client has gone runs on in a task of its own: task-locals that a layer *outside* has
//! set do not reach it there; extensions of the request and the tracing span do. Put layers with
//! task-locals inside.
//!
//! # Templates
//!
//! A template is text with `<source>` where a value of the request goes, parsed once. `<<` and `>>`
//! are the characters. It looks like the one of `#[distributed_lock]` and `lock_key!`, but names
//! parts of a request, not Rust values. Text that looks like a placeholder of another language
//! (`[uid]`, `(uid)`, `{}`, `%s`, `${uid}`, `/:id`) is an error that says what to write; a hash tag
//! (`{tag}`) is text.
//!
//! | source | value |
//! | --- | --- |
//! | `<header.NAME>` | of that header |
//! | `<cookie.NAME>` | of that cookie |
//! | `<session.NAME>` | of that cookie, digested |
//! | `<bearer>` | the token of `Authorization: Bearer …`, digested |
//! | `<ext.NAME>` | what a layer outside has found, such as authentication: [`KeyTemplate::extension`] says of which type |
//! | `<idempotency-key>` | the header `Idempotency-Key`, quoted or bare |
//! | `<method>` | the method; HEAD counts as GET, whose handler answers it |
//! | `<host>` | the host that the request is for, of `:authority`, an absolute URI or `Host`, in lower case and without its port: the same over HTTP/1 and HTTP/2. Two that differ are ambiguous |
//! | `<route>` | the route that axum has matched, such as `/orders/{id}` (feature `axum`); without a matched route, the path |
//! | `<path>` | the path, in one spelling: `/users/%31` is `/users/1`. With the feature `axum` the whole path, in nested routers too |
//! | `<param.NAME>` | of that parameter of the route that axum has matched, decoded (feature `axum`) |
//! | `<query.NAME>` | of that parameter of the query, decoded |
//! | `<peer>` | the address that the connection is from, without its port: axum's `ConnectInfo<SocketAddr>` (feature `axum`), else a `SocketAddr` in the request's extensions |
//! | `<forwarded.PROXIES>`, `<x-forwarded-for.PROXIES>` | the address that the outermost of so many trusted proxies was called from. Counted from the right: what the client writes into the header itself does not matter |
//!
//! Those in the body are for [`LockLayer::body_template`]. They do not ask for the `content-type`:
//!
//! | source | value |
//! | --- | --- |
//! | `<json./POINTER>` | that an RFC 6901 pointer names, such as `<json./order/sku>` (feature `json`). `42` and `"42"` are two values, `1`, `1.0` and `1e0` are one; an object or a list counts as a whole |
//! | `<json>` | the whole document, digested; the order of members and the white space do not matter (feature `json`) |
//! | `<form.NAME>` | of that field of a form (`application/x-www-form-urlencoded`), decoded |
//! | `<body>` | the bytes of the body, digested |
//!
//! A `?` behind a source makes it optional: `<header.x-tenant?>`. Filters follow: `|lower` for what is
//! the same in upper and lower case, `|sha256` for what is secret or long: `<cookie.cart?|sha256>`.
//! What is in the head is looked at first: a request that lacks something there is not read.
//!
//! * **Different values make different keys.** A value cannot hold a separator unencoded, and between
//!   two placeholders there must be one (`:`, `{` or `}`). An optional part that is not there is
//!   neither the empty value nor any other. A key of more than 1 024 bytes becomes a SHA-256 digest
//!   behind the text that the template begins with.
//! * **A value that is empty or blank counts as none**, and no lock is shared by all who name nothing: a
//!   request in which nothing optional is there, and nothing else but method, host, route and path, has
//!   no key. Blanks around a header's value are no part of it, over HTTP/2 as over HTTP/1.
//! * **Keys are stored in Redis readable.** `<bearer>` and `<session.…>` are digested because whoever
//!   reads them could use them. A digest hides nothing that can be guessed, such as a user's number.
//! * A name with `|` or `>` in it, or with a `?` at its end, can be had by an [extractor](key) only.
//!   Extractors say the same in Rust, and more: they may wait for an answer, such as a session's
//!   store's.
//!
//! With tower-sessions, whose layer outside has put a `Session` into the extensions:
//! `KeyTemplate::new("submit:<ext.session|sha256>:<route>").extension("session", |session: &Session|
//! session.id().map(|id| id.to_string()).unwrap_or_default())`. A session that is new has no id yet,
//! and counts as missing.
//!
//! # Which key
//!
//! Who clicks and what is clicked: that is nearly always the key. All examples set a cooldown,
//! because the lock alone stops requests that overlap, and the second click of a double click that
//! comes after a fast answer does not.
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
//! Requests of one user to one route run one at a time, whatever they ask for: also
//! `/orders/1/pay` and `/orders/2/pay`. With `<path>` in place of `<route>` those two run together.
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
//! The user belongs into the key, or one user could block another's. A repeated request is refused,
//! not answered again with the first answer: for that, store the answer with the payment.
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
//! For a form that was rendered with a random token: `<input type="hidden" name="token" value="…">`.
//! It is sent once, and again only if it failed. The layer reads the body for it, up to 64 KiB, and
//! the handler reads it again. With the token in the address of the form
//! (`action="/orders?token=…"`), `<query.token>` does without.
//!
//! # Where the layer belongs
//!
//! From outside to inside:
//!
//! 1. tracing: refusals are seen in it
//! 2. CORS: a page of another origin can read the 409. A script reads `Retry-After` only if
//!    `Access-Control-Expose-Headers` names it; the same time is `retry_after_ms` in the body
//! 3. authentication: who clicks is known, and not what a header says about it
//! 4. **the lock layer**
//! 5. catch-panic and timeout: a panic or a timeout is an answer, and the lock is released with it
//!
//! Two lock layers around one handler, of a router and of a route in it, need two keys. If they make
//! the same one, all requests are answered with 500, and the log says why.
//!
//! In axum the layer that is added last is the outermost. With [`Router::route_layer`][route_layer]
//! or `Router::layer` the matched route is known; around a whole `Router` it is not, and `<route>`
//! is the path.
//!
//! A layer in the wrong place, outside of the authentication or around the router, or with settings that
//! are [out of bounds](LockLayer::checked), is found by [`probe`], a sample request in a test or at the start. Without one, a layer of which the first ten
//! requests all lack what its key is made of says so in the log, once: it cannot know before.
//!
//! # Deployment
//!
//! * To see what a layer would refuse before it does, begin with its [shadow mode](LockLayer::shadow).
//! * A header is what the client says. Let your proxy or an authentication layer set, and remove,
//!   the one that names the user: a client that chooses its own lock is not locked. Better, name
//!   what authentication has found (`<ext.user>`), or what it goes by (`<bearer>`).
//! * Of `Forwarded` and `X-Forwarded-For` name the one that your proxies write, and their number:
//!   the other is the client's own text. An address is not a user; behind one there may be thousands.
//! * All processes of the service need one store. `memory:` is for one process.
//! * A proxy that repeats a POST it has seen no answer to sends a duplicate like any other; it gets
//!   a 409 while the first runs.
//! * At shutdown, handlers whose clients have gone still run. After the server has ended wait for
//!   them, by the [`InFlight`] of each layer, and then for the releases, by
//!   [`LockManager::drain`](lock_core::LockManager::drain).
//! * gRPC clients see a refusal as the HTTP status that it is: `UNKNOWN` for a 409, `UNAVAILABLE`
//!   for a 503; with [`on_reject`](LockLayer::on_reject) it is a status of gRPC. A call that failed
//!   is followed by no cooldown if it says so in the head of its answer, as unary calls do, or with
//!   [`ReleaseAt::BodyEnd`] in its trailers.
//! * The services need a tokio runtime with time enabled.
//!
//! # Features
//!
//! * `axum`: `<route>` is the matched route and `<path>` the original one, `<param.…>` can be named,
//!   `<peer>` knows `ConnectInfo`, [`LockContext`] is an extractor, and a handler may answer with
//!   [`lock_core::Error`] (lock-core's feature `axum`). Nothing else changes; for
//!   services that are not routed by axum, nothing at all.
//! * `json`: `<json./…>` and `<json>` can be named, and their extractors are there.
//! * `metrics`: counters and histograms for the recorder of the `metrics` crate that the application
//!   has installed. [`LockLayer::name`] lists them.
//!
//! [tower]: https://docs.rs/tower
//! [route_layer]: https://docs.rs/axum/0.8/axum/struct.Router.html#method.route_layer
#![cfg_attr(docsrs, feature(doc_cfg))]

mod body;
mod body_reader;
mod context;
mod cooldown;
#[cfg(feature = "axum")]
mod extract;
mod future;
mod in_flight;
pub mod key;
mod layer;
mod options;
mod order;
mod policy;
mod probe;
mod record;
mod refusal;
mod rejection;
mod request_body;
mod service;
mod settings;
mod streaming;
mod stuck;
mod taking;
mod tenure;
mod work;

pub use body::ResponseBody;
pub use context::LockContext;
#[cfg(feature = "axum")]
pub use extract::NotLocked;
pub use future::ResponseFuture;
pub use in_flight::InFlight;
pub use key::{KeyTemplate, TemplateError};
pub use layer::LockLayer;
pub use options::{Disconnect, MissingKey, Outage, RefusalFormat, ReleaseAt};
pub use probe::{ProbeError, probe};
pub use rejection::{Rejection, RejectionKind};
pub use request_body::RequestBody;
pub use service::LockService;

/// The README's examples compile and run.
#[cfg(all(doctest, feature = "axum"))]
#[doc = include_str!("../../README.md")]
#[derive(Debug)]
struct Readme;
