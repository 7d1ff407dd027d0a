//! Tests of the whole attribute, from tokens to tokens.

mod answers;
mod errors;
mod idempotent;
mod parameters;

use proc_macro2::TokenStream;
use quote::quote;

/// Returns the expansion, which must be one function.
fn function(args: TokenStream, item: TokenStream) -> String {
    let tokens = crate::attribute::<crate::args::LockArgs>(args, item);
    syn::parse2::<syn::ItemFn>(tokens.clone()).expect("one function");
    tokens.to_string()
}

/// Removes the spaces, which depend on the origin of the tokens.
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
        interop = true,
        manager = self.locks,
    );
    let expansion = function(args, plain());
    has(
        &expansion,
        &quote!(::lock_core::LockRequest::by(
            &(self.locks),
            ::lock_core::__private::IntoKey::into_key(key_of(uid))
        )),
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
    has(&expansion, &quote!(.interop(::lock_core::Interop::On)));
}

#[test]
fn a_share_is_a_method_of_the_request() {
    let read = quote!(key = "k", ttl = "10s", mode = read);
    has(&function(read, plain()), &quote!(.read()));
    let permits = quote!(key = "k", ttl = "10s", permits = self.limit);
    has(&function(permits, plain()), &quote!(.permits(self.limit)));
    let write = function(quote!(key = "k", ttl = "10s", mode = write), plain());
    lacks(&write, &quote!(.read));
    lacks(&write, &quote!(.permits));
}

#[test]
fn an_omitted_argument_calls_no_method() {
    let expansion = function(quote!(key = "k", ttl = "10s"), plain());
    for method in [
        quote!(.renew),
        quote!(.max_hold),
        quote!(.on_lost),
        quote!(.release),
        quote!(.reentrant),
        quote!(.interop),
        quote!(.read),
        quote!(.permits),
        quote!(.cooldown),
    ] {
        lacks(&expansion, &method);
    }
}

#[test]
fn another_path_to_the_library_replaces_every_path() {
    let args = quote!(
        key = "order:<uid>", ttl = "10s", wait = none, renew = true, on_lost = cancel, release = await,
        reentrant = true, interop = true, cooldown = "1s", guard = lock,
        crate = my::kit
    );
    let expansion = function(args, plain());
    lacks(&expansion, &quote!(lock_core));
    has(&expansion, &quote!(my::kit::__private::run));
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
    let tokens = crate::attribute::<crate::args::LockArgs>(
        quote!(key = "order:<uid>", ttl = "10s"),
        quote!(async fn place(uid: u64) -> R { self.db. let x = }),
    );
    has(&tokens.to_string(), &quote!({ self.db. let x = }));
    has(&tokens.to_string(), &quote!(async fn place(uid: u64) -> R));
}

#[test]
fn a_wrong_argument_keeps_the_function_as_it_was() {
    let item = plain();
    let tokens =
        crate::attribute::<crate::args::LockArgs>(quote!(key = "order:<uid>"), item.clone())
            .to_string();
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
    let tokens = crate::attribute::<crate::args::LockArgs>(
        quote!(key = "order:<uid>", guard = lock, ttl = 5),
        item.clone(),
    )
    .to_string();
    has(&tokens, &quote!(let lock: &::lock_core::LockHandle));
    let tokens =
        crate::attribute::<crate::args::LockArgs>(quote!(guard = lock, crate = my::kit), item)
            .to_string();
    has(&tokens, &quote!(let lock: &my::kit::LockHandle));
    let unused =
        crate::attribute::<crate::args::LockArgs>(quote!(guard = lock), plain()).to_string();
    lacks(&unused, &quote!(LockHandle));
}

#[test]
fn an_item_that_is_not_a_function_is_kept_too() {
    let item = quote!(
        pub struct Order {
            uid: u64,
        }
    );
    let tokens =
        crate::attribute::<crate::args::LockArgs>(quote!(key = "k", ttl = "10s"), item.clone())
            .to_string();
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

#[test]
fn an_argument_that_waits_or_fails_says_so_itself() {
    for (args, word) in [
        (
            quote!(key = "k", ttl = "10s", manager = m().await),
            "`manager` is evaluated before",
        ),
        (
            quote!(key = "k", ttl = lease()?),
            "`ttl` is evaluated before",
        ),
        (
            quote!(key = name()?.id, ttl = "10s"),
            "`key` is evaluated before",
        ),
    ] {
        let tokens = crate::attribute::<crate::args::LockArgs>(args, plain()).to_string();
        assert!(tokens.contains(word), "{tokens}");
    }
}
