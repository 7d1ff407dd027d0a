//! Stands in for real authentication: it trusts the header `x-user-id`.
//!
//! The place of this layer matters. It is outside the lock layer, so that a request without a
//! user never reaches the lock layer. So no client can hold another user's lock by an
//! unchecked key.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;

use crate::error::ShopError;

/// The authenticated user, which the handlers read as an extension of the request.
#[derive(Clone, Debug)]
pub(crate) struct User(pub(crate) String);

pub(crate) async fn authenticate(mut request: Request, next: Next) -> Result<Response, ShopError> {
    let mut values = request.headers().get_all("x-user-id").iter();
    // A request with two such headers has no user, because the layers behind could each read
    // another one.
    let (Some(value), None) = (values.next(), values.next()) else {
        return Err(ShopError::NoUser);
    };
    let user = value
        .to_str()
        .ok()
        .filter(|id| is_user_id(id))
        .ok_or(ShopError::NoUser)?;
    let user = User(user.to_owned());
    request.extensions_mut().insert(user);
    Ok(next.run(request).await)
}

fn is_user_id(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.@".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::is_user_id;

    #[test]
    fn a_user_id_is_short_and_plain() {
        assert!(is_user_id("ada"));
        assert!(is_user_id("ada.l-1815_x@example.org"));
        for invalid in ["", " ", "a b", "a:b", "<uid>", "ä", &"a".repeat(65)] {
            assert!(!is_user_id(invalid), "{invalid:?}");
        }
    }
}
