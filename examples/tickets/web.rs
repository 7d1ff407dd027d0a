//! The web process: it takes the lock, and leaves the work to a worker.

use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use lock_core::LockManager;
use lock_tower::{LockContext, LockLayer, TemplateError};

use crate::jobs::{Job, Jobs};

/// A job that no worker has begun by then is given up, and its report can be ordered again.
const PICK_UP: Duration = Duration::from_secs(60);
/// The time after which a report can be ordered again if its worker crashes.
const TTL: Duration = Duration::from_secs(10);

pub(crate) fn router(locks: LockManager, jobs: Jobs) -> Result<Router, TemplateError> {
    let layer = LockLayer::template(locks.clone(), "report:<param.id>")?.ttl(TTL);
    Ok(Router::new()
        .route("/reports/{id}", post(order))
        .route_layer(layer)
        .with_state((locks, jobs)))
}

async fn order(
    State((locks, jobs)): State<(LockManager, Jobs)>,
    Path(report): Path<String>,
    lock: LockContext,
) -> Response {
    let ticket = match lock.ticket(PICK_UP).await {
        Ok(ticket) => ticket.expect("the layer lets no request without a lock pass"),
        Err(error) => return error.into_response(),
    };
    let job = Job {
        report: report.clone(),
        ticket: ticket.to_string(),
    };
    let fence = ticket.fencing_token();
    if jobs.push(&job).await.is_err() {
        // No worker will have the ticket, so the lock is released here.
        drop(locks.resume(ticket).await);
        return (StatusCode::SERVICE_UNAVAILABLE, "try again\n").into_response();
    }
    let text = format!("report {report} is on its way, under fencing token {fence}\n");
    (StatusCode::ACCEPTED, text).into_response()
}
