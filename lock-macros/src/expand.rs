//! The annotated function around its body.
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
//! In a closure, because a parameter that the function itself has lent to the key would be kept a
//! second time by its future, beside the body's.
//!
//! The body stays an `async` block of its own, so `?`, `return` and labels keep their meaning, and
//! `run` can drop it as a whole when the lock is lost.

use proc_macro2::{Group, Ident, Span, TokenStream};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::{Error, Expr, Result, Type, spanned::Spanned as _};

use crate::{
    amount::{Amount, Wait},
    args::{Key, LockArgs},
    boxed::Boxed,
    function::Function,
    names, output,
    params::Params,
    placeholder, request, twice,
};

pub(crate) fn expand(args: &LockArgs, function: Function) -> Result<TokenStream> {
    if let Some(boxed) = Boxed::find(&function) {
        return expand_boxed(args, boxed);
    }
    function.check_async()?;
    twice::check(args, &function.attrs)?;
    let params = params(args, &function)?;
    let request = request(args, &params);
    let on_error = on_error(args, &output::nameable(&function.sig));
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
    let on_error = on_error(args, &output::nameable(&boxed.inner.sig));
    let on_error = boxed.rename_self(on_error.unwrap_or_default());
    let locked = locked(args, &boxed.inner, &params, &request);
    let name = boxed.inner.sig.ident.clone();
    boxed
        .put(params, &quote!(#on_error #locked))
        .ok_or_else(|| Error::new(name.span(), "this function's `async` block cannot be found"))
}

/// The parameters, after every check that needs the function.
fn params(args: &LockArgs, function: &Function) -> Result<Params> {
    names::check(args, &function.sig)?;
    evaluated_at_once(args)?;
    output::check(&function.sig, args.on_error.is_some())?;
    Params::new(
        &function.sig,
        &function.attrs,
        &mentioned(args),
        &args.krate,
    )
}

/// An argument that waits or fails is an error here: the compiler would speak of a closure.
fn evaluated_at_once(args: &LockArgs) -> Result<()> {
    let key = match &args.key {
        Key::Template(..) => None,
        Key::Expr(expr) => Some(("key", expr)),
    };
    let waited = match &args.wait {
        Wait::For(amount) => Some(amount),
        Wait::None | Wait::Forever => None,
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
            Some(Amount::Expr(expr)) => Some((name, expr)),
            _ => None,
        });
    let manager = args.manager.iter().map(|expr| ("manager", expr));
    for (name, expr) in key.into_iter().chain(amounts).chain(manager) {
        if let Some((span, what)) = placeholder::leaves(expr) {
            return Err(Error::new(
                span,
                format!(
                    "`{name}` is evaluated before the function begins and cannot {what}; \
                     give it a value, for example a parameter that the caller has made"
                ),
            ));
        }
    }
    Ok(())
}

/// Everything that reads the arguments of the attribute, but for `on_error`: what that borrows must
/// outlive the body.
fn request(args: &LockArgs, params: &Params) -> TokenStream {
    let views = &params.views;
    let request = local("__lock_request");
    let built = request::tokens(args);
    let cooldown = args.cooldown.as_ref().map(|cooldown| {
        let cooldown = request::amount(cooldown);
        let name = local("__lock_cooldown");
        quote!(let #name: ::core::time::Duration = #cooldown;)
    });
    quote! {
        #views
        let #request = #built;
        #cooldown
    }
}

/// The body under the lock, and what comes of it.
fn locked(
    args: &LockArgs,
    function: &Function,
    params: &Params,
    built: &TokenStream,
) -> TokenStream {
    let krate = &args.krate;
    let returned = output::nameable(&function.sig);
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
            // A type that cannot carry the error is told at the type.
            let span = output_span(function);
            let carry =
                quote_spanned!(span=> <#returned as #krate::FromLockError>::from_lock_error);
            quote!(#carry(#error))
        }
    };
    // No value stands for `!`: there is none in either case, and the compiler sees it.
    let (value_arm, answer) = match output::is_never(&function.sig) {
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

/// What was given is named before the body takes the parameters. A closure is given its types, so
/// that `|error| …` needs no annotation. Anything else gets none here: the compiler would find a value
/// that is no function wrong twice.
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

/// Whether the function's value says that its work is done. By method resolution in the place where
/// the type is known, so that any type will do.
fn succeeded(args: &LockArgs, returned: &Type) -> TokenStream {
    let krate = &args.krate;
    let output = local("__lock_output");
    quote! {
        |#output: &#returned| {
            use #krate::__private::{OutcomeOfAny as _, OutcomeOfResult as _};
            (&#krate::__private::Outcome(#output)).__lock_succeeded()
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
        // What is said about the borrow is said at the guard's name.
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

/// Where the compiler says that the body took or kept something that it must not: at the argument
/// that lets it.
fn blamed(args: &LockArgs) -> Span {
    let place = match (&args.guard, &args.on_error) {
        (Some(guard), _) => guard.span(),
        (None, Some(on_error)) => on_error.span(),
        (None, None) => match &args.key {
            Key::Expr(expr) => expr.span(),
            Key::Template(..) => return Span::call_site(),
        },
    };
    Span::mixed_site().located_at(place)
}

/// The body's own block, so that its items and `use`s stay its own. Its braces keep their place for
/// errors. In one line they count as ours, or the compiler would find them superfluous. Otherwise, and
/// in a half typed body, they stay the user's: an error of the syntax there was found already, and the
/// compiler tells the same one only once.
fn block(function: &Function) -> Group {
    let mut block = function.body.clone();
    if function.is_one_line() && !function.is_half_typed() {
        block.set_span(Span::mixed_site().located_at(block.span()));
    }
    block
}

/// A `return` that never runs. It tells the compiler the body's type first, so that a wrong value is
/// reported at the value, and `?` and `into()` know what to become.
fn return_edge(returned: &Type, function: &Function) -> TokenStream {
    let span = output_span(function);
    let never = Ident::new("__lock_never", span);
    quote_spanned! {span=>
        if let ::core::option::Option::Some(#never) = ::core::option::Option::None::<#returned> {
            return #never;
        }
    }
}

/// The return type's place, for errors, but marked as ours, so that no lint looks at it.
fn output_span(function: &Function) -> Span {
    let place = match &function.sig.output {
        syn::ReturnType::Default => function.sig.ident.span(),
        syn::ReturnType::Type(_, ty) => ty.span(),
    };
    Span::mixed_site().located_at(place)
}

/// A name that neither the arguments nor the body can see.
fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

/// Every token that the arguments evaluate.
fn mentioned(args: &LockArgs) -> TokenStream {
    let mut tokens = TokenStream::new();
    match &args.key {
        Key::Template(_, template) => {
            tokens.extend(
                template
                    .placeholders()
                    .map(|placeholder| placeholder.expr.to_token_stream()),
            );
        }
        Key::Expr(expr) => expr.to_tokens(&mut tokens),
    }
    let waited = match &args.wait {
        Wait::For(amount) => Some(amount),
        Wait::None | Wait::Forever => None,
    };
    for amount in [
        Some(&args.ttl),
        waited,
        args.max_hold.as_ref(),
        args.cooldown.as_ref(),
    ] {
        if let Some(Amount::Expr(expr)) = amount {
            expr.to_tokens(&mut tokens);
        }
    }
    for expr in [&args.on_error, &args.manager].into_iter().flatten() {
        expr.to_tokens(&mut tokens);
    }
    tokens
}
