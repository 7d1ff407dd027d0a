//! Defines the errors of a shop, and how each return type reports that a lock is taken.

// The derive of thiserror writes such bounds.
#![allow(clippy::trait_duplication_in_bounds)]

use std::error::Error as StdError;
use std::fmt;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use lock_core::{Error, ErrorKind};

/// A return value that can report that the lock was taken.
pub trait Answer {
    /// Returns whether the value reports that.
    fn says_busy(&self) -> bool;
}

/// A handwritten error.
#[derive(Debug)]
pub enum ShopError {
    /// The lock was not available.
    Lock(Error),
    /// The product is not in stock.
    SoldOut,
}

impl From<Error> for ShopError {
    fn from(error: Error) -> Self {
        Self::Lock(error)
    }
}

impl fmt::Display for ShopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock(error) => write!(f, "lock: {error}"),
            Self::SoldOut => write!(f, "sold out"),
        }
    }
}

impl StdError for ShopError {}

/// An error by thiserror, with generics.
#[derive(Debug, thiserror::Error)]
pub enum DeriveError<T: fmt::Debug> {
    /// The lock was not available.
    #[error("lock")]
    Lock(#[from] Error),
    /// The text is not a number.
    #[error("not a number")]
    NotANumber(#[from] std::num::ParseIntError),
    /// Any other error.
    #[error("{0:?}")]
    Other(T),
}

/// An error that is an HTTP response.
#[derive(Debug)]
pub struct AppError(pub anyhow::Error);

impl<E: Into<anyhow::Error>> From<E> for AppError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for AppError {
    fn into_response(self) -> Response {
        let status = match self.0.downcast::<Error>() {
            Ok(error) => return error.into_response(),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        status.into_response()
    }
}

impl<T, E: Answer> Answer for Result<T, E> {
    fn says_busy(&self) -> bool {
        self.as_ref().is_err_and(Answer::says_busy)
    }
}

impl Answer for Error {
    fn says_busy(&self) -> bool {
        self.kind() == ErrorKind::Busy
    }
}

impl Answer for ErrorKind {
    fn says_busy(&self) -> bool {
        *self == Self::Busy
    }
}

impl Answer for ShopError {
    fn says_busy(&self) -> bool {
        matches!(self, Self::Lock(error) if error.says_busy())
    }
}

impl<T: fmt::Debug> Answer for DeriveError<T> {
    fn says_busy(&self) -> bool {
        matches!(self, Self::Lock(error) if error.says_busy())
    }
}

impl Answer for anyhow::Error {
    fn says_busy(&self) -> bool {
        self.downcast_ref::<Error>().is_some_and(Answer::says_busy)
    }
}

impl Answer for AppError {
    fn says_busy(&self) -> bool {
        self.0.says_busy()
    }
}

impl Answer for Box<dyn StdError> {
    fn says_busy(&self) -> bool {
        self.downcast_ref::<Error>().is_some_and(Answer::says_busy)
    }
}

impl Answer for Box<dyn StdError + Send + Sync> {
    fn says_busy(&self) -> bool {
        self.downcast_ref::<Error>().is_some_and(Answer::says_busy)
    }
}

impl Answer for StatusCode {
    fn says_busy(&self) -> bool {
        *self == Self::CONFLICT
    }
}

impl Answer for (StatusCode, String) {
    fn says_busy(&self) -> bool {
        self.0.says_busy()
    }
}

impl Answer for Response {
    fn says_busy(&self) -> bool {
        self.status().says_busy()
    }
}

impl<T> Answer for Option<T> {
    fn says_busy(&self) -> bool {
        self.is_none()
    }
}

/// A job that reports whether it ran.
impl Answer for bool {
    fn says_busy(&self) -> bool {
        !*self
    }
}

/// A job that reports nothing.
impl Answer for () {
    fn says_busy(&self) -> bool {
        true
    }
}
