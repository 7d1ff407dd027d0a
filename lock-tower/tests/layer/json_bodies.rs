//! Keys that are made from a JSON body.

use std::convert::Infallible;

use crate::common::*;
use crate::script::Event::Data;
use crate::script::{Script, post};
use http::{Request, Response, StatusCode};
use lock_tower::{LockLayer, RejectionKind, RequestBody};
use tower::{Layer, Service, ServiceExt, service_fn};

#[tokio::test]
async fn json_is_the_same_however_it_is_written() {
    for (template, same, other) in [
        (
            "k:<json>",
            r#"{ "n":1.0,"order":{"sku":"\u0041"}}"#,
            r#"{"order":{"sku":"B"},"n":1}"#,
        ),
        (
            "k:<json./order/sku>",
            r#"{"order":{"sku":"A"},"note":"changed"}"#,
            r#"{"order":{"sku":"a"}}"#,
        ),
    ] {
        let (locks, _) = embedded();
        let gate = Gate::closed();
        let layer = LockLayer::body_template(locks.clone(), template, 1024).unwrap();
        let service = layer.layer(gated_body(&gate));
        let send = |body: &'static str| {
            service
                .clone()
                .oneshot(post(Script::of([Data(body.as_bytes())])))
        };
        let first = tokio::spawn(send(r#"{"order":{"sku":"A"},"n":1}"#));
        gate.entered(1).await;
        let again = read(send(same).await.unwrap()).await;
        assert_eq!(again.kind(), Some(RejectionKind::InFlight), "{template}");
        let second = tokio::spawn(send(other));
        gate.entered(2).await;
        assert_eq!(locks.held().len(), 2, "{template}");
        gate.let_through(2);
        first.await.unwrap().unwrap();
        second.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn invalid_json_is_a_400_and_runs_no_handler() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    for template in ["k:<json>", "k:<json./a>", "k:<header.x-user-id>:<json./a?>"] {
        let layer = LockLayer::body_template(locks.clone(), template, 1024).unwrap();
        let service = layer.layer(gated_body(&gate));
        for body in ["", "{", r#"{"a":1,"a":2}"#, "a=1"] {
            let request = post(Script::of([Data(body.as_bytes())]));
            let refused = read(service.clone().oneshot(request).await.unwrap()).await;
            assert_eq!(refused.status, StatusCode::BAD_REQUEST);
            assert_eq!(
                refused.kind(),
                Some(RejectionKind::BodyInvalid),
                "{template} {body}"
            );
            assert_eq!(refused.problem()["code"], "lock_body_invalid");
        }
    }
    assert_eq!((gate.entered_so_far(), store.taken()), (0, 0));
}

fn gated_body(
    gate: &Gate,
) -> impl Service<
    Request<RequestBody<Script>>,
    Response = Response<Body>,
    Error = Infallible,
    Future: Send + 'static,
> + Clone
+ Send
+ 'static {
    let gate = gate.clone();
    service_fn(move |_| {
        let gate = gate.clone();
        async move {
            gate.pass().await;
            ok(StatusCode::OK)
        }
    })
}
