//! The annotated function, with its head parsed and its body as written.
//!
//! The body is never parsed. A half-typed body therefore keeps its function, so the editor's completion
//! still works, and a large body costs no time.

mod malformed;
mod output;
mod params;
mod pattern;

pub(crate) use malformed::has_malformed_parameters;
pub(crate) use output::{check as check_output, is_never, nameable};
pub(crate) use params::{Params, names as parameter_names};

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Error, Ident, Result, ReturnType, Signature, Token, Type, TypeParamBound,
    Visibility,
    ext::IdentExt as _,
    parse::{Parse, ParseStream, Parser as _},
};

use crate::path::ends_with;

#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) inner_attrs: Vec<Attribute>,
    /// The block with its braces, without the inner attributes.
    pub(crate) body: Group,
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis: Visibility = input.parse()?;
        only_a_function(input)?;
        let sig: Signature = input.parse()?;
        if input.peek(Token![;]) {
            return Err(Error::new(
                sig.ident.span(),
                format!(
                    "`{}` has no body to lock; put the attribute on the function that implements it",
                    sig.ident
                ),
            ));
        }
        let braces = without_macro_groups(input.parse()?)?;
        let (inner_attrs, body) = split_inner.parse2(braces.stream())?;
        // Without inner attributes the braces keep the spans of the user, one for each brace.
        let body = match inner_attrs.is_empty() {
            true => braces,
            false => {
                let mut body = Group::new(Delimiter::Brace, body);
                body.set_span(braces.span());
                body
            }
        };
        Ok(Function {
            attrs,
            vis,
            sig,
            inner_attrs,
            body,
        })
    }
}

/// Takes the block out of the invisible groups around it, which it has if `macro_rules` pass it on.
fn without_macro_groups(tree: TokenTree) -> Result<Group> {
    let TokenTree::Group(group) = tree else {
        return Err(Error::new(tree.span(), "expected the body in braces"));
    };
    let mut inside = group.stream().into_iter();
    match (group.delimiter(), inside.next(), inside.next()) {
        (Delimiter::None, Some(only), None) => without_macro_groups(only),
        _ => Ok(group),
    }
}

fn split_inner(input: ParseStream<'_>) -> Result<(Vec<Attribute>, TokenStream)> {
    Ok((input.call(Attribute::parse_inner)?, input.parse()?))
}

impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Function {
            attrs,
            vis,
            sig,
            inner_attrs,
            body,
        } = self;
        let statements = body.stream();
        let mut block = Group::new(Delimiter::Brace, quote!(#(#inner_attrs)* #statements));
        block.set_span(body.span());
        tokens.extend(quote!(#(#attrs)* #vis #sig #block));
    }
}

impl Function {
    /// Returns whether the body stops in the middle of an expression, such as `self.db.`.
    pub(crate) fn is_half_typed(&self) -> bool {
        let mut last = None;
        let mut before = None;
        for tree in self.body.stream() {
            before = last.replace(tree);
        }
        let punct = |tree: Option<TokenTree>| match tree {
            Some(TokenTree::Punct(punct)) => Some(punct.as_char()),
            _ => None,
        };
        match (punct(before), punct(last)) {
            // A range without an end.
            (Some('.'), Some('.')) => false,
            (_, last) => last.is_some_and(|last| ".:=+-*/%&|^!<,".contains(last)),
        }
    }

    /// Returns whether the body is on one line. In unit tests there are no lines.
    pub(crate) fn is_one_line(&self) -> bool {
        let line = |span: Span| span.unwrap().line();
        !proc_macro::is_available() || line(self.body.span_open()) == line(self.body.span_close())
    }

    /// Checks that the function can wait for a lock.
    pub(crate) fn check_async(&self, attribute: &str) -> Result<()> {
        if let Some(constness) = &self.sig.constness {
            return Err(Error::new(
                constness.span,
                "a `const fn` can run at compile time, so it cannot wait for a lock; write `async fn`",
            ));
        }
        if self.sig.asyncness.is_some() {
            return Ok(());
        }
        let name = &self.sig.ident;
        if self.is_a_made_test() {
            return Err(Error::new(
                name.span(),
                format!(
                    "the test attribute above has already made `{name}` a plain function; \
                     write `{attribute}` above it, for example above `#[tokio::test]`"
                ),
            ));
        }
        if self.is_a_made_main() {
            return Err(Error::new(
                name.span(),
                format!(
                    "the attribute above has already made `{name}` a plain function; \
                     write `{attribute}` above it, for example above `#[tokio::main]`"
                ),
            ));
        }
        if let Some(ty) = self.returned_future() {
            return Err(Error::new_spanned(
                ty,
                format!(
                    "`{name}` returns a future that is not a single `async` block; write `async fn {name}` with the output of the future"
                ),
            ));
        }
        Err(Error::new(
            self.sig.fn_token.span,
            format!("`{name}` waits for a lock, so it must be async; write `async fn {name}`"),
        ))
    }

    /// Detects the plain function with the standard `#[test]` that `#[tokio::test]` leaves.
    fn is_a_made_test(&self) -> bool {
        self.attrs.iter().any(|attr| ends_with(attr.path(), "test"))
    }

    fn is_a_made_main(&self) -> bool {
        let body = self.body.stream().to_string();
        self.sig.ident == "main" && (body.contains("block_on") || body.contains("Runtime"))
    }

    fn returned_future(&self) -> Option<&Type> {
        let ReturnType::Type(_, ty) = &self.sig.output else {
            return None;
        };
        let is_future = match &**ty {
            Type::ImplTrait(opaque) => opaque.bounds.iter().any(|bound| is_trait(bound, "Future")),
            other => {
                let text = other.to_token_stream().to_string();
                text.contains("dyn") && text.contains("Future")
            }
        };
        is_future.then_some(&**ty)
    }
}

/// Returns whether the bound is a trait of that name.
fn is_trait(bound: &TypeParamBound, name: &str) -> bool {
    matches!(bound, TypeParamBound::Trait(bound) if ends_with(&bound.path, name))
}

/// Refuses an item that is not a function, with an error at its keyword.
fn only_a_function(input: ParseStream<'_>) -> Result<()> {
    let fork = input.fork();
    while fork.peek(Ident::peek_any) || fork.peek(syn::LitStr) {
        if fork.parse::<Option<syn::LitStr>>()?.is_some() {
            continue;
        }
        let word = fork.call(Ident::parse_any)?;
        match word.to_string().as_str() {
            "fn" => return Ok(()),
            "const" | "async" | "unsafe" | "safe" | "extern" => {}
            "impl" | "trait" | "mod" => {
                return Err(Error::new(
                    word.span(),
                    format!(
                        "the attribute locks one function; put it on the functions inside of this `{word}`"
                    ),
                ));
            }
            _ => break,
        }
    }
    Err(Error::new(
        input.span(),
        "the attribute locks an async function; put it on an `async fn`",
    ))
}
