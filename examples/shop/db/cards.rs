//! Stores the gift cards. A transfer writes two of them, and each checks the fence.

use rusqlite::{OptionalExtension, Row, params};
use serde::Serialize;

use super::{Db, DbError, in_transaction};

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Card {
    pub(crate) name: String,
    pub(crate) cents: i64,
    pub(crate) fencing_token: i64,
}

/// A transfer to write: both cards as they were read, and the fencing token of the lock on both.
#[derive(Clone, Debug)]
pub(crate) struct Movement {
    pub(crate) from: Card,
    pub(crate) to: Card,
    pub(crate) cents: i64,
    pub(crate) fence: i64,
}

impl Db {
    pub(crate) async fn card(&self, name: &str) -> Result<Option<Card>, DbError> {
        let name = name.to_owned();
        self.pool
            .run(move |c| {
                let mut find = c.prepare("SELECT name, cents, fence FROM cards WHERE name = ?1")?;
                Ok(find.query_row([name], card).optional()?)
            })
            .await
    }

    pub(crate) async fn cards(&self) -> Result<Vec<Card>, DbError> {
        let all = "SELECT name, cents, fence FROM cards ORDER BY name";
        self.all(all, (), card).await
    }

    /// Writes both cards back, or neither.
    pub(crate) async fn transfer(&self, movement: Movement) -> Result<[Card; 2], DbError> {
        let Movement {
            from,
            to,
            cents,
            fence,
        } = movement;
        let after = |card: Card, cents: i64| Card {
            cents,
            fencing_token: fence,
            name: card.name,
        };
        let from_cents = from.cents - cents;
        let to_cents = to.cents + cents;
        let cards = [after(from, from_cents), after(to, to_cents)];
        self.pool
            .run(move |c| {
                in_transaction(c, |tx| {
                    for card in &cards {
                        let written = tx.execute(
                            "UPDATE cards SET cents = ?1, fence = ?2 WHERE name = ?3 AND fence <= ?2",
                            params![card.cents, fence, card.name],
                        )?;
                        if written == 0 {
                            let stored = "SELECT fence FROM cards WHERE name = ?1";
                            let stored = tx.query_row(stored, [&card.name], |row| row.get(0))?;
                            return Err(DbError::StaleFence {
                                given: fence,
                                stored,
                            });
                        }
                    }
                    Ok(cards)
                })
            })
            .await
    }
}

fn card(row: &Row<'_>) -> rusqlite::Result<Card> {
    Ok(Card {
        name: row.get(0)?,
        cents: row.get(1)?,
        fencing_token: row.get(2)?,
    })
}
