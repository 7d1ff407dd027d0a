//! Tests the exported spans of two requests for one lock.

use opentelemetry::trace::SpanId;
use opentelemetry_sdk::trace::SpanData;

use super::*;

fn attribute(span: &SpanData, name: &str) -> Option<String> {
    let mut attributes = span.attributes.iter();
    let found = attributes.find(|attribute| attribute.key.as_str() == name);
    found.map(|attribute| attribute.value.to_string())
}

#[tokio::test]
async fn each_request_is_a_trace_with_the_wait_the_hold_and_the_release_of_its_lock() {
    let spans = Spans::default();
    let exporter = spans.clone();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter);
    let provider = provider.build();
    // The runtime of a test has one thread.
    let traced = tracing::subscriber::set_default(subscriber(&provider));
    let locks = LockManager::in_memory();
    let (first, second) = tokio::join!(request(&locks, 42), request(&locks, 42));
    first.and(second).expect("both orders");
    drop(traced);
    provider.shutdown().expect("all spans are exported");

    let all = spans.all();
    let inside = |parent: SpanId| all.iter().filter(move |span| span.parent_span_id == parent);
    let requests: Vec<_> = inside(SpanId::INVALID).collect();
    assert_eq!(requests.len(), 2, "{spans}");
    let mut waits = Vec::new();
    for request in requests {
        assert_eq!(request.name, "POST /orders");
        assert_eq!(attribute(request, "user").as_deref(), Some("42"));
        let of_request: Vec<_> = inside(request.span_context.span_id()).collect();
        let names: Vec<_> = of_request.iter().map(|span| &*span.name).collect();
        assert_eq!(names, ["lock.acquire", "lock.hold", "lock.release"]);
        let [acquire, hold, release] = of_request[..] else {
            unreachable!("three names were compared");
        };
        let outcome = |span| attribute(span, "outcome");
        assert_eq!(outcome(acquire).as_deref(), Some("acquired"));
        assert_eq!(outcome(hold).as_deref(), Some("released"));
        assert_eq!(outcome(release).as_deref(), Some("released"));
        let charge: Vec<_> = inside(hold.span_context.span_id()).collect();
        assert_eq!(charge.len(), 1, "{spans}");
        assert_eq!(charge[0].name, "charge");
        for span in [acquire, hold, release, charge[0]] {
            assert_eq!(
                span.span_context.trace_id(),
                request.span_context.trace_id()
            );
        }
        let waited = attribute(acquire, "waited_ms").expect("a time");
        waits.push(waited.parse::<f64>().expect("a number"));
    }
    // The second request waits while the first one is charged.
    assert!(waits[0] < waits[1], "{waits:?}");
    let shown = format!("{spans} {all:?}");
    assert!(!shown.contains("order:"), "{shown}");
}
