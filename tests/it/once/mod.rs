//! Tests `lock_core::once` on real databases.
//!
//! `suite` is one list of cases for every database. The package `tests/drivers` runs it on the drivers that cannot be
//! dependencies of this workspace.

mod altered;
mod closures;
mod functions;
mod kills;
mod misbehaving;
mod misconfigured;
mod one_trip;
pub(crate) mod postgres;
mod postgres_alone;
mod processes;
pub(crate) mod sqlite;
mod sqlite_alone;
mod trips;
#[macro_use]
mod suite;

mod layer;

mod on_sqlite {
    once_suite!(crate::once::sqlite::Fresh);
}

mod on_postgres {
    once_suite!(crate::once::postgres::Fresh, postgres);
}
