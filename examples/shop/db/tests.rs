use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use super::{Db, DbError, Lane, Sale};

async fn fresh() -> (Db, TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    (
        Db::open(file_in(&folder)).await.expect("a database"),
        folder,
    )
}

fn file_in(folder: &TempDir) -> PathBuf {
    folder.path().join("shop.sqlite")
}

fn sale(stock_left: i64, fence: i64) -> Sale {
    Sale {
        lane: Lane::Locked,
        sku: "mug".to_owned(),
        user: "ada".to_owned(),
        quantity: 1,
        cents: 1800,
        stock_left,
        fence,
    }
}

async fn stock(db: &Db) -> (i64, i64) {
    let seen = db
        .product(Lane::Locked, "mug")
        .await
        .expect("a read")
        .expect("a mug");
    (seen.stock, seen.fence)
}

#[tokio::test]
async fn a_sale_writes_the_stock_the_fence_and_the_order() {
    let (db, _folder) = fresh().await;
    let order = db.sell(sale(9, 100)).await.expect("a sale");
    assert_eq!(order.fencing_token, 100);
    assert_eq!(stock(&db).await, (9, 100));
    assert_eq!(db.orders(10).await.expect("orders").len(), 1);
}

#[tokio::test]
async fn a_write_with_an_older_fence_is_refused_and_leaves_nothing() {
    let (db, _folder) = fresh().await;
    db.sell(sale(9, 200)).await.expect("the newer owner's sale");
    let late = db.sell(sale(3, 199)).await;
    assert!(
        matches!(
            late,
            Err(DbError::StaleFence {
                given: 199,
                stored: 200
            })
        ),
        "{late:?}"
    );
    assert_eq!(stock(&db).await, (9, 200));
    assert_eq!(db.orders(10).await.expect("orders").len(), 1);
}

#[tokio::test]
async fn one_owner_may_write_twice_with_its_fence() {
    let (db, _folder) = fresh().await;
    db.sell(sale(9, 100)).await.expect("the first");
    db.sell(sale(8, 100)).await.expect("the second");
    assert_eq!(stock(&db).await, (8, 100));
}

#[tokio::test]
async fn a_restock_fills_the_shelf_and_keeps_the_fence() {
    let (db, _folder) = fresh().await;
    db.sell(sale(0, 100)).await.expect("a sale");
    db.restock(Lane::Locked, "mug", Some(101))
        .await
        .expect("a restock");
    assert_eq!(stock(&db).await, (10, 101));
    assert!(db.orders(10).await.expect("orders").is_empty());
    let late = db.restock(Lane::Locked, "mug", Some(100)).await;
    assert!(matches!(late, Err(DbError::StaleFence { .. })), "{late:?}");
}

#[tokio::test]
async fn an_unknown_product_is_told_apart_from_a_stale_fence() {
    let (db, _folder) = fresh().await;
    let unknown = Sale {
        sku: "rocket".to_owned(),
        ..sale(1, 1)
    };
    assert!(matches!(db.sell(unknown).await, Err(DbError::UnknownSku)));
    assert!(
        db.product(Lane::Locked, "rocket")
            .await
            .expect("a read")
            .is_none()
    );
}

#[tokio::test]
async fn a_shelf_counts_the_number_sold_beyond_its_stock() {
    let (db, _folder) = fresh().await;
    for _ in 0..12 {
        db.sell(sale(9, 1))
            .await
            .expect("a sale that counts a mug once");
    }
    let shelves = db.shelves().await.expect("shelves");
    let mug = shelves
        .iter()
        .find(|s| s.lane == "locked" && s.sku == "mug")
        .expect("the mug");
    assert_eq!(
        (mug.stock, mug.sold, mug.orders, mug.oversold),
        (9, 12, 12, 2)
    );
}

#[tokio::test]
async fn opening_one_file_many_times_at_once_gives_one_schema_and_one_stock() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let openings: Vec<_> = (0..16)
        .map(|_| tokio::spawn(Db::open(file_in(&folder))))
        .collect();
    for opening in openings {
        let db = opening.await.expect("no panic").expect("a database");
        assert_eq!(db.shelves().await.expect("shelves").len(), 4);
    }
}

#[tokio::test]
async fn the_opening_of_a_new_file_waits_for_another_process_that_writes_to_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let other = rusqlite::Connection::open(file_in(&folder)).expect("the file");
    other
        .execute_batch("BEGIN IMMEDIATE; CREATE TABLE of_another (id INTEGER)")
        .expect("the write lock");
    let opening = tokio::spawn(Db::open(file_in(&folder)));
    tokio::time::sleep(Duration::from_millis(100)).await;
    other.execute_batch("COMMIT").expect("a commit");
    opening.await.expect("no panic").expect("a database");
}

#[tokio::test]
async fn writes_through_two_openings_of_one_file_wait_for_each_other() {
    let (first, folder) = fresh().await;
    let second = Db::open(file_in(&folder)).await.expect("the same file");
    let sales: Vec<_> = (0..200)
        .map(|n| {
            let db = if n % 2 == 0 {
                first.clone()
            } else {
                second.clone()
            };
            tokio::spawn(async move { db.sell(sale(5, 1)).await })
        })
        .collect();
    for sale in sales {
        sale.await.expect("no panic").expect("no SQLITE_BUSY");
    }
    assert_eq!(first.orders(1000).await.expect("orders").len(), 200);
}

#[tokio::test]
async fn a_file_of_a_build_without_fences_of_prices_gets_them_when_it_is_opened() {
    let (db, folder) = fresh().await;
    db.sell(sale(9, 100)).await.expect("a sale");
    let older = rusqlite::Connection::open(file_in(&folder)).expect("the file");
    let drop = "ALTER TABLE products DROP COLUMN price_fence";
    older.execute_batch(drop).expect("no such column");
    for fence in [5, 6] {
        let db = Db::open(file_in(&folder)).await.expect("a database");
        let price = db.set_price("mug".to_owned(), 1900, fence).await;
        price.expect("a price");
        let late = db.set_price("mug".to_owned(), 1800, fence - 1).await;
        let stale = matches!(late, Err(DbError::StaleFence { stored, .. }) if stored == fence);
        assert!(stale, "{late:?}");
        assert_eq!(stock(&db).await, (9, 100), "the rest is as it was");
    }
}
