//! Parts of the server that no real server can be asked to compare.

use super::*;

const NOW: i64 = 1_700_000_000_000_000;

struct Client {
    server: Server,
    conn: usize,
    micros: i64,
}

fn server() -> Client {
    Client {
        server: Server::new("first".into()),
        conn: 1,
        micros: NOW,
    }
}

impl Client {
    fn run(&mut self, words: &[&str]) -> String {
        let command: Vec<Bytes> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        let mut out = Bytes::new();
        self.server.run(self.conn, self.micros, &command, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn later(&mut self, millis: i64) {
        self.micros += 1_000 * millis;
    }

    fn pushed(&mut self) -> Vec<(usize, String)> {
        let pushes = self.server.take_pushes().into_iter();
        let pushes = pushes.map(|(conn, bytes)| (conn, String::from_utf8(bytes).unwrap()));
        pushes.collect()
    }
}

#[test]
fn a_key_exists_in_its_whole_last_millisecond() {
    let mut client = server();
    client.run(&["SET", "a", "x", "PX", "10"]);
    client.later(10);
    assert_eq!(client.run(&["GET", "a"]), "$1\r\nx\r\n");
    client.later(1);
    assert_eq!(client.run(&["GET", "a"]), "$-1\r\n");
    assert!(client.server.entry(b"a").is_none());
}

#[test]
fn a_sentinel_names_the_master_and_keeps_no_data() {
    let mut client = server();
    let asked = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"];
    assert!(client.run(&asked).starts_with("-ERR unknown command"));
    client.server.sentinel = Some(Sentinel {
        service: "mymaster".into(),
        host: "10.0.0.1".into(),
        port: 6379,
        epoch: 7,
    });
    let address = "*2\r\n$8\r\n10.0.0.1\r\n$4\r\n6379\r\n";
    assert_eq!(client.run(&asked), address);
    let master = client.run(&["SENTINEL", "MASTER", "mymaster"]);
    assert!(master.contains("$12\r\nconfig-epoch\r\n$1\r\n7\r\n"));
    assert!(
        client
            .run(&["GET", "a"])
            .starts_with("-ERR unknown command")
    );
}

#[test]
fn a_client_that_waits_for_replicas_is_told_when_its_master_becomes_a_replica() {
    let mut client = server();
    client.run(&["SET", "a", "x"]);
    assert_eq!(client.run(&["WAIT", "1", "50"]), "");
    assert_eq!(client.server.follow("10.0.0.1".into(), 6379), [1]);
    let pushed = client.pushed();
    assert!(pushed[0].1.starts_with("-UNBLOCKED"), "{pushed:?}");
    assert!(!client.server.is_blocked(1));
    assert!(client.run(&["SET", "a", "y"]).starts_with("-READONLY"));
}

#[test]
fn a_script_is_one_change_of_a_key() {
    let mut client = server();
    let script = "for i = 1, 3 do redis.call('ZADD', 'q', i, i) end redis.call('SET', 'a', 'x')";
    client.run(&["EVAL", script, "0"]);
    let changes = client.server.take_changes();
    let keys: Vec<&[u8]> = changes.iter().map(|change| change.key.as_slice()).collect();
    assert_eq!(keys, [b"q", b"a"]);
    assert_eq!(client.server.offset, 2);
    client.run(&["SET", "a", "y", "NX"]);
    client.run(&["ZREM", "q", "none"]);
    assert!(client.server.take_changes().is_empty());
}

#[test]
fn a_replica_has_the_data_of_its_master_and_deletes_no_key_by_itself() {
    let mut master = server();
    master.run(&["SET", "a", "x", "PX", "10"]);
    master.run(&["ZADD", "q", "1", "m"]);
    master.run(&["HSET", "h", "f", "v"]);
    let mut replica = server();
    replica.server.role = Role::Replica("10.0.0.1".into(), 6379);
    for change in master.server.take_changes() {
        replica.server.apply(&change);
    }
    assert!(replica.server.entries().eq(master.server.entries()));
    assert_eq!(replica.server.offset, master.server.offset);
    assert!(replica.run(&["SET", "b", "x"]).starts_with("-READONLY"));
    replica.later(11);
    replica.server.expire(replica.micros);
    assert_eq!(replica.run(&["GET", "a"]), "$-1\r\n");
    assert!(replica.server.entry(b"a").is_some());

    master.later(11);
    master.server.expire(master.micros);
    for change in master.server.take_changes() {
        assert_eq!(change.now, None);
        replica.server.apply(&change);
    }
    assert!(replica.server.entry(b"a").is_none());
    assert!(replica.server.take_changes().is_empty());
}

#[test]
fn a_restart_ends_sessions_and_forgets_scripts() {
    let mut client = server();
    client.run(&["HELLO", "3"]);
    client.run(&["SUBSCRIBE", "c"]);
    client.run(&["CLIENT", "TRACKING", "ON"]);
    client.run(&["GET", "a"]);
    client.run(&["SET", "kept", "x"]);
    let hash = client.run(&["SCRIPT", "LOAD", "return 1"]);
    let hash = hash.split("\r\n").nth(1).unwrap().to_owned();
    assert_eq!(client.run(&["EVALSHA", &hash, "0"]), ":1\r\n");
    client.server.restart("second".into(), true);
    assert!(
        client
            .run(&["EVALSHA", &hash, "0"])
            .starts_with("-NOSCRIPT")
    );
    assert_eq!(client.run(&["GET", "none"]), "$-1\r\n");
    assert_eq!(client.run(&["GET", "kept"]), "$1\r\nx\r\n");
    assert_eq!(client.run(&["PUBLISH", "c", "m"]), ":0\r\n");
    client.run(&["SET", "a", "x"]);
    assert!(client.pushed().is_empty());
    assert!(
        client
            .run(&["INFO", "server"])
            .contains("run_id:second\r\n")
    );
    client.server.take_changes();
    client.server.restart("third".into(), false);
    assert_eq!(client.server.entries().count(), 0);
    assert_eq!(client.server.take_changes().len(), 2);
}

#[test]
fn a_closed_connection_hears_nothing() {
    let mut client = server();
    for conn in [1, 2] {
        client.conn = conn;
        client.run(&["HELLO", "3"]);
        client.run(&["SUBSCRIBE", "c"]);
    }
    client.conn = 3;
    assert_eq!(client.run(&["PUBLISH", "c", "m"]), ":2\r\n");
    let push = ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n";
    assert_eq!(
        client.pushed(),
        [(1, push.to_owned()), (2, push.to_owned())]
    );
    client.server.closed(1);
    assert_eq!(client.run(&["PUBLISH", "c", "m"]), ":1\r\n");
    assert_eq!(client.pushed(), [(2, push.to_owned())]);
}

#[test]
fn the_end_of_a_key_is_reported_when_the_server_notices_it() {
    let mut client = server();
    client.run(&["HELLO", "3"]);
    client.run(&["CLIENT", "TRACKING", "ON", "OPTIN", "NOLOOP"]);
    client.run(&["SET", "a", "x", "PX", "10"]);
    client.run(&["CLIENT", "CACHING", "YES"]);
    client.run(&["GET", "a"]);
    client.later(11);
    client.server.expire(client.micros);
    let push = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n";
    assert_eq!(client.pushed(), [(1, push.to_owned())]);
}

#[test]
fn a_client_waits_until_replicas_have_its_writes() {
    let mut client = server();
    client.server.replicas = vec![Replica::default(), Replica::default()];
    client.run(&["SET", "a", "x"]);
    assert_eq!(client.run(&["WAIT", "0", "100"]), ":0\r\n");
    assert_eq!(client.run(&["WAIT", "1", "100"]), "");
    assert!(client.server.is_blocked(1));
    client.server.acknowledge(1, 1);
    assert_eq!(client.pushed(), [(1, ":1\r\n".to_owned())]);
    assert!(!client.server.is_blocked(1));
    assert_eq!(client.run(&["WAIT", "1", "100"]), ":1\r\n");
    assert_eq!(client.run(&["WAIT", "2", "100"]), "");
    let end = NOW + 101_000;
    assert_eq!(client.server.next_wait_end(), Some(end));
    client.server.end_waits(end - 1);
    assert!(client.pushed().is_empty());
    client.server.end_waits(end);
    assert_eq!(client.pushed(), [(1, ":1\r\n".to_owned())]);
    assert_eq!(client.server.next_wait_end(), None);
}

#[test]
fn a_server_that_loads_its_data_answers_no_question_about_it() {
    let mut client = server();
    client.server.refusal = Some(Refusal::Loading);
    assert!(client.run(&["GET", "a"]).starts_with("-LOADING "));
    assert!(
        client
            .run(&["EVAL", "return 1", "0"])
            .starts_with("-LOADING ")
    );
    assert!(client.run(&["HELLO", "3"]).starts_with('%'));
    assert!(client.run(&["TIME"]).starts_with('*'));
}
