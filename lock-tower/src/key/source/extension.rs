//! Values that an outer layer has put into the extensions of the request.

use std::fmt::{self, Display};
use std::sync::Arc;

use http::Extensions;

/// Reads a value from the extension of one type, under a name for templates and refusals.
#[derive(Clone)]
pub(crate) struct Extension {
    name: Arc<str>,
    read: Arc<ReadExtension>,
}

type ReadExtension = dyn Fn(&Extensions) -> Option<String> + Send + Sync;

impl Extension {
    pub(crate) fn new<T, V>(name: &str, value: impl Fn(&T) -> V + Send + Sync + 'static) -> Self
    where
        T: Clone + Send + Sync + 'static,
        V: Display,
    {
        Self {
            name: name.into(),
            read: Arc::new(move |extensions| Some(value(extensions.get()?).to_string())),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn read(&self, extensions: &Extensions) -> Option<String> {
        (self.read)(extensions)
    }
}

impl fmt::Debug for Extension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Extension").field(&self.name).finish()
    }
}
