//! Expands an attribute into a function that runs its body under the lock.
//!
//! ```text
//! async fn place_order(uid: u64, cart: Cart) -> R {
//!     let (request, body) = prepare(move || {
//!         let request = installed_request(key).ttl(…).wait(…);     // evaluated here, once
//!         let body = body(move |handle| async move { …; { the body } }); // owns every parameter
//!         (request, body)
//!     });
//!     let outcome = run(request, body).await;                      // drops the body, then releases
//!     match outcome { Ok(value) => value, Err(error) => R::from_lock_error(error) }
//! }
//! ```
//!
//! The arguments are evaluated in a closure. If the function itself lent a parameter to the key, its
//! future would keep that parameter a second time, beside the body's.
//!
//! The body stays an `async` block of its own. `?`, `return` and labels therefore keep their meaning, and
//! `run` can drop the whole body when the lock is lost.

mod attribute;
mod boxed;
mod closure;
mod duplicate;
mod fallback;
mod key;
mod key_names;
mod lock;
mod request;

pub(crate) use attribute::{Attribute, BodyOf, Steps};
pub(crate) use duplicate::check_twice;
pub(crate) use fallback::keep;
pub(crate) use key::{fingerprint as fingerprint_tokens, respan, tokens as key_tokens};
pub(crate) use request::{duration, key as one_key, tokens as request_tokens, wait as wait_tokens};

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::{Error, Expr, Result, Type, spanned::Spanned as _};

use crate::args::{DurationValue, Key, Keys, LockArgs, WaitValue};
use crate::function::{self, Function, Params};
use crate::template;
use boxed::Boxed;

pub(crate) fn expand<A: Attribute>(attribute: &A, function: Function) -> Result<TokenStream> {
    if let Some(boxed) = Boxed::find(&function) {
        return expand_boxed(attribute, boxed);
    }
    let args = attribute.lock();
    function.check_async(A::WRITTEN)?;
    let params = params(attribute, &function)?;
    let returned = function::nameable(&function.sig);
    let steps = attribute.steps(&function, &returned);
    let evaluated = evaluated(&steps, &params);
    let on_error = on_error(args, &returned);
    let run = run(args, &function, &params, &steps, &evaluated);

    let Function {
        attrs,
        vis,
        mut sig,
        inner_attrs,
        ..
    } = function;
    sig.inputs = params.inputs;
    Ok(quote! {
        #(#attrs)*
        #vis #sig {
            #(#inner_attrs)*
            #on_error
            #run
        }
    })
}

fn expand_boxed<A: Attribute>(attribute: &A, boxed: Boxed) -> Result<TokenStream> {
    let args = attribute.lock();
    let params = params(attribute, &boxed.inner)?;
    let returned = function::nameable(&boxed.inner.sig);
    let steps = attribute.steps(&boxed.inner, &returned);
    let evaluated = boxed.rename_self(evaluated(&steps, &params));
    let on_error = boxed.rename_self(on_error(args, &returned).unwrap_or_default());
    let run = run(args, &boxed.inner, &params, &steps, &evaluated);
    let name = boxed.inner.sig.ident.clone();
    boxed.put(params, &quote!(#on_error #run)).ok_or_else(|| {
        Error::new(
            name.span(),
            "the `async` block of this function cannot be found",
        )
    })
}

/// Returns the parameters after all checks that need the function.
fn params<A: Attribute>(attribute: &A, function: &Function) -> Result<Params> {
    let args = attribute.lock();
    attribute.check_attributes(&function.attrs)?;
    key_names::check(attribute, &function.sig)?;
    evaluated_at_once(attribute)?;
    attribute.check(&function.sig)?;
    Params::new(
        &function.sig,
        &function.attrs,
        &mentioned(attribute),
        &args.krate,
        A::WRITTEN,
    )
}

/// Refuses an argument that waits or fails; the compiler's error would mention a closure.
fn evaluated_at_once(attribute: &impl Attribute) -> Result<()> {
    for (name, expr) in expressions(attribute) {
        if let Some((span, what)) = template::leaves(expr) {
            return Err(Error::new(
                span,
                format!(
                    "`{name}` is evaluated before the function begins, so it cannot {what}; \
                     pass a value, for example a parameter"
                ),
            ));
        }
    }
    Ok(())
}

