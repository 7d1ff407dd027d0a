//! The formats of refusals.

use std::time::Duration;

use crate::common::*;
use http::{Request, Response, StatusCode, header};
use lock_core::LockManager;
use lock_tower::{LockLayer, LockService, RefusalFormat, RejectionKind};
use tower::Layer;

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// Makes a service of this layer whose key is already taken.
fn taken(make: impl FnOnce(LockLayer) -> LockLayer) -> (LockService<impl Handler>, LockManager) {
    let (locks, store) = embedded();
    store.seize("submit:42:POST:/orders", Duration::from_secs(5));
    let service = make(per_user_and_route(&locks)).layer(answers(StatusCode::OK));
    (service, locks)
}

fn click_with(accept: &str) -> Request<Body> {
    let mut click = click("42");
    click
        .headers_mut()
        .insert(header::ACCEPT, accept.parse().unwrap());
    click
}

#[tokio::test]
async fn a_native_form_gets_a_page_and_a_script_a_problem() {
    let (service, _locks) = taken(|layer| layer.refusals(RefusalFormat::ByAccept));
    let page = send(&service, click_with(BROWSER)).await;
    assert_eq!(page.status, StatusCode::CONFLICT);
    assert_eq!(
        page.content_type.as_deref(),
        Some("text/html; charset=utf-8")
    );
    assert!(
        page.text.contains("<h1>Already in progress</h1>"),
        "{}",
        page.text
    );
    assert!(
        page.retry_after
            .is_some_and(|seconds| (1..=5).contains(&seconds))
    );
    assert_eq!(page.kind(), Some(RejectionKind::InFlight));

    for problem in [
        click_with("*/*"),
        click_with("application/json"),
        click("42"),
    ] {
        let problem = send(&service, problem).await;
        assert_eq!(problem.problem()["code"], "lock_busy");
    }
}

#[tokio::test]
async fn by_default_browsers_get_a_problem_too() {
    let (service, _locks) = taken(|layer| layer);
    let problem = send(&service, click_with(BROWSER)).await;
    assert_eq!(problem.problem()["code"], "lock_busy");
}

#[tokio::test]
async fn on_reject_replaces_the_response_and_keeps_the_rejection() {
    let (service, _locks) = taken(|layer| {
        layer.on_reject(|rejection, request| {
            Response::builder()
                .status(StatusCode::SEE_OTHER)
                .header(header::LOCATION, format!("{}/mine", request.uri.path()))
                .body(format!(
                    "try again in {:?} s",
                    rejection.retry_after_seconds()
                ))
                .unwrap()
        })
    });
    let answer = send(&service, click("42")).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert!(
        answer.text.starts_with("try again in Some("),
        "{}",
        answer.text
    );
    assert_eq!(answer.kind(), Some(RejectionKind::InFlight));
}

#[tokio::test]
async fn with_status_changes_the_status() {
    let (service, _locks) = taken(|layer| {
        layer.on_reject(|rejection, _| {
            let rejection = rejection.clone();
            rejection
                .with_status(StatusCode::TOO_MANY_REQUESTS)
                .problem()
        })
    });
    let answer = send(&service, click("42")).await;
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(answer.problem()["status"], 429);
    assert_eq!(answer.problem()["code"], "lock_busy");
}

#[tokio::test]
async fn a_refusal_may_have_no_body_at_all() {
    let (service, _locks) = taken(|layer| layer.on_reject(|_, _| Response::new("")));
    let answer = send(&service, click("42")).await;
    assert_eq!((answer.status, answer.text.as_str()), (StatusCode::OK, ""));
}

#[tokio::test]
async fn on_reject_answers_a_request_without_a_key() {
    let (service, _locks) = taken(|layer| {
        layer.on_reject(|rejection, _| {
            let mut response = Response::new(rejection.source().unwrap_or_default().to_owned());
            *response.status_mut() = StatusCode::UNAUTHORIZED;
            response
        })
    });
    let answer = send(&service, click("")).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert_eq!(answer.text, "header.x-user-id");
}

/// By RFC 9457, `about:blank` would mean that the status says everything.
#[tokio::test]
async fn a_problem_has_a_type_for_its_code_a_short_title_and_words_in_its_detail() {
    let (service, _locks) = taken(|layer| layer);
    let problem = send(&service, click("42")).await.problem();
    assert_eq!(problem["type"], "urn:lockkit:problem:lock_busy");
    assert_eq!(problem["title"], "Already in progress");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.ends_with('.') && detail.len() > 20, "{detail}");
    assert_eq!(problem["retry_after_ms"], 1000);

    let missing = send(&service, click("")).await.problem();
    assert_eq!(missing["type"], "urn:lockkit:problem:lock_key_missing");
    assert_eq!(missing["source"], "header.x-user-id");
    assert_eq!(missing.get("retry_after_ms"), None);
}

#[tokio::test]
async fn a_layer_chooses_the_types_of_its_problems_and_the_retry_hint() {
    let (service, _locks) = taken(|layer| {
        layer
            .problem_types("https://shop.example/problems/")
            .retry_hint(Duration::from_millis(2500))
    });
    let refused = send(&service, click("42")).await;
    assert_eq!(refused.retry_after, Some(3));
    let problem = refused.problem();
    assert_eq!(problem["type"], "https://shop.example/problems/lock_busy");
    assert_eq!(problem["retry_after_ms"], 2500);
    // The same holds for responses of `on_reject`.
    let (service, _locks) = taken(|layer| {
        let layer = layer.problem_types("/problems/");
        layer.on_reject(|rejection, _| rejection.problem())
    });
    let problem = send(&service, click("42")).await.problem();
    assert_eq!(problem["type"], "/problems/lock_busy");
}
