//! Runs the example `inventory` as a process, on real databases.
//!
//! The tests inside the example run each way on SQLite.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use lock_tests::{ChildProcess, SqlServer, example, needs, wait};

/// The table and the plot of one run of the example.
struct Run {
    output: String,
    picture: String,
}

fn run(database_url: Option<&str>) -> Run {
    let folder = tempfile::tempdir().expect("a folder");
    let plot = folder.path().join("plot.svg");
    let mut command = Command::new(example("inventory"));
    command
        .env_remove("REDIS_URL")
        .env_remove("DATABASE_URL")
        .envs(database_url.map(|url| ("DATABASE_URL", url)))
        .args([
            "--sellers",
            "4",
            "--stock",
            "20",
            "--work-ms",
            "0",
            "--plot",
        ])
        .arg(&plot);
    let mut process = ChildProcess::spawn(command);
    // Each of the ways freezes an owner for a second.
    let ended = process.wait(wait::PATIENCE * 6).expect("its end");
    assert!(ended.success(), "{}", process.output());
    Run {
        output: process.output(),
        picture: fs::read_to_string(&plot).expect("a picture"),
    }
}

/// Returns the numbers of a column of the table, by the names of the ways.
fn column(run: &Run, title: &str) -> BTreeMap<String, i64> {
    let is_row = |line: &&str| line.starts_with('|');
    let lines = run.output.lines().skip_while(|line| !is_row(line));
    let rows = lines.take_while(is_row);
    let cells = |row: &str| row.split('|').map(|cell| cell.trim().to_owned()).collect();
    let mut rows = rows.map(cells).collect::<Vec<Vec<_>>>().into_iter();
    let titles = rows.next().expect("a table");
    let index = titles.iter().position(|it| it == title).expect("a column");
    let number = |row: Vec<String>| (row[1].clone(), row[index].parse().expect("a number"));
    rows.skip(1).map(number).collect()
}

/// Checks which ways have oversold, and returns the names of all.
#[track_caller]
fn names_of_ways_that_sold_as_they_must(run: &Run) -> Vec<String> {
    let load = column(run, "oversold");
    let oversold = |column: &BTreeMap<String, i64>| {
        let names = column.iter().filter(|(_, number)| **number > 0);
        names.map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(oversold(&load), ["read, then write"], "{}", run.output);
    let frozen = oversold(&column(run, "freeze: oversold"));
    assert_eq!(frozen, ["lock", "read, then write"], "{}", run.output);

    let names: Vec<_> = load.into_keys().collect();
    for name in &names {
        assert!(run.picture.contains(&format!(">{name}</text>")), "{name}");
    }
    names
}

#[test]
fn the_table_and_the_picture_of_the_documentation_are_those_of_a_run() {
    let page = include_str!("../../../examples/README.md");
    let (_, section) = page.split_once("## The inventory").expect("a section");
    let run = Run {
        output: section.to_owned(),
        picture: include_str!("../../../docs/inventory.svg").to_owned(),
    };
    let names = names_of_ways_that_sold_as_they_must(&run);
    assert_eq!(names.len(), 8);
    for (name, number) in column(&run, "orders a second") {
        let bar = format!(">{number}</text>");
        assert!(
            run.picture.contains(&bar),
            "the picture is of another run: {name}"
        );
    }
}

#[test]
fn without_a_database_the_sale_is_in_sqlite_which_has_no_lock_of_a_row() {
    let run = run(None);
    let names = names_of_ways_that_sold_as_they_must(&run);
    assert_eq!(names.len(), 7);
    assert!(names.contains(&"BEGIN IMMEDIATE".to_owned()), "{names:?}");
    assert!(run.output.contains("SQLite has no SELECT … FOR UPDATE"));
}

#[test]
fn in_postgresql_only_the_mistake_and_a_frozen_owner_of_a_lock_without_fencing_oversell() {
    needs!(postgres);
    let server = SqlServer::postgres();
    let run = run(Some(server.url()));
    let names = names_of_ways_that_sold_as_they_must(&run);
    assert_eq!(names.len(), 8);
    let row = "SELECT … FOR UPDATE".to_owned();
    assert!(names.contains(&row), "{names:?}");
    // The check in the transaction has found no row.
    let late = "| lock with check_sql |";
    let late = run.output.lines().find(|line| line.starts_with(late));
    let late = late.expect("the eighth way");
    assert!(late.ends_with("| refused | 0 |"), "{late}");
    // The locks were there too, and have ended.
    let held = "SELECT count(*) FROM lockkit.cell WHERE fence IS NOT NULL";
    assert_eq!(server.value(held), "0");
}

#[test]
#[ignore = "needs a MariaDB, which the test command does not install"]
fn in_mariadb_only_the_mistake_and_a_frozen_owner_of_a_lock_without_fencing_oversell() {
    needs!(mariadb);
    let server = SqlServer::mariadb();
    let run = run(Some(server.url()));
    let names = names_of_ways_that_sold_as_they_must(&run);
    assert_eq!(names.len(), 7);
    let row = "SELECT … FOR UPDATE".to_owned();
    assert!(names.contains(&row), "{names:?}");
}