/// Returns each argument that is an expression, except for `on_error` and templates.
fn expressions(attribute: &impl Attribute) -> impl Iterator<Item = (&'static str, &Expr)> {
    let args = attribute.lock();
    let name = match &args.key {
        Keys::One(_) => "key",
        Keys::All(_) => "keys",
    };
    let keys = args.key.iter().filter_map(expression);
    let waited = match &args.wait {
        WaitValue::For(amount) => Some(amount),
        WaitValue::None | WaitValue::Forever => None,
    };
    let amounts = [
        ("ttl", args.ttl.as_ref()),
        ("wait", waited),
        ("max_hold", args.max_hold.as_ref()),
        ("cooldown", args.cooldown.as_ref()),
        ("remember", attribute.remembered_for()),
    ];
    let amounts = amounts
        .into_iter()
        .filter_map(|(name, amount)| match amount {
            Some(DurationValue::Expr(expr)) => Some((name, expr)),
            _ => None,
        });
    let manager = args.manager.iter().map(|expr| ("manager", expr));
    keys.map(move |expr| (name, expr))
        .chain(amounts)
        .chain(manager)
}

/// Returns the statements that evaluate the arguments, except for `on_error`.
///
/// The borrows of `on_error` must outlive the body.
fn evaluated(steps: &Steps, params: &Params) -> TokenStream {
    let views = &params.views;
    let statements = &steps.statements;
    quote!(#views #statements)
}

/// Returns the expression that runs the body and makes the return value.
fn run(
    args: &LockArgs,
    function: &Function,
    params: &Params,
    steps: &Steps,
    evaluated: &TokenStream,
) -> TokenStream {
    let krate = &args.krate;
    let returned = function::nameable(&function.sig);
    let body = local("__lock_body");
    let outcome = local("__lock_outcome");
    let value = local("__lock_value");
    let error = local("__lock_error");

    let made = closure::tokens(args, function, params, &returned, &steps.body);
    let answer = match &args.on_error {
        Some(expr) => {
            let span = Span::mixed_site().located_at(expr.span());
            let on_error = Ident::new("__lock_on_error", span);
            quote_spanned!(span=> #krate::__private::answer::<#returned>(#error, #on_error))
        }
        None => {
            // The error for a type that cannot carry the lock's error points at the type.
            let span = output_span(function);
            let carry =
                quote_spanned!(span=> <#returned as #krate::FromLockError>::from_lock_error);
            quote!(#carry(#error))
        }
    };
    // `!` has no value, so both arms match on an empty type.
    let (value_arm, answer) = match function::is_never(&function.sig) {
        true => (quote!(match #value {}), quote!(match #answer {})),
        false => (quote!(#value), answer),
    };
    let span = blamed(args);
    let Steps { values, future, .. } = steps;
    let prepared = quote_spanned! {span=>
        #krate::__private::prepare(move || {
            #evaluated
            let #body = #made;
            (#(#values,)* #body)
        })
    };
    quote! {
        let (#(#values,)* #body) = #prepared;
        let #outcome = #future.await;
        match #outcome {
            ::core::result::Result::Ok(#value) => #value_arm,
            ::core::result::Result::Err(#error) => #answer,
        }
    }
}

/// Binds `on_error` before the body takes the parameters.
///
/// A closure gets its types here, so `|error| …` needs no annotation. Other expressions get none,
/// because the compiler would report a value that is not a function twice.
fn on_error(args: &LockArgs, returned: &Type) -> Option<TokenStream> {
    let krate = &args.krate;
    let expr = args.on_error.as_ref()?;
    let name = local("__lock_on_error");
    Some(match expr {
        Expr::Closure(_) | Expr::Block(_) => {
            quote!(let #name = #krate::__private::on_error::<#returned, _>(#expr);)
        }
        _ => quote!(let #name = #expr;),
    })
}

/// Returns the span for errors about a value that the body took or kept.
///
/// It is that of the argument which permits the use.
fn blamed(args: &LockArgs) -> Span {
    let place = match (&args.guard, &args.on_error) {
        (Some(guard), _) => guard.span(),
        (None, Some(on_error)) => on_error.span(),
        (None, None) => match args.key.iter().find_map(expression) {
            Some(expr) => expr.span(),
            None => return Span::call_site(),
        },
    };
    Span::mixed_site().located_at(place)
}

fn expression(key: &Key) -> Option<&Expr> {
    match key {
        Key::Expr(expr) => Some(expr),
        Key::Template(..) => None,
    }
}

/// Returns the span of the return type for errors, marked as generated so that no lint applies.
pub(crate) fn output_span(function: &Function) -> Span {
    let place = match &function.sig.output {
        syn::ReturnType::Default => function.sig.ident.span(),
        syn::ReturnType::Type(_, ty) => ty.span(),
    };
    Span::mixed_site().located_at(place)
}

/// Returns a name that neither the arguments nor the body can see.
pub(crate) fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// Returns every token that the arguments evaluate.
fn mentioned(attribute: &impl Attribute) -> TokenStream {
    let mut tokens = TokenStream::new();
    for (_, template) in attribute.templates() {
        for placeholder in template.placeholders() {
            placeholder.expr.to_tokens(&mut tokens);
        }
    }
    for (_, expr) in expressions(attribute) {
        expr.to_tokens(&mut tokens);
    }
    attribute.lock().on_error.to_tokens(&mut tokens);
    tokens
}
