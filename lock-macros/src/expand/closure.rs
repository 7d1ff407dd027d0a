//! Writes the closure that makes the future of the body.

use proc_macro2::{Group, Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Type;

use super::{BodyOf, blamed, local, output_span};
use crate::args::LockArgs;
use crate::function::{Function, Params};

/// Returns the body as a value: a closure that makes its future.
pub(super) fn tokens(
    args: &LockArgs,
    function: &Function,
    params: &Params,
    returned: &Type,
    body_of: &BodyOf,
) -> TokenStream {
    let krate = &args.krate;
    let handle = local("__lock_handle");
    let Params {
        captures, unpack, ..
    } = params;
    let body = block(function);
    let returns = return_edge(returned, function);
    let guard = args.guard.as_ref().map(|guard| {
        let unused = guard.to_string().starts_with('_');
        let allow = unused.then(|| quote!(#[allow(clippy::no_effect_underscore_binding)]));
        // Errors about the borrow point at the guard's name.
        let span = Span::mixed_site().located_at(guard.span());
        let borrowed = quote_spanned!(span=> &#handle);
        quote!(#allow let #guard: &#krate::LockHandle = #borrowed;)
    });

    let span = blamed(args);
    if let BodyOf::Transaction { name, ty } = body_of {
        return quote_spanned! {span=>
            async move |#name: &mut #ty| { #returns #captures #unpack #body }
        };
    }
    let parameter = if guard.is_some() {
        quote!(#handle)
    } else {
        quote!(_)
    };
    quote_spanned! {span=>
        #krate::__private::body(
            move |#parameter: #krate::LockHandle| async move { #returns #captures #guard #unpack #body }
        )
    }
}

/// Returns the body's own block, which keeps the scope of its items and `use`s.
///
/// Its braces keep their place for errors. The braces of a body on one line count as generated, because
/// the compiler would report them as unnecessary. Other braces, and those of a half-typed body, stay the
/// user's: the compiler has already reported the syntax error there, and reports the same error only
/// once.
fn block(function: &Function) -> Group {
    let mut block = function.body.clone();
    if function.is_one_line() && !function.is_half_typed() {
        block.set_span(Span::mixed_site().located_at(block.span()));
    }
    block
}

/// Returns a `return` that never runs, which tells the compiler the type of the body first.
///
/// A wrong value is then reported at the value, and the types of `?` and `into()` are known.
fn return_edge(returned: &Type, function: &Function) -> TokenStream {
    let span = output_span(function);
    let never = Ident::new("__lock_never", span);
    quote_spanned! {span=>
        if let ::core::option::Option::Some(#never) = ::core::option::Option::None::<#returned> {
            return #never;
        }
    }
}
