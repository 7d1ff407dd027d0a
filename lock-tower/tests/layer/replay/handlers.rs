//! Handlers that decide about the memory of their requests.

use std::convert::Infallible;

use crate::common::{all_released, context, embedded};
use crate::replay::steps::*;
use http::{HeaderMap, Response, StatusCode};
use lock_tower::{RejectionKind, Remember, Replay};
use tower::{Layer, Service, ServiceExt, service_fn};

fn with_status(status: u16) -> Response<crate::common::Body> {
    let mut response = created("answer");
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

#[tokio::test]
async fn an_answer_that_is_no_success_is_not_remembered() {
    for status in [301, 400, 401, 402, 404, 409, 422, 429, 500, 503] {
        let (locks, store) = embedded();
        let runs = Runs::default();
        let counted = runs.clone();
        let service = answering(&paying(&locks, Replay::default()), move |_| {
            counted.begin();
            with_status(status)
        });
        for _ in 0..2 {
            send(&service, pay("")).await.is_first("answer");
        }
        assert_eq!((runs.count(), store.taken()), (2, 0), "{status}");
    }
    for status in [200, 201, 202, 204, 303] {
        let (locks, _) = embedded();
        let service = answering(&paying(&locks, Replay::default()), move |_| {
            with_status(status)
        });
        send(&service, pay("")).await.is_first("answer");
        let second = send(&service, pay("")).await;
        second.is_replay("answer");
        assert_eq!(second.status.as_u16(), status);
    }
}

#[tokio::test]
async fn a_handler_that_panics_or_fails_runs_again() {
    let (locks, store) = embedded();
    let runs = Runs::default();
    let counted = runs.clone();
    let service = paying(&locks, Replay::default()).layer(service_fn(move |_: Received| {
        let run = counted.begin();
        async move {
            match run {
                1 => panic!("before the effect"),
                2 => Err("declined"),
                _ => Ok(created("paid")),
            }
        }
    }));
    let request = tokio::spawn(service.clone().oneshot(pay("")));
    assert!(request.await.unwrap_err().is_panic());
    all_released(&locks).await;
    assert_eq!(store.taken(), 0);

    let (locks, store) = embedded();
    let counted = runs.clone();
    let service = paying(&locks, Replay::default()).layer(service_fn(move |_: Received| {
        let run = counted.begin();
        async move {
            match run {
                2 => Err("declined"),
                _ => Ok(created("paid")),
            }
        }
    }));
    assert_eq!(
        service.clone().oneshot(pay("")).await.unwrap_err(),
        "declined"
    );
    assert_eq!(store.taken(), 0);
    let paid = service.clone().oneshot(pay("")).await.unwrap();
    read(paid).await.is_first("paid");
    let again = service.oneshot(pay("")).await.unwrap();
    read(again).await.is_replay("paid");
    assert_eq!(runs.count(), 3);
}

#[tokio::test]
async fn a_handler_that_says_done_and_then_panics_or_fails_does_not_run_again() {
    for panics in [true, false] {
        let (locks, _) = embedded();
        let layer = paying(&locks, Replay::default());
        let service = layer.layer(service_fn(move |request: Received| async move {
            context(&request).remember(Remember::Done);
            assert!(!panics, "behind the effect");
            Err::<Response<crate::common::Body>, _>("declined")
        }));
        let first = tokio::spawn(service.clone().oneshot(pay("")));
        assert_eq!(first.await.is_err(), panics);
        loop {
            let answer = read(service.clone().oneshot(pay("")).await.unwrap()).await;
            if answer.kind != Some(RejectionKind::InFlight) {
                break answer.is_refused(RejectionKind::Done);
            }
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_handler_may_keep_a_402_or_hide_its_answer_or_keep_nothing() {
    for (status, remember, second) in [
        (402, Remember::Answer, Ok(402)),
        (201, Remember::Done, Err(RejectionKind::Done)),
        (500, Remember::Done, Err(RejectionKind::Done)),
        (201, Remember::Nothing, Ok(0)),
    ] {
        for in_response in [false, true] {
            let (locks, _) = embedded();
            let service = answering(&paying(&locks, Replay::default()), move |request| {
                let mut response = with_status(status);
                if in_response {
                    // The response has the last word.
                    context(request).remember(Remember::Answer);
                    context(request).remember(Remember::Nothing);
                    response.extensions_mut().insert(remember);
                } else {
                    context(request).remember(remember);
                }
                response
            });
            send(&service, pay("")).await.is_first("answer");
            let reply = send(&service, pay("")).await;
            match second {
                Ok(0) => reply.is_first("answer"),
                Ok(status) => {
                    reply.is_replay("answer");
                    assert_eq!(reply.status.as_u16(), status);
                }
                Err(kind) => reply.is_refused(kind),
            }
        }
    }
}

#[tokio::test]
async fn a_layer_may_decide_by_the_head_of_the_answer() {
    let (locks, _) = embedded();
    let replay = Replay::default().remember_with(|head| match head.status.as_u16() {
        402 => Remember::Answer,
        _ => Remember::Nothing,
    });
    let layer = paying(&locks, replay);
    let declined = answering(&layer, |_| with_status(402));
    send(&declined, pay("")).await.is_first("answer");
    send(&declined, pay("")).await.is_replay("answer");
    let success = answering(&layer, |_| with_status(201));
    send(&success, request("bob", "k1", ""))
        .await
        .is_first("answer");
    send(&success, request("bob", "k1", ""))
        .await
        .is_first("answer");
}

#[tokio::test]
async fn a_layer_outside_that_changes_the_answer_changes_nothing_in_the_record() {
    let (locks, _) = embedded();
    let runs = Runs::default();
    let inner = paying(&locks, Replay::default()).layer(numbered(&runs));
    let outer = service_fn(move |request| {
        let mut inner = inner.clone();
        async move {
            let mut response = inner.call(request).await?;
            *response.status_mut() = StatusCode::PAYMENT_REQUIRED;
            Ok::<_, Infallible>(response)
        }
    });
    let first = send(&outer, pay("")).await;
    let second = send(&outer, pay("")).await;
    second.is_replay("payment 1");
    assert_eq!(
        (first.status, second.status, runs.count()),
        (second.status, first.status, 1)
    );
}

#[tokio::test]
async fn after_release_now_nothing_is_remembered() {
    let (locks, store) = embedded();
    let service =
        paying(&locks, Replay::default()).layer(service_fn(|request: Received| async move {
            context(&request).remember(Remember::Done);
            context(&request).release_now().await.unwrap();
            Ok::<_, Infallible>(created("paid"))
        }));
    for _ in 0..2 {
        send(&service, pay("")).await.is_first("paid");
        assert_eq!(store.taken(), 0);
    }
}

#[tokio::test]
async fn a_lock_that_was_lost_by_its_own_clock_is_recorded_if_its_token_still_stands() {
    let (locks, store) = embedded();
    let layer = paying(&locks, Replay::default());
    // A handler whose lock is lost before its first poll does not run, and a busy machine may take a while to poll it.
    let layer = layer.max_hold(std::time::Duration::from_secs(3));
    let service = layer.layer(service_fn(|request: Received| async move {
        context(&request).lost().await;
        Ok::<_, Infallible>(created("paid"))
    }));
    send(&service, pay("")).await.is_first("paid");
    send(&service, pay("")).await.is_replay("paid");
    assert_eq!(store.taken(), 1);
}

#[tokio::test]
async fn a_lock_that_another_owner_took_is_not_recorded() {
    let (locks, store) = embedded();
    let seizes = store.clone();
    let service = answering(&paying(&locks, Replay::default()), move |_| {
        seizes.seize("pay:alice:k1", std::time::Duration::from_secs(60));
        created("paid")
    });
    send(&service, pay("")).await.is_first("paid");
    send(&service, pay(""))
        .await
        .is_refused(RejectionKind::InFlight);
}

#[tokio::test]
async fn an_operation_has_one_number_in_every_run_and_process_and_no_other_has_it() {
    let ids = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let (one, two) = (embedded().0, embedded().0);
    for (locks, user) in [
        (&one, "alice"),
        (&one, "alice"),
        (&two, "alice"),
        (&one, "bob"),
    ] {
        let ids = ids.clone();
        let service = answering(&paying(locks, Replay::default()), move |request| {
            ids.lock()
                .unwrap()
                .push(context(request).operation_id().unwrap());
            with_status(500)
        });
        send(&service, request(user, "k1", ""))
            .await
            .is_first("answer");
    }
    let ids = ids.lock().unwrap().clone();
    assert_eq!((ids[0], ids[0]), (ids[1], ids[2]));
    assert_ne!(ids[0], ids[3]);
    let text = ids[0].to_string();
    assert_eq!(u128::from_str_radix(&text, 16), Ok(u128::from(ids[0])));
    assert_eq!(text.len(), 32);
}

#[tokio::test]
async fn the_first_answer_keeps_its_body_headers_and_extensions() {
    let (locks, _) = embedded();
    let service = answering(&paying(&locks, Replay::default()), |_| {
        let mut response = Response::new(crate::common::Body::from("paid"));
        response
            .headers_mut()
            .insert("set-cookie", "sid=1".parse().unwrap());
        response.extensions_mut().insert(User("of the handler"));
        response
    });
    let response = service.clone().oneshot(pay("")).await.unwrap();
    assert_eq!(http_body::Body::size_hint(response.body()).exact(), Some(4));
    assert!(response.extensions().get::<User>().is_some());
    let first = read(response).await;
    assert_eq!(
        first.headers,
        HeaderMap::from_iter([(http::header::SET_COOKIE, "sid=1".parse().unwrap())])
    );
    first.is_first("paid");
}
