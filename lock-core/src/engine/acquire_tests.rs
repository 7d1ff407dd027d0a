//! A store that is out.

use super::*;
use crate::lease::backoff::OUTAGE;

#[test]
fn a_store_is_out_a_second_after_the_first_failure_in_a_row() {
    let start = Moment(0) + Duration::from_secs(10);
    let mut doubt = Doubt::default();
    assert!(!doubt.failed(start, OUTAGE), "however long it took");
    assert!(!doubt.failed(start + Duration::from_millis(999), OUTAGE));
    assert!(doubt.failed(start + OUTAGE, OUTAGE));
    // An answer ends it.
    doubt.refused();
    assert!(!doubt.failed(start + 3 * OUTAGE, OUTAGE));
    assert!(doubt.failed(start + 4 * OUTAGE, OUTAGE));
}
