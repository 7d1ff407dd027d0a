//! SQL for the application's own transactions.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use data_encoding::HEXLOWER;

use super::PASSES;
use crate::base::sync::lock;

/// Returns a query that finds a row while the owner with a fencing token ($2) has a key ($1), and keeps the key with it until
/// the end of the transaction.
///
/// The text lives as long as the process, because drivers keep it with their prepared statements. There is one for each
/// namespace.
pub(super) fn sql(namespace: &str) -> &'static str {
    static TEXTS: LazyLock<Mutex<HashMap<String, &'static str>>> = LazyLock::new(Mutex::default);
    let mut texts = lock(&TEXTS);
    if let Some(text) = texts.get(namespace) {
        return text;
    }
    let text = format!(
        "SELECT 1 FROM lockkit.cell WHERE key = decode('{}', 'hex') || convert_to($1, 'UTF8') \
         AND fence = ($2::bigint & -{PASSES}) FOR KEY SHARE",
        HEXLOWER.encode(namespace.as_bytes())
    );
    let text: &'static str = Box::leak(text.into_boxed_str());
    texts.insert(namespace.to_owned(), text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_namespace_has_one_text_and_is_no_part_of_the_sql() {
        let text = sql("it's:");
        assert!(text.contains("'697427733a'"), "{text}");
        assert!(std::ptr::eq(text, sql("it's:")));
        assert_ne!(text, sql("another:"));
    }
}
