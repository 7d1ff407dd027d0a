//! Worlds in which owners leave records.

use super::world::Limits;
use super::worlds::{PLAIN, holds, is_large};

#[test]
fn nothing_runs_beside_a_record_and_no_late_message_changes_it() {
    let limits = Limits {
        ticks: if is_large() { 4 } else { 2 },
        cooldown_millis: Some(1_500),
        records: true,
        unanswered: true,
        ..PLAIN
    };
    holds("record", &limits, 0);
    let limits = Limits {
        ticks: if is_large() { 2 } else { 0 },
        disruptions: 2,
        unanswered: false,
        ..limits
    };
    holds("record that is sent twice and forgotten", &limits, 0);
    let limits = Limits {
        ticks: 1,
        disruptions: 0,
        line: 2,
        timers: true,
        ..limits
    };
    holds("record with waiters", &limits, 4);
}
