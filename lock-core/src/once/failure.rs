//! Errors of a database as errors of the kit.

use super::database::{Database, Dialect};
use crate::base::error::{Error, ErrorKind};

/// Makes an error of the kit from an error of the database.
///
/// Its message says what to do, and [`source`](std::error::Error::source) returns the driver's error.
pub(super) fn failure<D: Database>(dialect: Dialect, error: D::Error) -> Error {
    let code = D::code(&error);
    let failure = match code.as_deref() {
        Some(GONE) => gone(),
        Some(code) => by_code(dialect, code),
        None => no_answer(),
    };
    failure.with_source(error)
}

/// The SQLSTATE of the division by zero in [`complete`](super::statements::Statements::complete).
const GONE: &str = "22012";

/// The claim of a run is gone.
pub(super) fn gone() -> Error {
    Error::invalid(
        "the claim of this run is gone, because a statement has rolled the transaction back or committed it",
    )
}

/// The answer to COMMIT did not come, or is an error. Whether the transaction was committed is unknown.
pub(super) fn unknown<D: Database>(error: D::Error) -> Error {
    let code = D::code(&error);
    tracing::warn!(
        code = code.as_deref(),
        %error,
        "the answer to a COMMIT is an error, so it is unknown whether the transaction was committed"
    );
    Error::outcome_unknown().with_source(error)
}

fn by_code(dialect: Dialect, code: &str) -> Error {
    let misconfigured = |message| Error::new(ErrorKind::Misconfigured, message);
    match (dialect, code) {
        (Dialect::Postgres, "42P01") => misconfigured(
            "the database has no table `lockkit_once`; call `lock_core::once::create_table`, or run its migration",
        ),
        // No such column, no such operator for its type, and no unique index.
        (Dialect::Postgres, "42703" | "42804" | "42883" | "42P10" | "42P18") => misconfigured(
            "the table `lockkit_once` of the database is not that of this version; compare it with \
             `lock_core::once::SCHEMA_POSTGRES`",
        ),
        (Dialect::Postgres, "42501") => misconfigured(
            "the database's user lacks a right; it needs SELECT, INSERT, UPDATE and DELETE on `lockkit_once`",
        ),
        (Dialect::Postgres, "25006") => misconfigured(
            "the database is read-only, as a replica is; use a pool of connections to the primary server",
        ),
        (Dialect::Postgres, "25P02") => Error::unavailable(
            "an earlier statement of the transaction has failed, so it was rolled back; do not ignore the error of a statement",
        ),
        // The class of an invalid authorization, and an invalid catalogue.
        (Dialect::Postgres, code) if code.starts_with("28") || code == "3D000" => {
            misconfigured("the database refuses the login; check its URL, user and password")
        }
        (Dialect::Sqlite, code) => match code.parse::<u32>().map(|code| code & 0xff) {
            Ok(1) => misconfigured(
                "the database has no table `lockkit_once` of this version; call `lock_core::once::create_table`, or \
                 compare it with `lock_core::once::SCHEMA_SQLITE`",
            ),
            Ok(8) => misconfigured(
                "the database's file is read-only; its file and folder must be writable",
            ),
            Ok(14 | 23 | 26) => misconfigured(
                "the database's file cannot be opened, or is no database; check its path",
            ),
            _ => no_answer(),
        },
        _ => no_answer(),
    }
}

fn no_answer() -> Error {
    Error::unavailable("the database gave no usable answer; try again later")
}
