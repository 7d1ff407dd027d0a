//! Where the key of a request comes from: extractors, ready and own.
//!
//! The [template](crate#templates) of a layer says in one string what these say in Rust; both make
//! the same parts. A template is shorter; extractors take what is no text, such as a lookup in a
//! store.
//!
//! | extractor | in a template | value |
//! | --- | --- | --- |
//! | [`header`]`("x-user-id")` | `<header.x-user-id>` | of that header |
//! | [`cookie`]`("cart")` | `<cookie.cart>` | of that cookie |
//! | [`session`]`("sid")` | `<session.sid>` | of that cookie, digested |
//! | [`bearer`]`()` | `<bearer>` | the token of `Authorization: Bearer …`, digested |
//! | [`idempotency_key`]`()` | `<idempotency-key>` | of that header, quoted or bare |
//! | [`extension`]`("user", \|user: &User\| user.id)` | `<ext.user>`, of a [`KeyTemplate`] | what a layer outside has found |
//! | [`method`]`()`, [`host`]`()`, [`route`]`()`, [`path`]`()` | `<method>`, `<host>`, `<route>`, `<path>` | see [there](crate#templates) |
//! | `param("id")` (feature `axum`) | `<param.id>` | of that parameter of the route, decoded |
//! | [`query`]`("page")` | `<query.page>` | of that parameter of the query, decoded |
//! | [`peer`]`()` | `<peer>` | the address that the connection is from |
//! | [`forwarded`]`(1)`, [`x_forwarded_for`]`(1)` | `<forwarded.1>`, `<x-forwarded-for.1>` | the address that the outermost of so many trusted proxies was called from |
//! | `json("/order/sku")` (feature `json`) | `<json./order/sku>` | that value of the body |
//! | `json_digest()` (feature `json`) | `<json>` | the body, whatever the order of its members, digested |
//! | [`form`]`("token")` | `<form.token>` | of that field of the body |
//! | [`body`]`()` | `<body>` | the bytes of the body, digested |
//! | [`constant`]`("pay")` | `pay` | for all requests the same |
//! | [`.optional()`](KeyExtractor::optional), [`.lowercase()`](KeyExtractor::lowercase), [`.digested()`](KeyExtractor::digested) | `?`, `\|lower`, `\|sha256` | |
//! | tuples, [`.and(…)`](KeyExtractor::and) | `:` | |

mod canonical;
mod encode;
mod error;
mod extractor;
mod foreign;
mod key_template;
mod kind;
mod layer;
mod no_key;
mod parser;
mod part;
mod ready;
mod request;
mod source;
mod template;

pub use extractor::{Digested, KeyExtractor, Lowercase, Optional, Reads, ReadsNoBody};
pub use kind::{HeadOnly, WithBody};
pub use no_key::KeyError;
pub use part::KeyPart;
#[cfg(feature = "axum")]
pub use ready::param;
pub use ready::{
    Constant, FromBody, FromHead, bearer, body, constant, cookie, extension, form, forwarded,
    header, host, idempotency_key, method, path, peer, query, route, session, x_forwarded_for,
};
#[cfg(feature = "json")]
pub use ready::{json, json_digest};
pub use request::KeyRequest;

// For the crate's root, which is where their users find them.
#[doc(hidden)]
pub use error::TemplateError;
#[doc(hidden)]
pub use key_template::KeyTemplate;

pub(crate) use kind::{Asked, Keying};
pub(crate) use no_key::NoKey;
pub(crate) use request::ReadBody;
