//! The procedural macros of the lock kit: `#[distributed_lock]` and `lock_key!`.
//!
//! Use them through `lock_core`, which re-exports and documents them; what they expand to names that
//! crate. This crate depends on none of the others.

mod amount;
mod args;
mod argument;
mod boxed;
mod duration;
mod expand;
mod fallback;
mod foreign;
mod function;
mod key;
mod lock_key;
mod malformed;
mod names;
mod output;
mod params;
mod pattern;
mod placeholder;
mod request;
mod scan;
mod suggest;
mod template;
#[cfg(test)]
mod tests;
mod twice;
mod value;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;

/// Runs an async function under a lock that every process shares.
///
/// `lock_core::distributed_lock` documents the arguments.
#[proc_macro_attribute]
pub fn distributed_lock(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute(args.into(), item.into()).into()
}

/// A lock's key from a template, for use outside the attribute.
///
/// `lock_core::lock_key` documents the template.
#[proc_macro]
pub fn lock_key(input: TokenStream) -> TokenStream {
    lock_key::expand(input.into()).into()
}

fn attribute(args: Tokens, item: Tokens) -> Tokens {
    let expanded = syn::parse2(item.clone()).and_then(|function| {
        let args = syn::parse2(args.clone())?;
        expand::expand(&args, function)
    });
    expanded.unwrap_or_else(|error| fallback::keep(&error, args, item))
}
