//! Errors for misuse, and uses without an error.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;

use super::{has, lacks, plain};
use crate::function::Function;

fn refused(args: TokenStream, item: TokenStream) -> String {
    let tokens = crate::attribute::<crate::args::LockArgs>(args, item).to_string();
    assert!(tokens.contains("compile_error"), "no error in {tokens}");
    tokens
}

fn accepted(args: TokenStream, item: TokenStream) -> String {
    let tokens = crate::attribute::<crate::args::LockArgs>(args, item).to_string();
    assert!(!tokens.contains("compile_error"), "an error in {tokens}");
    tokens
}

#[test]
fn a_parameter_that_only_wrong_arguments_use_is_not_unused() {
    let tokens = refused(quote!(key = "order:<uid>", ttl = 5), plain());
    has(
        &tokens,
        &quote!(#[allow(unused_variables, unused_mut)] async fn place(uid: u64)),
    );
}

#[test]
fn a_malformed_guard_is_still_bound() {
    let item = quote!(
        async fn place(uid: u64) -> R {
            lock.fencing_token()
        }
    );
    for guard in [quote!("lock"), quote!(mut lock), quote!(lock: &LockHandle)] {
        let tokens = refused(quote!(key = "k", ttl = "10s", guard = #guard), item.clone());
        has(&tokens, &quote!(let lock: &::lock_core::LockHandle));
    }
    // A parameter already has a type.
    let tokens = refused(
        quote!(key = "k", ttl = "10s", guard = uid),
        quote!(
            async fn place(uid: u64) -> R {
                uid
            }
        ),
    );
    lacks(&tokens, &quote!(LockHandle));
}

#[test]
fn the_same_lock_twice_is_refused_and_two_locks_are_not() {
    let twice = |above: TokenStream, below: TokenStream| {
        let item = plain();
        (above, quote!(#[distributed_lock(#below)] #item))
    };
    for (args, item) in [
        twice(
            quote!(key = "k:<uid>", ttl = "10s"),
            quote!(key = "k:<uid>", ttl = "2s"),
        ),
        twice(
            quote!(key = of(uid), ttl = "10s"),
            quote!(ttl = "2s", key = of(uid)),
        ),
    ] {
        assert!(refused(args, item).contains("keep one of the two"));
    }
    let boxed = quote! {
        #[distributed_lock(key = "k:<uid>", ttl = "2s")]
        fn place(uid: u64) -> Pin<Box<dyn Future<Output = R> + Send>> { Box::pin(async { body()? }) }
    };
    let tokens = refused(quote!(key = "k:<uid>", ttl = "10s"), boxed);
    assert!(tokens.contains("keep one of the two"), "{tokens}");
    for (args, item) in [
        twice(
            quote!(key = "a", ttl = "10s"),
            quote!(key = "b", ttl = "10s"),
        ),
        twice(
            quote!(key = "a", ttl = "10s"),
            quote!(key = "a", ttl = "10s", manager = other),
        ),
    ] {
        accepted(args, item);
    }
}

#[test]
fn a_parameter_as_plain_text_is_refused_with_every_mark() {
    for key in [
        "o:{uid}",
        "o:${uid}",
        "o:#{uid}",
        "o:$uid",
        "o:#uid",
        "o:$uid.id",
        "a{b}:#uid",
    ] {
        let tokens = refused(quote!(key = #key, ttl = "10s"), plain());
        assert!(tokens.contains("plain text in a key"), "{key}: {tokens}");
    }
    for key in ["o:{tag}:<uid>", "cost$", "#1", "o:$uidx", "{", "$", "a{b"] {
        accepted(quote!(key = #key, ttl = "10s"), plain());
    }
}

#[test]
fn a_template_that_no_code_fills_in_is_refused_and_other_expressions_are_not() {
    for key in [
        quote!("o:<uid>".to_string()),
        quote!(String::from("o:<uid>")),
        quote!(LockKey::from("o:<uid>")),
        quote!(format!("o:<uid>")),
        quote!(&"o:<uid>"),
    ] {
        let tokens = refused(quote!(key = #key, ttl = "10s"), plain());
        assert!(tokens.contains("is a template"), "{tokens}");
    }
    for key in [
        quote!(lock_key!("o:<uid>")),
        quote!(LockKey::exact("o:<uid>")),
        quote!(format!("o:{uid}")),
        quote!(String::from("o")),
        quote!(KEYS[0]),
    ] {
        accepted(quote!(key = #key, ttl = "10s"), plain());
    }
}

#[test]
fn a_closure_for_errors_gets_its_types_and_any_other_function_is_called_as_it_is() {
    for closure in [
        quote!(|error| of(error)),
        quote!({
            let u = uid;
            move |_| u
        }),
    ] {
        let tokens = accepted(quote!(key = "k", ttl = "10s", on_error = #closure), plain());
        has(
            &tokens,
            &quote!(__private::on_error::<Result<(), Error>, _>(#closure)),
        );
    }
    let tokens = accepted(
        quote!(key = "k", ttl = "10s", on_error = self::refuse),
        plain(),
    );
    has(&tokens, &quote!(let __lock_on_error = self::refuse;));
    has(
        &tokens,
        &quote!(__private::answer::<Result<(), Error>>(
            __lock_error,
            __lock_on_error
        )),
    );
}

#[test]
fn words_for_no_end_are_refused_and_constants_are_not() {
    for args in [
        quote!(ttl = forever),
        quote!(ttl = None),
        quote!(ttl = "1s", max_hold = none),
        quote!(ttl = "1s", cooldown = zero),
        quote!(ttl = "1s", wait = Forever),
    ] {
        refused(quote!(key = "k", #args), plain());
    }
    for args in [
        quote!(ttl = FOREVER),
        quote!(ttl = lease),
        quote!(ttl = limits::forever),
        quote!(ttl = "1s", wait = N),
        quote!(ttl = -offset),
    ] {
        accepted(quote!(key = "k", #args), plain());
    }
}

#[test]
fn a_body_that_stops_in_the_middle_of_an_expression_is_half_typed() {
    let is_half_typed = |body: TokenStream| {
        let function: Function = syn::parse2(quote!(async fn f() { #body })).expect("a function");
        function.is_half_typed()
    };
    for body in [
        quote!(self.),
        quote!(let x =),
        quote!(f()?; a::),
        quote!(a+),
        quote!(&),
    ] {
        assert!(is_half_typed(body.clone()), "{body}");
    }
    for body in [
        quote!(),
        quote!(a;),
        quote!(f()?),
        quote!(1..),
        quote!(a),
        quote!(A::<B>),
        quote!({}),
    ] {
        assert!(!is_half_typed(body.clone()), "{body}");
    }
}

/// A name that the layer learns later must be known here, too.
#[test]
fn every_source_of_the_layer_is_named_as_a_part_of_a_request() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../lock-tower/src/key/source/names.rs"
    );
    let names = std::fs::read_to_string(path).expect("the sources of the layer");
    let names: Vec<&str> = names
        .lines()
        .filter_map(|line| line.trim().strip_prefix("(\"")?.split('"').next())
        .collect();
    assert!(names.len() >= 18, "{names:?}");
    // Its `for` makes it no expression, which is the error.
    for name in names.into_iter().filter(|name| *name != "x-forwarded-for") {
        for source in [name.to_owned(), format!("{name}.x")] {
            let template = format!("order:<{source}>");
            let tokens = refused(quote!(key = #template, ttl = "10s"), plain());
            assert!(
                tokens.contains("part of an HTTP request"),
                "{source}: {tokens}"
            );
        }
    }
}

/// `macro_rules` pass a `$body:block` on in an invisible group, and in two of them from macro to macro.
#[test]
fn a_body_in_invisible_groups_is_a_body() {
    let mut body = quote!({ Ok(uid) });
    for _ in 0..3 {
        let item = quote!(async fn place(uid: u64) -> Result<u64, Error> #body);
        let tokens = accepted(quote!(key = "order:<uid>", ttl = "10s"), item);
        has(&tokens, &quote!(Ok(uid)));
        let group = Group::new(Delimiter::None, body);
        body = TokenTree::Group(group).into();
    }
}
