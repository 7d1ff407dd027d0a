//! The parameters: what they are called, and how they all move into the body.
//!
//! The body must end before the lock is released, and so must everything it was given: a transaction
//! that the body does not name still commits or rolls back when it is dropped. A parameter's value
//! ends with the body when the body owns it whole. For a plain name that is a mention; for a pattern
//! that leaves a part out (`(id, _)`, `_`, `State(App { db, .. })`) the part has no name, so the
//! parameter gets one and is taken apart inside the body.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::{
    Attribute, Error, FnArg, Ident, Pat, PatType, Result, Signature, Token, parse_quote,
    punctuated::Punctuated,
};

use crate::pattern::{bindings, by_reference, leaves_something};

pub(crate) struct Params {
    /// The parameter list to print.
    pub(crate) inputs: Punctuated<FnArg, Token![,]>,
    /// Statements before the arguments are evaluated: names in taken-apart parameters, by reference.
    pub(crate) views: TokenStream,
    /// Statements that make the body own every parameter.
    pub(crate) captures: TokenStream,
    /// Statements that take renamed parameters apart inside the body, as they were written.
    pub(crate) unpack: TokenStream,
}

impl Params {
    /// `mentioned` holds the tokens of the attribute's arguments.
    pub(crate) fn new(
        sig: &Signature,
        attrs: &[Attribute],
        mentioned: &TokenStream,
    ) -> Result<Params> {
        let mut inputs = sig.inputs.clone();
        let mut views = TokenStream::new();
        let mut captures = Vec::new();
        let mut unpack = TokenStream::new();
        for (index, input) in inputs.iter_mut().enumerate() {
            match input {
                FnArg::Receiver(receiver) => {
                    let this = receiver.self_token;
                    captures.push(capture(&[], &quote!(#this)));
                }
                FnArg::Typed(PatType {
                    attrs: on_param,
                    pat,
                    ..
                }) => {
                    let conditions = conditions(on_param);
                    if !leaves_something(pat) {
                        captures.extend(
                            bindings(pat)
                                .iter()
                                .map(|name| capture(&conditions, &quote!(#name))),
                        );
                        continue;
                    }
                    refuse_instrument(attrs)?;
                    let whole = format_ident!("__lock_arg{index}", span = Span::mixed_site());
                    captures.push(capture(&conditions, &quote!(#whole)));
                    if !matches!(**pat, Pat::Wild(_)) {
                        views.extend(view(&conditions, pat, &whole, mentioned));
                        unpack.extend(quote!(#(#conditions)* let #pat = #whole;));
                    }
                    **pat = parse_quote!(#whole);
                }
            }
        }
        // A closure drops what it owns in the order of first mention, a function its parameters from
        // the last to the first.
        captures.reverse();
        Ok(Params {
            inputs,
            views,
            captures: captures.into_iter().collect(),
            unpack,
        })
    }
}

/// Every name that the parameters bind, `self` not among them.
pub(crate) fn names(sig: &Signature) -> Vec<Ident> {
    sig.inputs
        .iter()
        .filter_map(|input| match input {
            FnArg::Receiver(_) => None,
            FnArg::Typed(typed) => Some(bindings(&typed.pat)),
        })
        .flatten()
        .collect()
}

fn capture(conditions: &[Attribute], name: &TokenStream) -> TokenStream {
    let mention = quote!(let _ = &#name;);
    if name.to_string().starts_with('_') {
        return quote!(#(#conditions)* #[allow(clippy::used_underscore_binding)] #mention);
    }
    quote!(#(#conditions)* #mention)
}

/// The names of a renamed parameter, for the key and the other arguments, if they use one.
fn view(
    conditions: &[Attribute],
    pat: &Pat,
    whole: &Ident,
    mentioned: &TokenStream,
) -> Option<TokenStream> {
    let names = bindings(pat);
    if !names
        .iter()
        .any(|name| mentions(mentioned, &name.to_string()))
    {
        return None;
    }
    // The body has its own of these names; here the arguments need not read every one.
    let used = names.iter().map(|name| capture(conditions, &quote!(#name)));
    let pat = by_reference(pat);
    Some(quote! {
        #(#conditions)*
        let #pat = &#whole;
        #(#used)*
    })
}

/// A name counts as mentioned inside a literal too: `format!("order:{id}")` reads it there.
fn mentions(tokens: &TokenStream, name: &str) -> bool {
    tokens.clone().into_iter().any(|tree| match tree {
        TokenTree::Group(group) => mentions(&group.stream(), name),
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Literal(literal) => literal.to_string().contains(name),
        TokenTree::Punct(_) => false,
    })
}

/// The parameter's own attributes that also decide about statements made from it.
fn conditions(attrs: &[Attribute]) -> Vec<Attribute> {
    let kept = ["cfg", "cfg_attr", "allow", "expect", "warn", "deny"];
    attrs
        .iter()
        .filter(|attr| kept.iter().any(|name| attr.path().is_ident(name)))
        .cloned()
        .collect()
}

/// `#[instrument]` below would record the invented name, or miss the one it was told to skip.
fn refuse_instrument(attrs: &[Attribute]) -> Result<()> {
    let below = attrs.iter().find(|attr| {
        attr.path()
            .segments
            .last()
            .is_some_and(|last| last.ident == "instrument")
    });
    match below {
        None => Ok(()),
        Some(attr) => Err(Error::new_spanned(
            attr.path(),
            "write `#[instrument]` above `#[distributed_lock(…)]`: here it cannot see the names in a parameter that leaves a part out",
        )),
    }
}
