//! The parameters: what they are called, and how they all move into the body.
//!
//! The body must end before the lock is released, and so must everything it was given: a transaction
//! that the body does not name still commits or rolls back when it is dropped. A parameter's value
//! ends with the body when the body owns it whole. For a plain name that is a mention; for a pattern
//! that leaves a part out (`(id, _)`, `_`, `State(App { db, .. })`), or may, the part has no name, so
//! the parameter gets one and is taken apart inside the body.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::{
    Attribute, Error, FnArg, Ident, Meta, Pat, PatType, Path, Result, Signature, Token,
    parse_quote, punctuated::Punctuated,
};

use crate::pattern::{
    bindings, borrows_mutably, by_reference, leaves_something, may_leave_something,
};

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
        krate: &Path,
    ) -> Result<Params> {
        let instrument = instrument(attrs);
        let mut inputs = sig.inputs.clone();
        let mut views = TokenStream::new();
        let mut captures = Vec::new();
        let mut unpack = TokenStream::new();
        for (index, input) in inputs.iter_mut().enumerate() {
            match input {
                FnArg::Receiver(receiver) => {
                    let this = receiver.self_token;
                    captures.push(capture(&TokenStream::new(), &quote!(#this)));
                }
                FnArg::Typed(PatType {
                    attrs: on_param,
                    pat,
                    ..
                }) => {
                    let conditions = conditions(on_param);
                    // `#[instrument]` below records the names that it finds, so it must find them.
                    let stays = match instrument {
                        Some(_) => !leaves_something(pat),
                        None => !may_leave_something(pat),
                    };
                    if stays {
                        captures.extend(
                            bindings(pat)
                                .iter()
                                .map(|name| capture(&conditions, &quote!(#name))),
                        );
                        continue;
                    }
                    instrument.map_or(Ok(()), |below| can_do_without(below, pat))?;
                    let whole = format_ident!("__lock_arg{index}", span = Span::mixed_site());
                    captures.push(quote!(#conditions let _ = &#whole;));
                    if !matches!(**pat, Pat::Wild(_)) {
                        let seen = seen(pat, mentioned);
                        if !seen.is_empty() {
                            views.extend(view(&conditions, pat, &whole, &seen, krate));
                        }
                        // What the arguments read need not be read once more by the body.
                        unpack.extend(quote! {
                            #conditions let #pat = #whole;
                            #(#conditions let _ = #seen;)*
                        });
                    }
                    let mutable = borrows_mutably(pat).then(|| quote!(mut));
                    **pat = parse_quote!(#mutable #whole);
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

fn capture(conditions: &TokenStream, name: &TokenStream) -> TokenStream {
    let mention = quote!(let _ = &#name;);
    if name.to_string().starts_with('_') {
        return quote!(#conditions #[allow(clippy::used_underscore_binding)] #mention);
    }
    quote!(#conditions #mention)
}

/// The names of a pattern that the arguments use.
fn seen(pat: &Pat, mentioned: &TokenStream) -> Vec<Ident> {
    let names = bindings(pat).into_iter();
    names
        .filter(|name| mentions(mentioned, &name.to_string()))
        .collect()
}

/// The names of a renamed parameter, for the key and the other arguments.
fn view(
    conditions: &TokenStream,
    pat: &Pat,
    whole: &Ident,
    seen: &[Ident],
    krate: &Path,
) -> TokenStream {
    let names = bindings(pat);
    let pat = by_reference(pat);
    // The arguments need not read every one of the names.
    quote! {
        #conditions
        let #pat = &#whole;
        #(#conditions let _ = #names;)*
        #(
            #conditions
            let #seen = {
                use #krate::__private::{ViewByReference as _, ViewByValue as _};
                (&#krate::__private::View(#seen)).__lock_view()
            };
            #conditions let _ = #seen;
        )*
    }
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
fn conditions(attrs: &[Attribute]) -> TokenStream {
    let kept = ["cfg", "cfg_attr", "allow", "expect", "warn", "deny"];
    let is_kept = |attr: &&Attribute| kept.iter().any(|name| attr.path().is_ident(name));
    let attrs = attrs.iter().filter(is_kept);
    quote!(#(#attrs)*)
}

/// `#[instrument]` below this attribute.
fn instrument(attrs: &[Attribute]) -> Option<&Attribute> {
    attrs.iter().find(|attr| {
        attr.path()
            .segments
            .last()
            .is_some_and(|last| last.ident == "instrument")
    })
}

/// `#[instrument]` would record the invented name of a parameter that is taken apart in the body, or
/// miss the one that it was told to skip; unless it skips all and names none.
fn can_do_without(instrument: &Attribute, pat: &Pat) -> Result<()> {
    let args = match &instrument.meta {
        Meta::List(list) => list.tokens.clone(),
        Meta::Path(_) | Meta::NameValue(_) => TokenStream::new(),
    };
    let names = bindings(pat);
    let skips_all = args
        .clone()
        .into_iter()
        .any(|tree| matches!(tree, TokenTree::Ident(ident) if ident == "skip_all"));
    if skips_all && !names.iter().any(|name| mentions(&args, &name.to_string())) {
        return Ok(());
    }
    Err(Error::new_spanned(
        instrument.path(),
        "write `#[instrument]` above `#[distributed_lock(…)]`: here it cannot see the names in a parameter that leaves a part out",
    ))
}
