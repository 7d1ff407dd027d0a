//! Checks that the return type can carry the lock's error, and writes the type inside of the body.

use quote::ToTokens;
use syn::{
    Error, GenericArgument, Path, PathArguments, Result, ReturnType, Signature, Type,
    TypeParamBound, parse_quote,
};

use super::is_trait;

/// Returns the function's return type in a form that can be written inside of the body.
///
/// `_` replaces every `impl Trait`, which has no name there. An empty type replaces `!`.
pub(crate) fn nameable(sig: &Signature) -> Type {
    match &sig.output {
        ReturnType::Default => parse_quote!(()),
        ReturnType::Type(..) if is_never(sig) => parse_quote!(::core::convert::Infallible),
        ReturnType::Type(_, ty) => {
            let mut ty = (**ty).clone();
            erase(&mut ty);
            ty
        }
    }
}

pub(crate) fn is_never(sig: &Signature) -> bool {
    matches!(&sig.output, ReturnType::Type(_, ty) if matches!(**ty, Type::Never(_)))
}

/// Checks that the function can return a value if the lock is not granted.
///
/// `on_error` makes the value, or the return type itself does.
pub(crate) fn check(sig: &Signature, has_on_error: bool) -> Result<()> {
    let name = &sig.ident;
    match &sig.output {
        _ if has_on_error => Ok(()),
        ReturnType::Type(_, ty) if is_never(sig) => Err(Error::new_spanned(
            ty,
            format!(
                "`{name}` never returns, so it cannot report that the lock is busy or lost; \
                 return a `Result` whose error is `From<lock_core::Error>`, or add `on_error = |error| …` with an \
                 expression that never returns"
            ),
        )),
        ReturnType::Default => Err(nothing(name, name)),
        ReturnType::Type(_, ty) => match &**ty {
            Type::Tuple(tuple) if tuple.elems.is_empty() => Err(nothing(ty, name)),
            Type::ImplTrait(opaque)
                if opaque
                    .bounds
                    .iter()
                    .any(|bound| is_trait(bound, "IntoResponse")) =>
            {
                Err(Error::new_spanned(
                    ty,
                    "an `impl IntoResponse` cannot be made from the lock's error; write `-> axum::response::Response` \
                 (and `.into_response()` in the body) or `-> Result<…, (StatusCode, String)>`",
                ))
            }
            Type::ImplTrait(_) => Err(Error::new_spanned(
                ty,
                "an `impl Trait` cannot be made from the lock's error; return a `Result` whose error \
                 is `From<lock_core::Error>` (`Result<impl Trait, E>` is one), or add `on_error = |error| …`",
            )),
            _ => Ok(()),
        },
    }
}

fn nothing(at: &impl ToTokens, name: &syn::Ident) -> Error {
    Error::new_spanned(
        at,
        format!(
            "`{name}` returns nothing, so it cannot report that the lock was not granted; return a `Result` whose error \
             is `From<lock_core::Error>`, or add `on_error = |error| …`"
        ),
    )
}

fn erase(ty: &mut Type) {
    match ty {
        Type::ImplTrait(_) => *ty = parse_quote!(_),
        Type::Path(path) => erase_path(&mut path.path),
        Type::TraitObject(object) => {
            for bound in &mut object.bounds {
                if let TypeParamBound::Trait(bound) = bound {
                    erase_path(&mut bound.path);
                }
            }
        }
        Type::Tuple(tuple) => tuple.elems.iter_mut().for_each(erase),
        Type::Reference(reference) => erase(&mut reference.elem),
        Type::Array(array) => erase(&mut array.elem),
        Type::Slice(slice) => erase(&mut slice.elem),
        Type::Paren(paren) => erase(&mut paren.elem),
        Type::Group(group) => erase(&mut group.elem),
        _ => {}
    }
}

fn erase_path(path: &mut Path) {
    for segment in &mut path.segments {
        let PathArguments::AngleBracketed(arguments) = &mut segment.arguments else {
            continue;
        };
        for argument in &mut arguments.args {
            match argument {
                GenericArgument::Type(ty) => erase(ty),
                GenericArgument::AssocType(assoc) => erase(&mut assoc.ty),
                _ => {}
            }
        }
    }
}
