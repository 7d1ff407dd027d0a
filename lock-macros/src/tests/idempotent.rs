//! The expansion of `#[idempotent]`.

use proc_macro2::TokenStream;
use quote::quote;

use super::{has, lacks};
use crate::idempotent::IdempotentArgs;

fn function(args: TokenStream, item: TokenStream) -> String {
    let tokens = crate::attribute::<IdempotentArgs>(args, item);
    syn::parse2::<syn::ItemFn>(tokens.clone()).expect("one function");
    tokens.to_string()
}

fn error(args: TokenStream, item: TokenStream) -> String {
    let tokens = crate::attribute::<IdempotentArgs>(args, item).to_string();
    assert!(tokens.contains("compile_error"), "{tokens}");
    tokens
}

fn charge() -> TokenStream {
    quote!(
        async fn charge(order: u64) -> Result<Receipt, Error> {
            body()
        }
    )
}

#[test]
fn the_body_runs_under_the_lock_and_its_result_has_a_memory() {
    let args = quote!(
        key = "charge:<order>",
        ttl = "10s",
        remember = "1d",
        wait = "2s"
    );
    let expansion = function(args, charge());
    has(
        &expansion,
        &quote!(<Result<Receipt, Error> as ::lock_core::Remember>::memory(
            ::core::concat!(::core::module_path!(), "::", "charge"),
            ::core::time::Duration::from_millis(86400000u64),
            ::lock_core::__private::Fingerprint::NONE,
        )),
    );
    has(
        &expansion,
        &quote!(.wait(::core::time::Duration::from_millis(2000u64))),
    );
    has(
        &expansion,
        &quote!(
            ::lock_core::__private::remembered(__lock_request, __lock_memory, __lock_body).await
        ),
    );
    lacks(&expansion, &quote!(::lock_core::__private::run));
}

#[test]
fn the_same_key_twice_is_refused_on_a_function_that_returns_a_future_too() {
    let args = quote!(key = "charge:<order>", ttl = "10s", remember = "24h");
    let async_fn = charge();
    let boxed = quote!(
        fn charge(order: u64) -> BoxFuture<'static, Result<Receipt, Error>> {
            Box::pin(async move { body() })
        }
    );
    for item in [async_fn, boxed] {
        let twice = quote!(#[idempotent(#args)] #item);
        let tokens = error(args.clone(), twice);
        assert!(tokens.contains("keep one of the two"), "{tokens}");
    }
}

