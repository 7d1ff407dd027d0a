//! Parses the URL that names a store.

pub(crate) mod redlock;
pub(crate) mod store_url;
