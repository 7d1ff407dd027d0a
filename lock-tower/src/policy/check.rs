//! Checks that the settings of a layer are within their bounds and do not rule each other out.

use lock_core::{Error, LockKey};

use super::Policy;
use crate::key::RequestKeys;
use crate::options::{Disconnect, Outage};

impl Policy {
    /// Returns the error in the settings, and logs it at the first call.
    pub(crate) fn invalid_settings(&self) -> Option<&Error> {
        let invalid = self.checked.get_or_init(|| {
            let invalid = self.check().err();
            if let Some(error) = &invalid {
                tracing::error!(
                    layer = self.telemetry.layer,
                    %error,
                    "the settings of a lock layer are out of bounds, so it refuses every request"
                );
            }
            invalid
        });
        invalid.as_ref()
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        self.check_requests()?;
        self.check_cooldown()?;
        if self.permits.is_some() && !self.read_methods.is_empty() {
            return Err(Error::invalid(
                "the layer has `permits` and `read_methods`; a key has either a number of permits, or readers and \
                 writers",
            ));
        }
        #[cfg(feature = "replay")]
        if self.replay.is_some() && (self.permits.is_some() || !self.read_methods.is_empty()) {
            return Err(Error::invalid(
                "the layer has `replay` beside `permits` or `read_methods`; an answer that is repeated has one request \
                 that made it, so leave one of them out",
            ));
        }
        let fallback = match &self.outage {
            Outage::Fallback(local) => Some(local),
            Outage::Reject | Outage::Pass => None,
        };
        // The keys are not known yet, but the settings are the same for all of them.
        let cooldown = self.cooldown.longest();
        #[cfg(feature = "replay")]
        let cooldown = match &self.replay {
            Some(rules) => {
                rules.check()?;
                if rules.is_in_database() && self.shadow {
                    return Err(Error::invalid(
                        "the layer has `shadow` beside `in_database`; in shadow mode duplicates run, and the database \
                         refuses their transactions, so leave one of them out",
                    ));
                }
                match rules.is_in_database() {
                    true => cooldown,
                    false => cooldown.max(rules.lifetime),
                }
            }
            None => cooldown,
        };
        for locks in std::iter::once(&self.locks).chain(fallback) {
            let request = self.request(locks, self.any_keys(), None);
            request.cooldown(cooldown).check()?;
            for method in &self.read_methods {
                let request = self.request(locks, self.any_keys(), Some(method));
                request.check()?;
            }
        }
        if self.types.matches('#').count() > 1 {
            return Err(Error::invalid(
                "the code of a refusal is the fragment of its type, so the URI of `documentation` must not contain a `#`",
            ));
        }
        let in_uri = |c: char| c.is_ascii_graphic() && !"\"\\<>^`{|}".contains(c);
        if self.types.is_empty() || !self.types.chars().all(in_uri) {
            return Err(Error::invalid(
                "the base of the problem types is not part of a valid URI",
            ));
        }
        if self.retry_hint.is_zero() {
            return Err(Error::invalid(
                "a retry_hint of zero would make clients retry at once; use a longer one",
            ));
        }
        if self.body.bytes == 0 || self.body.time.is_zero() {
            return Err(Error::invalid(
                "with a body limit or a body_timeout of zero no body can be read; use a larger one",
            ));
        }
        Ok(())
    }

    /// Checks that the layer locks a request, and that `full_status` has a meaning.
    fn check_requests(&self) -> Result<(), Error> {
        if self.methods.is_empty() && self.read_methods.is_empty() {
            return Err(Error::invalid(
                "the layer locks no method; name one by `methods` or `read_methods`",
            ));
        }
        if self.full_status.is_some() && self.permits.is_none() {
            return Err(Error::invalid(
                "the layer has a `full_status` and no `permits`, so no request finds all permits taken; set `permits`, or \
                 change the status of a refusal by `on_reject`",
            ));
        }
        Ok(())
    }

    /// Checks that every key of the layer can have the cooldown, if there is one.
    fn check_cooldown(&self) -> Result<(), Error> {
        let cools = self.cooldown.is_set();
        let holds = matches!(self.disconnect, Disconnect::HoldUntilTtl);
        let reason = if cools && self.permits.is_some() {
            "a permit has no cooldown, because other requests have the key beside it; leave `cooldown`, \
             `min_interval` and `cooldown_with` out, or `permits`"
        } else if holds && self.permits.is_some() {
            "`HoldUntilTtl` keeps the key taken after a request, and a permit does not have the key alone; leave it or \
             `permits` out"
        } else if cools && !self.read_methods.is_empty() {
            "the cooldown after a request would refuse the `read_methods` too, which repeat nothing; give the cooldown to \
             a second layer with a key of its own, which does not lock these methods"
        } else if cools && self.keys > 1 && self.has_waiters() {
            "a layer with several keys cannot answer the requests that wait when a cooldown begins, and they would run after \
             it; leave `wait` or the cooldown out, or lock one key"
        } else {
            return Ok(());
        };
        Err(Error::invalid(reason))
    }

    /// Returns keys for a request that is only checked, because the settings are the same for all keys.
    fn any_keys(&self) -> RequestKeys {
        match self.keys {
            1 => RequestKeys::One(LockKey::exact("any")),
            keys => {
                let keys = (0..keys).map(|number| LockKey::exact(number.to_string()));
                RequestKeys::All(keys.collect())
            }
        }
    }
}
