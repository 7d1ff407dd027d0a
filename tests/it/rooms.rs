//! Checks the imports inside of the folders of lock-core that have several rooms.
//!
//! A module imports what its `use` items and its paths from `crate` and `super` name. Modules that import each other, also by
//! way of others, are a circle. Calls of methods do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::layers::{code_under, source_of};

/// The rooms of the Redis store from top to bottom. `store/redis/mod.rs` is above them.
const REDIS: [&str; 4] = ["care", "commands", "topology", "wire"];

/// For each module the modules of the same folder that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

#[test]
fn no_circle_of_imports_crosses_a_folder() {
    for folder in [
        "engine",
        "store/cells",
        "store/postgres",
        "store/quorum",
        "store/redis",
    ] {
        let imports = imports_inside(folder);
        let reached: BTreeMap<_, _> = imports
            .keys()
            .map(|module| (module, reached_from(module, &imports)))
            .collect();
        for (module, below) in &reached {
            let circle = below
                .iter()
                .filter(|other| reached[other].contains(*module));
            for other in circle {
                let folders = [module, other].map(|it| folder_of(it, &imports));
                assert_eq!(
                    folders[0], folders[1],
                    "{module} and {other} import each other"
                );
            }
        }
    }
}

#[test]
fn imports_between_the_rooms_of_the_redis_store_point_only_down() {
    let height = |module: &str| {
        let room = module.strip_prefix("store::redis::")?.split("::").next()?;
        REDIS.iter().position(|it| *it == room)
    };
    for (module, named) in imports_inside("store/redis") {
        for other in named {
            // The module of the folder itself has no height.
            assert!(
                height(&module) <= height(&other),
                "{module} imports {other}"
            );
        }
    }
}

/// Checks the parser of this test.
#[test]
fn paths_are_resolved_from_the_module_that_names_them() {
    let code = "pub(in crate::store) use super::{a::{B, self}, c};\nfn f(_: crate::x::Y) { super::super::z(); d::e(); }\nuse d::F;";
    let known = |name: &str| ["m", "m::n", "m::n::d"].contains(&name);
    let paths: Vec<_> = paths_in(code, "m::n", known).into_iter().collect();
    assert_eq!(
        paths,
        [
            "m::a",
            "m::a::B",
            "m::c",
            "m::n::d::F",
            "m::n::d::e",
            "x::Y",
            "z"
        ]
    );
}

fn imports_inside(folder: &str) -> Imports {
    let source = source_of("lock-core");
    let files = code_under(&source.join(folder));
    let named: BTreeMap<String, String> = files
        .into_iter()
        .map(|(file, code)| (module_of(Path::new(&file), &source), code))
        .collect();
    let known = |name: &str| named.contains_key(name);
    let imported = |(module, code): (&String, &String)| {
        let paths = paths_in(code, module, known);
        let modules = paths.iter().filter_map(|path| innermost(path, known));
        let others = modules.filter(|other| other != module);
        (module.clone(), others.collect())
    };
    named.iter().map(imported).collect()
}

/// The path of a file as a module: `engine/mod.rs` is `engine`.
fn module_of(file: &Path, source: &Path) -> String {
    let file = file.strip_prefix(source).expect("a file of the source");
    let names = file.with_extension("");
    let names: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
    let module = names.join("::");
    module.strip_suffix("::mod").unwrap_or(&module).to_owned()
}

/// The known module that is the longest beginning of a path.
fn innermost(path: &str, known: impl Fn(&str) -> bool) -> Option<String> {
    let mut path = path;
    while !known(path) {
        path = path.rsplit_once("::")?.0;
    }
    Some(path.to_owned())
}

fn reached_from(module: &str, imports: &Imports) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![module];
    while let Some(next) = open.pop() {
        for other in &imports[next] {
            if reached.insert(other.clone()) {
                open.push(other);
            }
        }
    }
    reached
}

/// A module that has others inside is in its own folder.
fn folder_of(module: &str, imports: &Imports) -> String {
    let inside = format!("{module}::");
    match imports.keys().any(|other| other.starts_with(&inside)) {
        true => module.to_owned(),
        false => module
            .rsplit_once("::")
            .map_or("", |(folder, _)| folder)
            .to_owned(),
    }
}

/// The full paths in the code of a module, without `crate`.
fn paths_in(code: &str, module: &str, known: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    let mut rest = String::new();
    for (place, part) in code.split("use ").enumerate() {
        let (tree, behind) = match (place, part.split_once(';')) {
            (0, _) | (_, None) => ("", part),
            (_, Some(split)) => split,
        };
        expand(tree, "", &mut paths);
        rest.push_str(behind);
    }
    // A visibility is no import.
    let mut parts = rest.split("pub(in ");
    let mut code = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        code.push_str(part.split_once(')').map_or("", |(_, behind)| behind));
    }
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let words = code.split(|letter| !is_part(letter));
    paths.extend(
        words
            .filter(|word| word.contains("::"))
            .map(|word| word.trim_end_matches(':').to_owned()),
    );
    paths
        .iter()
        .filter_map(|path| resolved(path, module, &known))
        .collect()
}

/// Adds each path of a tree such as `a::{B, c::{self, D}}`.
fn expand(tree: &str, before: &str, paths: &mut BTreeSet<String>) {
    let (mut depth, mut start) = (0, 0);
    let ends = tree.char_indices().chain([(tree.len(), ',')]);
    for (place, letter) in ends {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let one = tree[start..place].trim();
                start = place + 1;
                match one.split_once('{') {
                    Some((path, inside)) => {
                        let inside = inside.strip_suffix('}').unwrap_or(inside);
                        expand(inside, &format!("{before}{path}"), paths);
                    }
                    None if !one.is_empty() => {
                        let name = one.split(' ').next().unwrap_or_default();
                        let path = format!("{before}{name}");
                        let path = path.strip_suffix("::self").unwrap_or(&path);
                        paths.insert(path.to_owned());
                    }
                    None => {}
                }
            }
            _ => {}
        }
    }
}

/// `None`: the path names another crate, or nothing of the same crate that can be told.
fn resolved(path: &str, module: &str, known: impl Fn(&str) -> bool) -> Option<String> {
    if let Some(path) = path.strip_prefix("crate::") {
        return Some(path.to_owned());
    }
    let (mut module, mut path) = (module, path.strip_prefix("self::").unwrap_or(path));
    let is_inside = path
        .split("::")
        .next()
        .is_some_and(|name| known(&format!("{module}::{name}")));
    if !path.starts_with("super::") && !is_inside {
        return None;
    }
    while let Some(above) = path.strip_prefix("super::") {
        path = above;
        module = module.rsplit_once("::").map_or("", |(above, _)| above);
    }
    Some(
        format!("{module}::{path}")
            .trim_start_matches(':')
            .to_owned(),
    )
}
