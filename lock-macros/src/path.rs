//! Paths, by their last name.

use syn::Path;

/// Returns whether the last name of the path is `name`, as `test` in `tokio::test`.
pub(crate) fn ends_with(path: &Path, name: &str) -> bool {
    path.segments.last().is_some_and(|last| last.ident == name)
}
