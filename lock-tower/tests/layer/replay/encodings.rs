//! Compression inside and outside of the layer, for clients with different `accept-encoding`.

use crate::common::{Body, embedded};
use crate::replay::steps::*;
use http::{Request, Response};
use http_body_util::Full;
use lock_tower::{Replay, RequestBody};
use tower::{Layer, ServiceExt, service_fn};

fn accepts(encoding: &'static str) -> Request<Body> {
    let mut request = pay("");
    request
        .headers_mut()
        .insert("accept-encoding", encoding.parse().unwrap());
    request
}

/// Encodes a text for a client, in place of a compression.
fn encoded(text: &str, gzip: bool) -> Response<Body> {
    let mut response = Response::new(Full::from(if gzip {
        format!("gzip({text})")
    } else {
        text.to_owned()
    }));
    let headers = response.headers_mut();
    headers.insert("vary", "accept-encoding".parse().unwrap());
    if gzip {
        headers.insert("content-encoding", "gzip".parse().unwrap());
    }
    response
}

fn wants_gzip<B>(request: &Request<B>) -> bool {
    let accepted = request.headers().get("accept-encoding");
    accepted.is_some_and(|encoding| encoding == "gzip")
}

#[tokio::test]
async fn compression_inside_keeps_the_bytes_and_their_encoding_together() {
    for (first, second) in [("gzip", "identity"), ("identity", "gzip")] {
        let (locks, _) = embedded();
        let layer = paying(&locks, Replay::default());
        let service = layer.layer(service_fn(
            |request: Request<RequestBody<Body>>| async move {
                Ok::<_, std::convert::Infallible>(encoded("paid", wants_gzip(&request)))
            },
        ));
        let one = send(&service, accepts(first)).await;
        let two = send(&service, accepts(second)).await;
        two.is_replay(&one.text);
        for name in ["content-encoding", "vary"] {
            assert_eq!(one.header(name), two.header(name));
        }
    }
}

#[tokio::test]
async fn compression_outside_encodes_each_answer_for_its_client() {
    for (first, second) in [("gzip", "identity"), ("identity", "gzip")] {
        let (locks, _) = embedded();
        let inner = answering(&paying(&locks, Replay::default()), |_| created("paid"));
        let service = service_fn(move |request: Request<Body>| {
            let gzip = wants_gzip(&request);
            let inner = inner.clone();
            async move {
                let plain = inner.oneshot(request).await?;
                let extensions = plain.extensions().clone();
                let headers = plain.headers().clone();
                let text = read(plain).await.text;
                let mut response = encoded(&text, gzip);
                *response.extensions_mut() = extensions;
                response.headers_mut().extend(headers);
                Ok::<_, std::convert::Infallible>(response)
            }
        });
        let expected = |encoding| {
            if encoding == "gzip" {
                "gzip(paid)"
            } else {
                "paid"
            }
        };
        send(&service, accepts(first))
            .await
            .is_first(expected(first));
        send(&service, accepts(second))
            .await
            .is_replay(expected(second));
    }
}
