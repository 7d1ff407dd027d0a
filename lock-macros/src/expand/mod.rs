//! Expands the attribute into a function that runs its body under the lock.
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

mod boxed;
mod duplicate;
mod fallback;
mod key;
mod key_names;
mod request;

pub(crate) use fallback::keep;
pub(crate) use key::tokens as key_tokens;

use proc_macro2::{Group, Ident, Span, TokenStream};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::{Error, Expr, Result, Type, spanned::Spanned as _};

use crate::args::{DurationValue, Key, Keys, LockArgs, WaitValue};
use crate::function::{self, Function, Params};
use crate::template;
use boxed::Boxed;

pub(crate) fn expand(args: &LockArgs, function: Function) -> Result<TokenStream> {
    if let Some(boxed) = Boxed::find(&function) {
        return expand_boxed(args, boxed);
    }
    function.check_async()?;
    duplicate::check(args, &function.attrs)?;
    let params = params(args, &function)?;
    let request = request(args, &params);
    let on_error = on_error(args, &function::nameable(&function.sig));
    let locked = locked(args, &function, &params, &request);

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
            #locked
        }
    })
}

fn expand_boxed(args: &LockArgs, boxed: Boxed) -> Result<TokenStream> {
    let params = params(args, &boxed.inner)?;
    let request = boxed.rename_self(request(args, &params));
    let on_error = on_error(args, &function::nameable(&boxed.inner.sig));
    let on_error = boxed.rename_self(on_error.unwrap_or_default());
    let locked = locked(args, &boxed.inner, &params, &request);
    let name = boxed.inner.sig.ident.clone();
    boxed
        .put(params, &quote!(#on_error #locked))
        .ok_or_else(|| {
            Error::new(
                name.span(),
                "the `async` block of this function cannot be found",
            )
        })
}

/// Returns the parameters after all checks that need the function.
fn params(args: &LockArgs, function: &Function) -> Result<Params> {
    key_names::check(args, &function.sig)?;
    evaluated_at_once(args)?;
    function::check_output(&function.sig, args.on_error.is_some())?;
    Params::new(
        &function.sig,
        &function.attrs,
        &mentioned(args),
        &args.krate,
    )
}

/// Refuses an argument that waits or fails; the compiler's error would mention a closure.
fn evaluated_at_once(args: &LockArgs) -> Result<()> {
    let name = match &args.key {
        Keys::One(_) => "key",
        Keys::All(_) => "keys",
    };
    let keys = args.key.iter().filter_map(|key| match key {
        Key::Template(..) => None,
        Key::Expr(expr) => Some((name, expr)),
    });
    let waited = match &args.wait {
        WaitValue::For(amount) => Some(amount),
        WaitValue::None | WaitValue::Forever => None,
    };
    let amounts = [
        ("ttl", Some(&args.ttl)),
        ("wait", waited),
        ("max_hold", args.max_hold.as_ref()),
        ("cooldown", args.cooldown.as_ref()),
    ];
    let amounts = amounts
        .into_iter()
        .filter_map(|(name, amount)| match amount {
            Some(DurationValue::Expr(expr)) => Some((name, expr)),
            _ => None,
        });
    let manager = args.manager.iter().map(|expr| ("manager", expr));
    for (name, expr) in keys.chain(amounts).chain(manager) {
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

/// Returns the statements that evaluate the arguments, except for `on_error`.
///
/// The borrows of `on_error` must outlive the body.
fn request(args: &LockArgs, params: &Params) -> TokenStream {
    let views = &params.views;
    let request = local("__lock_request");
    let built = request::tokens(args);
    let cooldown = args.cooldown.as_ref().map(|cooldown| {
        let cooldown = request::duration(cooldown);
        let name = local("__lock_cooldown");
        quote!(let #name: ::core::time::Duration = #cooldown;)
    });
    quote! {
        #views
        let #request = #built;
        #cooldown
    }
}

/// Returns the expression that runs the body under the lock and makes the return value.
fn locked(
    args: &LockArgs,
    function: &Function,
    params: &Params,
    built: &TokenStream,
) -> TokenStream {
    let krate = &args.krate;
    let returned = function::nameable(&function.sig);
    let request = local("__lock_request");
    let body = local("__lock_body");
    let outcome = local("__lock_outcome");
    let value = local("__lock_value");
    let error = local("__lock_error");

    let closure = closure(args, function, params, &returned);
    let cooldown = args.cooldown.as_ref().map(|_| local("__lock_cooldown"));
    let cooldown = cooldown.as_slice();
    let run = match cooldown {
        [] => quote!(#krate::__private::run(#request, #body)),
        cooldown => {
            let succeeded = succeeded(args, &returned);
            quote!(#krate::__private::run_cooling(#request, #body, #(#cooldown)*, #succeeded))
        }
    };
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
    let prepared = quote_spanned! {span=>
        #krate::__private::prepare(move || {
            #built
            let #body = #krate::__private::body(#closure);
            (#request, #(#cooldown,)* #body)
        })
    };
    quote! {
        let (#request, #(#cooldown,)* #body) = #prepared;
        let #outcome = #run.await;
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

/// Returns a closure that decides whether the function's work succeeded.
///
/// It uses method resolution where the type is known, so every return type works.
fn succeeded(args: &LockArgs, returned: &Type) -> TokenStream {
    let krate = &args.krate;
    let output = local("__lock_output");
    quote! {
        |#output: &#returned| {
            use #krate::__private::{SuccessOfAny as _, SuccessOfResponse as _, SuccessOfResult as _};
            (&&#krate::__private::ReturnValue(#output)).__lock_succeeded()
        }
    }
}

fn closure(args: &LockArgs, function: &Function, params: &Params, returned: &Type) -> TokenStream {
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
    let parameter = if guard.is_some() {
        quote!(#handle)
    } else {
        quote!(_)
    };
    quote_spanned! {span=>
        move |#parameter: #krate::LockHandle| async move { #returns #captures #guard #unpack #body }
    }
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

/// Returns the span of the return type for errors, marked as generated so that no lint applies.
fn output_span(function: &Function) -> Span {
    let place = match &function.sig.output {
        syn::ReturnType::Default => function.sig.ident.span(),
        syn::ReturnType::Type(_, ty) => ty.span(),
    };
    Span::mixed_site().located_at(place)
}

/// Returns a name that neither the arguments nor the body can see.
fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// Returns every token that the arguments evaluate.
fn mentioned(args: &LockArgs) -> TokenStream {
    let mut tokens = TokenStream::new();
    for key in args.key.iter() {
        match key {
            Key::Template(_, template) => {
                tokens.extend(
                    template
                        .placeholders()
                        .map(|placeholder| placeholder.expr.to_token_stream()),
                );
            }
            Key::Expr(expr) => expr.to_tokens(&mut tokens),
        }
    }
    let waited = match &args.wait {
        WaitValue::For(amount) => Some(amount),
        WaitValue::None | WaitValue::Forever => None,
    };
    for amount in [
        Some(&args.ttl),
        waited,
        args.max_hold.as_ref(),
        args.cooldown.as_ref(),
    ] {
        if let Some(DurationValue::Expr(expr)) = amount {
            expr.to_tokens(&mut tokens);
        }
    }
    for expr in [&args.on_error, &args.manager].into_iter().flatten() {
        expr.to_tokens(&mut tokens);
    }
    tokens
}
