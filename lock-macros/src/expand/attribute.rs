//! What differs between the attributes.

use proc_macro2::{Ident, TokenStream};
use syn::{LitStr, Pat, Result, Signature, Type};

use crate::args::{DurationValue, Key, LockArgs};
use crate::function::Function;
use crate::template::Template;

/// An attribute with its arguments.
pub(crate) trait Attribute {
    /// The attribute as errors name it.
    const WRITTEN: &'static str;

    /// Returns the arguments that all attributes have.
    fn lock(&self) -> &LockArgs;

    /// Returns the time for which the result is remembered, if it is not a constant of the macro.
    fn remembered_for(&self) -> Option<&DurationValue> {
        None
    }

    /// Returns the template that is no key.
    fn fingerprint(&self) -> Option<(&LitStr, &Template)> {
        None
    }

    /// Returns all templates, those of the keys first.
    fn templates(&self) -> impl Iterator<Item = (&LitStr, &Template)> {
        let keys = self.lock().key.iter().filter_map(|key| match key {
            Key::Template(literal, template) => Some((literal, template)),
            Key::Expr(_) => None,
        });
        keys.chain(self.fingerprint())
    }

    /// Checks the attributes below this one.
    fn check_attributes(&self, below: &[syn::Attribute]) -> Result<()>;

    /// Checks the parameters and the return type.
    fn check(&self, sig: &Signature) -> Result<()>;

    /// Returns what runs the body.
    fn steps(&self, function: &Function, returned: &Type) -> Steps;
}

/// The parts of the expansion around the body.
pub(crate) struct Steps {
    /// Statements that evaluate the arguments.
    pub(crate) statements: TokenStream,
    /// The names that they bind.
    pub(crate) values: Vec<Ident>,
    pub(crate) body: BodyOf,
    /// The future that runs `__lock_body`.
    pub(crate) future: TokenStream,
}

/// What the body gets.
pub(crate) enum BodyOf {
    /// The handle of its lock.
    Lock,
    /// The transaction of the caller.
    Transaction { name: Box<Pat>, ty: Box<Type> },
}
