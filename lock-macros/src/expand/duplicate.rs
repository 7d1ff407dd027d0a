//! Refuses two attributes with the same lock on one function.

use std::collections::BTreeSet;

use quote::ToTokens as _;
use syn::{Attribute, Error, Expr, Result};

use crate::args::{Key, LockArgs};

/// Refuses a second attribute with the same key and manager.
///
/// Two different locks on one function are fine.
pub(crate) fn check(args: &LockArgs, below: &[Attribute]) -> Result<()> {
    let same = below.iter().find(|attr| {
        let is_ours = attr
            .path()
            .segments
            .last()
            .is_some_and(|last| last.ident == "distributed_lock");
        is_ours
            && attr
                .parse_args::<LockArgs>()
                .is_ok_and(|other| identity(&other) == identity(args))
    });
    same.map_or(Ok(()), |attr| {
        Err(Error::new_spanned(
            attr.path(),
            "the attribute above already acquires this lock; keep one of the two",
        ))
    })
}

/// Returns the keys and the manager, which identify a lock.
fn identity(args: &LockArgs) -> (BTreeSet<String>, Option<String>) {
    let keys = args.key.iter().map(Key::text);
    let manager = args.manager.as_ref().map(Expr::to_token_stream);
    (keys.collect(), manager.map(|tokens| tokens.to_string()))
}
