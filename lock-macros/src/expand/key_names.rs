//! Checks the names in a template against the parameters.
//!
//! The compiler would only report that it cannot find a value. The macro knows the parameters, so its
//! error can suggest one.

use syn::{Error, FnArg, Ident, LitStr, Pat, Result, Signature};

use super::Attribute;
use crate::function::parameter_names;
use crate::suggest;
use crate::template::{KnownNames, Placeholder, Template, roots};

/// Sources in templates of the HTTP layer, which are not parameters.
///
/// A source with a `-` in its name is here by its first word.
const LAYER_SOURCES: [&str; 17] = [
    "header",
    "cookie",
    "session",
    "bearer",
    "ext",
    "idempotency",
    "method",
    "host",
    "route",
    "path",
    "param",
    "query",
    "peer",
    "forwarded",
    "json",
    "form",
    "body",
];

pub(crate) fn check(attribute: &impl Attribute, sig: &Signature) -> Result<()> {
    let args = attribute.lock();
    let params: Vec<String> = parameter_names(sig).iter().map(Ident::to_string).collect();
    if let Some(guard) = args
        .guard
        .as_ref()
        .filter(|guard| params.contains(&guard.to_string()))
    {
        return Err(Error::new(
            guard.span(),
            format!(
                "`{guard}` is already a parameter of `{}`; give the guard another name",
                sig.ident
            ),
        ));
    }
    attribute.templates().try_for_each(|(literal, template)| {
        KeyNames {
            params: &params,
            sig,
            literal,
        }
        .check(template)
    })
}

struct KeyNames<'a> {
    params: &'a [String],
    sig: &'a Signature,
    literal: &'a LitStr,
}

impl KeyNames<'_> {
    fn check(&self, template: &Template) -> Result<()> {
        template
            .placeholders()
            .try_for_each(|placeholder| self.check_placeholder(placeholder))?;
        let constants = self.sig.generics.const_params();
        let mut params = self.params.to_vec();
        params.retain(|name| !name.starts_with("__"));
        params.extend(constants.map(|constant| constant.ident.to_string()));
        let names = KnownNames::Are {
            params: &params,
            has_self: self.has_self(),
        };
        let checked = template.check_foreign(&names);
        checked.map_err(|problem| self.error(problem))
    }

    fn check_placeholder(&self, placeholder: &Placeholder) -> Result<()> {
        for root in roots(&placeholder.expr) {
            if self.may_exist(root) {
                continue;
            }
            return Err(self.error(self.explain(&root.to_string(), &placeholder.source)));
        }
        Ok(())
    }

    /// Returns whether the name may exist; constants and statics are capitalized.
    fn may_exist(&self, name: &Ident) -> bool {
        let text = name.to_string();
        text.starts_with(char::is_uppercase)
            || self.params.contains(&text)
            || (text == "self" && self.has_self())
    }

    /// Returns whether there is a `self`, which `async_trait` turns into a local variable.
    fn has_self(&self) -> bool {
        self.sig.receiver().is_some() || self.params.iter().any(|param| param == "__self")
    }

    fn explain(&self, name: &str, source: &str) -> String {
        let function = &self.sig.ident;
        if name == "self" {
            return format!("`<{source}>` reads `self`, but `{function}` has no `self`");
        }
        if LAYER_SOURCES.contains(&name) {
            return format!(
                "`<{source}>` is a part of an HTTP request, which only templates of `lock_tower::LockLayer` can read \
                 (see its documentation); here a placeholder reads the parameters of the function: {}",
                self.parameters(),
            );
        }
        match suggest::nearest(name, self.params.iter().map(String::as_str)) {
            Some(near) => {
                format!("`{name}` is not a parameter of `{function}`; did you mean `{near}`?")
            }
            None if self.sig.inputs.iter().any(is_nameless) => format!(
                "`{name}` is not a parameter of `{function}`, but one parameter is `_`; give it a name"
            ),
            None => format!(
                "`{name}` is not a parameter of `{function}`, which has {}",
                self.parameters()
            ),
        }
    }

    fn parameters(&self) -> String {
        let receiver = self.has_self().then_some("self");
        let all: Vec<&str> = receiver
            .into_iter()
            .chain(
                self.params
                    .iter()
                    .map(String::as_str)
                    .filter(|name| !name.starts_with("__")),
            )
            .collect();
        if all.is_empty() {
            "none".to_owned()
        } else {
            suggest::list(all)
        }
    }

    fn error(&self, message: String) -> Error {
        Error::new(self.literal.span(), message)
    }
}

fn is_nameless(input: &FnArg) -> bool {
    matches!(input, FnArg::Typed(typed) if matches!(*typed.pat, Pat::Wild(_)))
}