/// A field, a method, a constant and a piece of text have the name of a parameter that is in no part of the key.
#[test]
fn a_name_that_is_no_variable_does_not_count_as_the_parameter() {
    let refused = |key: TokenStream, parameters: TokenStream, name: &str| {
        let args = quote!(key = #key, ttl = "10s", remember = "24h", manager = self.locks);
        let item = quote!(
            async fn refund(&self, #parameters) -> Result<Receipt, Error> {
                body()
            }
        );
        let tokens = crate::attribute::<IdempotentArgs>(args, item).to_string();
        let problem = format!("`{name}` is not part of the key");
        assert_eq!(tokens.contains(&problem), !name.is_empty(), "{tokens}");
    };
    refused(quote!("<order.id>"), quote!(order: &Order, id: u64), "id");
    refused(
        quote!("<user.name()>"),
        quote!(user: &User, name: String),
        "name",
    );
    refused(
        quote!(format!("charge:{order}")),
        quote!(order: u64, charge: u64),
        "charge",
    );
    refused(
        quote!(format!("{order}{{id}}")),
        quote!(order: u64, id: u64),
        "id",
    );
    refused(
        quote!(of(Order { id: order })),
        quote!(order: u64, id: u64),
        "id",
    );
    refused(
        quote!(String::from("charge:{order}")),
        quote!(order: u64),
        "order",
    );
    refused(quote!(ids::of(order)), quote!(order: u64, ids: Ids), "ids");
    refused(
        quote!("<order>"),
        quote!(order: u64, locks: Vec<u64>),
        "locks",
    );
    refused(
        quote!("<key_of(order, &cents)>"),
        quote!(order: u64, cents: u64),
        "",
    );
    refused(
        quote!(format!("{order}:{cents:03}")),
        quote!(order: u64, cents: u64),
        "",
    );
    refused(quote!(of(Order { id })), quote!(id: u64), "");
    refused(
        quote!(of(&all[order..cents])),
        quote!(order: usize, cents: usize),
        "",
    );
}

#[test]
fn a_constant_of_a_function_is_a_parameter() {
    let args = |key: &str| quote!(key = #key, ttl = "10s", remember = "24h");
    let item = quote!(
        async fn charge<const LIVE: bool>(order: u64) -> Result<Receipt, Error> {
            body()
        }
    );
    let refused = error(args("charge:<order>"), item.clone());
    assert!(
        refused.contains("`LIVE` is not part of the key"),
        "{refused}"
    );
    function(args("charge:<order>:<LIVE>"), item);
}

#[test]
fn a_fingerprint_has_the_values_of_its_template_and_not_the_text() {
    let item = quote!(
        async fn charge(order: u64, cents: u64) -> Result<Receipt, Error> {
            body()
        }
    );
    let args = quote!(
        key = "charge:<order>",
        ttl = "10s",
        remember = "24h",
        fingerprint = "v:<cents>"
    );
    let expansion = function(args, item);
    has(
        &expansion,
        &quote!(::lock_core::__private::FingerprintBuilder::value(&mut __lock_key, "cents", &(cents));),
    );
    lacks(&expansion, &quote!("v:"));
}

#[test]
fn errors_are_judged_by_a_function_of_the_result() {
    let args = quote!(
        key = "charge:<order>",
        ttl = "10s",
        remember = "24h",
        errors = is_final
    );
    let expansion = function(args, charge());
    has(
        &expansion,
        &quote!(
            |__lock_result: &Result<Receipt, Error>| ::lock_core::__private::is_remembered(
                __lock_result,
                is_final
            )
        ),
    );
}

#[test]
fn with_a_transaction_the_body_gets_it_and_no_lock_is_taken() {
    let item = quote!(
        async fn handle<D: Database>(tx: &mut Tx<D>, message: u64) -> Result<(), Error> {
            body()
        }
    );
    let args = quote!(key = "mail:<message>", remember = forever, tx = tx);
    let expansion = function(args, item);
    has(&expansion, &quote!(async move |tx: &mut Tx<D>|));
    has(
        &expansion,
        &quote!(::lock_core::__private::remembered_in(
            &mut *tx,
            <Tx<D> as ::lock_core::__private::Transaction>::transaction,
            __lock_key,
            __lock_wait,
            __lock_memory,
            __lock_body
        )),
    );
    has(
        &expansion,
        &quote!(::lock_core::__private::REMEMBERED_FOREVER),
    );
    lacks(&expansion, &quote!(installed_request));
    lacks(&expansion, &quote!(LockHandle));
}

#[test]
fn a_parameter_that_is_in_no_key_needs_a_fingerprint() {
    let item = quote!(
        async fn charge(order: u64, cents: u64) -> Result<Receipt, Error> {
            body()
        }
    );
    let args = quote!(key = "charge:<order>", ttl = "10s", remember = "24h");
    let said = error(args, item.clone());
    assert!(said.contains("`cents` is not part of the key"), "{said}");
    let args = quote!(key = key_of(order, &cents), ttl = "10s", remember = "24h");
    function(args, item);
}

#[test]
fn self_the_manager_the_transaction_and_unused_parameters_need_no_fingerprint() {
    let item = quote!(
        async fn charge(&self, locks: &Locks, _: u8, _unused: u8) -> Result<Receipt, Error> {
            body()
        }
    );
    let args = quote!(
        key = "charge",
        ttl = "10s",
        remember = "24h",
        manager = locks
    );
    function(args, item);
    let item = quote!(
        async fn charge(tx: &mut Tx<Db>) -> Result<Receipt, Error> {
            body()
        }
    );
    function(quote!(key = "charge", remember = "7d", tx = tx), item);
}

#[test]
fn each_word_of_another_library_suggests_an_argument_that_exists_here() {
    for (other, ours) in [
        ("lasting", "remember"),
        ("expires", "remember"),
        ("retain", "remember"),
        ("hash", "fingerprint"),
        ("payload", "fingerprint"),
        ("args", "fingerprint"),
        ("transaction", "tx"),
        ("conn", "tx"),
        ("ttl_secs", "ttl"),
        ("timeout", "wait"),
    ] {
        let other: TokenStream = other.parse().expect("a name");
        let args = quote!(key = "charge:<order>", ttl = "10s", remember = "24h", #other = 1);
        let said = error(args, charge());
        assert!(said.contains(&format!("did you mean `{ours}`?")), "{said}");
    }
    // An argument of the lock that is not one here suggests nothing that is not here either.
    let args = quote!(
        key = "charge:<order>",
        ttl = "10s",
        remember = "24h",
        debounce = "2s"
    );
    let said = error(args, charge());
    assert!(!said.contains("did you mean"), "{said}");
}
