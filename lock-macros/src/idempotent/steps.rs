//! Writes the memory of a call, and what runs its body.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{LitStr, Result, Signature, Type, spanned::Spanned as _};

use super::args::{Fingerprint, IdempotentArgs};
use super::check;
use crate::args::{DurationValue, Key, Keys, LifetimeValue, LockArgs};
use crate::expand::{
    self, Attribute, BodyOf, Steps, check_twice, fingerprint_tokens, local, output_span,
    request_tokens, wait_tokens,
};
use crate::function::Function;
use crate::template::Template;

impl Attribute for IdempotentArgs {
    const WRITTEN: &'static str = "#[idempotent(…)]";

    fn lock(&self) -> &LockArgs {
        &self.lock
    }

    fn remembered_for(&self) -> Option<&DurationValue> {
        match &self.remember.value {
            LifetimeValue::Forever => None,
            LifetimeValue::For(amount) => Some(amount),
        }
    }

    fn fingerprint(&self) -> Option<(&LitStr, &Template)> {
        match &self.fingerprint {
            Some(Fingerprint::Template(literal, template)) => Some((literal, template)),
            Some(Fingerprint::None) | None => None,
        }
    }

    /// Refuses a second attribute with the same key, which would be inside the run of the first one.
    fn check_attributes(&self, below: &[syn::Attribute]) -> Result<()> {
        let text = |args: &Self| args.lock.key.iter().map(Key::text).collect::<Vec<_>>();
        let problem =
            "the attribute above already remembers the result under this key; keep one of the two";
        check_twice("idempotent", below, problem, |other| {
            text(other) == text(self)
        })
    }

    fn check(&self, sig: &Signature) -> Result<()> {
        check::check(self, sig)
    }

    fn steps(&self, function: &Function, returned: &Type) -> Steps {
        let krate = &self.lock.krate;
        let [body, memory] = ["__lock_body", "__lock_memory"].map(local);
        let remembers = self.memory(function, returned);
        let Some(tx) = &self.tx else {
            let request = local("__lock_request");
            let built = request_tokens(&self.lock);
            return Steps {
                statements: quote!(let #request = #built; let #memory = #remembers;),
                future: quote!(#krate::__private::remembered(#request, #memory, #body)),
                values: vec![request, memory],
                body: BodyOf::Lock,
            };
        };
        let [key, wait] = ["__lock_key", "__lock_wait"].map(local);
        let waits = wait_tokens(&self.lock);
        let named = self.key();
        let (name, ty) = check::transaction(tx, &function.sig).expect("`check` has found it");
        let span = tx.span().resolved_at(Span::mixed_site());
        let lent = quote_spanned!(span=> &mut *#tx);
        // The error for a type that is no transaction points at the type.
        let place = ty.span();
        let transaction =
            quote_spanned!(place=> <#ty as #krate::__private::Transaction>::transaction);
        Steps {
            statements: quote! {
                let #key = #named;
                let #wait = #krate::__private::IntoWait::into_wait(#waits);
                let #memory = #remembers;
            },
            future: quote! {
                #krate::__private::remembered_in(#lent, #transaction, #key, #wait, #memory, #body)
            },
            values: vec![key, wait, memory],
            body: BodyOf::Transaction {
                name: Box::new(name.clone()),
                ty: Box::new(ty.clone()),
            },
        }
    }
}

impl IdempotentArgs {
    fn key(&self) -> TokenStream {
        match &self.lock.key {
            Keys::One(key) => expand::one_key(&self.lock.krate, key),
            Keys::All(_) => unreachable!("the attribute has no argument `keys`"),
        }
    }

    /// Returns the `Memory` of the call.
    fn memory(&self, function: &Function, returned: &Type) -> TokenStream {
        let krate = &self.lock.krate;
        let lifetime = match &self.remember.value {
            LifetimeValue::Forever => quote!(#krate::__private::REMEMBERED_FOREVER),
            LifetimeValue::For(amount) => expand::duration(amount),
        };
        let fingerprint = match &self.fingerprint {
            Some(Fingerprint::Template(literal, template)) => {
                fingerprint_tokens(krate, literal, template)
            }
            Some(Fingerprint::None) | None => quote!(#krate::__private::Fingerprint::NONE),
        };
        let name = function.sig.ident.to_string();
        // The error for a result that cannot be kept points at the type.
        let span = output_span(function);
        let new = quote_spanned!(span=> <#returned as #krate::Remember>::memory);
        let memory = quote! {
            #new(
                ::core::concat!(::core::module_path!(), "::", #name),
                #lifetime,
                #fingerprint,
            )
        };
        let Some(errors) = &self.errors else {
            return memory;
        };
        let result = local("__lock_result");
        let with_errors = quote_spanned!(span=> <#returned as #krate::__private::RememberErrors>::remember_errors);
        let span = errors.span();
        let krate = expand::respan(quote!(#krate), span);
        let are_remembered = quote_spanned! {span=>
            |#result: &#returned| #krate::__private::is_remembered(#result, #errors)
        };
        quote!(#with_errors(#memory, #are_remembered))
    }
}
