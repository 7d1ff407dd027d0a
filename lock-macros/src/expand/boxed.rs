//! Expands functions that return a future in place of being `async`.
//!
//! Either `async_trait` has rewritten the method, or the user wrote the future as the return value.
//!
//! ```text
//! fn save(&self, (id, _): Pair) -> Pin<Box<dyn Future<Output = R> + Send>> {
//!     Box::pin(async move { let __self = self; let (id, _) = …; let __ret: R = { body }; __ret })
//! }
//! ```
//!
//! In both cases there is one `async` block, and the lock surrounds the body inside of it.

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use quote::{ToTokens as _, quote};
use syn::{
    Block, Expr, ExprAsync, FnArg, GenericArgument, Local, LocalInit, Pat, PatType, PathArguments,
    ReturnType, Stmt, Type, TypeParamBound, parse_quote,
};

use crate::function::{Function, Params};
use crate::path::ends_with;

pub(crate) struct Boxed {
    /// The equivalent async function, with the parameters and the return type of the body.
    pub(crate) inner: Function,
    outer: Function,
    /// The only expression of the outer function.
    expr: Expr,
    by_async_trait: bool,
}

impl Boxed {
    pub(crate) fn find(function: &Function) -> Option<Boxed> {
        if function.sig.asyncness.is_some() || function.sig.constness.is_some() {
            return None;
        }
        let ReturnType::Type(_, returned) = &function.sig.output else {
            return None;
        };
        let output = output_of(returned)?;
        let mut expr = only_expression(&function.body)?;
        let block = async_block(&mut expr)?;

        let mut inner = function.clone();
        inner.sig.asyncness = Some(block.async_token);
        let by_async_trait = match result_of(&block.block) {
            Some((result, output, body)) => {
                let declared = &block.block.stmts[..result];
                inner.sig.inputs = declared.iter().filter_map(parameter).collect();
                inner.sig.inputs.extend(references(function));
                inner.sig.output = parse_quote!(-> #output);
                inner.body = braces(&body);
                true
            }
            None => {
                inner.sig.output = parse_quote!(-> #output);
                inner.body = braces(&block.block);
                false
            }
        };
        Some(Boxed {
            inner,
            outer: function.clone(),
            expr,
            by_async_trait,
        })
    }

    /// Returns the arguments as the body reads them; `async_trait` renames `self`.
    pub(crate) fn rename_self(&self, tokens: TokenStream) -> TokenStream {
        if self.by_async_trait {
            rename_self(tokens)
        } else {
            tokens
        }
    }

    /// Returns the outer function, with `inside` in place of the body.
    pub(crate) fn put(self, params: Params, inside: &TokenStream) -> Option<TokenStream> {
        let Boxed {
            mut outer,
            mut expr,
            by_async_trait,
            ..
        } = self;
        let block = async_block(&mut expr)?;
        if by_async_trait {
            let (result, ..) = result_of(&block.block)?;
            let (declared, rest) = block.block.stmts.split_at_mut(result);
            let named = declared.iter_mut().filter_map(|stmt| match stmt {
                Stmt::Local(local) => Some(local),
                _ => None,
            });
            for (local, input) in named.zip(params.inputs) {
                let FnArg::Typed(typed) = input else { continue };
                local.pat = *typed.pat;
            }
            if let Some(Stmt::Local(local)) = rest.first_mut()
                && let Some(init) = &mut local.init
            {
                *init.expr = Expr::Verbatim(quote!({ #inside }));
            }
        } else {
            outer.sig.inputs = params.inputs;
            block.capture = Some(parse_quote!(move));
            block.block.stmts = vec![Stmt::Expr(Expr::Verbatim(inside.clone()), None)];
        }
        outer.body = Group::new(Delimiter::Brace, expr.to_token_stream());
        Some(outer.into_token_stream())
    }
}

fn only_expression(body: &Group) -> Option<Expr> {
    let block: Block = syn::parse2(TokenTree::Group(body.clone()).into()).ok()?;
    match <[Stmt; 1]>::try_from(block.stmts).ok()? {
        [Stmt::Expr(expr, None)] => Some(expr),
        _ => None,
    }
}

/// Finds the block of `async move { … }` or `Box::pin(async move { … })`.
fn async_block(expr: &mut Expr) -> Option<&mut ExprAsync> {
    match expr {
        Expr::Async(block) => Some(block),
        Expr::Call(call) if call.args.len() == 1 => {
            match &*call.func {
                Expr::Path(path) if ends_with(&path.path, "pin") => {}
                _ => return None,
            }
            async_block(call.args.first_mut()?)
        }
        _ => None,
    }
}

/// Finds the statement with the body of `async_trait`, its type, and the body.
fn result_of(block: &Block) -> Option<(usize, Type, Block)> {
    block.stmts.iter().enumerate().find_map(|(index, stmt)| {
        let Stmt::Local(Local {
            pat: Pat::Type(PatType { pat, ty, .. }),
            init: Some(LocalInit { expr, .. }),
            ..
        }) = stmt
        else {
            return None;
        };
        let is_result = match &**pat {
            Pat::Ident(name) => name.ident == "__ret",
            Pat::Wild(_) => index + 1 == block.stmts.len(),
            _ => false,
        };
        match &**expr {
            Expr::Block(body) if is_result => Some((index, (**ty).clone(), body.block.clone())),
            _ => None,
        }
    })
}

/// Converts `let (id, _) = …;` back to a parameter.
fn parameter(stmt: &Stmt) -> Option<FnArg> {
    let Stmt::Local(Local { attrs, pat, .. }) = stmt else {
        return None;
    };
    let mut input: PatType = parse_quote!(_: _);
    input.attrs.clone_from(attrs);
    *input.pat = pat.clone();
    Some(FnArg::Typed(input))
}

/// Returns the parameters of reference types, which `async_trait` does not move.
fn references(function: &Function) -> impl Iterator<Item = FnArg> {
    function.sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) => match (&*typed.ty, &*typed.pat) {
            (Type::Reference(_), Pat::Ident(_) | Pat::Reference(_)) => Some(input.clone()),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    })
}

fn braces(block: &Block) -> Group {
    let stmts = &block.stmts;
    let mut group = Group::new(Delimiter::Brace, quote!(#(#stmts)*));
    group.set_span(block.brace_token.span.join());
    group
}

/// Returns `R` of `impl Future<Output = R>`, `Pin<Box<dyn Future<Output = R>>>` or `BoxFuture<'_, R>`.
fn output_of(ty: &Type) -> Option<Type> {
    match ty {
        Type::ImplTrait(opaque) => opaque.bounds.iter().find_map(output_of_bound),
        Type::TraitObject(object) => object.bounds.iter().find_map(output_of_bound),
        Type::Group(group) => output_of(&group.elem),
        Type::Paren(paren) => output_of(&paren.elem),
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let PathArguments::AngleBracketed(arguments) = &last.arguments else {
                return None;
            };
            let mut types = arguments.args.iter().filter_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            });
            // The last argument of these aliases of the `futures` crate is the output.
            if last.ident == "BoxFuture" || last.ident == "LocalBoxFuture" {
                return types.next_back().cloned();
            }
            types.find_map(output_of)
        }
        _ => None,
    }
}

fn output_of_bound(bound: &TypeParamBound) -> Option<Type> {
    let TypeParamBound::Trait(bound) = bound else {
        return None;
    };
    let last = bound
        .path
        .segments
        .last()
        .filter(|last| last.ident == "Future")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::AssocType(assoc) if assoc.ident == "Output" => Some(assoc.ty.clone()),
        _ => None,
    })
}

/// Renames `self` to `__self`, except in a path such as `self::kit`.
fn rename_self(tokens: TokenStream) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut renamed = TokenStream::new();
    while let Some(tree) = tokens.next() {
        let is_path =
            matches!(tokens.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
        renamed.extend([match tree {
            TokenTree::Ident(ident) if ident == "self" && !is_path => {
                TokenTree::Ident(Ident::new("__self", ident.span()))
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), rename_self(group.stream()));
                inner.set_span(group.span());
                TokenTree::Group(inner)
            }
            other => other,
        }]);
    }
    renamed
}
