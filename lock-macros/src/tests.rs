//! The attribute as a whole: tokens in, tokens out.

mod errors;

use proc_macro2::TokenStream;
use quote::quote;

/// The expansion, which must be one function.
fn function(args: TokenStream, item: TokenStream) -> String {
    let tokens = crate::attribute(args, item);
    syn::parse2::<syn::ItemFn>(tokens.clone()).expect("one function");
    tokens.to_string()
}

/// The spaces between tokens depend on where the tokens come from.
fn squeezed(tokens: &str) -> String {
    tokens.split_whitespace().collect()
}

fn has(expansion: &str, part: &TokenStream) {
    let part = part.to_string();
    assert!(
        squeezed(expansion).contains(&squeezed(&part)),
        "{part}\nis not in\n{expansion}"
    );
}

fn lacks(expansion: &str, part: &TokenStream) {
    let part = part.to_string();
    assert!(
        !squeezed(expansion).contains(&squeezed(&part)),
        "{part}\nis in\n{expansion}"
    );
}

fn plain() -> TokenStream {
    quote!(
        async fn place(uid: u64) -> Result<(), Error> {
            body()
        }
    )
}

#[test]
fn a_template_is_built_piece_by_piece_by_reference() {
    let expansion = function(quote!(key = "order:<uid>", ttl = "10s"), plain());
    has(
        &expansion,
        &quote!(::lock_core::__private::installed_request),
    );
    has(
        &expansion,
        &quote!(
            ::lock_core::__private::KeyBuilder::text(&mut __lock_key, "order:");
            ::lock_core::__private::KeyBuilder::value(&mut __lock_key, "uid", &(uid));
        ),
    );
    has(
        &expansion,
        &quote!(.ttl(::core::time::Duration::from_millis(10000u64))),
    );
}

#[test]
fn an_attribute_without_wait_does_not_wait_whatever_the_manager_says() {
    let expansion = function(quote!(key = "k", ttl = "10s"), plain());
    has(&expansion, &quote!(.wait(::lock_core::__private::NO_WAIT)));
    let expansion = function(quote!(key = "k", ttl = "10s", wait = forever), plain());
    has(&expansion, &quote!(.wait(::lock_core::__private::FOREVER)));
}

#[test]
fn every_argument_is_a_method_of_the_request() {
    let args = quote!(
        key = key_of(uid),
        ttl = ttl(),
        wait = "2s",
        renew = false,
        max_hold = "30s",
        on_lost = ignore,
        release = background,
        reentrant = false,
        fair = false,
        manager = self.locks,
    );
    let expansion = function(args, plain());
    has(
        &expansion,
        &quote!(::lock_core::__private::request(&(self.locks), key_of(uid))),
    );
    has(
        &expansion,
        &quote!(.ttl(ttl()).wait(::core::time::Duration::from_millis(2000u64))),
    );
    has(&expansion, &quote!(.renew(::lock_core::Renew::Off)));
    has(
        &expansion,
        &quote!(.max_hold(::core::time::Duration::from_millis(30000u64))),
    );
    has(&expansion, &quote!(.on_lost(::lock_core::OnLost::Ignore)));
    has(
        &expansion,
        &quote!(.release(::lock_core::ReleaseMode::Background)),
    );
    has(
        &expansion,
        &quote!(.reentrant(::lock_core::Reentrancy::Refuse)),
    );
    has(
        &expansion,
        &quote!(.fairness(::lock_core::Fairness::Unfair)),
    );
}

#[test]
fn what_is_not_given_is_left_to_the_library() {
    let expansion = function(quote!(key = "k", ttl = "10s"), plain());
    for method in [
        quote!(.renew),
        quote!(.max_hold),
        quote!(.on_lost),
        quote!(.release),
        quote!(.reentrant),
        quote!(.fairness),
        quote!(.cooldown),
    ] {
        lacks(&expansion, &method);
    }
}

#[test]
fn another_path_to_the_library_replaces_every_path() {
    let args = quote!(
        key = "order:<uid>", ttl = "10s", wait = none, renew = true, on_lost = cancel, release = await,
        reentrant = true, fair = true, cooldown = "1s", guard = lock, crate = my::kit
    );
    let expansion = function(args, plain());
    lacks(&expansion, &quote!(lock_core));
    has(&expansion, &quote!(my::kit::__private::run));
}

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
fn a_parameter_that_leaves_a_part_out_gets_a_name_and_is_taken_apart_in_the_body() {
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
    // What they name counts as used.
    has(
        &expansion,
        &quote!(let (mut b, _) = __lock_arg1; let _ = b;),
    );
}

