//! Keys of bodies over HTTP/2: frames, trailers, limits, and streams that are reset while their body
//! is read.

use std::time::Duration;

use crate::common::*;
use crate::http2::connect;
use axum::Router;
use axum::body::Body as AxumBody;
use axum::routing::post;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use lock_core::LockManager;
use lock_tower::LockLayer;
use lock_tower::key::WithBody;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tower::{ServiceExt, service_fn};

const HOUR: Duration = Duration::from_secs(3600);
const LIMIT: usize = 20;

type Client = SendRequest<Fed>;
type Feed = mpsc::UnboundedSender<Sent>;

fn form(locks: &LockManager) -> LockLayer<WithBody> {
    let template = "form:<header.x-user-id>:<form.token>";
    let layer = LockLayer::body_template(locks.clone(), template, LIMIT);
    layer.unwrap().body_timeout(HOUR)
}

/// Responds with all that it has read, including trailers. At `/hasty` the body timeout is 1 ms. Counts
/// the requests that its server has finished.
async fn serve(layer: LockLayer<WithBody>, gate: &Gate) -> (Client, watch::Receiver<usize>) {
    let gate = gate.clone();
    let create = move |body: AxumBody| async move {
        gate.pass().await;
        let read = body.collect().await.expect("a whole body");
        let trailer = read
            .trailers()
            .and_then(|trailers| trailers.get("checksum"));
        let trailer = trailer.map_or("none", |value| value.to_str().unwrap());
        let text = format!("checksum {trailer} of ");
        (
            StatusCode::CREATED,
            [text.as_bytes(), &read.to_bytes()].concat(),
        )
    };
    let hasty = layer.clone().body_timeout(Duration::from_millis(1));
    let app = Router::new()
        .route("/orders", post(create.clone()).layer(layer))
        .route("/hasty", post(create).layer(hasty));
    let (done, receiver) = watch::channel(0);
    let outer = service_fn(move |request: Request<AxumBody>| {
        let (app, done) = (app.clone(), Done(done.clone()));
        async move {
            let response = app.oneshot(request).await;
            drop(done);
            response
        }
    });
    let client = connect(Router::new().fallback_service(outer)).await;
    (client, receiver)
}

/// The request was answered or dropped.
struct Done(watch::Sender<usize>);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count += 1);
    }
}

/// Sends an order whose body follows later.
fn begin(
    client: &Client,
    path: &str,
    length: Option<usize>,
) -> (Feed, JoinHandle<Response<Incoming>>) {
    let (feed, fed) = mpsc::unbounded_channel();
    let request = Request::post(format!("http://shop{path}"));
    let mut request = request.header("x-user-id", "42");
    if let Some(length) = length {
        request = request.header(header::CONTENT_LENGTH, length);
    }
    let sent = client.clone().send_request(request.body(Fed(fed)).unwrap());
    (feed, tokio::spawn(async move { sent.await.unwrap() }))
}

fn order(client: &Client, frames: Vec<Sent>) -> JoinHandle<Response<Incoming>> {
    let (feed, answer) = begin(client, "/orders", None);
    for frame in frames {
        feed.send(frame).unwrap();
    }
    answer
}

async fn text(answer: JoinHandle<Response<Incoming>>) -> (StatusCode, String) {
    let (head, body) = answer.await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (head.status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn frames_and_trailers_come_to_the_handler_as_they_were_sent() {
    let (locks, _) = embedded();
    let gate = Gate::closed();
    let (client, _) = serve(form(&locks), &gate).await;
    let mut trailers = HeaderMap::new();
    trailers.insert("checksum", "7".parse().unwrap());
    let first = order(
        &client,
        vec![
            data("tok"),
            data("en=a%3A"),
            data("b"),
            Ok(Frame::trailers(trailers)),
        ],
    );
    gate.entered(1).await;
    assert_eq!(locks.held()[0].key(), "form:42:a%3Ab");
    let (status, problem) = text(order(&client, vec![data("token=a:b")])).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(problem.contains("lock_busy"), "{problem}");
    gate.let_through(1);
    let made = (StatusCode::CREATED, "checksum 7 of token=a%3Ab".to_owned());
    assert_eq!(text(first).await, made);
}

#[tokio::test]
async fn one_byte_over_the_limit_is_a_413_declared_or_not() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    gate.let_through(1);
    let (client, _) = serve(form(&locks), &gate).await;
    let over = order(&client, vec![data("token=abcdefghijklmn"), data("o")]);
    let (_unsent, announced) = begin(&client, "/orders", Some(LIMIT + 1));
    for refused in [over, announced] {
        let (status, problem) = text(refused).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
        assert!(problem.contains("lock_body_too_large"), "{problem}");
    }
    // The next request uses the same connection.
    let exactly = order(&client, vec![data("token=abcdefghijklmn")]);
    assert_eq!(text(exactly).await.0, StatusCode::CREATED);
    assert_eq!((gate.entered_so_far(), store.taken()), (1, 0));
}

#[tokio::test]
async fn a_stream_that_is_reset_while_its_body_is_read_runs_no_handler() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    gate.let_through(1);
    let (client, mut done) = serve(form(&locks), &gate).await;
    let (feed, answer) = begin(&client, "/orders", None);
    feed.send(data("token=1")).unwrap();
    // Another request of the same user overtakes it, because nothing is locked yet.
    let whole = order(&client, vec![data("token=1")]);
    assert_eq!(text(whole).await.0, StatusCode::CREATED);
    done.wait_for(|&count| count == 1).await.unwrap();

    answer.abort();
    feed.send(Err("the client has gone")).unwrap();
    done.wait_for(|&count| count == 2).await.unwrap();
    assert_eq!((gate.entered_so_far(), store.taken()), (1, 0));
    gate.let_through(1);
    let again = order(&client, vec![data("token=1")]);
    assert_eq!(
        text(again).await.0,
        StatusCode::CREATED,
        "the connection goes on"
    );
    all_released(&locks).await;
    assert_eq!((gate.entered_so_far(), store.taken()), (2, 0));
}

#[tokio::test]
async fn a_body_that_does_not_come_is_a_408_of_its_stream_alone() {
    let (locks, store) = embedded();
    let gate = Gate::closed();
    gate.let_through(1);
    let (client, _) = serve(form(&locks), &gate).await;
    let (feed, slow) = begin(&client, "/hasty", None);
    feed.send(data("token=1")).unwrap();
    let (status, problem) = text(slow).await;
    assert_eq!(status, StatusCode::REQUEST_TIMEOUT);
    assert!(problem.contains("lock_body_timeout"), "{problem}");
    let whole = order(&client, vec![data("token=2")]);
    assert_eq!(text(whole).await.0, StatusCode::CREATED);
    assert_eq!((gate.entered_so_far(), store.taken()), (1, 0));
    drop(feed);
}
