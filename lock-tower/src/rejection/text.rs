//! The words of a refusal, for the person who reads the response.

use super::{Rejection, RejectionKind};

impl Rejection {
    /// Returns a few words for the client.
    ///
    /// They say nothing about the service's configuration. Lock errors have the same title in
    /// lock-core, so a refusal by the layer reads like one by the handler.
    pub(super) fn title(&self) -> &'static str {
        match self.kind {
            RejectionKind::InFlight => "Already in progress",
            RejectionKind::Full => "Too many in progress",
            RejectionKind::CoolingDown => "Too soon to repeat",
            RejectionKind::Done => "Already handled",
            RejectionKind::Unavailable => "Lock service unavailable",
            RejectionKind::OutcomeUnknown => "Outcome not known yet",
            RejectionKind::KeyMissing => "Request not identified",
            RejectionKind::KeyAmbiguous => "Request identified twice",
            RejectionKind::KeyInvalid => "Request identity not understood",
            RejectionKind::KeyUnavailable => "Identity service unavailable",
            RejectionKind::KeyReused => "Request differs from the first",
            RejectionKind::Unreadable => "Outcome not readable",
            RejectionKind::BodyTooLarge => "Request body too large",
            RejectionKind::BodyTimeout => "Request body too slow",
            RejectionKind::BodyIncomplete => "Request body incomplete",
            RejectionKind::BodyInvalid => "Request body not understood",
            RejectionKind::TransactionLent => "Server error",
            RejectionKind::Misconfigured | RejectionKind::Invalid => "Locks not set up correctly",
        }
    }

    /// Returns what happened, and what the person can do about it.
    ///
    /// The layer knows that it has not called the handler for this attempt. It does not know what an earlier attempt, or
    /// another request with the key, has done, so no text speaks of that. Lock errors have the same detail in lock-core,
    /// where the lock may be that of a part of the work. So there the detail of `lock_key_reused` does not say that
    /// the attempt was not carried out.
    pub(super) fn detail(&self) -> &'static str {
        match self.kind {
            RejectionKind::InFlight => {
                "Another request like this one is in progress. Please wait for its outcome before you \
                 send it again."
            }
            RejectionKind::Full => {
                "As many of these requests are in progress as are allowed at a time. Please try again in \
                 a moment."
            }
            RejectionKind::CoolingDown => {
                "Another request like this one was made recently. Please check its outcome before you \
                 send it again."
            }
            RejectionKind::Done => {
                "Another request like this one has been handled, and its answer is not kept. Please \
                 check its outcome. Do not send it again."
            }
            RejectionKind::Unavailable => {
                "The lock service gave no answer. Please try again in a moment."
            }
            RejectionKind::OutcomeUnknown if self.retry_after.is_none() => {
                "It is not known whether the request was carried out. Please check its outcome before you \
                 send it again."
            }
            RejectionKind::OutcomeUnknown => {
                "It is not known yet whether the request was carried out. Please send the same request \
                 again. It is not carried out twice."
            }
            RejectionKind::KeyMissing if self.source.is_none() => {
                "The request carries no user identity. This attempt was not carried out."
            }
            RejectionKind::KeyMissing => {
                "The request lacks a value that identifies it. This attempt was not carried out. \
                 Please go back, reload the page and try again."
            }
            RejectionKind::KeyAmbiguous => {
                "The request carries two different values where one value identifies it. This attempt \
                 was not carried out."
            }
            RejectionKind::KeyInvalid => {
                "The request carries a value that identifies it, but in an unknown format. This \
                 attempt was not carried out."
            }
            RejectionKind::KeyUnavailable => {
                "The service that identifies requests gave no answer. This attempt was not carried \
                 out. Please try again in a moment."
            }
            RejectionKind::KeyReused => {
                "Another request was sent with the same identity before. This attempt was not carried \
                 out. Please use a new idempotency key for a new request."
            }
            RejectionKind::Unreadable => {
                "Another request like this one has been handled, and its outcome cannot be read. Please \
                 check it. Do not send it again."
            }
            RejectionKind::BodyTooLarge => {
                "The body of the request is too large. This attempt was not carried out. Please send \
                 less."
            }
            RejectionKind::BodyTimeout => {
                "The body of the request did not arrive in time. This attempt was not carried out. \
                 Please try again in a moment."
            }
            RejectionKind::BodyIncomplete => {
                "The body of the request ended too early. This attempt was not carried out. Please try \
                 again in a moment."
            }
            RejectionKind::BodyInvalid => {
                "The body of the request has an unknown format. This attempt was not carried out."
            }
            RejectionKind::TransactionLent
            | RejectionKind::Misconfigured
            | RejectionKind::Invalid => {
                "The fault is on the server's side. Please try again later."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A duplicate reads the same words as a first attempt, and its first attempt may have succeeded.
    #[test]
    fn no_text_claims_the_outcome_of_an_earlier_attempt() {
        use RejectionKind::*;
        for kind in [
            InFlight,
            Full,
            CoolingDown,
            Done,
            Unavailable,
            OutcomeUnknown,
            KeyMissing,
            KeyAmbiguous,
            KeyInvalid,
            KeyUnavailable,
            KeyReused,
            Unreadable,
            BodyTooLarge,
            BodyTimeout,
            BodyIncomplete,
            BodyInvalid,
            TransactionLent,
            Misconfigured,
            Invalid,
        ] {
            let rejection = Rejection::new(kind);
            let without_hint = Rejection {
                retry_after: None,
                ..rejection.clone()
            };
            for rejection in [rejection, without_hint] {
                let text = format!("{}. {}", rejection.title(), rejection.detail());
                let text = text.to_lowercase();
                for claim in [
                    "nothing was done",
                    "succeeded",
                    "no need",
                    "already done",
                    "first request",
                ] {
                    assert!(!text.contains(claim), "{kind:?}: {text}");
                }
            }
        }
    }
}
