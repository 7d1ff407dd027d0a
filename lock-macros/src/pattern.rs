//! What a parameter's pattern binds, and what it leaves behind.

use syn::{Ident, Pat};

/// Whether the matched value, or a part of it, may stay behind without a name.
///
/// A struct may even if all its fields are named: with a `Drop` of its own, and fields that can all be
/// copied, it stays behind as a whole. Nothing in the pattern tells.
pub(crate) fn may_leave_something(pat: &Pat) -> bool {
    leaves_something(pat) || names_a_struct(pat)
}

fn names_a_struct(pat: &Pat) -> bool {
    match pat {
        Pat::TupleStruct(_) | Pat::Struct(_) => true,
        Pat::Paren(paren) => names_a_struct(&paren.pat),
        Pat::Type(typed) => names_a_struct(&typed.pat),
        Pat::Tuple(tuple) => tuple.elems.iter().any(names_a_struct),
        Pat::Slice(slice) => slice.elems.iter().any(names_a_struct),
        _ => false,
    }
}

/// Whether a part of the matched value stays behind, as the pattern shows.
pub(crate) fn leaves_something(pat: &Pat) -> bool {
    match pat {
        // A name in capitals may be a unit struct or a constant, and matching one moves nothing.
        Pat::Ident(name) => {
            name.by_ref.is_some() || (name.mutability.is_none() && is_capital(&name.ident))
        }
        // What is behind a reference is not owned.
        Pat::Reference(_) | Pat::Lit(_) | Pat::Range(_) => false,
        Pat::Paren(paren) => leaves_something(&paren.pat),
        Pat::Type(typed) => leaves_something(&typed.pat),
        Pat::Tuple(tuple) => tuple.elems.iter().any(leaves_something),
        Pat::TupleStruct(tuple) => tuple.elems.iter().any(leaves_something),
        Pat::Slice(slice) => slice.elems.iter().any(leaves_something),
        Pat::Struct(fields) => {
            fields.rest.is_some()
                || fields
                    .fields
                    .iter()
                    .any(|field| leaves_something(&field.pat))
        }
        _ => true,
    }
}

fn is_capital(name: &Ident) -> bool {
    name.to_string().starts_with(char::is_uppercase)
}

/// Whether the pattern borrows from the value, to change it.
pub(crate) fn borrows_mutably(pat: &Pat) -> bool {
    match pat {
        Pat::Ident(name) => {
            let inner = name
                .subpat
                .as_ref()
                .is_some_and(|(_, pat)| borrows_mutably(pat));
            (name.by_ref.is_some() && name.mutability.is_some()) || inner
        }
        Pat::Paren(paren) => borrows_mutably(&paren.pat),
        Pat::Type(typed) => borrows_mutably(&typed.pat),
        Pat::Tuple(tuple) => tuple.elems.iter().any(borrows_mutably),
        Pat::TupleStruct(tuple) => tuple.elems.iter().any(borrows_mutably),
        Pat::Slice(slice) => slice.elems.iter().any(borrows_mutably),
        Pat::Or(cases) => cases.cases.iter().any(borrows_mutably),
        Pat::Struct(fields) => fields
            .fields
            .iter()
            .any(|field| borrows_mutably(&field.pat)),
        _ => false,
    }
}

