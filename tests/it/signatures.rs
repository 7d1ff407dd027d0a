//! Checks that the public interface of lock-core names no type of the redis crate, so that a new version of that
//! crate changes no signature. `api/redis1.rs` and the re-export `redis1` say the version in their names.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn no_signature_names_a_type_of_the_redis_crate() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lock-core/src");
    let mut seen = 0;
    for file in files(&source) {
        let text = fs::read_to_string(&file).expect("a file in UTF-8");
        for (number, signature) in signatures(&text) {
            seen += 1;
            assert!(
                !names_redis(&signature),
                "{}:{number}: {signature}",
                file.display()
            );
        }
    }
    assert!(seen > 300, "the signatures are found: {seen}");
}

#[test]
fn a_signature_that_names_the_redis_crate_is_found() {
    let text = "impl A {\n    /// redis::Client\n    pub fn a(\n        of: redis::Client,\n    ) -> B {\n";
    let found: Vec<_> = signatures(text).collect();
    assert_eq!(found.len(), 1);
    assert!(names_redis(&found[0].1));
    let own = "pub fn b(of: impl Into<RedisClient>) -> B;\npub use redis as redis1;\npub(crate) fn c(_: redis::Cmd) {\n";
    assert!(signatures(own).all(|(_, signature)| !names_redis(&signature)));
    assert!(signatures("pub use redis;\n").any(|(_, signature)| names_redis(&signature)));
}

/// Returns each item that is `pub`, up to its body, with the number of its first line.
fn signatures(text: &str) -> impl Iterator<Item = (usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let starts = (0..lines.len()).filter({
        let lines = lines.clone();
        move |&at| lines[at].trim_start().starts_with("pub ")
    });
    starts.collect::<Vec<_>>().into_iter().map(move |at| {
        let mut signature = String::new();
        for line in &lines[at..] {
            signature.push_str(line.trim());
            signature.push(' ');
            if line.trim_end().ends_with(['{', ';', '}', ',']) && balanced(&signature) {
                break;
            }
        }
        (at + 1, signature)
    })
}

fn balanced(signature: &str) -> bool {
    let count = |of: char| signature.chars().filter(|it| *it == of).count();
    count('(') == count(')')
}

fn names_redis(signature: &str) -> bool {
    let code = signature.replace("redis as redis1", "");
    let words = code.split(|it: char| !it.is_alphanumeric() && it != '_' && it != ':');
    words
        .into_iter()
        .any(|word| word == "redis" || word.starts_with("redis::"))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    files
}
