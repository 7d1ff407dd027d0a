//! What a caller wants.

use std::sync::Arc;
use std::time::Duration;

use super::Core;
use crate::base::options::Wait;
use crate::lease::Terms;

/// A checked request.
pub(crate) struct Wanted {
    pub(crate) core: Arc<Core>,
    pub(crate) key: Arc<str>,
    pub(crate) terms: Terms,
    pub(crate) wait: Wait,
    pub(crate) cooldown: Duration,
    pub(crate) acquire_timeout: Duration,
}
