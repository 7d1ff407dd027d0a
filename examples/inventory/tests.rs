//! Tests all ways on SQLite.

use super::*;
use crate::db::Database;
use crate::report::Verdict;
use crate::ways::Outcome;

const SOME: Load = Load {
    sellers: 4,
    stock: 20,
    work: Duration::ZERO,
};

const FREEZE: Freeze = Freeze {
    ttl: Duration::from_millis(100),
    stock: 5,
};

fn market() -> Market {
    Market::new(Database::sqlite().unwrap(), None).unwrap()
}

#[test]
fn read_then_write_sells_more_than_there_is() {
    let sold = load::run(&market(), Way::ReadThenWrite, &SOME).unwrap();
    // The four sellers read the same stock before the first one writes.
    assert!(sold.oversold >= 3, "{sold:?}");
}

#[test]
fn the_six_other_ways_sell_exactly_what_there_is() {
    let market = market();
    for way in market.ways().skip(1) {
        let sold = load::run(&market, way, &SOME).unwrap();
        assert_eq!(sold.oversold, 0, "{way:?}: {sold:?}");
    }
}

#[test]
fn sellers_that_read_at_the_same_time_are_refused_by_a_version_and_by_a_unique_index() {
    let market = market();
    for way in [Way::VersionColumn, Way::UniqueIndex] {
        let sold = load::run(&market, way, &SOME).unwrap();
        assert!(sold.refused >= 3, "{way:?}: {sold:?}");
    }
    for way in [
        Way::AtomicUpdate,
        Way::ForUpdate,
        Way::Lock,
        Way::FencedLock,
    ] {
        let sold = load::run(&market, way, &SOME).unwrap();
        assert_eq!(sold.refused, 0, "{way:?}: {sold:?}");
    }
}

#[test]
fn a_frozen_owner_oversells_with_the_lock_alone_and_not_with_fencing() {
    let market = market();
    let lock = freeze::run(&market, Way::Lock, &FREEZE).unwrap();
    assert_eq!(lock.late, Outcome::Sold);
    // The late write puts four items back, which are sold again.
    assert_eq!(lock.oversold, 5, "{lock:?}");

    let fenced = freeze::run(&market, Way::FencedLock, &FREEZE).unwrap();
    assert_eq!(fenced.late, Outcome::Refused);
    assert_eq!(fenced.oversold, 0, "{fenced:?}");
}

#[test]
fn a_frozen_owner_oversells_in_no_way_of_the_database_but_read_then_write() {
    let market = market();
    let late = |way: Way| {
        let thawed = freeze::run(&market, way, &FREEZE).unwrap();
        (thawed.late, thawed.oversold)
    };
    assert_eq!(late(Way::ReadThenWrite), (Outcome::Sold, 5));
    assert_eq!(late(Way::AtomicUpdate), (Outcome::SoldOut, 0));
    assert_eq!(late(Way::VersionColumn), (Outcome::Refused, 0));
    assert_eq!(late(Way::UniqueIndex), (Outcome::Refused, 0));
    assert_eq!(late(Way::ForUpdate), (Outcome::Sold, 0));
}

#[test]
fn others_wait_for_a_frozen_transaction_until_it_ends() {
    let thawed = freeze::run(&market(), Way::ForUpdate, &FREEZE).unwrap();
    assert!(thawed.others_waited >= FREEZE.ttl * 2, "{thawed:?}");
}

#[test]
fn the_table_and_the_picture_have_a_row_for_each_way() {
    let market = market();
    let rows = sell_in_all_ways(&market, &SOME).unwrap();
    let verdicts: Vec<_> = rows.iter().map(Row::verdict).collect();
    let mut expected = [Verdict::Never; 7];
    expected[0] = Verdict::Always;
    expected[5] = Verdict::WhenFrozen;
    assert_eq!(verdicts, expected);

    let table = report::table(&rows);
    let svg = plot::svg("A title", "A subtitle", &rows);
    for way in market.ways() {
        let name = way.name(&market.database);
        assert!(table.contains(&format!("\n| {name} | ")), "{table}");
        assert!(svg.contains(&format!(">{name}</text>")), "{svg}");
    }
    assert_eq!(table.lines().count(), 2 + rows.len());
    // Each row has three bars, and the background is a rectangle too.
    assert_eq!(svg.matches("<rect ").count(), 3 * rows.len() + 1);
    assert_eq!(
        svg.matches("<text ").count(),
        svg.matches("</text>").count()
    );
    assert!(
        svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
}

#[test]
fn an_address_of_a_database_without_a_driver_is_an_error() {
    assert!(Database::of_url("oracle://127.0.0.1/shop").is_err());
}
