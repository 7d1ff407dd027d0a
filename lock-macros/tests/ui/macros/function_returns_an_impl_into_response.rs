//! `impl IntoResponse` as the return type.
//! Return `axum::response::Response`, or a `Result` with the error `(StatusCode, String)`.
use lock_core::distributed_lock;

#[distributed_lock(key = "order:<uid>", ttl = "10s")]
// instead: async fn place_order(uid: u64) -> axum::response::Response {
async fn place_order(uid: u64) -> impl axum::response::IntoResponse {
    // instead: axum::response::IntoResponse::into_response(uid.to_string())
    uid.to_string()
}

fn main() {
    let _ = place_order(1);
}
