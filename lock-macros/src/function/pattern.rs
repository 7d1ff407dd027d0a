//! The names that a parameter's pattern binds, and the parts that it leaves out.

use syn::{Ident, Pat};

/// Returns whether the matched value, or a part of it, may stay behind without a name.
///
/// This is possible for a struct even if the pattern names all fields. If the struct implements `Drop`
/// and all its fields are `Copy`, it stays behind as a whole. The pattern does not show that.
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

/// Returns whether the pattern shows that a part of the matched value stays behind.
pub(crate) fn leaves_something(pat: &Pat) -> bool {
    match pat {
        // A capitalized name may be a unit struct or a constant, which moves nothing.
        Pat::Ident(name) => {
            name.by_ref.is_some() || (name.mutability.is_none() && is_capital(&name.ident))
        }
        // The value behind a reference is not owned.
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

/// Returns whether the pattern borrows mutably from the value.
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

/// Returns every name that the pattern binds.
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

/// Returns the pattern without `ref`, `mut` and `&`, for a borrowed value in every edition.
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
    fn parts_that_are_nameless_or_only_borrowed_stay_behind() {
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
    fn a_mutable_borrow_is_found() {
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
