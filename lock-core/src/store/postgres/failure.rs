//! Errors of the server, in our own words: its detail may name a key.

#[cfg(feature = "postgres-tls")]
use std::borrow::Cow;

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

#[cfg(feature = "postgres-tls")]
use crate::base::tls_refusal;
use crate::store::Failure;

pub(super) const POOLER: &str = "the server of the URL does not take the settings of a session, so it is a pooler, such as pgbouncer; \
    name a way past it for the connection that listens (`?listen=postgres://…`), or say that there is a pooler (`?prepare=off`)";

/// What an error says about the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// It may have been done.
    Unknown,
    /// It was not done, and may be done when it is asked again at once.
    Again,
    /// It was not done.
    NotDone,
    /// It will never be done with the present configuration.
    Final,
}

/// Classifies the code of an error; `None`: there was no answer.
pub(super) fn class_of(code: Option<&str>) -> Class {
    let Some(code) = code else {
        return Class::Unknown;
    };
    match code {
        // A serialization failure, a deadlock, a lock that was not available, and swaps that could not be done together.
        "40001" | "40P01" | "55P03" | "22012" => Class::Again,
        // Canceled, a standby, starting up, no such cursor.
        "57014" | "25006" | "57P03" => Class::NotDone,
        "57P04" => Class::Final,
        _ => match &code[..code.len().min(2)] {
            // Insufficient resources: no space, no memory, too many connections.
            "53" => Class::NotDone,
            // A password, a missing database, a missing right, table or function.
            "28" | "3D" | "3F" | "42" | "0A" => Class::Final,
            _ => Class::Unknown,
        },
    }
}

/// Returns whether this server takes no writes at the moment, so that another one may be the primary.
pub(super) fn is_standby(error: &Error) -> bool {
    matches!(code(error), Some("25006" | "57P03" | "57P01" | "57P02"))
}

pub(super) fn code(error: &Error) -> Option<&str> {
    error.code().map(SqlState::code)
}

/// Describes the error of a request that was sent.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let Some(code) = code(&error) else {
            return Failure::unanswered("the connection to PostgreSQL broke before the answer");
        };
        let advice = advice(code).map(str::to_owned);
        let text = advice.unwrap_or_else(|| format!("PostgreSQL answers with the error {code}"));
        match class_of(Some(code)) {
            Class::Unknown => Failure::unanswered(text),
            Class::Again | Class::NotDone => Failure::refused(text),
            Class::Final => Failure::misconfigured(text),
        }
    }
}

/// Describes why no connection was made.
pub(super) fn not_connected(error: Error) -> Failure {
    #[cfg(feature = "postgres-tls")]
    if let Some(why) = refusal_of_tls(&error) {
        return Failure::misconfigured(why);
    }
    match code(&error) {
        None => {
            Failure::refused("no PostgreSQL server of the URL can be reached that takes writes")
        }
        // A startup parameter that it does not know. A server knows all that the kit sends.
        Some("08P01") => Failure::misconfigured(POOLER),
        // No request was sent.
        Some(_) => Failure {
            ambiguous: false,
            ..error.into()
        },
    }
}

/// Advice about a connection that failed for good because of TLS; `None`: it failed otherwise.
#[cfg(feature = "postgres-tls")]
fn refusal_of_tls(error: &Error) -> Option<Cow<'static, str>> {
    let source = std::error::Error::source(error)?;
    let Some(io) = source.downcast_ref::<std::io::Error>() else {
        // The client library has no other name for it.
        return (source.to_string() == "server does not support TLS").then_some(
            "the PostgreSQL server speaks no TLS; turn on its setting `ssl`, or write `sslmode=disable` where the network is \
             safe"
                .into(),
        );
    };
    let why = tls_refusal::of(io.get_ref()?.downcast_ref()?)?;
    Some(
        format!("PostgreSQL by TLS: {why}; or write `sslmode=disable` where the network is safe")
            .into(),
    )
}

fn advice(code: &str) -> Option<&'static str> {
    Some(match code {
        "25006" => {
            "the PostgreSQL server is a standby, which takes no locks; name all servers in the URL"
        }
        "28P01" => "PostgreSQL refuses the password of the URL, or of the credentials provider",
        "28000" => {
            "PostgreSQL admits no such user from here; look at pg_hba.conf, and at `sslmode` of the URL"
        }
        "3D000" => "the database of the URL does not exist",
        "42501" => {
            "the role may not use the table of the locks; grant it CONNECT on the database, USAGE on the schema lockkit, SELECT, \
             INSERT, UPDATE and DELETE on lockkit.cell, and USAGE and UPDATE on the sequence lockkit.revision"
        }
        "42P01" | "3F000" => {
            "the table of the locks is missing; connect again, so that it is created"
        }
        "53100" => "the disk of PostgreSQL is full",
        "53300" => "PostgreSQL has too many connections; raise `max_connections`",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_says_whether_the_request_may_have_been_done() {
        for (code, class) in [
            (None, Class::Unknown),
            (Some("57P01"), Class::Unknown),
            (Some("XX000"), Class::Unknown),
            (Some("08006"), Class::Unknown),
            (Some("40001"), Class::Again),
            (Some("40P01"), Class::Again),
            (Some("55P03"), Class::Again),
            (Some("53100"), Class::NotDone),
            (Some("53300"), Class::NotDone),
            (Some("57014"), Class::NotDone),
            (Some("25006"), Class::NotDone),
            (Some("42501"), Class::Final),
            (Some("42P01"), Class::Final),
            (Some("28P01"), Class::Final),
            (Some("3D000"), Class::Final),
        ] {
            assert_eq!(class_of(code), class, "{code:?}");
        }
    }
}
