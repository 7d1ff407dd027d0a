//! Writes a template as calls of a builder of lock-core.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::{LitStr, Path};

use crate::template::{Makes, Piece, Template};

/// Returns a block that makes a `LockKey`, which reads each value once, by reference and in order.
pub(crate) fn tokens(krate: &Path, literal: &LitStr, template: &Template) -> TokenStream {
    built(&quote!(#krate::__private::KeyBuilder), literal, template)
}

/// Returns a block that makes the `Fingerprint` of the values.
pub(crate) fn fingerprint(krate: &Path, literal: &LitStr, template: &Template) -> TokenStream {
    let builder = quote!(#krate::__private::FingerprintBuilder);
    built(&builder, literal, template)
}

fn built(methods: &TokenStream, literal: &LitStr, template: &Template) -> TokenStream {
    let builder = Ident::new("__lock_key", Span::mixed_site());
    // A blanket trait of the user may have methods with these names, so the paths are explicit.
    let pieces = template.pieces.iter().map(|piece| match piece {
        Piece::Text(_) if template.makes == Makes::Fingerprint => TokenStream::new(),
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

/// Gives every token another span, and so its scope.
///
/// A token after a dot has no scope, and gets a generated span. The compiler would otherwise suggest a
/// similar field in place of the whole template.
pub(crate) fn respan(tokens: TokenStream, span: Span) -> TokenStream {
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
