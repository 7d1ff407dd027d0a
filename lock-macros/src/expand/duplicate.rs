//! Refuses two attributes with the same lock on one function.

use std::collections::BTreeSet;

use quote::ToTokens as _;
use syn::{Attribute, Error, Expr, Result, parse::Parse};

use crate::args::{Key, LockArgs};
use crate::path::ends_with;

/// Refuses a second attribute with the same key and manager.
///
/// Two different locks on one function are fine.
pub(crate) fn check(args: &LockArgs, below: &[Attribute]) -> Result<()> {
    let problem = "the attribute above already acquires this lock; keep one of the two";
    check_twice("distributed_lock", below, problem, |other| {
        identity(other) == identity(args)
    })
}

/// Refuses an attribute of that name whose arguments are the same.
pub(crate) fn check_twice<A: Parse>(
    name: &str,
    below: &[Attribute],
    problem: &str,
    is_same: impl Fn(&A) -> bool,
) -> Result<()> {
    let same = below.iter().find(|attr| {
        ends_with(attr.path(), name) && attr.parse_args().is_ok_and(|other| is_same(&other))
    });
    same.map_or(Ok(()), |attr| Err(Error::new_spanned(attr.path(), problem)))
}

/// Returns the keys and the manager, which identify a lock.
fn identity(args: &LockArgs) -> (BTreeSet<String>, Option<String>) {
    let keys = args.key.iter().map(Key::text);
    let manager = args.manager.as_ref().map(Expr::to_token_stream);
    (keys.collect(), manager.map(|tokens| tokens.to_string()))
}
