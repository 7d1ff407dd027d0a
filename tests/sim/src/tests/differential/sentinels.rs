//! A sentinel: its answers to what the kit asks.

use std::fs;
use std::path::Path;

use crate::server::{Bytes, Sentinel, Server};

use super::START;
use super::kit::words;
use super::real::{Folder, Link, Real};
use super::stage;

/// The questions, without those whose answers have times in them.
const QUESTIONS: [&[&str]; 6] = [
    &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"],
    &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "another"],
    &["sentinel", "master", "another"],
    &["SENTINEL", "MASTER"],
    &["SENTINEL", "NONSENSE"],
    &["GET", "a"],
];

/// Compares the answers of a sentinel whose master is down.
pub fn compare(program: &Path, library: &Path, folder: &Folder) {
    let file = folder.path().join("sentinel.conf");
    fs::write(&file, "sentinel monitor mymaster 127.0.0.1 1 2\n").expect("a temporary file");
    let file = file.to_str().expect("a path of letters");
    let arguments = [file, "--sentinel", "--port", "0"];
    let real = Real::start_with(program, library, folder, "sentinel", START, &arguments);
    let mut link = real.connect();
    let mut simulated = Server::new("simulated".to_owned());
    simulated.version = stage::version(&mut link);
    simulated.sentinel = Some(Sentinel {
        service: "mymaster".to_owned(),
        host: "127.0.0.1".to_owned(),
        port: 1,
        epoch: 0,
    });
    let [hello, own_hello] = both(&mut link, &mut simulated, &["HELLO", "3"]);
    assert_eq!(without_id(&hello), without_id(&own_hello));
    for question in QUESTIONS {
        let [answer, own] = both(&mut link, &mut simulated, question);
        assert_eq!(answer, own, "{question:?}");
    }
    let [master, own] = both(
        &mut link,
        &mut simulated,
        &["SENTINEL", "MASTER", "mymaster"],
    );
    for field in ["config-epoch\r\n$1\r\n0\r\n", "ip\r\n$9\r\n127.0.0.1\r\n"] {
        assert!(master.contains(field), "{master}");
        assert!(own.contains(field), "{own}");
    }
    // A map of texts, in both.
    assert_eq!(kinds(&master), kinds(&own), "{master}");
}

fn both(link: &mut Link, simulated: &mut Server, command: &[&str]) -> [String; 2] {
    let command: Vec<Bytes> = words(command);
    let mut own = Bytes::new();
    simulated.run(0, START, &command, &mut own);
    link.send(&command);
    // The answer may have more bytes than the simulated one. It is whole when the answer to the next command has come.
    let real = link.take_before(&words(&["PING"]), b"+PONG\r\n");
    [real, own].map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The lines of the answer to `HELLO` but the number of the connection.
fn without_id(hello: &str) -> Vec<&str> {
    hello
        .lines()
        .filter(|line| !line.starts_with(':'))
        .collect()
}

/// The first byte of the answer, and those of its parts.
fn kinds(answer: &str) -> Vec<u8> {
    let lines = answer
        .lines()
        .filter(|line| line.starts_with(['%', '*', '$', ':', ',']));
    let mut kinds: Vec<u8> = lines.map(|line| line.as_bytes()[0]).collect();
    kinds.dedup();
    kinds
}
