//! `covered.md` says which test covers what; this looks whether it is true of the names.

use std::collections::BTreeSet;
use std::path::Path;

/// Every test that the page names is there, and every one that is there is named.
#[test]
fn the_page_names_the_tests_that_there_are() {
    let quoted = include_str!("covered.md").split('`').skip(1).step_by(2);
    let named: BTreeSet<String> = quoted
        .filter(|name| name.contains("::") && *name != "file::test")
        .map(str::to_owned)
        .collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/layer");
    let mut tests = BTreeSet::new();
    tests_in(&folder, "", &mut tests);
    tests.remove("covered::the_page_names_the_tests_that_there_are");
    let differ: Vec<_> = named.symmetric_difference(&tests).collect();
    assert!(differ.is_empty(), "named or there, not both: {differ:#?}");
}

/// As `module::function`, without those that are only started by others.
fn tests_in(folder: &Path, module: &str, tests: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|name| name.to_str());
        let name = name.expect("a name");
        if path.is_dir() {
            tests_in(&path, &format!("{module}{name}::"), tests);
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
    let parts = text.split("\n#[tokio::test").skip(1);
    let parts = parts.chain(text.split("\n#[test]").skip(1));
    parts.filter_map(|part| {
        let (attributes, rest) = part.split_once("fn ")?;
        let (name, _) = rest.split_once('(')?;
        (!attributes.contains("#[ignore")).then_some(name)
    })
}
