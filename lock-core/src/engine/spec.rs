//! The request for a lock, after it was checked.

use std::sync::Arc;
use std::time::Duration;

use super::Engine;
use crate::base::options::Wait;
use crate::base::share::ShareLimit;
use crate::lease::LeaseOptions;

/// A checked request.
#[derive(Clone)]
pub(crate) struct LockSpec {
    pub(crate) engine: Arc<Engine>,
    /// The key, or the first of several.
    pub(crate) key: Arc<str>,
    /// The other keys, in the order of their bytes, which is the order in which they are acquired.
    pub(crate) others: Vec<Arc<str>>,
    /// The limit of a share; `None`: the lock has one owner.
    pub(crate) share: Option<ShareLimit>,
    pub(crate) options: LeaseOptions,
    pub(crate) wait: Wait,
    pub(crate) cooldown: Duration,
    pub(crate) acquire_timeout: Duration,
}

impl LockSpec {
    /// All keys, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Arc<str>> + Clone {
        std::iter::once(&self.key).chain(&self.others)
    }
}
