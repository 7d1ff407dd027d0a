//! Freeing a key from the holder that was seen.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use super::inspection::Holder;
use crate::base::BoxFuture;
use crate::base::error::Error;
use crate::base::identity::checked;
use crate::engine::Engine;
use crate::engine::inquiry::error_of;
use crate::store::{self, Forced, OperatorOperation, OperatorOutcome};

/// For how long the key stays taken, so that a holder that was told can stop.
const GRACE: Duration = Duration::from_secs(1);
/// The longest name of an operator, and the longest reason, in characters.
const LONGEST_NAME: usize = 128;
const LONGEST_REASON: usize = 512;

/// An order to free a key, which needs a reason. [`Operator::force`](super::Operator::force) makes it.
#[must_use = "nothing is freed until `because(…).await`"]
pub struct Force {
    engine: Arc<Engine>,
    operator: Arc<str>,
    holder: Holder,
}

impl Force {
    pub(super) fn new(engine: &Arc<Engine>, operator: &Arc<str>, holder: &Holder) -> Self {
        Self {
            engine: Arc::clone(engine),
            operator: Arc::clone(operator),
            holder: holder.clone(),
        }
    }

    /// Says why the key is freed. The reason is logged, so do not write the key into it.
    pub fn because(self, reason: impl Into<String>) -> ForceFor {
        ForceFor {
            order: self,
            reason: reason.into(),
        }
    }
}

/// An order with its reason; `.await` runs it.
///
/// # Errors
///
/// * `Unavailable`: the store gave no answer, has no memory to note the fencing token, or moves the key from one node
///   of a cluster to another. In the first case the key may be free: inspect it again.
/// * `Misconfigured`: the store refuses the order for good.
/// * `Invalid`: the name of the operator or the reason is empty, too long (128 and 512 characters), or has control
///   characters.
///
/// # Cancel safety
///
/// If the future is dropped, the key may be freed or not, and no line is logged.
#[must_use = "nothing is freed until `.await`"]
pub struct ForceFor {
    order: Force,
    reason: String,
}

impl ForceFor {
    async fn run(self) -> Result<Forced, Error> {
        let Self { order, reason } = self;
        checked(&order.operator, "name of the operator", LONGEST_NAME)?;
        checked(&reason, "reason", LONGEST_REASON)?;
        let holder = &order.holder;
        let force = OperatorOperation::Force(store::Force {
            key: Arc::clone(&holder.key),
            holder: holder.token.clone(),
            fence: holder.fence,
            grace: GRACE,
            register: None,
        });
        let answer = match order.engine.operate(force).await {
            Ok(OperatorOutcome::Forced(forced)) => Ok(forced),
            Ok(_) => Err((
                true,
                Error::unavailable("the store's answer was not understood"),
            )),
            Err(failure) => Err((failure.ambiguous, error_of(failure, &holder.key))),
        };
        match answer {
            Ok(Forced::Changed) => Ok(Forced::Changed),
            Ok(forced) => {
                order.log(&reason, "an operator freed a lock");
                Ok(forced)
            }
            Err((ambiguous, error)) => {
                if ambiguous {
                    order.log(
                        &reason,
                        "an operator may have freed a lock; the store did not answer",
                    );
                }
                Err(error)
            }
        }
    }
}

impl Force {
    fn log(&self, reason: &str, outcome: &str) {
        let holder = match &self.holder.identity {
            Some(identity) => identity.to_string(),
            None => "unknown".to_owned(),
        };
        let fence = self.holder.fence.map(u64::from);
        tracing::warn!(
            operator = &*self.operator,
            reason,
            holder,
            fence,
            "{outcome}"
        );
    }
}

impl IntoFuture for ForceFor {
    type Output = Result<Forced, Error>;
    type IntoFuture = BoxFuture<'static, Result<Forced, Error>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl fmt::Debug for Force {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Force")
            .field("operator", &self.operator)
            .field("holder", &self.holder)
            .finish()
    }
}

impl fmt::Debug for ForceFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForceFor")
            .field("order", &self.order)
            .field("reason", &self.reason)
            .finish()
    }
}
