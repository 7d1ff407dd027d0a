//! Expands `lock_key!("order:<uid>")`, which makes a key outside of the attribute.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Error, LitStr, Path, Token,
    parse::{Parse, ParseStream},
};

use crate::args;
use crate::expand::key_tokens;
use crate::template::{KnownNames, Template};

pub(crate) fn expand(input: TokenStream) -> TokenStream {
    syn::parse2(input)
        .and_then(
            |Input { literal, krate }| match template(&literal.value()) {
                Ok(template) => Ok(key_tokens(&krate, &literal, &template)),
                Err(problem) => Err(Error::new(literal.span(), problem)),
            },
        )
        .unwrap_or_else(|error| {
            let error = error.to_compile_error();
            quote!({ #error })
        })
}

fn template(text: &str) -> Result<Template, String> {
    let template = Template::parse(text)?;
    template
        .check_foreign(&KnownNames::Unknown)
        .map_err(|problem| match template.has_placeholder() {
            true => problem,
            false => format!("{problem}, or pass the text as the key without `lock_key!`"),
        })?;
    Ok(template)
}

struct Input {
    literal: LitStr,
    krate: Path,
}

impl Parse for Input {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if !input.peek(LitStr) {
            return Err(input.error(
                "`lock_key!` takes one template in quotes, for example `lock_key!(\"order:<id>\")`; \
                 another key needs no macro",
            ));
        }
        let literal = input.parse()?;
        let mut krate = args::default_crate();
        if input.peek(Token![,]) && input.peek2(Token![crate]) {
            input.parse::<Token![,]>()?;
            input.parse::<Token![crate]>()?;
            input.parse::<Token![=]>()?;
            krate = args::path(input)?;
        }
        input.parse::<Option<Token![,]>>()?;
        if !input.is_empty() {
            return Err(input
                .error("write the values into the template, as in `lock_key!(\"order:<id>\")`"));
        }
        Ok(Input { literal, krate })
    }
}
