//! The same lock twice on one function.

use quote::ToTokens as _;
use syn::{Attribute, Error, Expr, Result};

use crate::args::{Key, LockArgs};

/// Two locks on one function are fine, two on one key are a slip: the inner one is held already.
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
                .is_ok_and(|other| shown(&other) == shown(args))
    });
    same.map_or(Ok(()), |attr| {
        Err(Error::new_spanned(
            attr.path(),
            "this function takes this very lock in the line above already; keep one of the two",
        ))
    })
}

/// What tells two locks apart: the key and where it is kept.
fn shown(args: &LockArgs) -> (String, Option<String>) {
    let key = match &args.key {
        Key::Template(literal, _) => literal.value(),
        Key::Expr(expr) => expr.to_token_stream().to_string(),
    };
    let manager = args.manager.as_ref().map(Expr::to_token_stream);
    (key, manager.map(|tokens| tokens.to_string()))
}
