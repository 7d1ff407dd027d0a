//! `#[distributed_lock]`: the body runs under the lock, and its result is not kept.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Result, Signature, Type};

use super::{Attribute, BodyOf, Steps, duplicate, local, request};
use crate::args::LockArgs;
use crate::function::{self, Function};

impl Attribute for LockArgs {
    const WRITTEN: &'static str = "#[distributed_lock(…)]";

    fn lock(&self) -> &LockArgs {
        self
    }

    fn check_attributes(&self, below: &[syn::Attribute]) -> Result<()> {
        duplicate::check(self, below)
    }

    fn check(&self, sig: &Signature) -> Result<()> {
        function::check_output(sig, self.on_error.is_some())
    }

    fn steps(&self, _: &Function, returned: &Type) -> Steps {
        let krate = &self.krate;
        let body = local("__lock_body");
        let request = local("__lock_request");
        let built = request::tokens(self);
        let mut statements = quote!(let #request = #built;);
        let mut values = vec![request.clone()];
        let future = match &self.cooldown {
            None => quote!(#krate::__private::run(#request, #body)),
            Some(amount) => {
                let cooldown = local("__lock_cooldown");
                let amount = request::duration(amount);
                statements.extend(quote!(let #cooldown: ::core::time::Duration = #amount;));
                values.push(cooldown.clone());
                let succeeded = succeeded(self, returned);
                quote!(#krate::__private::run_cooling(#request, #body, #cooldown, #succeeded))
            }
        };
        Steps {
            statements,
            values,
            body: BodyOf::Lock,
            future,
        }
    }
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
