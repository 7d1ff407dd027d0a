//! Parameters that are destructured, captured and renamed.

use quote::quote;

use super::{function, has, lacks};

#[test]
fn the_body_owns_every_parameter_and_drops_the_last_first() {
    let item = quote!(
        async fn f(&self, a: A, (b, c): (B, C)) -> R {
            g()
        }
    );
    let expansion = function(quote!(key = "k", ttl = "10s"), item);
    has(
        &expansion,
        &quote!(async fn f(&self, a: A, (b, c): (B, C)) -> R),
    );
    let order: Vec<_> = ["let _ = & b ;", "let _ = & a ;", "let _ = & self ;"]
        .map(|capture| expansion.find(capture).expect(capture))
        .into();
    assert!(order.is_sorted(), "{expansion}");
}

#[test]
fn a_parameter_that_leaves_out_a_part_gets_a_name_and_is_destructured_in_the_body() {
    let item = quote!(
        async fn f(_: A, (mut b, _): (B, C), D { ref d, .. }: D) -> R {
            g()
        }
    );
    let expansion = function(quote!(key = "k:<b>", ttl = "10s"), item);
    has(
        &expansion,
        &quote!(async fn f(__lock_arg0: A, __lock_arg1: (B, C), __lock_arg2: D) -> R),
    );
    has(&expansion, &quote!(let (b, _) = &__lock_arg1;));
    has(&expansion, &quote!(let (mut b, _) = __lock_arg1;));
    has(&expansion, &quote!(let D { ref d, .. } = __lock_arg2;));
    // Nothing in the arguments names `d`.
    lacks(&expansion, &quote!(= &__lock_arg2; let __lock_request));
    // Names in the arguments count as used.
    has(
        &expansion,
        &quote!(let (mut b, _) = __lock_arg1; let _ = b;),
    );
}

#[test]
fn a_struct_may_implement_drop_and_is_destructured_in_the_body() {
    let item = quote!(
        async fn f(Path(a): Path<A>, D { b }: D) -> R {
            g()
        }
    );
    let expansion = function(quote!(key = key_of(a), ttl = "10s"), item);
    has(
        &expansion,
        &quote!(async fn f(__lock_arg0: Path<A>, __lock_arg1: D) -> R),
    );
    has(&expansion, &quote!(let Path(a) = __lock_arg0;));
    has(&expansion, &quote!(let D { b } = __lock_arg1;));
    // The arguments see the value like a plain parameter.
    has(
        &expansion,
        &quote!((&::lock_core::__private::View(a)).__lock_view()),
    );
}

#[test]
fn a_parameter_that_is_borrowed_mutably_is_mutable_as_a_whole() {
    let item = quote!(
        async fn f((ref mut a, _): (A, B)) -> R {
            g()
        }
    );
    let expansion = function(quote!(key = "k", ttl = "10s"), item);
    has(
        &expansion,
        &quote!(async fn f(mut __lock_arg0: (A, B)) -> R),
    );
}

#[test]
fn instrument_below_cannot_see_into_a_renamed_parameter_and_must_move_up() {
    let item = quote!(
        #[tracing::instrument(skip(a))]
        async fn f((a, _): (A, B)) -> R {
            g()
        }
    );
    let tokens =
        crate::attribute::<crate::args::LockArgs>(quote!(key = "k", ttl = "10s"), item).to_string();
    assert!(tokens.contains("write `#[instrument]` above"), "{tokens}");
    let item = quote!(
        #[tracing::instrument(skip_all, fields(a))]
        async fn f((a, _): (A, B)) -> R {
            g()
        }
    );
    let tokens =
        crate::attribute::<crate::args::LockArgs>(quote!(key = "k", ttl = "10s"), item).to_string();
    assert!(tokens.contains("write `#[instrument]` above"), "{tokens}");
}

#[test]
fn instrument_below_that_sees_all_it_names_stays() {
    let item = quote!(
        #[tracing::instrument(skip(a))]
        async fn f((a, b): (A, B), Path(c): Path<C>) -> R {
            g()
        }
    );
    let expansion = function(quote!(key = "k", ttl = "10s"), item);
    has(
        &expansion,
        &quote!(async fn f((a, b): (A, B), Path(c): Path<C>)),
    );
    let item = quote!(
        #[tracing::instrument(skip_all, fields(c))]
        async fn f((a, _): (A, B), c: C) -> R {
            g()
        }
    );
    let expansion = function(quote!(key = "k", ttl = "10s"), item);
    has(&expansion, &quote!(async fn f(__lock_arg0: (A, B), c: C)));
}

#[test]
fn a_conditional_parameter_is_captured_under_its_condition() {
    let item = quote!(
        async fn f(#[cfg(unix)] a: A, #[cfg(windows)] _: B) -> R {
            g()
        }
    );
    let expansion = function(quote!(key = "k", ttl = "10s"), item);
    let capture = quote!(#[cfg(unix)] let _ = &a;);
    has(&expansion, &capture);
    has(&expansion, &quote!(#[cfg(windows)] __lock_arg1: B));
}
