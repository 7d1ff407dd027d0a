//! Refuses two attributes with the same lock on one function.

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

/// Returns the key and the manager, which identify a lock.
fn identity(args: &LockArgs) -> (String, Option<String>) {
    let key = match &args.key {
        Key::Template(literal, _) => literal.value(),
        Key::Expr(expr) => expr.to_token_stream().to_string(),
    };
    let manager = args.manager.as_ref().map(Expr::to_token_stream);
    (key, manager.map(|tokens| tokens.to_string()))
}
