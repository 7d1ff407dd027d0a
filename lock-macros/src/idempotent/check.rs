//! Checks the arguments against the parameters of the function.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{Error, FnArg, Ident, Pat, PatType, Result, Signature, Type};

use super::args::{Fingerprint, IdempotentArgs};
use super::result;
use crate::args::Key;
use crate::function::parameter_names;
use crate::suggest;
use crate::template::Template;

pub(super) fn check(args: &IdempotentArgs, sig: &Signature) -> Result<()> {
    if let Some(tx) = &args.tx {
        transaction(tx, sig)?;
    }
    match &args.fingerprint {
        None => every_parameter_counts(args, sig)?,
        Some(Fingerprint::Template(literal, template)) => {
            values_are_new(args, template)
                .map_err(|problem| Error::new(literal.span(), problem))?;
        }
        Some(Fingerprint::None) => {}
    }
    result::check(sig)
}

/// Finds the parameter that is the transaction, and the type behind its `&mut`.
pub(super) fn transaction<'a>(tx: &Ident, sig: &'a Signature) -> Result<(&'a Pat, &'a Type)> {
    let named = sig.inputs.iter().find_map(|input| match input {
        FnArg::Typed(typed) => is_named(typed, tx).then_some(typed),
        FnArg::Receiver(_) => None,
    });
    let function = &sig.ident;
    let Some(PatType { pat, ty, .. }) = named else {
        return Err(Error::new(
            tx.span(),
            format!(
                "`{tx}` is no parameter of `{function}`; `tx` names a parameter of type `&mut Tx<Db>`"
            ),
        ));
    };
    match &**ty {
        Type::Reference(reference) if reference.mutability.is_some() => Ok((pat, &reference.elem)),
        _ => Err(Error::new_spanned(
            ty,
            format!("`tx` names a parameter of type `&mut Tx<Db>`, and `{tx}` is none"),
        )),
    }
}

fn is_named(typed: &PatType, name: &Ident) -> bool {
    matches!(&*typed.pat, Pat::Ident(pat) if pat.ident == *name && pat.subpat.is_none())
}

/// Refuses a parameter that is not part of the key, because the result may depend on it.
///
/// A name that begins with `_` is not used. The manager and the transaction are where the result is kept.
fn every_parameter_counts(args: &IdempotentArgs, sig: &Signature) -> Result<()> {
    let mut counted = TokenStream::new();
    for key in args.lock.key.iter() {
        match key {
            Key::Template(_, template) => template
                .placeholders()
                .for_each(|placeholder| placeholder.expr.to_tokens(&mut counted)),
            Key::Expr(expr) => expr.to_tokens(&mut counted),
        }
    }
    args.lock.manager.to_tokens(&mut counted);
    args.tx.to_tokens(&mut counted);
    let mut names = parameter_names(sig);
    // Another constant makes another function, whose calls have the same keys.
    names.extend(sig.generics.const_params().map(|it| it.ident.clone()));
    let missing: Vec<&Ident> = names
        .iter()
        .filter(|name| !name.to_string().starts_with('_'))
        .filter(|name| !reads(&counted, &name.to_string()))
        .collect();
    let Some(first) = missing.first() else {
        return Ok(());
    };
    let others: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let problem = match others.as_slice() {
        [one] => format!(
            "`{one}` is not part of the key: a second call with another `{one}` would get the first one's result; write \
             `fingerprint = \"<{one}>\"`, or `fingerprint = none`"
        ),
        all => format!(
            "{} are not part of the key: a second call with other values would get the first one's result; write those \
             that make another call, for example `fingerprint = \"{}\"`, or `fingerprint = none`",
            suggest::list(all.iter().map(String::as_str)),
            all.iter()
                .map(|name| format!("<{name}>"))
                .collect::<Vec<_>>()
                .join(":"),
        ),
    };
    Err(Error::new(first.span(), problem))
}

/// Returns whether an expression reads a variable of this name. A field, a method or a part of a path is none. The text of a
/// macro reads it as `format!("order:{id}")` does, and every other text reads nothing.
fn reads(tokens: &TokenStream, name: &str) -> bool {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let is_punct = |tree: Option<&TokenTree>, wanted: char| matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted);
    trees.iter().enumerate().any(|(at, tree)| match tree {
        TokenTree::Group(group) => {
            let of_macro = is_punct(trees[..at].last(), '!');
            let mut inside = group.stream().into_iter();
            of_macro && inside.any(|tree| matches!(tree, TokenTree::Literal(text) if is_read_in(&text.to_string(), name)))
                || reads(&group.stream(), name)
        }
        TokenTree::Ident(ident) => {
            let mut before = trees[..at].iter().rev();
            let (last, second) = (before.next(), before.next());
            // Two dots are a range.
            let is_member = is_punct(last, '.') && !is_punct(second, '.');
            // Behind `::` or before it, or the name of a field in `Order { id: … }`.
            let is_path =
                is_punct(last, ':') && is_punct(second, ':') || is_punct(trees.get(at + 1), ':');
            ident == name && !is_member && !is_path
        }
        TokenTree::Literal(_) | TokenTree::Punct(_) => false,
    })
}

/// Returns whether the text of a format reads a variable of this name, as `{id}`, `{id:?}` and `{:id$}` do.
fn is_read_in(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let (before, behind) = (&text[..at], &text[at + name.len()..]);
        // Two braces are one in the text.
        let braces = before.chars().rev().take_while(|it| *it == '{').count();
        behind.starts_with('$') || braces % 2 == 1 && behind.starts_with(['}', ':'])
    })
}

/// Checks that a fingerprint compares something that the key does not.
fn values_are_new(args: &IdempotentArgs, template: &Template) -> std::result::Result<(), String> {
    if !template.has_placeholder() {
        return Err(
            "this fingerprint names no value, so it is the same for every call; write for example \
             `fingerprint = \"<cents>\"`, or `fingerprint = none`"
                .to_owned(),
        );
    }
    let is_in_key = |source: &str| {
        args.lock.key.iter().any(|key| match key {
            Key::Template(_, key) => key.placeholders().any(|value| value.source == source),
            Key::Expr(_) => false,
        })
    };
    let mut values = template.placeholders();
    match values.find(|value| is_in_key(&value.source)) {
        Some(value) => Err(format!(
            "`<{}>` is in the key already; remove it",
            value.source
        )),
        None => Ok(()),
    }
}
