//! The procedural macros of lock-core: `#[distributed_lock]`, `#[idempotent]` and `lock_key!`.
//!
//! Use them through `lock_core`, which re-exports and documents them. Their expansion refers to that
//! crate, but this crate does not depend on it.
//!
//! Modules in layers, from the top to the bottom: `lock_key`, `idempotent`, `expand`, `function`, `args`, `template`,
//! `suggest`. A module imports only from those below it.

mod args;
mod expand;
mod function;
mod idempotent;
mod lock_key;
mod path;
mod suggest;
mod template;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use syn::parse::Parse;

use args::LockArgs;
use expand::Attribute;
use idempotent::IdempotentArgs;

/// Runs an async function under a lock that every process shares.
///
/// `lock_core::distributed_lock` documents the arguments.
#[proc_macro_attribute]
pub fn distributed_lock(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute::<LockArgs>(args.into(), item.into()).into()
}

/// Runs an async function once for a key, and returns its result to later calls.
///
/// `lock_core::idempotent` documents the arguments.
#[proc_macro_attribute]
pub fn idempotent(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute::<IdempotentArgs>(args.into(), item.into()).into()
}

/// Makes the key of a lock from a template, for use outside of the attribute.
///
/// `lock_core::lock_key` documents the template.
#[proc_macro]
pub fn lock_key(input: TokenStream) -> TokenStream {
    lock_key::expand(input.into()).into()
}

fn attribute<A: Attribute + Parse>(args: Tokens, item: Tokens) -> Tokens {
    let expanded = syn::parse2(item.clone()).and_then(|function| {
        let args: A = syn::parse2(args.clone())?;
        expand::expand(&args, function)
    });
    expanded.unwrap_or_else(|error| expand::keep(&error, args, item))
}
