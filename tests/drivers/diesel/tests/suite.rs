//! The suite on diesel-async, with PostgreSQL.

mod adapter;
mod common;
#[macro_use]
#[path = "."]
mod once {
    #[macro_use]
    #[path = "../../../it/once/suite/mod.rs"]
    pub(crate) mod suite;
}

once_suite!(crate::common::FreshPostgres, postgres);

#[test]
fn the_page_has_this_code() {
    let code = include_str!("adapter.rs");
    let page = include_str!("../../../../lock-tower/src/docs/in_database.md");
    assert!(
        page.contains(&format!("```text\n{code}```\n")),
        "the page has other code than tests/adapter.rs"
    );
}
