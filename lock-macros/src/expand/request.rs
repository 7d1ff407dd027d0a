//! Writes the request for the lock: the key, and one builder method for each argument.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote, quote_spanned};
use syn::{Path, spanned::Spanned as _};

use super::key;
use crate::args::{DurationValue, Key, Keys, LockArgs, Share, WaitValue};

/// Returns the builder with one method for each given argument.
///
/// `wait` is always set, because an attribute without it does not wait, whatever the manager's default.
pub(crate) fn tokens(args: &LockArgs) -> TokenStream {
    let krate = &args.krate;
    let request = match &args.key {
        Keys::One(one) => {
            let key = key(krate, one);
            match manager(args) {
                Some(manager) => quote!(#krate::LockRequest::by(#manager, #key)),
                None => quote!(#krate::__private::installed_request(#key)),
            }
        }
        Keys::All(all) => {
            let keys = all.iter().map(|one| key(krate, one));
            let keys = quote!(::std::vec::Vec::from([#(#keys),*]));
            match manager(args) {
                Some(manager) => quote!(#krate::LockRequest::all_by(#manager, #keys)),
                None => quote!(#krate::__private::installed_request_of_all(#keys)),
            }
        }
    };
    let ttl = args.ttl.as_ref().map(|ttl| {
        let ttl = duration(ttl);
        quote!(.ttl(#ttl))
    });
    let wait = wait(args);
    let renew = args.renew.map(|renew| match renew {
        true => quote!(.renew(#krate::Renew::Auto)),
        false => quote!(.renew(#krate::Renew::Off)),
    });
    let max_hold = args.max_hold.as_ref().map(|longest| {
        let longest = duration(longest);
        quote!(.max_hold(#longest))
    });
    let on_lost = args
        .on_lost
        .as_ref()
        .map(|variant| quote!(.on_lost(#krate::OnLost::#variant)));
    let release = args
        .release
        .as_ref()
        .map(|variant| quote!(.release(#krate::ReleaseMode::#variant)));
    let reentrant = args.reentrant.map(|reentrant| match reentrant {
        true => quote!(.reentrant(#krate::Reentrancy::Enter)),
        false => quote!(.reentrant(#krate::Reentrancy::Refuse)),
    });
    let interop = args.interop.map(|interop| match interop {
        true => quote!(.interop(#krate::Interop::On)),
        false => quote!(.interop(#krate::Interop::Off)),
    });
    let share = args.share.as_ref().map(|share| match share {
        Share::Reader => quote!(.read()),
        Share::Permits(count) => quote_spanned!(count.span()=> .permits(#count)),
    });
    quote!(
        #request #ttl.wait(#wait)
        #renew #max_hold #on_lost #release #reentrant #interop #share
    )
}

/// Returns how long the call waits, as a value that `Into<Wait>` takes.
pub(crate) fn wait(args: &LockArgs) -> TokenStream {
    let krate = &args.krate;
    match &args.wait {
        WaitValue::None => quote!(#krate::__private::NO_WAIT),
        WaitValue::Forever => quote!(#krate::__private::FOREVER),
        WaitValue::For(DurationValue::Expr(expr)) => {
            quote_spanned!(expr.span()=> #krate::__private::IntoWait::into_wait(#expr))
        }
        WaitValue::For(value) => duration(value),
    }
}

pub(crate) fn key(krate: &Path, key: &Key) -> TokenStream {
    match key {
        Key::Template(literal, template) => key::tokens(krate, literal, template),
        // The path of the trait makes the compiler report a wrong value in the words of the trait,
        // without a note about a generated function.
        Key::Expr(expr) => {
            quote_spanned!(expr.span()=> #krate::__private::IntoKey::into_key(#expr))
        }
    }
}

fn manager(args: &LockArgs) -> Option<TokenStream> {
    let manager = args.manager.as_ref()?;
    Some(quote_spanned!(manager.span()=> &(#manager)))
}

pub(crate) fn duration(value: &DurationValue) -> TokenStream {
    match value {
        DurationValue::Fixed(duration, span) => {
            // A checked duration was made from a `u64` of milliseconds, so it fits.
            let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
            quote_spanned!(*span=> ::core::time::Duration::from_millis(#milliseconds))
        }
        DurationValue::Expr(expr) => expr.to_token_stream(),
    }
}
