//! Documents read back, and are bound by their reader.

use super::*;
use crate::base::token::{Address, TokenSource};

/// In microseconds. The writers of these tests believe that it is this time.
const NOW: u64 = 1_700_000_000_123_456;
const MILLIS: u64 = NOW / 1000;
const REVISION: u64 = 7;

fn token() -> Token {
    TokenSource::new(Address::random()).fresh()
}

fn reader() -> Token {
    token().with_share(Some(ShareLimit::READERS))
}

fn held(token: Token, ends: u64) -> Document {
    Document {
        phase: Phase::Held(Hold { token, ends }),
        ..Document::default()
    }
}

fn place(token: Token, ends: u64) -> Place {
    Place {
        token,
        ends,
        is_freed: false,
    }
}

/// Writes a change, and reads it as a write that was done so many microseconds later.
fn written(before: &Cell, after: &Cell, touched: Option<Token>, later: u64) -> Cell {
    let change = Change {
        before: &before.document,
        after,
        touched,
        now: ServerTime(NOW),
    };
    let bytes = change.encode().bytes;
    decode(&bytes, REVISION, ServerTime(NOW + later)).expect("it reads back")
}

fn first_write(document: Document, later: u64) -> Document {
    let empty = Cell::default();
    let cell = empty.followed_by(document, None);
    written(&empty, &cell, None, later).document
}

#[test]
fn each_kind_of_document_reads_back() {
    let (one, two) = (token(), reader());
    let closed = |record| Document {
        phase: Phase::Closed(Closed {
            of: one,
            until: MILLIS + 10,
            record,
        }),
        ..Document::default()
    };
    let record = StoredRecord {
        fence: 9,
        bytes: Box::from(*b"bytes\0"),
    };
    let waiter = |token, waited| Waiter {
        token,
        grant: 2_000,
        waited,
    };
    let queue = vec![
        waiter(token(), Waited::Asked(MILLIS - 5)),
        waiter(token(), Waited::Answered(MILLIS - 4)),
        waiter(reader(), Waited::Since(NOW + 3)),
    ];
    let inside = vec![
        place(two, MILLIS + 9),
        Place {
            is_freed: true,
            ..place(token(), MILLIS + 30)
        },
    ];
    let ends = MILLIS + 30;
    for document in [
        Document::default(),
        held(one, MILLIS + 30_000),
        held(one, MILLIS - 30_000),
        closed(None),
        closed(Some(Arc::new(record))),
        Document {
            phase: Phase::Shared(Shares { inside, ends }),
            ..Document::default()
        },
        Document {
            queue,
            queue_ends: MILLIS + 60_000,
            ..held(one, MILLIS + 1)
        },
    ] {
        assert_eq!(first_write(document.clone(), 0), document);
    }
}

#[test]
fn what_a_write_sets_counts_from_the_write_and_what_it_finds_stays() {
    let (own, other) = (reader(), reader());
    let shares = |inside: [Place; 2]| {
        let ends = inside.iter().map(|place| place.ends).max();
        Document {
            phase: Phase::Shared(Shares {
                inside: inside.to_vec(),
                ends: ends.unwrap_or(0),
            }),
            ..Document::default()
        }
    };
    let [now, soon] = [MILLIS + 100, MILLIS + 5_000];
    let before = Cell::default().followed_by(shares([place(own, now), place(other, soon)]), None);
    let renewed = before.followed_by(shares([place(own, soon + 1), place(other, soon)]), None);
    // 2.5 ms later by the clock of the store: the end of the own share is never too early.
    let read = written(&before, &renewed, Some(own), 2_500).document;
    let moved = soon + 1 + 3;
    assert_eq!(
        read,
        shares([place(own, moved), place(other, soon)]),
        "only the share that was renewed has moved"
    );
    // A renewal that lengthens nothing by the clock of its writer still counts from the write.
    let read = written(&before, &before, Some(own), 2_500).document;
    assert_eq!(read, shares([place(own, now + 3), place(other, soon)]));
    // A clock that was set back binds as well.
    let change = Change {
        before: &Document::default(),
        after: &Cell::default().followed_by(held(own, soon), None),
        touched: Some(own),
        now: ServerTime(NOW),
    };
    let at = ServerTime(NOW - 1_000_000);
    let read = decode(&change.encode().bytes, REVISION, at).expect("it reads back");
    assert_eq!(read.document.ends(), Some(soon - 1_000));
}

#[test]
fn a_document_says_nothing_from_its_last_end_on() {
    let one = token();
    let encoded = |before: &Document, after: Document| {
        let after = Cell::default().followed_by(after, None);
        let change = Change {
            before,
            after: &after,
            touched: None,
            now: ServerTime(NOW),
        };
        let encoded = change.encode();
        (encoded.ends, encoded.lasts)
    };
    let nothing = Document::default();
    assert_eq!(encoded(&nothing, Document::default()), (0, 0));
    let (ends, lasts) = encoded(&nothing, held(one, MILLIS + 10));
    assert_eq!(ends, 0);
    // The key exists in its whole last millisecond, also where the clock of the store shows more than that of the writer.
    assert!((10_000..13_000).contains(&lasts), "{lasts}");
    let (ends, lasts) = encoded(&held(one, MILLIS + 10), held(one, MILLIS + 10));
    assert_eq!((ends, lasts), ((MILLIS + 11) * 1000, 0));
}

#[test]
fn an_owner_keeps_its_fencing_token_until_another_one_comes() {
    let (first, ticket, second) = (token(), token(), token());
    let (ends, nothing) = (MILLIS + 10, Cell::default());
    let granted = nothing.followed_by(held(first, ends), None);
    let granted = written(&nothing, &granted, Some(first), 0);
    assert_eq!(granted.fence_of(first), Some(REVISION * PASSES));
    let renewed = granted.followed_by(held(first, ends + 5), None);
    assert_eq!(renewed.fence_of(first), Some(REVISION * PASSES));
    let swapped = renewed.followed_by(held(ticket, ends), Some((first, ticket)));
    assert_eq!(swapped.fence_of(ticket), Some(REVISION * PASSES));
    let other = swapped.followed_by(held(second, ends), None);
    assert_eq!(other.fence_of(second), Some(0), "that of its write");
    assert_eq!(other.fence_of(first), None);
}

#[test]
fn bytes_of_later_versions_and_of_other_clients_are_no_documents() {
    let cell = Cell::default().followed_by(held(token(), MILLIS + 10), None);
    let change = Change {
        before: &Document::default(),
        after: &cell,
        touched: None,
        now: ServerTime(NOW),
    };
    let bytes = change.encode().bytes;
    let reads = |bytes: &[u8]| decode(bytes, REVISION, ServerTime(NOW)).is_some();
    assert!(reads(&bytes));
    for length in 0..bytes.len() {
        assert!(!reads(&bytes[..length]), "cut to {length} bytes");
    }
    assert!(!reads(&[bytes.as_slice(), &[0]].concat()));
    let mut later = bytes;
    later[0] = VERSION + 1;
    assert!(!reads(&later));
}
