//! Lists the errors of an order, each with a status and a code of its own (RFC 9457).

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use lock_tower::Refused;
use serde_json::json;

use crate::db::DbError;

/// The page on which a real shop would describe its problems and those of the kit.
pub(crate) const PROBLEMS: &str = "https://shop.example/problems/";

#[derive(Debug)]
pub(crate) enum ShopError {
    /// The request names no user.
    NoUser,
    UnknownSku,
    SoldOut {
        left: i64,
    },
    Quantity,
    UnknownCard,
    NotCovered {
        left: i64,
    },
    /// A transfer of nothing, or to the same card.
    Transfer,
    Price,
    /// A body or query that axum rejects, with axum's own status and text.
    Malformed(StatusCode, String),
    NoSuchPage,
    /// A request for a kill, to a process that no parent starts again.
    NoPair,
    Database(DbError),
    /// An error of the kit: 409 busy, 503 no answer from the store, 500 lost.
    Lock(lock_core::Error),
    /// The handler gets no transaction. The lock layer replaces this answer by the right one.
    Refused(Refused),
}

impl IntoResponse for ShopError {
    fn into_response(self) -> Response {
        match self {
            Self::NoUser => problem(
                StatusCode::UNAUTHORIZED,
                "no_user",
                "name the user in a header x-user-id of 1 to 64 letters, digits, `-`, `_`, `.` or `@`",
            ),
            Self::UnknownSku => problem(
                StatusCode::NOT_FOUND,
                "unknown_sku",
                "the shop has no product of this sku",
            ),
            Self::SoldOut { left } => problem(
                StatusCode::UNPROCESSABLE_ENTITY,
                "out_of_stock",
                &format!("{left} left; nothing was charged"),
            ),
            Self::Quantity => problem(
                StatusCode::UNPROCESSABLE_ENTITY,
                "invalid_quantity",
                "quantity must be from 1 to 100",
            ),
            Self::UnknownCard => problem(
                StatusCode::NOT_FOUND,
                "unknown_card",
                "the shop has no gift card of this name",
            ),
            Self::NotCovered { left } => problem(
                StatusCode::UNPROCESSABLE_ENTITY,
                "not_covered",
                &format!("{left} cents are left; nothing was moved"),
            ),
            Self::Transfer => problem(
                StatusCode::UNPROCESSABLE_ENTITY,
                "invalid_transfer",
                "a transfer moves at least one cent to another card",
            ),
            Self::Price => problem(
                StatusCode::UNPROCESSABLE_ENTITY,
                "invalid_price",
                "a price is from 1 to 1000000 cents",
            ),
            Self::Malformed(status, detail) => problem(status, "malformed_request", &detail),
            Self::NoSuchPage => problem(StatusCode::NOT_FOUND, "no_such_page", "the page is at /"),
            Self::NoPair => problem(
                StatusCode::CONFLICT,
                "no_pair",
                "this process would not come back; start the shop with --pair",
            ),
            Self::Database(DbError::UnknownSku) => Self::UnknownSku.into_response(),
            Self::Database(error @ DbError::StaleFence { .. }) => problem(
                StatusCode::CONFLICT,
                "stale_fencing_token",
                &format!("{error}; nothing was written"),
            ),
            Self::Database(error) => {
                eprintln!("shop: {error}");
                problem(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "database",
                    "the database failed; see the shop's log",
                )
            }
            Self::Lock(error) => error.problem(PROBLEMS),
            Self::Refused(refused) => refused.into_response(),
        }
    }
}

pub(crate) fn problem(status: StatusCode, code: &str, detail: &str) -> Response {
    let body = json!({
        "type": format!("{PROBLEMS}{code}"),
        // RFC 9457 wants a short title that is the same for each type, so the title is the
        // name in words.
        "title": code.replace('_', " "),
        "status": status.as_u16(),
        "code": code,
        "detail": detail,
    });
    (
        status,
        [(header::CONTENT_TYPE, "application/problem+json")],
        Json(body),
    )
        .into_response()
}

impl From<DbError> for ShopError {
    fn from(error: DbError) -> Self {
        Self::Database(error)
    }
}

/// Lets a function under the attribute return a `ShopError`. This one conversion is enough.
impl From<lock_core::Error> for ShopError {
    fn from(error: lock_core::Error) -> Self {
        Self::Lock(error)
    }
}

impl From<Refused> for ShopError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<JsonRejection> for ShopError {
    fn from(rejection: JsonRejection) -> Self {
        Self::Malformed(rejection.status(), rejection.body_text())
    }
}

impl From<QueryRejection> for ShopError {
    fn from(rejection: QueryRejection) -> Self {
        Self::Malformed(rejection.status(), rejection.body_text())
    }
}
