//! The pages of the documentation that list each mistake with its error and its correction.

use std::{fmt::Write as _, fs, path::PathBuf};

use crate::case::Case;

struct Page {
    /// The page, and that of the attribute, which has an excerpt of it.
    file: &'static str,
    attribute: &'static str,
    head: &'static str,
    /// The folders of its cases: the messages of the macros, and those of the compiler.
    sets: [&'static str; 2],
}

const PAGES: [Page; 2] = [
    Page {
        file: "attribute_errors.md",
        attribute: "distributed_lock.md",
        head: "\
All tested misuses of `#[distributed_lock]` and `lock_key!`, with the compiler's message and the correction.

Each misuse is one error at the offending token. The function stays defined, so that its callers compile. If a
row does not show a whole line, the line is `#[distributed_lock(key = \"order:<uid>\", ttl = \"10s\")]` above
`async fn place_order(uid: u64) -> Result<u64, lock_core::Error>`.
",
        sets: ["macros/", "compiler/"],
    },
    Page {
        file: "idempotent_errors.md",
        attribute: "idempotent.md",
        head: "\
All tested misuses of `#[idempotent]`, with the compiler's message and the correction.

Each misuse is one error at the offending token. The function stays defined, so that its callers compile. If a
row does not show a whole line, the line is `#[idempotent(key = \"charge:<order>\", ttl = \"10s\", remember = \"24h\")]` above
`async fn charge(order: u64) -> Result<u64, lock_core::Error>`. The messages about what both attributes have, such as keys,
durations and parameters, are in [the page of `#[distributed_lock]`](crate::_attribute_errors).
",
        sets: ["idempotent/", "idempotent_compiler/"],
    },
];

pub(crate) fn check(cases: &[Case]) {
    for page in &PAGES {
        check_page(page, cases);
    }
}

fn check_page(page: &Page, cases: &[Case]) {
    let docs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../lock-core/src/docs");
    let path = docs.join(page.file);
    let made = made(page, cases);
    if crate::overwrites() {
        fs::write(&path, &made).expect("the page can be written");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == made,
        "lock-core/src/docs/{} is not what the cases say any more; write it anew with\n\
         OVERWRITE=1 cargo test -p lock-macros --test ui",
        page.file
    );
    let attribute = fs::read_to_string(docs.join(page.attribute));
    check_excerpt(&made, &attribute.expect("the page of the attribute"));
}

/// Checks the excerpt of this page on the page of the attribute.
fn check_excerpt(page: &str, attribute: &str) {
    let (_, excerpt) = attribute
        .split_once("| written | the compiler says |\n| --- | --- |\n")
        .expect("the table of the most common misuses");
    let rows: Vec<&str> = excerpt
        .lines()
        .take_while(|line| !line.is_empty())
        .collect();
    assert!(rows.len() >= 5, "{rows:?}");
    for row in rows {
        let (written, message) = row.trim_matches(['|', ' ']).split_once(" | ").expect(row);
        let message = message.trim_end_matches([' ', '…']);
        let is_tested = |line: &str| line.contains(written) && line.contains(message);
        assert!(page.lines().any(is_tested), "no misuse says that:\n{row}");
    }
}

fn made(page: &Page, cases: &[Case]) -> String {
    let [macros, compiler] = page.sets;
    let mut page = page.head.to_owned();
    for (set, title, about) in [
        (macros, "Messages of the macros", ""),
        (
            compiler,
            "Messages of the compiler",
            "The compiler's own messages differ a little between its versions.\n\n",
        ),
    ] {
        let _ = write!(
            page,
            "\n# {title}\n\n{about}| cause | message | what to write |\n| --- | --- | --- |\n"
        );
        for case in cases.iter().filter(|case| case.name.starts_with(set)) {
            let (wrong, right) = difference(case);
            let _ = writeln!(
                page,
                "| {}{} | {} | {}{} |",
                cell(&case.cause),
                code(&wrong),
                cell(&message(case)),
                cell(&case.advice),
                code(&right),
            );
        }
    }
    page
}

/// Returns the wrong and the corrected lines, without their common parts.
fn difference(case: &Case) -> (Vec<String>, Vec<String>) {
    let (wrong, right) = match (case.wrong.as_slice(), case.right.as_slice()) {
        ([wrong], [right]) => match (arguments(wrong), arguments(right)) {
            (Some(wrong), Some(right)) => {
                (joined(only(&wrong, &right)), joined(only(&right, &wrong)))
            }
            _ => (case.wrong.clone(), case.right.clone()),
        },
        (wrong, right) => (only(wrong, right), only(right, wrong)),
    };
    if wrong.is_empty() {
        return (case.wrong.clone(), case.right.clone());
    }
    (with_place(case, wrong), right)
}

/// Returns the lines and the one at which the error points, which may be another line.
fn with_place(case: &Case, mut lines: Vec<String>) -> Vec<String> {
    let place = case.source.lines().nth(case.place().0 - 1);
    let place = place.unwrap_or_default().trim();
    let is_there = lines.iter().any(|line| place.contains(line.as_str()));
    if !is_there && !place.starts_with("#[") {
        lines.push(place.to_owned());
    }
    lines
}

fn only(these: &[String], others: &[String]) -> Vec<String> {
    let only = these.iter().filter(|this| !others.contains(this));
    only.cloned().collect()
}

fn joined(arguments: Vec<String>) -> Vec<String> {
    match arguments.is_empty() {
        true => Vec::new(),
        false => vec![arguments.join(", ")],
    }
}

/// Returns the arguments of the attribute, split at commas outside of quotes, brackets and closures.
fn arguments(line: &str) -> Option<Vec<String>> {
    let attributes = ["#[distributed_lock(", "#[idempotent("];
    let inside = attributes.iter().find_map(|head| line.strip_prefix(head));
    let inside = inside?.strip_suffix(")]")?;
    let mut arguments = vec![String::new()];
    let (mut quoted, mut barred, mut depth) = (false, false, 0);
    for c in inside.chars() {
        match c {
            '"' => quoted = !quoted,
            '|' if !quoted => barred = !barred,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && !barred && depth == 0 => {
                arguments.push(String::new());
                continue;
            }
            _ => {}
        }
        arguments.last_mut()?.push(c);
    }
    Some(arguments.iter().map(|arg| arg.trim().to_owned()).collect())
}

/// Returns the compiler's headline and the label at the place.
fn message(case: &Case) -> String {
    let headline = case.output.lines().next().unwrap_or_default();
    let (kind, text) = headline.split_once(": ").unwrap_or(("", headline));
    match label(&case.output) {
        Some(label) if kind != "error" && !text.contains(label) => format!("{text}: {label}"),
        _ => text.to_owned(),
    }
}

/// Returns the words after the underline, or those below it.
fn label(output: &str) -> Option<&str> {
    let is_label = |text: &&str| {
        text.starts_with(|c: char| c.is_alphabetic() || c == '`') && !text.starts_with("help:")
    };
    let mut lines = output.lines().skip_while(|line| !line.contains('^'));
    let underline = lines.next()?;
    let behind = underline
        .rsplit('^')
        .next()
        .map(|text| text.trim_matches([' ', '-']));
    let below = lines.next().is_some().then(|| lines.next()).flatten();
    let below = below.map(|line| line.trim_start_matches(|c: char| c.is_whitespace() || c == '|'));
    behind.filter(is_label).or(below.filter(is_label))
}

fn code(lines: &[String]) -> String {
    lines
        .iter()
        .map(|line| format!("<br>`{}`", line.replace('|', "\\|")))
        .collect()
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
