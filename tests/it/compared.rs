//! Compares the list of other libraries' versions with the pages, and checks how newer versions are found.
//!
//! `cargo run -p lock-tests --bin compared` asks the registries. These tests ask none.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use lock_tests::compared::{self, Compared, Finding, Registry};

/// The heading of the comparison on each page that has tables, and the columns with the name and the version.
const TABLES: [(&str, &str, usize, usize); 3] = [
    ("README.md", "## Compared with other libraries", 0, 0),
    ("lock-tower/src/docs/idempotency.md", "# Comparison", 0, 0),
    (
        "lock-core/src/docs/interop.md",
        "<!-- This table is written",
        0,
        1,
    ),
];

#[test]
fn a_page_states_exactly_the_versions_of_the_list() {
    let rows = rows();
    let named = rows.iter().flat_map(|row| row.pages.clone());
    let guide = fs::read_dir(workspace().join("lock-core/src/docs/guide")).expect("the guide");
    let guide = guide.map(|file| file.expect("a page").file_name());
    let guide = guide.map(|name| format!("lock-core/src/docs/guide/{}", name.display()));
    for page in named.chain(guide).collect::<BTreeSet<_>>() {
        let expected: BTreeSet<_> = on(&rows, &page).map(Compared::stated).collect();
        let found: BTreeSet<_> = compared::stated_on(&text(&page)).into_iter().collect();
        assert_eq!(found, expected, "{page}");
    }
}

#[test]
fn every_row_of_a_comparison_names_a_version_of_the_list() {
    let rows = rows();
    for (page, heading, name, version) in TABLES {
        let text = text(page);
        let (_, section) = text.split_once(heading).expect("the comparison");
        let table = section.lines().skip_while(|line| !line.starts_with('|'));
        let table = table.take_while(|line| line.starts_with('|')).skip(2);
        let mut count = 0;
        for line in table {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            if cells[0].starts_with("this ") {
                continue;
            }
            let names = |row: &Compared| {
                let begins = cells[name].starts_with(&row.name);
                begins && cells[version].contains(&row.stated())
            };
            assert!(on(&rows, page).any(names), "{page}: {line}");
            count += 1;
        }
        assert_eq!(
            count,
            on(&rows, page).count(),
            "{page} has a row for each version"
        );
    }
}

#[test]
fn every_library_of_a_migrating_page_has_a_version_of_the_list() {
    let rows = rows();
    for language in ["go", "java", "python", "rust"] {
        let page = format!("lock-core/src/docs/guide/migrating_{language}.md");
        let sections = sections(&text(&page));
        for section in &sections {
            let states = |row: &Compared| {
                let version = format!("\nVersion {}", row.stated());
                section.starts_with(&row.name) && section.contains(&version)
            };
            assert!(on(&rows, &page).any(states), "{page}: {section}");
        }
        assert_eq!(sections.len(), on(&rows, &page).count(), "{page}");
    }
}

#[test]
fn the_command_names_a_line_on_each_page() {
    for row in rows() {
        let places = row.places(&workspace()).expect("pages");
        for page in &row.pages {
            let page = format!("{page}:");
            assert!(
                places.iter().any(|place| place.starts_with(&page)),
                "{row:?}: {places:?}"
            );
        }
    }
}

#[test]
fn the_clients_that_are_tested_have_the_versions_of_the_list() {
    let rows = rows();
    let is_listed = |package: &str, version: &str| {
        let names = |row: &Compared| match &row.asked {
            Registry::Npm(name) | Registry::Pip(name) => name == package && row.version == version,
            _ => false,
        };
        assert!(rows.iter().any(names), "{package} {version}");
    };
    let requirements = text("tests/interop/requirements.txt");
    for line in requirements.lines().filter(|line| !line.starts_with('#')) {
        let (package, version) = line.split_once("==").expect("a pinned version");
        is_listed(package, version);
    }
    let packages: serde_json::Value =
        serde_json::from_str(&text("tests/interop/package.json")).expect("JSON");
    for (name, version) in packages["dependencies"].as_object().expect("packages") {
        let version = version.as_str().expect("a version");
        match version
            .strip_prefix("npm:")
            .and_then(|alias| alias.split_once('@'))
        {
            Some((package, version)) => is_listed(package, version),
            // It is the client's connection to Redis, and no library of locks.
            None if name == "ioredis" => {}
            None => is_listed(name, version),
        }
    }
}

