//! Bodies and headers that pass through the layer, and those that it makes.

use std::pin::Pin;
use std::task::{Context, Poll};

use crate::common::*;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt, Full};
use tower::{Layer, ServiceExt, service_fn};

#[tokio::test]
async fn headers_length_and_extensions_of_an_answer_are_unharmed() {
    #[derive(Clone, Debug, PartialEq)]
    struct Extension(u8);

    let (locks, _) = embedded();
    let service = per_user_and_route(&locks).layer(service_fn(|_: Request<Body>| async {
        let mut response = answer(StatusCode::CREATED);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("4"));
        headers.insert(header::LOCATION, HeaderValue::from_static("/orders/1"));
        response.extensions_mut().insert(Extension(7));
        Ok::<_, std::convert::Infallible>(response)
    }));
    let response = service.oneshot(click("42")).await.unwrap();
    assert_eq!(response.headers().len(), 2);
    assert_eq!(response.headers()[header::CONTENT_LENGTH], "4");
    assert_eq!(response.extensions().get(), Some(&Extension(7)));
    assert_eq!(response.body().size_hint().exact(), Some(4));
}

#[tokio::test]
async fn a_refusals_body_has_the_length_that_it_says() {
    let (locks, _) = embedded();
    let layer = per_user_and_route(&locks).methods([Method::POST, Method::HEAD]);
    let service = layer.layer(answers(StatusCode::OK));
    for method in [Method::POST, Method::HEAD] {
        let anonymous = Request::builder().method(method).uri("/orders");
        let anonymous = anonymous.body(Body::default()).unwrap();
        let response = service.clone().oneshot(anonymous).await.unwrap();
        assert!(
            !response.headers().contains_key(header::CONTENT_LENGTH),
            "the server's to add"
        );
        let said = response.body().size_hint().exact().unwrap();
        let read = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(read.len() as u64, said);
    }
}

/// Two frames and trailers, with an optional error.
struct Stream {
    frames: Vec<Result<Frame<Bytes>, &'static str>>,
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        Poll::Ready((!self.frames.is_empty()).then(|| self.frames.remove(0)))
    }
}

#[tokio::test]
async fn a_streamed_answer_keeps_its_frames_trailers_and_error() {
    let (locks, store) = embedded();
    let service = per_user_and_route(&locks).layer(service_fn(|_: Request<Body>| async {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", HeaderValue::from_static("1"));
        let frames = vec![
            Ok(Frame::data(Bytes::from_static(b"one"))),
            Ok(Frame::trailers(trailers)),
            Err("cut off"),
        ];
        Ok::<_, std::convert::Infallible>(Response::new(Stream { frames }))
    }));
    let response = service.oneshot(click("42")).await.unwrap();
    assert_eq!(store.taken(), 0, "released at the answer's head");
    let mut body = response.into_body();
    assert_eq!(
        body.frame().await.unwrap().unwrap().into_data().unwrap(),
        "one"
    );
    assert!(body.frame().await.unwrap().unwrap().is_trailers());
    assert_eq!(body.frame().await.unwrap().unwrap_err(), "cut off");
    assert!(body.frame().await.is_none());
}

#[tokio::test]
async fn the_handler_reads_the_body_that_was_sent() {
    let (locks, _) = embedded();
    let service = per_user_and_route(&locks).layer(service_fn(|request: Request<Body>| async {
        let body = request.into_body().collect().await?.to_bytes();
        Ok::<_, std::convert::Infallible>(Response::new(Full::new(body)))
    }));
    let order = click("42").map(|_| Body::from(r#"{ "sku":"1",  "quantity" :1}"#));
    let answer = send(&service, order).await;
    assert_eq!(answer.text, r#"{ "sku":"1",  "quantity" :1}"#);
}
