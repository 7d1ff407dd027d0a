//! Checks that imports point only down, from layer to layer.
//!
//! A layer is a folder or a file directly under a crate's `src`. Each path `crate::<layer>::…` in code counts.
//! Re-exports in `lib.rs`, doc comments and code of tests do not count.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The layers from top to bottom. `lib.rs` is above them.
const LOCK_CORE: [&str; 13] = [
    "api",
    "once",
    "engine",
    "queue",
    "keeper",
    "active",
    "store",
    "timer",
    "lease",
    "remembered",
    "protocol",
    "base",
    "audit",
];

const LOCK_TOWER: [&str; 13] = [
    "layer",
    "service",
    "replay",
    "response",
    "probe",
    "policy",
    "record",
    "once",
    "lock",
    "telemetry",
    "rejection",
    "key",
    "options",
];

const LOCK_MACROS: [&str; 8] = [
    "lock_key",
    "idempotent",
    "expand",
    "function",
    "args",
    "template",
    "path",
    "suggest",
];

const LIBRARIES: [(&str, &[&str]); 3] = [
    ("lock-core", &LOCK_CORE),
    ("lock-tower", &LOCK_TOWER),
    ("lock-macros", &LOCK_MACROS),
];

#[test]
fn imports_point_only_down() {
    for (library, layers) in LIBRARIES {
        let upward = upward_imports(library, layers);
        assert!(upward.is_empty(), "upward imports:\n{}", upward.join("\n"));
    }
}

#[test]
fn every_file_belongs_to_a_layer() {
    for (library, layers) in LIBRARIES {
        let layers = layers.iter().copied();
        // The docs have no code, the scripts are Lua, and the models are tests.
        let others = ["lib", "docs", "idempotency", "scripts", "model", "tests"];
        let known: Vec<_> = layers.chain(others).collect();
        let entries = fs::read_dir(source_of(library)).expect("a folder");
        for entry in entries {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().and_then(|name| name.to_str());
            let name = name.expect("a name in UTF-8");
            assert!(known.contains(&name), "{library}: {name} is in no layer");
        }
    }
}

#[test]
fn the_stores_of_lock_core_do_not_name_each_other() {
    let stores = source_of("lock-core").join("store");
    let names = ["memory", "redis", "quorum", "postgres"];
    for store in names {
        for (file, code) in code_under(&stores.join(store)) {
            for other in names.iter().filter(|other| **other != store) {
                let path = format!("store::{other}");
                assert!(!code.contains(&path), "{file} names {path}");
            }
        }
    }
}

/// Checks the parser of this test: it finds an upward import, and skips code of tests.
#[test]
fn an_upward_import_is_found() {
    let code =
        code_of("use crate::base::key;\nuse crate::api::manager;\n// crate::engine::Engine\n");
    assert_eq!(named_layers(&code), ["base", "api"]);
    let code = code_of(
        "#[cfg(test)]\nmod tests {\n    use crate::api::manager;\n}\nuse crate::LockKey;\n",
    );
    assert_eq!(named_layers(&code), ["LockKey"]);
}

fn upward_imports(library: &str, layers: &[&str]) -> Vec<String> {
    let source = source_of(library);
    let height = |layer: &str| layers.iter().position(|one| *one == layer);
    let mut upward = Vec::new();
    for layer in layers {
        for (file, code) in code_under(&source.join(layer)) {
            for named in named_layers(&code) {
                // A name that is no layer is an item of `lib.rs`.
                if height(&named).is_none_or(|named| Some(named) < height(layer)) {
                    upward.push(format!("{file}: crate::{named}"));
                }
            }
        }
    }
    upward
}

pub(crate) fn source_of(library: &str) -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    workspace.join(library).join("src")
}

/// Returns the code of a layer by file: `layer.rs`, or all files in the folder `layer`.
pub(crate) fn code_under(layer: &Path) -> BTreeMap<String, String> {
    let mut code = BTreeMap::new();
    let mut paths = vec![layer.with_extension("rs"), layer.to_owned()];
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder");
            paths.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if path.is_file() && !is_of_tests(&path) {
            let text = fs::read_to_string(&path).expect("a file");
            code.insert(path.display().to_string(), code_of(&text));
        }
    }
    assert!(!code.is_empty(), "{} has no code", layer.display());
    code
}

fn is_of_tests(path: &Path) -> bool {
    let is_model = path.iter().any(|part| part == "model");
    let name = path.file_stem().and_then(|name| name.to_str());
    is_model
        || path.extension().is_none_or(|extension| extension != "rs")
        || name.is_none_or(|name| {
            name == "tests" || name.ends_with("_tests") || name.starts_with("test_")
        })
}

/// Returns the lines without comments and without items of tests.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let start = line.trim_start();
        if start.starts_with("#[cfg(test)]") || start.starts_with("#[cfg(all(test") {
            let end = format!("{}}}", &line[..line.len() - start.len()]);
            // Further attributes follow, and then an item. The item ends on its line, or with a brace below its start.
            let item = lines.find(|line| !line.trim_start().starts_with("#["));
            if item.is_some_and(|item| !item.ends_with(';')) {
                lines.find(|line| *line == end);
            }
        } else if !start.starts_with("//") {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

fn named_layers(code: &str) -> Vec<String> {
    let name = |path: &str| {
        let is_part = |letter: &char| letter.is_alphanumeric() || *letter == '_';
        path.chars().take_while(is_part).collect()
    };
    code.split("crate::").skip(1).map(name).collect()
}

/// The largest number of lines of a source file.
const MOST_LINES: usize = 400;

#[test]
fn no_file_of_the_libraries_is_too_long() {
    let mut long = Vec::new();
    for library in ["lock-core", "lock-macros", "lock-tower"] {
        for (file, lines) in lines_under(&source_of(library)) {
            if lines > MOST_LINES {
                long.push(format!("{file}: {lines} lines"));
            }
        }
    }
    assert!(long.is_empty(), "split:\n{}", long.join("\n"));
}

fn lines_under(folder: &Path) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    let mut paths = vec![folder.to_owned()];
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder");
            paths.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else {
            let text = fs::read_to_string(&path).expect("a file");
            lines.insert(path.display().to_string(), text.lines().count());
        }
    }
    lines
}