#[test]
fn a_version_is_newer_by_its_numbers_and_a_release_is_no_match_for_a_pre_release() {
    let newer = |version: &str| Finding::Newer(version.to_owned());
    let release = row("4.9.0");
    assert_eq!(judged(&release, &["4.9.0", "4.8.1"]), Finding::UpToDate);
    assert_eq!(
        judged(&release, &["4.9.0", "4.10.0", "4.9.1"]),
        newer("4.10.0")
    );
    assert_eq!(
        judged(&release, &["5.0.0-rc.1", "4.9.0"]),
        Finding::UpToDate
    );
    assert_eq!(
        judged(&release, &["4.9", "nightly", "1.0.5.post1"]),
        Finding::UpToDate
    );
    assert_eq!(judged(&release, &["5", "4.9.0"]), newer("5"));
    let pre_release = row("5.0.0-beta.2");
    assert_eq!(
        judged(&pre_release, &["5.0.0-beta.2", "4.9.0"]),
        Finding::UpToDate
    );
    assert_eq!(
        judged(&pre_release, &["5.0.0-beta.10", "5.0.0-beta.2"]),
        newer("5.0.0-beta.10")
    );
    assert_eq!(
        judged(&pre_release, &["5.0.0", "5.0.0-beta.2"]),
        newer("5.0.0")
    );
    let renamed = Compared {
        same: vec!["5.0.0-beta2".to_owned()],
        ..pre_release
    };
    assert_eq!(
        judged(&renamed, &["5.0.0-beta2", "5.0.0-beta.2"]),
        Finding::UpToDate
    );
}

#[test]
fn a_registry_that_has_not_answered_is_never_up_to_date() {
    let row = row("4.9.0");
    let silent = row.judged(Err("git: no network".to_owned()));
    assert_eq!(silent, Finding::NotAsked("git: no network".to_owned()));
    // An old mirror, and an answer without a version, such as an empty one.
    for offered in [vec!["4.8.0"], vec!["main"], vec![]] {
        assert!(
            matches!(judged(&row, &offered), Finding::NotAsked(_)),
            "{offered:?}"
        );
    }
    let page = Compared {
        asked: Registry::Page("a page".to_owned()),
        ..row
    };
    assert_eq!(
        page.judged(page.asked.ask()),
        Finding::ByHand("a page".to_owned())
    );

    let (current, by_hand) = (Finding::UpToDate, Finding::ByHand("a page".to_owned()));
    let newer = Finding::Newer("5.0.0".to_owned());
    assert_eq!(Finding::exit_status(&[current.clone(), by_hand]), 0);
    assert_eq!(Finding::exit_status(&[current, silent.clone()]), 3);
    assert_eq!(Finding::exit_status(&[silent, newer]), 1);
}

#[test]
fn a_client_that_fails_says_why() {
    let repository = Registry::Git("/no/such/repository".to_owned(), "v".to_owned());
    let error = repository.ask().expect_err("there is no repository");
    assert!(error.starts_with("git: fatal: "), "{error}");
}

#[test]
fn the_answers_of_the_registries_are_read() {
    let name = || "name".to_owned();
    let cargo = Registry::Cargo(name());
    assert_eq!(
        cargo.versions("name\nversion: 0.10.0\nlicense: MIT\n"),
        ["0.10.0"]
    );
    assert_eq!(
        cargo.versions("version: 0.3.0 (latest 2.0.0)\nrust-version: 1.94\n"),
        ["2.0.0"]
    );
    let npm = Registry::Npm(name());
    assert_eq!(
        npm.versions("[\n  \"1.0.0\",\n  \"2.0.0-beta.1\"\n]\n"),
        ["1.0.0", "2.0.0-beta.1"]
    );
    assert_eq!(npm.versions("\"1.0.0\"\n"), ["1.0.0"]);
    let pip = Registry::Pip(name());
    assert_eq!(
        pip.versions("name (2.1)\nAvailable versions: 2.1, 2.0\n"),
        ["2.1", "2.0"]
    );
    let git = Registry::Git(name(), "parent-".to_owned());
    let tags =
        "1a2b\trefs/tags/parent-7.9.0\n3c4d\trefs/tags/v7.9.0\n5e6f\trefs/tags/parent-7.10.0\n";
    assert_eq!(git.versions(tags), ["7.9.0", "7.10.0"]);
}

fn judged(row: &Compared, offered: &[&str]) -> Finding {
    row.judged(Ok(offered
        .iter()
        .map(|&version| version.to_owned())
        .collect()))
}

/// Returns a row of the list with another version.
fn row(version: &str) -> Compared {
    let mut row = rows().remove(0);
    row.version = version.to_owned();
    row
}

fn rows() -> Vec<Compared> {
    compared::read(&workspace()).expect("the list")
}

fn on<'a>(rows: &'a [Compared], page: &'a str) -> impl Iterator<Item = &'a Compared> {
    rows.iter()
        .filter(move |row| row.pages.iter().any(|other| other == page))
}

/// Returns the sections of a page, each from its heading on. Examples are left out, because they have lines with `# ` too.
fn sections(page: &str) -> Vec<String> {
    let mut sections = Vec::new();
    for (index, part) in page.split("```").enumerate() {
        if index % 2 == 1 {
            continue;
        }
        for line in part.lines() {
            if let Some(heading) = line.strip_prefix("# ") {
                sections.push(heading.to_owned());
            } else if let Some(section) = sections.last_mut() {
                *section = format!("{section}\n{line}");
            }
        }
    }
    sections
}

fn text(page: &str) -> String {
    fs::read_to_string(workspace().join(page)).expect("a page")
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
