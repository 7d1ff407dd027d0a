//! The table of the guide.

use std::fs;
use std::path::PathBuf;

use lock_tests::compared::{self, Compared};

use crate::clients::{CLIENTS, Client};
use crate::extension::Extension;
use crate::waiting::Waiting;

/// The observations of one client, which passed all checks.
pub(crate) struct Row {
    pub(crate) client: &'static Client,
    pub(crate) version: String,
    pub(crate) waiting: Waiting,
    pub(crate) extension: Extension,
}

const BEGIN: &str = "<!-- This table is written by tests/interop/run. -->\n\n";
const END: &str = "\n<!-- The end of the table. -->\n";

const HEAD: &str = "\
| client | version | `namespace(…)` | several servers | waits for a lock of this kit | its own extension | to be known |
| --- | --- | --- | --- | --- | --- | --- |
";

/// Returns the table as Markdown.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let lines = rows.iter().map(Row::line);
    HEAD.to_owned() + &lines.collect::<String>()
}

impl Row {
    fn line(&self) -> String {
        let Row {
            client, version, ..
        } = self;
        let several = if client.several { "yes" } else { "no" };
        let waiting = match self.waiting {
            Waiting::AsksAgain => "yes, it asks again and again",
            Waiting::MissesTheRelease => {
                "late: no release of this kit wakes it, so it asks again after its `timeout` or `expire`"
            }
            Waiting::None => "the caller asks again",
        };
        let Extension { by_hand, by_itself } = self.extension;
        let extension = match (by_hand, by_itself) {
            (true, true) => "by hand and by renewal",
            (true, false) => "by hand",
            (false, true) => "by renewal",
            (false, false) => "none, so the ttl must cover the work",
        };
        format!(
            "| {} | {} | `\"{}\"` | {several} | {waiting} | {extension} | {} |\n",
            client.shown,
            stated(client, version),
            client.namespace,
            client.remark
        )
    }
}

/// Returns the version with its date, which the list of the compared versions has.
fn stated(client: &Client, version: &str) -> String {
    let rows = compared::read(&workspace()).expect("the list");
    let is_row = |row: &&Compared| client.shown.starts_with(&row.name) && row.version == version;
    let row = rows.iter().find(is_row).unwrap_or_else(|| {
        let list = compared::LIST;
        panic!("{} {version} has no date: add it to {list}", client.name)
    });
    row.stated()
}

/// Returns whether the page has these rows, and no others if they are those of all clients.
pub(crate) fn is_on_the_page(rows: &[Row]) -> bool {
    let page = page();
    let (_, table, _) = parts(&page);
    if rows.len() == CLIENTS.len() {
        return table == markdown(rows);
    }
    rows.iter().all(|row| table.contains(&row.line()))
}

/// Writes the table into the page.
pub(crate) fn write(rows: &[Row]) {
    let page = page();
    let (before, _, after) = parts(&page);
    let page = format!("{before}{}{after}", markdown(rows));
    fs::write(path(), page).expect("the page can be written");
}

fn path() -> PathBuf {
    workspace().join("lock-core/src/docs/interop.md")
}

fn workspace() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn page() -> String {
    fs::read_to_string(path()).expect("the page")
}

/// Returns the text before the table, the table, and the text after it.
fn parts(page: &str) -> (&str, &str, &str) {
    let begin = page.find(BEGIN).expect("the begin of the table") + BEGIN.len();
    let end = page.find(END).expect("the end of the table");
    (&page[..begin], &page[begin..end], &page[end..])
}
