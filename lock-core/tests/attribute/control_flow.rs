//! `?`, `return` and labels have the same meaning in a body with the attribute as without it.

use std::num::ParseIntError;

use lock_core::{Error, LockManager, distributed_lock};

#[derive(Debug)]
#[expect(dead_code, reason = "only `Debug` reads the causes")]
enum ShopError {
    Lock(Error),
    NotANumber(ParseIntError),
    Empty,
}

impl From<Error> for ShopError {
    fn from(error: Error) -> Self {
        ShopError::Lock(error)
    }
}

impl From<ParseIntError> for ShopError {
    fn from(error: ParseIntError) -> Self {
        ShopError::NotANumber(error)
    }
}

#[distributed_lock(key = "parse", ttl = "10s")]
async fn parse(text: &str) -> Result<u64, ShopError> {
    if text.is_empty() {
        return Err(ShopError::Empty);
    }
    let number: u64 = text.parse()?;
    tokio::task::yield_now().await;
    Ok(number)
}

#[tokio::test]
async fn a_question_mark_converts_and_returns() {
    let locks = LockManager::in_memory();
    let done = locks.scope(parse("x")).await;
    assert!(matches!(done, Err(ShopError::NotANumber(_))), "{done:?}");
    assert!(locks.held().is_empty());
}

#[tokio::test]
async fn an_early_return_leaves_the_body_and_the_lock() {
    let locks = LockManager::in_memory();
    let done = locks.scope(parse("")).await;
    assert!(matches!(done, Err(ShopError::Empty)), "{done:?}");
    assert_eq!(
        locks
            .scope(parse("12"))
            .await
            .expect("the lock is free again"),
        12
    );
}

#[distributed_lock(key = "search", ttl = "10s", cooldown = "1ms")]
async fn search(rows: &[[u8; 3]], wanted: u8) -> Result<Option<(usize, usize)>, Error> {
    let found = 'rows: {
        for (y, row) in rows.iter().enumerate() {
            'cells: for (x, cell) in row.iter().enumerate() {
                if *cell == 0 {
                    break 'cells;
                }
                if *cell == wanted {
                    break 'rows Some((y, x));
                }
            }
        }
        None
    };
    Ok(found)
}

#[tokio::test]
async fn labelled_breaks_keep_their_targets() {
    let rows = [[1, 0, 9], [2, 9, 3]];
    let locks = LockManager::in_memory();
    assert_eq!(
        locks
            .scope(search(&rows, 9))
            .await
            .expect("the lock is free"),
        Some((1, 1))
    );
}

#[distributed_lock(key = "infer", ttl = "10s")]
async fn infers(flag: bool) -> Result<Box<dyn std::fmt::Debug>, Box<dyn std::error::Error>> {
    if flag {
        return Err("a text becomes the boxed error".into());
    }
    Ok(Box::new(3))
}

#[tokio::test]
async fn coercions_and_into_infer_the_return_type() {
    let locks = LockManager::in_memory();
    assert!(locks.scope(infers(true)).await.is_err());
    assert_eq!(
        format!(
            "{:?}",
            locks.scope(infers(false)).await.expect("the lock is free")
        ),
        "3"
    );
}

type Answer<T> = Result<T, ShopError>;

#[distributed_lock(key = "alias", ttl = "10s")]
async fn alias() -> Answer<&'static str> {
    Ok("an alias of Result")
}

#[tokio::test]
async fn an_alias_of_result_carries_the_error_too() {
    let locks = LockManager::in_memory();
    assert!(locks.scope(alias()).await.is_ok());
    let held = locks
        .lock("alias")
        .ttl(std::time::Duration::from_secs(10))
        .acquire()
        .await;
    assert!(matches!(
        locks.scope(alias()).await,
        Err(ShopError::Lock(_))
    ));
    drop(held);
}

#[distributed_lock(key = "never", ttl = "10s")]
async fn diverges() -> Result<(), Error> {
    loop {
        if tokio::task::id().to_string().is_empty() {
            continue;
        }
        return Ok(());
    }
}

#[tokio::test]
async fn a_body_that_ends_only_by_return_ends() {
    let locks = LockManager::in_memory();
    let task = tokio::spawn(async move { locks.scope(diverges()).await });
    assert!(task.await.expect("the task ends").is_ok());
}
