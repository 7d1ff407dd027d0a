//! Public types can be sent, shared and printed.

use crate::common::*;
use bytes::Bytes;
use http_body_util::Full;
use lock_tower::key::{FromBody, FromHead, HeadOnly, KeyError, KeyPart, WithBody};
use lock_tower::{
    Disconnect, InFlight, KeyTemplate, LockContext, LockLayer, LockService, MissingKey, Outage,
    ProbeError, RefusalFormat, Rejection, RejectionKind, ReleaseAt, RequestBody, ResponseBody,
    ResponseFuture, TemplateError,
};
use tower::Layer;
use tower::util::BoxCloneSyncService;

fn everywhere<T: Send + Sync + 'static>() {}
fn cloned<T: Clone>() {}

#[test]
fn public_types_can_be_sent_and_shared() {
    type Inner = BoxCloneSyncService<http::Request<Body>, http::Response<Body>, std::io::Error>;

    fn sent<T: Send + 'static>() {}

    everywhere::<LockLayer>();
    everywhere::<LockService<Inner>>();
    everywhere::<LockLayer<WithBody>>();
    everywhere::<LockService<Inner, WithBody>>();
    everywhere::<RequestBody<Full<Bytes>>>();
    everywhere::<KeyTemplate>();
    everywhere::<(HeadOnly, WithBody, FromHead, FromBody, KeyPart, KeyError)>();
    everywhere::<LockContext>();
    everywhere::<Disconnect>();
    everywhere::<InFlight>();
    everywhere::<MissingKey>();
    everywhere::<Outage>();
    everywhere::<ProbeError>();
    everywhere::<RefusalFormat>();
    everywhere::<ReleaseAt>();
    everywhere::<Rejection>();
    everywhere::<RejectionKind>();
    everywhere::<ResponseBody<Full<Bytes>>>();
    everywhere::<TemplateError>();
    sent::<ResponseFuture<Inner, Body>>();
    cloned::<LockLayer>();
    cloned::<LockService<Inner>>();
    cloned::<LockContext>();
    cloned::<Rejection>();
}

#[test]
fn debug_shows_settings_and_no_values() {
    let (locks, _) = embedded();
    let layer = per_user_and_route(&locks);
    let service = layer.layer("inner");
    let text = format!("{layer:?} {service:?}");
    assert!(
        text.contains("POST")
            && text.contains("30s")
            && text.contains("250ms")
            && text.contains("inner"),
        "{text}"
    );
}

#[test]
fn debug_of_extractors_shows_names_and_no_values() {
    let (locks, _) = embedded();
    let extractor = lock_tower::key::header("x-user-id");
    let layer = LockLayer::body_template(locks, "k:<bearer>:<body>", 10).unwrap();
    let part = KeyPart::new("name", "alice").unwrap();
    let text = format!(
        "{extractor:?} {layer:?} {part:?} {:?}",
        KeyError::missing("user")
    );
    assert!(
        text.contains("x-user-id") && text.contains("user"),
        "{text}"
    );
    assert!(!text.contains("alice"), "{text}");
}

#[test]
fn a_template_error_goes_through_a_boxed_main() {
    fn main_of_a_user() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let (locks, _) = embedded();
        let _ = LockLayer::template(locks, "submit:<methd>")?;
        Ok(())
    }
    let text = format!("{:?}", main_of_a_user().unwrap_err());
    assert!(
        text.contains("at byte 7") && text.contains("did you mean `<method>`"),
        "{text}"
    );
}
