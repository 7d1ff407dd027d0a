//! Tests of the error type.

use super::*;

#[test]
fn an_error_never_shows_its_key() {
    let key: Arc<str> = "account:alice@example.com".into();
    let error = Error::busy(false, None).with_key(&key);
    assert_eq!(error.key(), Some("account:alice@example.com"));
    assert!(!format!("{error} {error:?}").contains("alice"));
}

#[test]
fn every_kind_has_one_method_that_is_true_for_it_alone() {
    let kinds = [
        ErrorKind::Busy,
        ErrorKind::Unavailable,
        ErrorKind::Lost,
        ErrorKind::Misconfigured,
        ErrorKind::Invalid,
        ErrorKind::Reused,
        ErrorKind::Unreadable,
    ];
    for kind in kinds {
        let error = Error::new(kind, "");
        let seen = [
            error.is_busy(),
            error.is_unavailable(),
            error.is_lost(),
            error.is_misconfigured(),
            error.is_invalid(),
            error.is_reused(),
            error.is_unreadable(),
        ];
        assert_eq!(seen, kinds.map(|other| other == kind), "{kind:?}");
    }
    assert!(Error::busy(true, None).is_busy() && Error::full(None).is_busy());
    assert!(Error::max_hold().is_lost());
}

#[test]
fn busy_and_unavailable_have_different_statuses() {
    assert_eq!(Error::busy(false, None).http_status(), 409);
    assert_eq!(Error::unavailable("no answer").http_status(), 503);
    assert_eq!(Error::busy(true, None).code(), "lock_cooling_down");
    assert_eq!(Error::max_hold().code(), "lock_max_hold");
    assert_eq!(Error::new(ErrorKind::Reused, "").http_status(), 422);
    assert_eq!(Error::new(ErrorKind::Unreadable, "").http_status(), 500);
}
