//! Answers a request by the record that an earlier run has left.

use lock_core::OperationId;
use lock_core::once::Found;

use super::place::record_name;
use crate::policy::Policy;
use crate::record::{Fingerprinted, Record, ReplayRules, Sealing};
use crate::rejection::{Rejection, RejectionKind};

/// Decodes a record. What cannot be read is done nevertheless, so it must not run again.
pub(super) fn record_of(
    policy: &Policy,
    rules: &ReplayRules,
    operation: OperationId,
    found: &Found,
) -> Result<Record, Rejection> {
    let bytes = found
        .record
        .as_deref()
        .ok_or_else(|| Rejection::new(RejectionKind::Done))?;
    let name = record_name(operation);
    Record::decode(bytes, Sealing::of(rules, &name)).map_err(|reason| {
        policy.telemetry.unreadable(reason.as_str());
        Rejection::new(RejectionKind::Unreadable)
    })
}

/// Compares what two handlers have read of their requests. `None`: they have read different lengths, which tells nothing.
pub(super) fn is_same(first: Fingerprinted, second: Fingerprinted) -> Option<bool> {
    if first.read == second.read {
        let differs = first.digest != second.digest;
        // If the first body has ended here, the second one must, too.
        return match (first.ended, second.ended) {
            _ if differs => Some(false),
            (true, false) => None,
            _ => Some(true),
        };
    }
    let shorter = match first.read < second.read {
        true => first,
        false => second,
    };
    shorter.ended.then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(digest: u8, read: u64, ended: bool) -> Fingerprinted {
        let digest = [digest; 32];
        Fingerprinted {
            digest,
            read,
            ended,
        }
    }

    #[test]
    fn two_requests_are_compared_as_far_as_both_were_read() {
        for (first, second, same) in [
            (read(1, 9, true), read(1, 9, true), Some(true)),
            (read(1, 9, true), read(2, 9, true), Some(false)),
            (read(1, 9, true), read(2, 9, false), Some(false)),
            // The rest of the second body is not known.
            (read(1, 9, true), read(1, 9, false), None),
            (read(1, 9, true), read(1, 0, false), None),
            // The first handler has not read more.
            (read(1, 9, false), read(1, 9, true), Some(true)),
            (read(1, 9, false), read(1, 9, false), Some(true)),
            // The digest of nine bytes says nothing of the first five.
            (read(1, 5, false), read(1, 9, true), None),
            (read(1, 5, true), read(1, 9, false), Some(false)),
            (read(1, 9, false), read(1, 5, true), Some(false)),
        ] {
            assert_eq!(is_same(first, second), same, "{first:?} {second:?}");
        }
    }
}
