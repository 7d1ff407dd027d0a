//! The suite on sqlx 0.9, with PostgreSQL and SQLite.

#[path = "../../common.rs"]
mod common;
#[macro_use]
#[path = "."]
mod once {
    #[macro_use]
    #[path = "../../../it/once/suite/mod.rs"]
    pub(crate) mod suite;
}

mod on_postgres {
    once_suite!(crate::common::FreshPostgres, postgres);
}

mod on_sqlite {
    once_suite!(crate::common::FreshSqlite);
}
