//! Checks pages that list the tests of each topic against the names of the tests.

use std::collections::BTreeSet;
use std::path::Path;

/// Returns the tests that a page quotes: names in backquotes that have a module.
pub(crate) fn named(page: &str) -> BTreeSet<String> {
    let quoted = page.split('`').skip(1).step_by(2);
    let names = quoted.filter(|name| name.contains("::") && *name != "file::test");
    names.map(str::to_owned).collect()
}

/// Returns the tests of a folder of the workspace and its subfolders, as `module::function`.
///
/// Tests that only other tests start are left out.
pub(crate) fn tests_in(folder: &str) -> BTreeSet<String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut tests = BTreeSet::new();
    collect(&workspace.join(folder), "", &mut tests);
    tests
}

fn collect(folder: &Path, module: &str, tests: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|name| name.to_str());
        let name = name.expect("a name");
        if path.is_dir() {
            collect(&path, &format!("{module}{name}::"), tests);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = std::fs::read_to_string(&path).expect("a file");
            let prefix = match name {
                "mod" => module.to_owned(),
                _ => format!("{module}{name}::"),
            };
            tests.extend(functions(&text).map(|function| format!("{prefix}{function}")));
        }
    }
}

fn functions(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split("#[tokio::test").skip(1);
    let parts = parts.chain(text.split("#[test]").skip(1));
    parts.filter_map(|part| {
        let (attributes, rest) = part.split_once("fn ")?;
        let (name, _) = rest.split_once('(')?;
        let written_out = name.chars().all(|it| it.is_alphanumeric() || it == '_');
        (written_out && !attributes.contains("#[ignore")).then_some(name)
    })
}

/// Returns the cases that are a test on each store: `theme::case`.
pub(crate) fn cases() -> BTreeSet<String> {
    let list = include_str!("conformance/mod.rs");
    let (_, list) = list.split_once("\non_every_store! {\n").expect("the list");
    let mut theme = "";
    let mut cases = BTreeSet::new();
    for line in list.lines() {
        if let Some(name) = line.strip_suffix(" {") {
            theme = name.trim();
        } else if let Some(case) = line.trim().strip_suffix(',') {
            cases.insert(format!("{theme}::{case}"));
        }
    }
    cases
}
