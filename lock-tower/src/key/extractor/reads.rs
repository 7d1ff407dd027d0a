//! Declares in the type of an extractor whether it reads the body.

use crate::key::{HeadOnly, WithBody};

/// The part of a request that an extractor reads: [`HeadOnly`] or [`WithBody`].
pub trait Reads: sealed::Sealed {
    /// The part of a request that this extractor and another one read together.
    type With<Other: Reads>: Reads;
}

impl Reads for HeadOnly {
    type With<Other: Reads> = Other;
}

impl Reads for WithBody {
    type With<Other: Reads> = WithBody;
}

/// Marks an extractor for a layer whose requests may have bodies of any type.
#[diagnostic::on_unimplemented(
    message = "this extractor reads the body of the request",
    label = "reads the body",
    note = "use `LockLayer::body_extractor(locks, extractor, limit)`"
)]
pub trait ReadsNoBody: Reads {}

impl ReadsNoBody for HeadOnly {}

mod sealed {
    pub trait Sealed: Send + Sync + 'static {}
    impl Sealed for super::HeadOnly {}
    impl Sealed for super::WithBody {}
}
