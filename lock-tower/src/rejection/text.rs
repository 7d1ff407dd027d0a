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
            RejectionKind::CoolingDown => "Already done",
            RejectionKind::Unavailable => "Lock service unavailable",
            RejectionKind::KeyMissing => "Request not identified",
            RejectionKind::KeyAmbiguous => "Request identified twice",
            RejectionKind::KeyInvalid => "Request identity not understood",
            RejectionKind::KeyUnavailable => "Identity service unavailable",
            RejectionKind::KeyReused => "Request differs from the first",
            RejectionKind::BodyTooLarge => "Request body too large",
            RejectionKind::BodyTimeout => "Request body too slow",
            RejectionKind::BodyIncomplete => "Request body incomplete",
            RejectionKind::BodyInvalid => "Request body not understood",
            RejectionKind::Misconfigured | RejectionKind::Invalid => "Locks not set up correctly",
        }
    }

    /// Returns what happened, and what the person can do about it.
    pub(super) fn detail(&self) -> &'static str {
        match self.kind {
            RejectionKind::InFlight => {
                "The first request is still in progress. There is no need to send it again."
            }
            RejectionKind::Full => {
                "As many of these requests are in progress as are allowed at a time. Nothing was done. \
                 Please try again in a moment."
            }
            RejectionKind::CoolingDown => {
                "The first request succeeded a moment ago. There is no need to send it again."
            }
            RejectionKind::Unavailable => {
                "The lock service gave no answer. Nothing was done. Please try again in a moment."
            }
            RejectionKind::KeyMissing if self.source.is_none() => {
                "The request carries no user identity. Nothing was done."
            }
            RejectionKind::KeyMissing => {
                "The request lacks a value that identifies it. Nothing was done. Please go back, \
                 reload the page and try again."
            }
            RejectionKind::KeyAmbiguous => {
                "The request carries two different values where one value identifies it. Nothing was done."
            }
            RejectionKind::KeyInvalid => {
                "The request carries a value that identifies it, but in an unknown format. Nothing \
                 was done."
            }
            RejectionKind::KeyUnavailable => {
                "The service that identifies requests gave no answer. Nothing was done. Please try \
                 again in a moment."
            }
            RejectionKind::KeyReused => {
                "Another request was sent with the same identity before. Nothing was done. Please use a \
                 new idempotency key for a new request."
            }
            RejectionKind::BodyTooLarge => {
                "The body of the request is too large. Nothing was done. Please send less."
            }
            RejectionKind::BodyTimeout => {
                "The body of the request did not arrive in time. Nothing was done. Please try again \
                 in a moment."
            }
            RejectionKind::BodyIncomplete => {
                "The body of the request ended too early. Nothing was done. Please try again in a \
                 moment."
            }
            RejectionKind::BodyInvalid => {
                "The body of the request has an unknown format. Nothing was done."
            }
            RejectionKind::Misconfigured | RejectionKind::Invalid => {
                "Nothing was done. The fault is on the server's side; please try again later."
            }
        }
    }
}
