//! Expands a wrong attribute into one error and the unchanged item.
//!
//! Without the item, the compiler would report each caller of the function. Without the guard, it would
//! report each use of the guard. Only the first error helps.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::{Error, LitStr, Path, parse::Parser as _};

use crate::args;
use crate::function::{Function, has_malformed_parameters, parameter_names};

pub(crate) fn keep(error: &Error, args: TokenStream, item: TokenStream) -> TokenStream {
    let error = error.to_compile_error();
    match syn::parse2::<Function>(item.clone()) {
        Ok(function) => {
            let item = with_guard(&args, function).unwrap_or(item);
            // A parameter that only the arguments use is not unused.
            quote!(#error #[allow(unused_variables, unused_mut)] #item)
        }
        // The compiler has already reported it.
        Err(_) if has_malformed_parameters(&item) => item,
        Err(_) => quote!(#error #item),
    }
}

/// Returns the function with its guard bound, if the arguments name one and the body uses it.
fn with_guard(args: &TokenStream, mut function: Function) -> Option<TokenStream> {
    let guard = value_of(args, "guard")?.into_iter().find_map(meant)?;
    let is_parameter = parameter_names(&function.sig).contains(&guard);
    if is_parameter || !names(function.body.stream(), &guard) {
        return None;
    }
    let krate = value_of(args, "crate")
        .and_then(|path| Path::parse_mod_style.parse2(path).ok())
        .unwrap_or_else(args::default_crate);
    let bound = quote! {
        #[allow(unused_variables)]
        let #guard: &#krate::LockHandle = ::core::option::Option::None.unwrap();
    };
    let body = function.body.stream();
    let span = function.body.span();
    function.body = Group::new(Delimiter::Brace, quote!(#bound #body));
    function.body.set_span(span);
    Some(function.into_token_stream())
}

/// Returns the name in `lock`, `mut lock` or `"lock"`.
fn meant(tree: TokenTree) -> Option<Ident> {
    match tree {
        TokenTree::Ident(ident) => syn::parse2(ident.into_token_stream()).ok(),
        TokenTree::Literal(literal) => {
            let text: LitStr = syn::parse2(literal.into_token_stream()).ok()?;
            text.parse().ok()
        }
        _ => None,
    }
}

/// Returns the tokens after `name =` up to the next comma, even if the arguments do not parse.
fn value_of(args: &TokenStream, name: &str) -> Option<TokenStream> {
    let trees: Vec<TokenTree> = args.clone().into_iter().collect();
    let is_punct = |tree: Option<&TokenTree>, c: char| matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == c);
    let start = trees.iter().enumerate().find_map(|(index, tree)| {
        let first = index == 0 || is_punct(trees.get(index - 1), ',');
        let named = matches!(tree, TokenTree::Ident(ident) if ident == name);
        (first && named && is_punct(trees.get(index + 1), '=')).then_some(index + 2)
    })?;
    Some(
        trees[start..]
            .iter()
            .take_while(|tree| !is_punct(Some(tree), ','))
            .cloned()
            .collect(),
    )
}

fn names(tokens: TokenStream, wanted: &Ident) -> bool {
    tokens.into_iter().any(|tree| match tree {
        TokenTree::Ident(ident) => ident == *wanted,
        TokenTree::Group(group) => names(group.stream(), wanted),
        TokenTree::Literal(literal) => literal.to_string().contains(&format!("{{{wanted}")),
        TokenTree::Punct(_) => false,
    })
}
