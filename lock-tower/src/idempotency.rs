//! Idempotency: how a layer with [replay](crate::LockLayer::replay) answers duplicates.
