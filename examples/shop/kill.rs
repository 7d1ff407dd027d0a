//! Has this process killed in the middle of a request, so that the page can show what is left of that.
//!
//! The parent of a pair kills it, as `kill -9` does, and starts it again.

use std::future;
use std::io::{self, Write};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::app::Shop;
use crate::error::ShopError;

/// A request with this header has its process killed.
const HEADER: &str = "x-kill-process";

/// The line by which a child asks its parent to kill it.
pub(crate) const LINE: &str = "kill me";

/// Whether a request has its process killed.
#[derive(Debug)]
pub(crate) struct Kill(bool);

impl FromRequestParts<Shop> for Kill {
    type Rejection = ShopError;

    async fn from_request_parts(parts: &mut Parts, shop: &Shop) -> Result<Self, ShopError> {
        let asked = parts.headers.contains_key(HEADER);
        match asked && !shop.in_pair {
            // A process without a parent would not come back.
            true => Err(ShopError::NoPair),
            false => Ok(Self(asked)),
        }
    }
}

impl Kill {
    /// Waits for the end of this process, if the request asks for it.
    pub(crate) async fn here(self) {
        if !self.0 {
            return;
        }
        // If the parent has gone, this process ends in order.
        if ask_the_parent().is_ok() {
            future::pending().await
        }
    }
}

fn ask_the_parent() -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{LINE}")?;
    out.flush()
}
