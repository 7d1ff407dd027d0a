//! What a history seldom shows of the server.

use super::wire::{self, Message};
use super::{Bytes, Moment, Postgres, Row};
use crate::world::{MILLI, SECOND};

fn row(rev: i64) -> Row {
    Row {
        rev,
        at: 0,
        ends: 0,
        fence: None,
        doc: Vec::new(),
    }
}

#[test]
fn a_crash_loses_the_last_commits_that_did_not_wait_for_the_disk_and_no_others() {
    let mut lost = [0; 4];
    for seed in 0..100 {
        let mut server = Postgres::new(seed);
        let table = &mut server.table;
        table.put(0, b"synced", Some(row(1)));
        table.flush();
        table.put(0, b"old", Some(row(1)));
        table.put(SECOND, b"one", Some(row(1)));
        table.put(SECOND, b"two", Some(row(1)));
        table.put(SECOND, b"two", Some(row(2)));
        server.crash(SECOND + 500 * MILLI);
        let revs = [b"one", b"two"].map(|key| server.table.row(key).map_or(0, |row| row.rev));
        let number = match revs {
            [1, 2] => 0,
            [1, 1] => 1,
            [1, 0] => 2,
            [0, 0] => 3,
            other => panic!("{other:?}"),
        };
        lost[number] += 1;
        assert!(server.table.row(b"synced").is_some() && server.table.row(b"old").is_some());
    }
    assert!(lost.iter().all(|count| *count > 10), "{lost:?}");
}

/// A message as a client sends it.
fn message(kind: u8, body: &[u8]) -> Bytes {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind], length.as_slice(), body].concat()
}

fn startup() -> Bytes {
    message(0, &196_608_i32.to_be_bytes())[1..].to_vec()
}

fn listen() -> Bytes {
    let text = "SET statement_timeout = 0; SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; \
                SET tcp_keepalives_count = 3; LISTEN \"lockkit:a\"; SELECT pg_advisory_lock(-7)\0";
    message(b'Q', text.as_bytes())
}

#[test]
fn a_session_listens_when_the_one_before_it_has_ended() {
    let at = Moment { now: 0, micros: 0 };
    let mut server = Postgres::new(1);
    for connection in [1, 2] {
        server.receive(at, connection, &startup());
        server.receive(at, connection, &listen());
    }
    let answered = |server: &mut Postgres| -> Vec<usize> {
        let out = server.take_out().into_iter();
        let out = out.filter(|(_, bytes)| !bytes.is_empty());
        out.map(|(connection, _)| connection).collect()
    };
    assert_eq!(answered(&mut server), [1, 1, 2]);
    server.closed(at, 1);
    assert_eq!(answered(&mut server), [2]);
}

#[test]
fn a_message_is_taken_when_it_is_whole() {
    let sent = message(b'Q', b"SELECT 1\0");
    for end in 0..sent.len() {
        assert_eq!(wire::take(&mut sent[..end].to_vec(), true), None);
    }
    let taken = wire::take(&mut sent.clone(), true);
    assert_eq!(taken, Some(Message::Query("SELECT 1".to_owned())));
}

#[test]
fn a_text_that_the_server_does_not_know_is_an_error_that_is_kept() {
    let at = Moment { now: 0, micros: 0 };
    let mut server = Postgres::new(1);
    server.receive(at, 1, &startup());
    server.receive(at, 1, &message(b'Q', b"SELECT 1\0"));
    assert_eq!(server.unknown, ["SELECT 1"]);
    let (_, bytes) = server.take_out().pop().expect("an answer");
    assert_eq!(bytes[0], b'E');
}

#[test]
fn the_names_of_statements_are_those_of_the_connection() {
    let with = |names: [&str; 2]| {
        let [one, other] = names;
        let parse = format!("{one}\0SELECT 1\0\0\0");
        let unnamed = "\0SELECT 2\0\0\0";
        let bind = format!("\0{other}\0\0\0\0\0\0\0");
        let messages = [(b'P', parse.as_str()), (b'P', unnamed), (b'B', &bind)];
        let messages = messages.map(|(kind, body)| message(kind, body.as_bytes()));
        [messages.concat(), startup()].concat()
    };
    for (names, own) in [
        (["s7", "s7"], ["s0", "s0"]),
        (["s99", "s100"], ["s0", "s1"]),
    ] {
        assert_eq!(wire::renamed(&with(names), &mut Vec::new()), with(own));
    }
}
