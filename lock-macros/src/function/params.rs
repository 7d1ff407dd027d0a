//! Moves all parameters into the body, so that the body drops them before the lock is released.
//!
//! For example, a transaction commits or rolls back when it is dropped, even if the body does not use it.
//! The body drops a value if it owns the whole value. A mention of a plain name is enough for that. A
//! pattern may leave out a part (`(id, _)`, `_`, `State(App { db, .. })`), which then has no name. Such a
//! parameter gets a name in the head, and the body destructures it.
//!
//! # Why a destructured parameter makes the future larger
//!
//! Only the type of `Json(cart): Json<Cart>` determines whether the rest of the value has a `Drop`. The
//! body therefore owns the whole parameter and destructures it inside, so its future keeps the whole
//! beside the parts. It is larger than that of the plain function by one copy. Moving only the named parts
//! would be smaller, but the rest would outlive the lock. A plain name costs no copy.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{format_ident, quote};
use syn::{
    Attribute, Error, FnArg, Ident, Meta, Pat, PatType, Path, Result, Signature, Token,
    parse_quote, punctuated::Punctuated,
};

use super::pattern::{
    bindings, borrows_mutably, by_reference, leaves_something, may_leave_something,
};
use crate::path::ends_with;

pub(crate) struct Params {
    /// The parameter list to print.
    pub(crate) inputs: Punctuated<FnArg, Token![,]>,
    /// Statements that bind the names in destructured parameters by reference, for the arguments.
    pub(crate) views: TokenStream,
    /// Statements that make the body own every parameter.
    pub(crate) captures: TokenStream,
    /// Statements that destructure the renamed parameters inside of the body.
    pub(crate) unpack: TokenStream,
}

impl Params {
    /// Makes the statements; `mentioned` contains the tokens of the attribute's arguments.
    pub(crate) fn new(
        sig: &Signature,
        attrs: &[Attribute],
        mentioned: &TokenStream,
        krate: &Path,
        attribute: &str,
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
                    // `#[instrument]` below records the parameters by name, so it must find the names.
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
                    instrument.map_or(Ok(()), |below| can_do_without(below, pat, attribute))?;
                    let whole = format_ident!("__lock_arg{index}", span = Span::mixed_site());
                    captures.push(quote!(#conditions let _ = &#whole;));
                    if !matches!(**pat, Pat::Wild(_)) {
                        let seen = seen(pat, mentioned);
                        if !seen.is_empty() {
                            views.extend(view(&conditions, pat, &whole, &seen, krate));
                        }
                        // The body need not read the names that the arguments read.
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
        // A closure drops its captures in the order of first mention. A function drops its parameters
        // from the last to the first.
        captures.reverse();
        Ok(Params {
            inputs,
            views,
            captures: captures.into_iter().collect(),
            unpack,
        })
    }
}

/// Returns every name that the parameters bind, except `self`.
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

/// Returns the names of a pattern that the arguments use.
fn seen(pat: &Pat, mentioned: &TokenStream) -> Vec<Ident> {
    let names = bindings(pat).into_iter();
    names
        .filter(|name| mentions(mentioned, &name.to_string()))
        .collect()
}

/// Binds the names of a renamed parameter for the key and the other arguments.
fn view(
    conditions: &TokenStream,
    pat: &Pat,
    whole: &Ident,
    seen: &[Ident],
    krate: &Path,
) -> TokenStream {
    let names = bindings(pat);
    let pat = by_reference(pat);
    // The arguments need not read all of the names.
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

/// Returns whether the tokens mention a name, even inside of a literal: `format!("order:{id}")`.
fn mentions(tokens: &TokenStream, name: &str) -> bool {
    tokens.clone().into_iter().any(|tree| match tree {
        TokenTree::Group(group) => mentions(&group.stream(), name),
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Literal(literal) => literal.to_string().contains(name),
        TokenTree::Punct(_) => false,
    })
}

/// Returns the attributes of a parameter that also apply to statements made from it.
fn conditions(attrs: &[Attribute]) -> TokenStream {
    let kept = ["cfg", "cfg_attr", "allow", "expect", "warn", "deny"];
    let is_kept = |attr: &&Attribute| kept.iter().any(|name| attr.path().is_ident(name));
    let attrs = attrs.iter().filter(is_kept);
    quote!(#(#attrs)*)
}

/// Finds `#[instrument]` below this attribute.
fn instrument(attrs: &[Attribute]) -> Option<&Attribute> {
    attrs
        .iter()
        .find(|attr| ends_with(attr.path(), "instrument"))
}

/// Refuses an `#[instrument]` that would record or skip a renamed parameter.
///
/// It is accepted if it skips all parameters and names none of the pattern.
fn can_do_without(instrument: &Attribute, pat: &Pat, attribute: &str) -> Result<()> {
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
        format!(
            "write `#[instrument]` above `{attribute}`, because here it cannot see the names in a pattern that leaves out a part"
        ),
    ))
}
