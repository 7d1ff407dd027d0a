//! Extractors, which make the key of a request.
//!
//! A [template](crate#templates) and the extractors make the same parts of a key. A template is
//! shorter. An extractor can run code, such as a lookup in a session store.
//!
//! | extractor | source in a template | value |
//! | --- | --- | --- |
//! | [`header`]`("x-user-id")` | `<header.x-user-id>` | that header |
//! | [`cookie`]`("cart")` | `<cookie.cart>` | that cookie |
//! | [`session`]`("sid")` | `<session.sid>` | the digest of that cookie |
//! | [`bearer`]`()` | `<bearer>` | the digest of the token in `Authorization: Bearer …` |
//! | [`idempotency_key`]`()` | `<idempotency-key>` | that header, with or without quotes |
//! | [`extension`]`("user", \|user: &User\| user.id)` | `<ext.user>`, in a [`KeyTemplate`] | a value that an outer layer has put into the extensions |
//! | [`method`]`()`, [`host`]`()`, [`route`]`()`, [`path`]`()` | `<method>`, `<host>`, `<route>`, `<path>` | see [Templates](crate#templates) |
//! | `param("id")` (feature `axum`) | `<param.id>` | that parameter of the route, decoded |
//! | [`query`]`("page")` | `<query.page>` | that parameter of the query, decoded |
//! | [`peer`]`()` | `<peer>` | the IP address of the connection's peer |
//! | [`forwarded`]`(1)`, [`x_forwarded_for`]`(1)` | `<forwarded.1>`, `<x-forwarded-for.1>` | the address from which the outermost trusted proxy was called |
//! | `json("/order/sku")` (feature `json`) | `<json./order/sku>` | that value in the body |
//! | `json_digest()` (feature `json`) | `<json>` | the digest of the body, regardless of the order of its members |
//! | [`form`]`("token")` | `<form.token>` | that field of the body |
//! | [`body`]`()` | `<body>` | the digest of the body's bytes |
//! | [`constant`]`("pay")` | `pay` | the same text for all requests |
//! | [`.optional()`](KeyExtractor::optional), [`.lowercase()`](KeyExtractor::lowercase), [`.digested()`](KeyExtractor::digested) | `?`, `\|lower`, `\|sha256` | |
//! | tuples, [`.and(…)`](KeyExtractor::and) | `:` | |

mod body;
mod canonical;
mod encode;
mod extractor;
mod failure;
mod keys;
mod kind;
mod part;
mod request;
mod source;
mod template;

#[cfg(feature = "axum")]
pub use extractor::param;
pub use extractor::{
    Constant, Digested, FromBody, FromHead, KeyExtractor, Lowercase, Optional, Reads, ReadsNoBody,
    bearer, body, constant, cookie, extension, form, forwarded, header, host, idempotency_key,
    method, path, peer, query, route, session, x_forwarded_for,
};
#[cfg(feature = "json")]
pub use extractor::{json, json_digest};
pub use failure::KeyError;
pub use kind::{HeadOnly, WithBody};
pub use part::KeyPart;
pub use request::KeyRequest;

// These are documented at the root of the crate.
#[doc(hidden)]
pub use body::RequestBody;
#[doc(hidden)]
pub use template::{KeyTemplate, TemplateError};

pub(crate) use body::BodyLimits;
#[cfg(feature = "replay")]
pub(crate) use body::{BodyTap, Remainder, as_bytes};
#[cfg(feature = "replay")]
pub(crate) use canonical::canonical_uri;
pub(crate) use extractor::WholeKey;
pub(crate) use failure::KeyFailure;
pub(crate) use keys::RequestKeys;
pub(crate) use kind::{KeyFuture, KeyLookup, SyncKey};
pub(crate) use template::{AllowedSources, Template, parse_template};
