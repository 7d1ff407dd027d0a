//! The request for the lock: the key, and one builder method for each argument.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote, quote_spanned};
use syn::spanned::Spanned as _;

use crate::{
    amount::{Amount, Wait},
    args::{Key, LockArgs},
    key,
};

/// The builder, one method for each argument that was given. `wait` is always told: an attribute
/// without it does not wait, whatever the manager's default.
pub(crate) fn tokens(args: &LockArgs) -> TokenStream {
    let krate = &args.krate;
    let key = match &args.key {
        Key::Template(literal, template) => key::tokens(krate, literal, template),
        // By the trait's path, so that the compiler says of a wrong value what the trait says, and
        // names no function of ours.
        Key::Expr(expr) => {
            quote_spanned!(expr.span()=> #krate::__private::IntoKey::into_key(#expr))
        }
    };
    let request = match &args.manager {
        Some(manager) => {
            let manager = quote_spanned!(manager.span()=> &(#manager));
            quote!(#krate::LockRequest::by(#manager, #key))
        }
        None => quote!(#krate::__private::installed_request(#key)),
    };
    let ttl = amount(&args.ttl);
    let wait = match &args.wait {
        Wait::None => quote!(#krate::__private::NO_WAIT),
        Wait::Forever => quote!(#krate::__private::FOREVER),
        Wait::For(Amount::Expr(expr)) => {
            quote_spanned!(expr.span()=> #krate::__private::IntoWait::into_wait(#expr))
        }
        Wait::For(duration) => amount(duration),
    };
    let renew = args.renew.map(|renew| match renew {
        true => quote!(.renew(#krate::Renew::Auto)),
        false => quote!(.renew(#krate::Renew::Off)),
    });
    let max_hold = args.max_hold.as_ref().map(|longest| {
        let longest = amount(longest);
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
    quote!(
        #request.ttl(#ttl).wait(#wait)
        #renew #max_hold #on_lost #release #reentrant #interop
    )
}

pub(crate) fn amount(amount: &Amount) -> TokenStream {
    match amount {
        Amount::Fixed(duration, span) => {
            // Every checked text is whole milliseconds that fit: it was made from a `u64` of them.
            let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
            quote_spanned!(*span=> ::core::time::Duration::from_millis(#milliseconds))
        }
        Amount::Expr(expr) => expr.to_token_stream(),
    }
}
