//! Counting the answers of nodes of which some have a record.

use std::sync::Arc;
use std::time::Duration;

use super::tally::{Ballot, Decision, decide, refusal, remembered};
use crate::base::record::StoredRecord;
use crate::lease::Refusal;
use crate::store::Remembered;
use crate::store::vote::Vote;

fn taken(fence: Option<u64>) -> Ballot {
    let record = |fence| {
        let bytes = Box::default();
        Arc::new(StoredRecord { fence, bytes })
    };
    Ballot::Answered(Vote::Taken {
        owner: "an owner".into(),
        refusal: Refusal {
            cooling: fence.is_some(),
            record: fence.map(record),
            remaining: Some(Duration::from_secs(9)),
            queued: false,
            pushed: false,
            shared: false,
            full: None,
            server_time: None,
        },
        highest: 7,
    })
}

fn recorded(fence: u64) -> Ballot {
    taken(Some(fence))
}

fn yes(accepted: bool) -> Ballot {
    Ballot::Answered(Vote::Yes {
        accepted,
        highest: 7,
    })
}

#[test]
fn a_record_is_an_answer_as_soon_as_a_majority_has_answered() {
    let fence_of = |ballots: &[Ballot]| refusal(ballots).record.map(|record| record.fence);
    let open = [recorded(7), Ballot::Open, Ballot::Open];
    assert_eq!(decide(&open), Decision::Wait);
    for mask in [
        [recorded(7), yes(true), Ballot::Open],
        [recorded(7), yes(true), yes(true)],
        [recorded(7), Ballot::Dead, Ballot::Dead],
        [taken(None), taken(None), recorded(7)],
    ] {
        assert_eq!(decide(&mask), Decision::Busy, "{mask:?}");
        assert_eq!(fence_of(&mask), Some(7));
    }
    assert_eq!(fence_of(&[recorded(7), recorded(9), recorded(8)]), Some(9));
}

#[test]
fn a_record_counts_when_a_majority_has_it_and_is_repeated_while_one_may_get_it() {
    use Remembered::{Absent, NoRoom, Other, Unacknowledged, Yes};
    let told = |answers: &[Option<Remembered>], open| remembered(answers, open);
    assert_eq!(told(&[Some(Yes), Some(Yes), None], 1), Some(Yes));
    assert_eq!(told(&[Some(Yes), None, None], 2), None);
    assert_eq!(
        told(&[Some(Yes), Some(Other), None], 0),
        None,
        "asked again"
    );
    let few = [Some(Yes), Some(NoRoom), Some(Absent)];
    assert_eq!(told(&few, 0), Some(Unacknowledged));
    let lost = [Some(Yes), Some(Other), Some(Absent)];
    assert_eq!(told(&lost, 0), Some(Other), "a majority was without it");
    assert_eq!(told(&[Some(NoRoom), Some(Other), None], 0), Some(NoRoom));
    assert_eq!(told(&[Some(Absent), Some(Other), None], 0), Some(Other));
    assert_eq!(told(&[Some(Absent), Some(Absent), None], 0), Some(Absent));
    assert_eq!(told(&[Some(Absent), None, None], 0), None, "asked again");
}
