//! Return types: values, `!` and futures.

use quote::quote;

use super::{function, has};

#[test]
fn a_function_that_never_returns_needs_an_on_error_that_never_returns() {
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
    let tokens =
        crate::attribute::<crate::args::LockArgs>(quote!(key = "k", ttl = "10s"), item).to_string();
    assert!(tokens.contains("never returns"), "{tokens}");
}

#[test]
fn the_return_type_comes_first_with_an_underscore_for_impl_trait() {
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
fn an_alias_of_a_boxed_future_is_recognized() {
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