#[test]
fn a_struct_may_drop_itself_and_is_taken_apart_in_the_body() {
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
    // The arguments see it as they would see a plain parameter.
    has(
        &expansion,
        &quote!((&::lock_core::__private::View(a)).__lock_view()),
    );
}

#[test]
fn a_parameter_that_is_borrowed_to_be_changed_is_mutable_as_a_whole() {
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
fn instrument_below_cannot_see_into_a_renamed_parameter_and_is_told_to_move_up() {
    let item = quote!(
        #[tracing::instrument(skip(a))]
        async fn f((a, _): (A, B)) -> R {
            g()
        }
    );
    let tokens = crate::attribute(quote!(key = "k", ttl = "10s"), item).to_string();
    assert!(tokens.contains("write `#[instrument]` above"), "{tokens}");
    let item = quote!(
        #[tracing::instrument(skip_all, fields(a))]
        async fn f((a, _): (A, B)) -> R {
            g()
        }
    );
    let tokens = crate::attribute(quote!(key = "k", ttl = "10s"), item).to_string();
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
fn a_function_that_never_returns_needs_an_answer_that_never_does() {
    let item = quote!(
        async fn f() -> ! {
            g()
        }
    );
    let expansion = function(
        quote!(key = "k", ttl = "10s", on_error = |e| give_up(e)),
        item.clone(),
    );
    has(&expansion, &quote!(async fn f() -> !));
    has(
        &expansion,
        &quote!(on_error::<::core::convert::Infallible, _>(|e| give_up(e))),
    );
    has(
        &expansion,
        &quote!(Ok(__lock_value) => match __lock_value {}),
    );
    let tokens = crate::attribute(quote!(key = "k", ttl = "10s"), item).to_string();
    assert!(tokens.contains("never returns"), "{tokens}");
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

#[test]
fn the_return_type_is_told_first_with_a_blank_for_impl_trait() {
    let item = quote!(
        async fn f() -> Result<impl Display, E> {
            g()
        }
    );
    let expansion = function(quote!(key = "k", ttl = "10s"), item);
    has(
        &expansion,
        &quote!(Option::None::<Result<_, E>> { return __lock_never; }),
    );
    has(
        &expansion,
        &quote!(<Result<_, E> as ::lock_core::FromLockError>::from_lock_error),
    );
}

#[test]
fn a_future_that_is_returned_is_locked_inside() {
    let item = quote! {
        fn f(a: A, _: B) -> Pin<Box<dyn Future<Output = R> + Send>> { Box::pin(async { g(a)? }) }
    };
    let expansion = function(quote!(key = "k:<a>", ttl = "10s"), item);
    has(
        &expansion,
        &quote!(fn f(a: A, __lock_arg1: B) -> Pin<Box<dyn Future<Output = R> + Send>>),
    );
    assert!(
        expansion.contains("{ Box :: pin (async move { let (__lock_request"),
        "{expansion}"
    );
    has(&expansion, &quote!(<R as ::lock_core::FromLockError>));
    has(&expansion, &quote!({ g(a)? }));
}

#[test]
fn the_usual_alias_of_a_boxed_future_is_one() {
    let item = quote! {
        fn f(&self) -> BoxFuture<'_, R> { Box::pin(async move { g() }) }
    };
    let expansion = function(quote!(key = "k", ttl = "10s"), item);
    has(&expansion, &quote!(fn f(&self) -> BoxFuture<'_, R>));
    has(&expansion, &quote!(<R as ::lock_core::FromLockError>));
}

#[test]
fn a_method_of_async_trait_is_locked_where_its_body_is() {
    let item = quote! {
        fn f<'life0, 'async_trait>(&'life0 self, __arg1: (A, B), text: &str)
            -> ::core::pin::Pin<Box<dyn ::core::future::Future<Output = R> + ::core::marker::Send + 'async_trait>>
        where
            'life0: 'async_trait,
        {
            Box::pin(async move {
                if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<R> {
                    #[allow(unreachable_code)]
                    return __ret;
                }
                let __self = self;
                let (a, _) = { let __arg1 = __arg1; __arg1 };
                let __ret: R = { __self.g(a, text)? };
                #[allow(unreachable_code)]
                __ret
            })
        }
    };
    let args = quote!(
        key = "k:<self.id>:<a>:<text>",
        ttl = "10s",
        manager = self.locks,
        on_error = |e| self::of(e)
    );
    let expansion = function(args, item);
    has(
        &expansion,
        &quote!(let __lock_arg1 = { let __arg1 = __arg1; __arg1 };),
    );
    assert!(expansion.contains("let __ret : R = {"), "{expansion}");
    has(&expansion, &quote!(let (a, _) = &__lock_arg1;));
    has(
        &expansion,
        &quote!(::value(&mut __lock_key, "self.id", &(__self.id));),
    );
    has(&expansion, &quote!(&(__self.locks)));
    has(&expansion, &quote!(|e| self::of(e)));
    has(&expansion, &quote!(let _ = &__self;));
    has(&expansion, &quote!({ __self.g(a, text)? }));
}

#[test]
fn attributes_visibility_generics_and_inner_attributes_stay() {
    let item = quote! {
        /// Docs.
        #[must_use]
        pub(crate) async unsafe fn f<'a, T: Display, const N: usize>(t: &'a T) -> R where T: Send {
            #![allow(dead_code)]
            g()
        }
    };
    let expansion = function(quote!(key = "k:<t>:<N>", ttl = "10s"), item);
    has(
        &expansion,
        &quote!(#[must_use] pub(crate) async unsafe fn f<'a, T: Display, const N: usize>(t: &'a T) -> R where T: Send),
    );
    assert!(
        expansion.contains("where T : Send { # ! [allow (dead_code)]"),
        "{expansion}"
    );
}

#[test]
fn a_half_typed_body_keeps_its_function() {
    let tokens = crate::attribute(
        quote!(key = "order:<uid>", ttl = "10s"),
        quote!(async fn place(uid: u64) -> R { self.db. let x = }),
    );
    has(&tokens.to_string(), &quote!({ self.db. let x = }));
    has(&tokens.to_string(), &quote!(async fn place(uid: u64) -> R));
}

#[test]
fn a_wrong_argument_keeps_the_function_as_it_was() {
    let item = plain();
    let tokens = crate::attribute(quote!(key = "order:<uid>"), item.clone()).to_string();
    assert!(tokens.contains("compile_error"), "{tokens}");
    assert!(tokens.ends_with(&item.to_string()), "{tokens}");
}

#[test]
fn a_wrong_argument_keeps_the_guard_that_the_body_uses() {
    let item = quote!(
        async fn place(uid: u64) -> R {
            lock.fencing_token()
        }
    );
    let tokens = crate::attribute(
        quote!(key = "order:<uid>", guard = lock, ttl = 5),
        item.clone(),
    )
    .to_string();
    has(&tokens, &quote!(let lock: &::lock_core::LockHandle));
    let tokens = crate::attribute(quote!(guard = lock, crate = my::kit), item).to_string();
    has(&tokens, &quote!(let lock: &my::kit::LockHandle));
    let unused = crate::attribute(quote!(guard = lock), plain()).to_string();
    lacks(&unused, &quote!(LockHandle));
}

#[test]
fn an_item_that_nobody_can_read_is_kept_too() {
    let item = quote!(
        pub struct Order {
            uid: u64,
        }
    );
    let tokens = crate::attribute(quote!(key = "k", ttl = "10s"), item.clone()).to_string();
    assert!(tokens.ends_with(&item.to_string()), "{tokens}");
}

#[test]
fn a_cooldown_is_evaluated_before_the_body_and_set_after_its_success() {
    let expansion = function(
        quote!(key = "k", ttl = "10s", cooldown = pause(uid)),
        plain(),
    );
    let evaluated = expansion
        .find("Duration = pause (uid)")
        .expect("it is evaluated");
    let captured = expansion
        .find("let _ = & uid")
        .expect("the parameter moves");
    let set = expansion
        .find(". __lock_succeeded ()")
        .expect("success is asked for");
    assert!(evaluated < captured && captured < set, "{expansion}");
}

#[test]
fn lock_key_builds_the_same_key_as_the_attribute() {
    let key = crate::lock_key::expand(quote!("order:<uid>")).to_string();
    let attribute = function(quote!(key = "order:<uid>", ttl = "10s"), plain());
    assert!(attribute.contains(&key), "{key}\nis not in\n{attribute}");
    let elsewhere = crate::lock_key::expand(quote!("order:<uid>", crate = my::kit)).to_string();
    has(&elsewhere, &quote!(my::kit::__private::KeyBuilder::new()));
}
