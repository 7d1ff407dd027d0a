//! Writes a key template as calls of lock-core's key builder.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::{LitStr, Path};

use crate::template::{Piece, Template};

/// Returns a block that makes a `LockKey`, which reads each value once, by reference and in order.
pub(crate) fn tokens(krate: &Path, literal: &LitStr, template: &Template) -> TokenStream {
    let builder = Ident::new("__lock_key", Span::mixed_site());
    // A blanket trait of the user may have methods with these names, so the path is explicit.
    let methods = quote!(#krate::__private::KeyBuilder);
    let pieces = template.pieces.iter().map(|piece| match piece {
        Piece::Text(text) => quote!(#methods::text(&mut #builder, #text);),
        Piece::Value(value) => {
            // Errors about the value (an unknown name, no `Display`) point at the template.
            let span = literal.span();
            let source = &value.source;
            let expr = respan(value.expr.to_token_stream(), span);
            let argument = quote_spanned!(span=> &(#expr));
            quote!(#methods::value(&mut #builder, #source, #argument);)
        }
    });
    quote!({
        let mut #builder = #methods::new();
        #(#pieces)*
        #methods::finish(#builder)
    })
}

/// Gives every token the span of the template, and so its scope.
///
/// A token after a dot has no scope, and gets a generated span. The compiler would otherwise suggest a
/// similar field in place of the whole template.
fn respan(tokens: TokenStream, span: Span) -> TokenStream {
    let member = Span::call_site().located_at(span);
    let mut after_dot = false;
    tokens
        .into_iter()
        .map(|mut tree| {
            if let TokenTree::Group(group) = &tree {
                tree =
                    TokenTree::Group(Group::new(group.delimiter(), respan(group.stream(), span)));
            }
            tree.set_span(if after_dot { member } else { span });
            after_dot = matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == '.');
            tree
        })
        .collect()
}
