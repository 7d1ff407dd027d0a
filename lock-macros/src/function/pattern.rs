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
        Pat::Ident(_) | Pat::Reference(_) | Pat::Or(_) => false,
        _ => inside(pat).into_iter().any(names_a_struct),
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
        Pat::Struct(fields) if fields.rest.is_some() => true,
        Pat::Paren(_)
        | Pat::Type(_)
        | Pat::Tuple(_)
        | Pat::TupleStruct(_)
        | Pat::Slice(_)
        | Pat::Struct(_) => inside(pat).into_iter().any(leaves_something),
        _ => true,
    }
}

fn is_capital(name: &Ident) -> bool {
    name.to_string().starts_with(char::is_uppercase)
}

/// Returns whether the pattern borrows mutably from the value.
pub(crate) fn borrows_mutably(pat: &Pat) -> bool {
    match pat {
        Pat::Ident(name) if name.by_ref.is_some() && name.mutability.is_some() => true,
        // The value holds only the reference.
        Pat::Reference(_) => false,
        _ => inside(pat).into_iter().any(borrows_mutably),
    }
}

/// Returns every name that the pattern binds.
pub(crate) fn bindings(pat: &Pat) -> Vec<Ident> {
    let mut inside = inside(pat);
    let mut names = Vec::new();
    match pat {
        Pat::Ident(name) => names.push(name.ident.clone()),
        // Every case of an or-pattern binds the same names.
        Pat::Or(_) => inside.truncate(1),
        _ => {}
    }
    names.extend(inside.into_iter().flat_map(bindings));
    names
}

/// Returns the patterns of which the pattern consists.
fn inside(pat: &Pat) -> Vec<&Pat> {
    match pat {
        Pat::Ident(name) => name.subpat.iter().map(|(_, pat)| &**pat).collect(),
        Pat::Paren(paren) => vec![&paren.pat],
        Pat::Type(typed) => vec![&typed.pat],
        Pat::Reference(reference) => vec![&reference.pat],
        Pat::Tuple(tuple) => tuple.elems.iter().collect(),
        Pat::TupleStruct(tuple) => tuple.elems.iter().collect(),
        Pat::Slice(slice) => slice.elems.iter().collect(),
        Pat::Or(cases) => cases.cases.iter().collect(),
        Pat::Struct(fields) => fields.fields.iter().map(|field| &*field.pat).collect(),
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
