//! The kit's errors as responses of actix-web.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::RETRY_AFTER;
use actix_web::{HttpResponse, ResponseError};

/// Answers with 409, 503 or 500, with the error's code as the body.
///
/// The error's text is for the log: it tells the operator what to do.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) lock_core::Error);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ResponseError for Refused {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.0.http_status()).expect("a status of HTTP")
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status_code());
        // The time is exact during a cooldown. While the work runs, its end is unknown, and a second is a hint.
        let seconds = match self.0.retry_after() {
            Some(rest) if self.0.is_cooling_down() => Some(rest.as_millis().div_ceil(1000).max(1)),
            Some(_) => Some(1),
            None => None,
        };
        if let Some(seconds) = seconds {
            response.insert_header((RETRY_AFTER, seconds.to_string()));
        }
        response.body(self.0.code())
    }
}
