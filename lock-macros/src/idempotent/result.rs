//! Checks that the return type can be kept, as far as its tokens tell.

use syn::{Error, GenericArgument, PathArguments, Result, ReturnType, Signature, Type};

use crate::path::ends_with;

pub(super) fn check(sig: &Signature) -> Result<()> {
    let name = &sig.ident;
    let nothing = format!(
        "`{name}` returns nothing, so it cannot report that the call was refused; return a `Result<T, E>`, for example \
         `Result<(), lock_core::Error>`"
    );
    let ReturnType::Type(_, ty) = &sig.output else {
        return Err(Error::new(name.span(), nothing));
    };
    let problem = match without_groups(ty) {
        Type::Tuple(tuple) if tuple.elems.is_empty() => nothing,
        Type::Never(_) => format!(
            "`{name}` never returns, so there is no result to remember; return a `Result<T, E>`"
        ),
        Type::Reference(_) => {
            "return a `Result<T, E>` that owns its data, because a remembered result outlives the call".to_owned()
        }
        ty if has_impl_trait(ty) => {
            "return a `Result<T, E>` without `impl Trait`, because a remembered result is read into its type, which \
             must have a name"
                .to_owned()
        }
        ty if is_no_result(ty) => {
            "return a `Result<T, E>`, because a function that remembers its result must be able to report that the \
             call was refused"
                .to_owned()
        }
        ty => match borrowed(ty) {
            Some(reference) => {
                return Err(Error::new_spanned(
                    reference,
                    "a remembered result owns its data, because it outlives the call; return for example a `String` \
                     in place of a `&str`",
                ));
            }
            None => return Ok(()),
        },
    };
    Err(Error::new_spanned(ty, problem))
}

fn without_groups(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => without_groups(&group.elem),
        Type::Paren(paren) => without_groups(&paren.elem),
        other => other,
    }
}

fn has_impl_trait(ty: &Type) -> bool {
    match ty {
        Type::ImplTrait(_) => true,
        Type::Tuple(tuple) => tuple.elems.iter().any(has_impl_trait),
        Type::Group(group) => has_impl_trait(&group.elem),
        Type::Paren(paren) => has_impl_trait(&paren.elem),
        Type::Path(_) => arguments(ty).any(has_impl_trait),
        _ => false,
    }
}

/// Returns whether the type is one of the standard library that is no `Result`. Other names may be aliases of one.
fn is_no_result(ty: &Type) -> bool {
    const NAMES: [&str; 22] = [
        "bool", "char", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64",
        "u128", "usize", "f32", "f64", "String", "Option", "Vec", "HashMap", "BTreeMap",
        "Duration",
    ];
    match ty {
        Type::Tuple(_) | Type::Array(_) | Type::Slice(_) => true,
        Type::Path(path) => NAMES.iter().any(|name| ends_with(&path.path, name)),
        _ => false,
    }
}

/// Finds a reference in the value of a result.
fn borrowed(ty: &Type) -> Option<&Type> {
    arguments(ty).next().and_then(reference_in)
}

fn reference_in(ty: &Type) -> Option<&Type> {
    match ty {
        Type::Reference(_) => Some(ty),
        Type::Group(group) => reference_in(&group.elem),
        Type::Paren(paren) => reference_in(&paren.elem),
        Type::Tuple(tuple) => tuple.elems.iter().find_map(reference_in),
        Type::Path(path) => {
            let holds = ["Option", "Vec"]
                .iter()
                .any(|name| ends_with(&path.path, name));
            holds
                .then(|| arguments(ty).find_map(reference_in))
                .flatten()
        }
        _ => None,
    }
}

/// Returns the types in the angle brackets of a path.
fn arguments(ty: &Type) -> impl Iterator<Item = &Type> {
    let last = match ty {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    };
    let arguments = last.and_then(|last| match &last.arguments {
        PathArguments::AngleBracketed(arguments) => Some(&arguments.args),
        _ => None,
    });
    arguments
        .into_iter()
        .flatten()
        .filter_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty),
            _ => None,
        })
}
