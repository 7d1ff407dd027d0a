//! `lock_key!("order:<uid>")`: the attribute's template as an expression.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Error, LitStr, Path, Token,
    parse::{Parse, ParseStream},
};

use crate::{args, foreign::Names, key, template::Template, value};

pub(crate) fn expand(input: TokenStream) -> TokenStream {
    syn::parse2(input)
        .and_then(
            |Input { literal, krate }| match template(&literal.value()) {
                Ok(template) => Ok(key::tokens(&krate, &literal, &template)),
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
    template.check_foreign(&Names::Unknown).map_err(|problem| {
        match template.has_placeholder() {
            true => problem,
            false => format!("{problem}, or give the text itself as the key, without `lock_key!`"),
        }
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
                 a key without a template needs no macro",
            ));
        }
        let literal = input.parse()?;
        let mut krate = args::default_crate();
        if input.peek(Token![,]) && input.peek2(Token![crate]) {
            input.parse::<Token![,]>()?;
            input.parse::<Token![crate]>()?;
            input.parse::<Token![=]>()?;
            krate = value::path(input)?;
        }
        input.parse::<Option<Token![,]>>()?;
        if !input.is_empty() {
            return Err(
                input.error("the values stand in the template, as in `lock_key!(\"order:<id>\")`")
            );
        }
        Ok(Input { literal, krate })
    }
}
