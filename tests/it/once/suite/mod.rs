//! What `lock_core::once` does on every database.
//!
//! This folder names no driver and no other part of the tests, because the package `tests/drivers` compiles it, too.

pub(crate) mod admin;
pub(crate) mod claims;
pub(crate) mod ends;
pub(crate) mod settling;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lock_core::once::{Claim, Database, Dialect, Row, Tx};
use lock_core::{Error, OperationId};

/// A database that was made for one case, with the kit's table and a table `effects (name UNIQUE)`.
pub(crate) trait Fixture: Sized + Sync {
    type Db: Database;

    /// Starts it.
    async fn start() -> Self;

    /// Returns the pool of the process.
    fn db(&self) -> Self::Db;

    /// Returns a pool of its own, as another process has it.
    fn other(&self) -> Self::Db;

    /// Runs statements of the user inside a transaction.
    fn execute(
        connection: &mut <Self::Db as Database>::Connection,
        sql: &'static str,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// Runs a statement outside of a transaction.
    async fn sql(&self, sql: &'static str) -> Option<Row> {
        let row = self.db().read(sql, &[]).await;
        row.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Returns the number of rows that a query names.
    async fn count(&self, postgres: &'static str, sqlite: &'static str) -> u64 {
        let row = match self.db().dialect() {
            Dialect::Postgres => self.sql(postgres).await,
            _ => self.sql(sqlite).await,
        };
        let digits = String::from_utf8(row.expect("a count").run).expect("digits");
        digits.parse().expect("a number")
    }

    async fn effects(&self) -> u64 {
        self.count(
            "SELECT convert_to(count(*)::text, 'UTF8'), NULL::bytea FROM effects",
            "SELECT CAST(CAST(count(*) AS TEXT) AS BLOB), NULL FROM effects",
        )
        .await
    }

    async fn records(&self) -> u64 {
        self.count(
            "SELECT convert_to(count(*)::text, 'UTF8'), NULL::bytea FROM lockkit_once",
            "SELECT CAST(CAST(count(*) AS TEXT) AS BLOB), NULL FROM lockkit_once",
        )
        .await
    }

    /// Ends the life of all records.
    async fn expire(&self) {
        self.sql(expire(self.db().dialect())).await;
    }
}

/// Returns a statement that ends the life of all records.
pub(crate) fn expire(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => {
            "UPDATE lockkit_once SET expires_at = clock_timestamp() - interval '1 ms'"
        }
        _ => "UPDATE lockkit_once SET expires_at = 1",
    }
}

/// Returns the claim of a new run of an operation.
pub(crate) fn claim(key: &str) -> Claim {
    let day = Duration::from_secs(24 * 3_600);
    Claim::new(OperationId::new("suite", [key]), day).expect("a valid life")
}

/// Writes an effect with a name of its own.
pub(crate) async fn effect<F: Fixture>(tx: &mut Tx<F::Db>) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let sql = format!("INSERT INTO effects VALUES ('{number}')");
    F::execute(tx, sql.leak()).await.expect("a new effect");
}

/// Does an operation as a whole.
pub(crate) async fn done<F: Fixture>(
    db: &F::Db,
    claim: &Claim,
    record: Option<&[u8]>,
) -> Result<(), Error> {
    let mut tx = Tx::begin(db).await?;
    tx.claim(claim).await?;
    effect::<F>(&mut tx).await;
    tx.complete(claim, record).await?;
    tx.commit().await
}

/// Makes each case a test on a database.
#[macro_export]
macro_rules! once_suite {
    ($fixture:ty $(, $needs:ident)?) => {
        $crate::once_suite! { @ $fixture, [$($needs)?],
            admin {
                a_sweep_beside_a_takeover_deletes_no_live_record,
                a_sweep_ends_when_nothing_is_expired,
                create_table_runs_in_two_processes_at_once,
                the_check_leaves_nothing_behind,
                a_record_that_is_forgotten_lets_the_operation_run_again,
            }
            claims {
                a_claim_is_granted_once,
                a_second_claim_is_not_granted_while_the_first_is_open,
                a_record_is_read_by_the_next_claim,
                a_row_without_an_answer_is_done,
                an_expired_record_is_taken_over_by_one_of_two_claims,
                two_claims_of_one_transaction_commit_together,
                a_nested_call_with_the_same_key_is_invalid,
                a_claim_after_its_own_completion_finds_the_record,
                twenty_tasks_have_one_effect,
            }
            ends {
                a_dropped_transaction_frees_the_key,
                a_rolled_back_transaction_frees_the_key,
                complete_finds_only_its_own_claim,
                a_commit_with_an_open_claim_is_refused,
                a_withdrawn_claim_leaves_the_effect_and_no_record,
                a_dropped_claim_lets_nothing_be_committed,
                a_completion_and_its_commit_are_found_by_the_next_claim,
                a_claim_that_is_gone_lets_nothing_be_committed,
                a_record_that_ends_before_its_completion_begins_a_new_life,
            }
            settling {
                a_commit_that_arrived_is_committed,
                a_transaction_that_was_rolled_back_is_found_rolled_back,
                a_record_of_another_run_is_found,
                a_settlement_leaves_nothing_behind,
            }
        }
    };
    (@ $fixture:ty, $needs:tt, $($module:ident { $($case:ident,)* })*) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::once_suite!(needs $needs);
                $crate::once::suite::$module::$case::<$fixture>().await;
            }
        )*)*
    };
    (needs []) => {};
    (needs [$needs:ident]) => { lock_tests::needs!($needs); };
}
