//! The names of the arguments, and those that do not exist here.

use crate::args::{LOCK, Vocabulary};

pub(super) const IDEMPOTENT: Vocabulary = Vocabulary {
    names: &[
        "key",
        "remember",
        "fingerprint",
        "ttl",
        "tx",
        "wait",
        "errors",
        "renew",
        "max_hold",
        "on_lost",
        "on_error",
        "manager",
        "guard",
        "crate",
    ],
    synonyms: &[
        ("lasting", "remember"),
        ("lifetime", "remember"),
        ("expire", "remember"),
        ("expires", "remember"),
        ("expiry", "remember"),
        ("expiration", "remember"),
        ("retain", "remember"),
        ("retention", "remember"),
        ("cache", "remember"),
        ("hash", "fingerprint"),
        ("payload", "fingerprint"),
        ("args", "fingerprint"),
        ("params", "fingerprint"),
        ("transaction", "tx"),
        ("conn", "tx"),
        ("connection", "tx"),
        ("remember_errors", "errors"),
        ("cache_errors", "errors"),
        ("idempotency_key", "key"),
    ],
    replaced: &[
        ("cooldown", "the record is the cooldown; remove it"),
        (
            "keys",
            "a result is remembered under one key; make one key of the parts, as in `key = \"transfer:<from>:<to>\"`",
        ),
        (
            "mode",
            "readers run side by side, so none of them has the result; remove it",
        ),
        (
            "permits",
            "owners of permits run side by side, so none of them has the result; remove it",
        ),
        (
            "interop",
            "clients of other libraries would overwrite the result; remove it",
        ),
        (
            "release",
            "the release keeps the result, so the call always waits for it; remove it",
        ),
        (
            "reentrant",
            "a call inside its own run is always refused, because it would wait for its own result; remove it",
        ),
    ],
    then: Some(&LOCK),
};
