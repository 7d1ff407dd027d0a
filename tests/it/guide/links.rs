//! Checks the links of the pages: each leads to a file of the repository, to an item, or to a well-known address.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::repository;

/// The hosts to which a page may link.
const HOSTS: [&str; 22] = [
    "aphyr.com",
    "curator.apache.org",
    "cwiki.apache.org",
    "developer.hashicorp.com",
    "docs.aws.amazon.com",
    "docs.hazelcast.com",
    "docs.keydb.dev",
    "docs.oracle.com",
    "docs.rs",
    "doc.rust-lang.org",
    "etcd.io",
    "github.com",
    "hazelcast.com",
    "jepsen.io",
    "keepachangelog.com",
    "learn.microsoft.com",
    "martin.kleppmann.com",
    "redis.io",
    "rustup.rs",
    "upstash.com",
    "valkey.io",
    "www.dragonflydb.io",
];

/// The pages whose readers see files of the repository.
const PAGES: [&str; 5] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "examples/README.md",
];

/// The pages that rustdoc shows. Their readers see items and not files.
const DOCS: [&str; 2] = ["lock-core/src/docs", "lock-core/src/docs/guide"];

#[test]
fn every_link_of_a_page_leads_to_a_file_of_the_repository_or_to_a_well_known_address() {
    let broken = PAGES.iter().flat_map(|page| {
        let text = super::page(page);
        broken_links(&text, |target| leads_to_a_file(page, target))
            .into_iter()
            .map(move |target| format!("{page}: {target}"))
    });
    let broken: Vec<_> = broken.collect();
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

/// Rustdoc itself checks that the items exist.
#[test]
fn every_link_of_the_guide_leads_to_an_item_or_to_a_well_known_address() {
    let mut broken = Vec::new();
    for folder in DOCS {
        for entry in fs::read_dir(repository().join(folder)).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(&path).expect("a page");
                let is_heading = |target: &str| {
                    let anchors = headings(&text);
                    target
                        .strip_prefix('#')
                        .is_some_and(|target| anchors.iter().any(|anchor| anchor == target))
                };
                let leads = |target: &str| leads_to_an_item(target) || is_heading(target);
                for target in broken_links(&text, leads) {
                    broken.push(format!("{}: {target}", path.display()));
                }
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

/// Checks the reader of this test on links of every form.
#[test]
fn a_broken_link_is_found_in_every_form() {
    let page = "[a](no/file.md) ![b](no.svg \"title\") [c](README.md#no-heading)\n\
                <img src=\"no.png\"> [d](http://example.invalid/x) [`e`](../outside.md)\n\
                [f]: no/reference.md\n\
                [g](README.md) [h](#a-heading) [i](https://docs.rs/x) `[j](code.md)`\n\
                # A `heading`\n\
                ```text\n[k](block.md)\n```\n";
    let broken = broken_links(page, |target| match target {
        "#a-heading" => headings(page).contains(&"a-heading".to_owned()),
        target => leads_to_a_file("README.md", target),
    });
    let expected = [
        "no/file.md",
        "no.svg",
        "README.md#no-heading",
        "http://example.invalid/x",
        "../outside.md",
        "no.png",
        "no/reference.md",
    ];
    assert_eq!(broken, expected);
}

/// Returns the targets that are neither accepted nor well-known addresses.
fn broken_links(page: &str, accepts: impl Fn(&str) -> bool) -> Vec<String> {
    let mut targets = targets(page);
    targets.retain(|target| match target.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.split(['/', '#', '?']).next().unwrap_or_default();
            scheme != "https" || !HOSTS.contains(&host)
        }
        None => !accepts(target),
    });
    targets
}

/// Returns the targets of links and images, in their order.
fn targets(page: &str) -> Vec<String> {
    let text = text_of(page);
    let mut targets = Vec::new();
    for line in text.lines() {
        let definition = line
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]: "));
        if let Some((_, target)) = definition {
            targets.push(target);
            continue;
        }
        for form in ["](", "src=\"", "href=\""] {
            for rest in line.split(form).skip(1) {
                targets.extend(rest.split([')', '"', ' ']).next());
            }
        }
    }
    targets.into_iter().map(str::to_owned).collect()
}

/// Returns the page without its code, in which brackets are no links.
fn text_of(page: &str) -> String {
    let mut text = String::new();
    let mut is_code = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            // Every second part is between two backticks.
            text.extend(line.split('`').step_by(2));
            text.push('\n');
        }
    }
    text
}

fn leads_to_an_item(target: &str) -> bool {
    target.contains("::") || target.starts_with("crate#")
}

fn leads_to_a_file(page: &str, target: &str) -> bool {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let file = if file.is_empty() {
        PathBuf::from(page)
    } else {
        Path::new(page).with_file_name(file)
    };
    let Some(file) = within_the_repository(&file) else {
        return false;
    };
    let is_page = file.extension().is_some_and(|extension| extension == "md");
    let has_heading = || {
        let text = fs::read_to_string(&file).unwrap_or_default();
        headings(&text).iter().any(|anchor| anchor == heading)
    };
    file.exists() && (heading.is_empty() || !is_page || has_heading())
}

/// Returns the path of a file, or `None` if it leads out of the repository.
fn within_the_repository(file: &Path) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in file.components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => path.pop().then_some(())?,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(repository().join(path))
}

/// Returns the anchors of a page's headings, as GitHub makes them.
fn headings(page: &str) -> Vec<String> {
    let lines = page.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|letter| {
            letter.is_alphanumeric() || *letter == ' ' || *letter == '-' || *letter == '_'
        });
        kept.map(|letter| if letter == ' ' { '-' } else { letter })
            .collect()
    };
    lines.map(anchor).collect()
}