/// Every name that the pattern binds.
pub(crate) fn bindings(pat: &Pat) -> Vec<Ident> {
    match pat {
        Pat::Ident(name) => {
            let inner = name.subpat.iter().flat_map(|(_, pat)| bindings(pat));
            std::iter::once(name.ident.clone()).chain(inner).collect()
        }
        Pat::Paren(paren) => bindings(&paren.pat),
        Pat::Type(typed) => bindings(&typed.pat),
        Pat::Reference(reference) => bindings(&reference.pat),
        Pat::Tuple(tuple) => tuple.elems.iter().flat_map(bindings).collect(),
        Pat::TupleStruct(tuple) => tuple.elems.iter().flat_map(bindings).collect(),
        Pat::Slice(slice) => slice.elems.iter().flat_map(bindings).collect(),
        Pat::Struct(fields) => fields
            .fields
            .iter()
            .flat_map(|field| bindings(&field.pat))
            .collect(),
        // Every case of an or-pattern binds the same names.
        Pat::Or(cases) => cases.cases.first().map(bindings).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The pattern without `ref`, `mut` and `&`, so that it takes a borrowed value apart in every edition.
pub(crate) fn by_reference(pat: &Pat) -> Pat {
    let mut pat = pat.clone();
    match &mut pat {
        Pat::Ident(name) => {
            name.by_ref = None;
            name.mutability = None;
            if let Some((_, inner)) = &mut name.subpat {
                **inner = by_reference(inner);
            }
        }
        Pat::Reference(reference) => return by_reference(&reference.pat),
        // Only alternatives need their parentheses.
        Pat::Paren(paren) if matches!(*paren.pat, Pat::Or(_)) => {
            *paren.pat = by_reference(&paren.pat);
        }
        Pat::Paren(paren) => return by_reference(&paren.pat),
        Pat::Type(typed) => return by_reference(&typed.pat),
        Pat::Tuple(tuple) => each(tuple.elems.iter_mut()),
        Pat::TupleStruct(tuple) => each(tuple.elems.iter_mut()),
        Pat::Slice(slice) => each(slice.elems.iter_mut()),
        Pat::Or(cases) => each(cases.cases.iter_mut()),
        Pat::Struct(fields) => {
            for field in &mut fields.fields {
                *field.pat = by_reference(&field.pat);
            }
        }
        _ => {}
    }
    pat
}

fn each<'a>(pats: impl Iterator<Item = &'a mut Pat>) {
    for pat in pats {
        *pat = by_reference(pat);
    }
}

#[cfg(test)]
mod tests {
    use quote::{ToTokens as _, quote};
    use syn::parse::Parser as _;

    use super::*;

    fn pattern(tokens: proc_macro2::TokenStream) -> Pat {
        Pat::parse_single.parse2(tokens).expect("a pattern")
    }

    #[test]
    fn a_whole_value_leaves_nothing() {
        for whole in [
            quote!(uid),
            quote!(mut uid),
            quote!(_uid),
            quote!(Path(uid)),
            quote!((a, [b, mut c])),
            quote!(Point { x, y: z }),
            quote!(&(a, _)),
            quote!(()),
        ] {
            assert!(!leaves_something(&pattern(whole.clone())), "{whole}");
        }
    }

    #[test]
    fn what_has_no_name_or_is_only_borrowed_stays_behind() {
        for part in [
            quote!(_),
            quote!((a, _)),
            quote!((a, ..)),
            quote!(Path((uid, _))),
            quote!(Point { x, .. }),
            quote!(ref a),
            quote!((ref a, b)),
            quote!(Unit),
            quote!([a, ..]),
        ] {
            assert!(leaves_something(&pattern(part.clone())), "{part}");
        }
    }

    #[test]
    fn a_struct_may_stay_behind_as_a_whole() {
        for named in [
            quote!(Path(uid)),
            quote!(Point { x, y }),
            quote!((a, [Path(b)])),
        ] {
            assert!(may_leave_something(&pattern(named.clone())), "{named}");
        }
        for tuple in [quote!(uid), quote!((a, [b, c])), quote!(&Path(uid))] {
            assert!(!may_leave_something(&pattern(tuple.clone())), "{tuple}");
        }
    }

    #[test]
    fn a_borrow_to_change_something_is_found() {
        let deep = quote!(
            (
                a,
                S {
                    b: [ref mut c, ..], ..
                },
            )
        );
        assert!(borrows_mutably(&pattern(deep)));
        assert!(!borrows_mutably(&pattern(quote!((mut a, ref b, &c)))));
    }

    #[test]
    fn every_name_is_found() {
        let names = bindings(&pattern(quote!(
            (a, S { b, c: mut d, .. }, [ref e, rest @ ..], &f, whole @ _)
        )));
        let names: Vec<String> = names.iter().map(Ident::to_string).collect();
        assert_eq!(names, ["a", "b", "d", "e", "rest", "f", "whole"]);
    }

    #[test]
    fn a_pattern_by_reference_has_no_modifiers() {
        let pat = by_reference(&pattern(quote!(
            (ref a, &b, S { mut c, .. }, (mut d), (Ok(ref e) | Err(e)))
        )));
        let expected = quote!((a, b, S { c, .. }, d, (Ok(e) | Err(e))));
        assert_eq!(pat.to_token_stream().to_string(), expected.to_string());
    }
}
