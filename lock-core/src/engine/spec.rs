//! The request for a lock, after it was checked.

use std::sync::Arc;
use std::time::Duration;

use super::Engine;
use crate::base::options::Wait;
use crate::lease::LeaseOptions;

/// A checked request.
pub(crate) struct LockSpec {
    pub(crate) engine: Arc<Engine>,
    pub(crate) key: Arc<str>,
    pub(crate) options: LeaseOptions,
    pub(crate) wait: Wait,
    pub(crate) cooldown: Duration,
    pub(crate) acquire_timeout: Duration,
}
