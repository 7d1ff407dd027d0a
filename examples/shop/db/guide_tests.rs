//! Runs the SQL statements of lock-core's guide, so that a reader can copy them.

use rusqlite::{Connection, OptionalExtension, params};

const PAGE: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../lock-core/src/docs/guide/fencing.md"
));

/// The page about jobs.
const JOBS: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../lock-core/src/docs/guide/jobs.md"
));

/// Returns the first statement in the row of the table that begins with `title`.
fn in_the_table(title: &str) -> &'static str {
    let row = format!("| {title} |");
    let row = PAGE.lines().find(|line| line.starts_with(&row));
    let row = row.expect("a row");
    row.split('`').nth(1).expect("a statement")
}

/// Returns the statement that begins with these words, up to its semicolon.
fn in_a_block(start: &str) -> &'static str {
    in_a_block_of(PAGE, start)
}

fn in_a_block_of(page: &'static str, start: &str) -> &'static str {
    let from = page.find(start).expect("a statement");
    let rest = &page[from..];
    &rest[..rest.find(';').expect("its end")]
}

fn database() -> Connection {
    let database = Connection::open_in_memory().expect("a database");
    let schema = "CREATE TABLE products (sku TEXT PRIMARY KEY, stock INTEGER NOT NULL)";
    for statement in [
        schema,
        in_a_block("ALTER TABLE"),
        in_a_block("CREATE TABLE"),
    ] {
        database.execute(statement, ()).expect("a new table");
    }
    database
}

#[test]
fn the_statements_of_the_guide_refuse_the_write_of_an_earlier_owner() {
    let database = database();
    let insert = in_a_block("INSERT INTO products");
    let sow = |stock: i64, fence: i64| database.execute(insert, params!["A1", stock, fence]);
    let claim = |fence: i64| {
        let mut claim = database.prepare(in_the_table("claim and read"))?;
        let stock = claim.query_row(params![fence, "A1"], |row| row.get::<_, i64>(0));
        stock.optional()
    };
    let write = |stock: i64, fence: i64| {
        database.execute(in_the_table("write"), params![stock, "A1", fence])
    };
    let write_blindly = |stock: i64, fence: i64| {
        let statement = in_the_table("write without an earlier read");
        database.execute(statement, params![stock, fence, "A1"])
    };

    let is_known = || {
        let mut find = database.prepare(in_a_block("SELECT fence FROM products"))?;
        find.exists(["A1"])
    };

    assert_eq!((claim(32), is_known()), (Ok(None), Ok(false)), "no row");
    assert_eq!(sow(10, 32), Ok(1));
    assert_eq!(sow(11, 31), Ok(0), "the row has a newer token");
    assert_eq!(claim(33), Ok(Some(10)));
    assert_eq!(claim(34), Ok(Some(10)));
    assert_eq!(write(9, 33), Ok(0), "a newer owner has claimed the row");
    assert_eq!((claim(33), is_known()), (Ok(None), Ok(true)), "stale");
    assert_eq!(write(8, 34), Ok(1));
    assert_eq!(write_blindly(7, 33), Ok(0));
    assert_eq!(write_blindly(7, 34), Ok(1));
    assert_eq!(claim(34), Ok(Some(7)), "an owner may claim again");
}

#[test]
fn the_row_of_the_guide_that_stands_for_a_lock_refuses_an_earlier_owner() {
    let database = database();
    let claim = in_a_block("INSERT INTO fences");
    let claim = |fence: i64| database.execute(claim, params!["sku:A1", fence]);
    assert_eq!(claim(33), Ok(1));
    assert_eq!(claim(34), Ok(1));
    assert_eq!(claim(34), Ok(1), "an owner may claim again");
    assert_eq!(claim(33), Ok(0));
}

#[test]
fn the_statement_of_the_guide_writes_one_report_for_each_tick() {
    let database = Connection::open_in_memory().expect("a database");
    let orders = "CREATE TABLE orders (id INTEGER PRIMARY KEY)";
    for statement in [orders, in_a_block_of(JOBS, "CREATE TABLE reports")] {
        database.execute(statement, ()).expect("a new table");
    }
    let report = in_a_block_of(JOBS, "INSERT INTO reports");
    let report = |tick: i64| database.execute(report, [tick]);
    assert_eq!(report(1_700_000_000_000_000), Ok(1));
    assert_eq!(report(1_700_000_000_000_000), Ok(0), "a repeated run");
    assert_eq!(report(1_700_000_060_000_000), Ok(1));
}
