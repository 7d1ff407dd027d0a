use super::*;

fn yes(accepted: bool) -> Ballot {
    Ballot::Answered(Vote::Yes {
        accepted,
        highest: 7,
    })
}

fn taken_by(owner: &str, remaining: Option<u64>) -> Ballot {
    Ballot::Answered(Vote::Taken {
        owner: owner.into(),
        refusal: Refusal {
            cooling: owner.starts_with("cooling"),
            record: None,
            remaining: remaining.map(Duration::from_millis),
            queued: true,
            pushed: true,
            shared: false,
            full: None,
            server_time: None,
        },
        highest: 9,
    })
}

/// Every way in which n nodes can be each of `kinds`.
fn every_mask<const K: usize>(nodes: usize, kinds: [Ballot; K]) -> Vec<Vec<Ballot>> {
    let mut masks = vec![Vec::new()];
    for _ in 0..nodes {
        masks = masks
            .into_iter()
            .flat_map(|mask| {
                kinds.clone().map(|kind| {
                    let mut longer = mask.clone();
                    longer.push(kind);
                    longer
                })
            })
            .collect();
    }
    masks
}

fn count(mask: &[Ballot], wanted: impl Fn(&Ballot) -> bool) -> usize {
    mask.iter().filter(|ballot| wanted(ballot)).count()
}

#[test]
fn every_mask_of_free_taken_and_dead_is_counted_over_all_nodes() {
    let mut masks = 0;
    for nodes in 1..=5 {
        let kinds = [yes(true), taken_by("a", Some(5)), Ballot::Dead];
        for mask in every_mask(nodes, kinds) {
            masks += 1;
            let free = count(&mask, |ballot| {
                matches!(ballot, Ballot::Answered(Vote::Yes { .. }))
            });
            let taken = count(&mask, |ballot| {
                matches!(ballot, Ballot::Answered(Vote::Taken { .. }))
            });
            let dead = nodes - free - taken;
            let decision = decide(&mask);
            let quorum = nodes / 2 + 1;
            if free >= quorum {
                assert_eq!(decision, Decision::Granted);
            } else if taken > nodes - quorum {
                // One owner has or may have a majority with the silent nodes, or none can.
                let split = taken + dead < quorum;
                assert_eq!(
                    decision,
                    if split {
                        Decision::Split
                    } else {
                        Decision::Busy
                    }
                );
            } else {
                // Other owners are in the way where a majority answers. Otherwise they decide nothing.
                let contested = taken > 0 && free + taken >= quorum;
                assert_eq!(
                    decision,
                    if contested {
                        Decision::Contested
                    } else {
                        Decision::Unavailable
                    },
                    "{free} {taken} {dead}"
                );
            }
            assert!(decision == Decision::Granted || free < quorum);
            if dead > nodes - quorum {
                // Too many nodes are dead for a majority of answers: busy only where enough others say so.
                assert!(decision == Decision::Unavailable || taken > nodes - quorum);
            }
        }
    }
    assert_eq!(masks, 3 + 9 + 27 + 81 + 243);
}

/// With two other owners, for every mask: whether one of them may hold the lock, and whether any client can.
#[test]
fn every_mask_with_two_other_owners_is_counted() {
    for nodes in 1..=5 {
        let (a, b) = (taken_by("a", Some(5)), taken_by("b", Some(5)));
        for mask in every_mask(nodes, [yes(true), a, b, Ballot::Dead]) {
            let of = |wanted: &str| {
                count(&mask, |ballot| {
                    owner(ballot).is_some_and(|(owner, _)| owner == wanted)
                })
            };
            let dead = count(&mask, |ballot| matches!(ballot, Ballot::Dead));
            let free = nodes - of("a") - of("b") - dead;
            let quorum = nodes / 2 + 1;
            let may_have = |had: usize| had + dead >= quorum;
            let expected = if free >= quorum {
                Decision::Granted
            } else if may_have(free) {
                // The nodes that answer would be enough if some of them were not taken, or they would not.
                let contested = free < nodes - dead && nodes - dead >= quorum;
                if contested {
                    Decision::Contested
                } else {
                    Decision::Unavailable
                }
            } else if may_have(of("a")) || may_have(of("b")) {
                Decision::Busy
            } else {
                Decision::Split
            };
            assert_eq!(decide(&mask), expected, "{mask:?}");
        }
    }
}

#[test]
fn a_dead_majority_alone_is_never_busy() {
    for nodes in 1..=5 {
        let kinds = [
            taken_by("a", Some(5)),
            Ballot::Dead,
            Ballot::Answered(Vote::Empty(Duration::ZERO)),
        ];
        for mask in every_mask(nodes, kinds) {
            let taken = count(&mask, |ballot| {
                matches!(ballot, Ballot::Answered(Vote::Taken { .. }))
            });
            if taken == 0 {
                assert_eq!(decide(&mask), Decision::Unavailable);
            }
        }
    }
}

#[test]
fn answers_that_are_still_to_come_change_nothing_once_it_is_decided() {
    let late = [
        yes(true),
        yes(false),
        taken_by("a", Some(5)),
        taken_by("b", Some(5)),
        Ballot::Dead,
    ];
    for nodes in 1..=4 {
        let kinds = [
            yes(true),
            taken_by("a", Some(5)),
            Ballot::Dead,
            Ballot::Open,
        ];
        for mask in every_mask(nodes, kinds) {
            let early = decide(&mask);
            let open = count(&mask, |ballot| matches!(ballot, Ballot::Open));
            assert!(
                early != Decision::Wait || open > 0,
                "somebody is waited for"
            );
            if early == Decision::Wait {
                continue;
            }
            for answers in every_mask(open, late.clone()) {
                let mut answers = answers.into_iter();
                let whole: Vec<Ballot> = mask
                    .iter()
                    .map(|ballot| match ballot {
                        Ballot::Open => answers.next().expect("one for each"),
                        answered => answered.clone(),
                    })
                    .collect();
                assert_eq!(decide(&whole), early, "{mask:?} → {whole:?}");
            }
        }
    }
}

#[test]
fn a_majority_that_accepts_the_number_less_than_that_is_asked_for_a_higher_one() {
    let mask = [yes(true), yes(true), yes(false), Ballot::Dead, Ballot::Dead];
    assert_eq!(decide(&mask), Decision::TooLow);
    let mask = [yes(true), yes(true), yes(false), Ballot::Open, Ballot::Dead];
    assert_eq!(
        decide(&mask),
        Decision::Wait,
        "it may still be accepted in one trip"
    );
    let mask = [
        yes(false),
        yes(false),
        yes(false),
        Ballot::Open,
        Ballot::Open,
    ];
    assert_eq!(
        decide(&mask),
        Decision::TooLow,
        "nothing that comes could help"
    );
    assert_eq!(highest(&[yes(true), taken_by("a", None), Ballot::Dead]), 9);
}

#[test]
fn nodes_taken_by_many_owners_are_a_split_only_if_none_can_have_a_majority() {
    let (a, b, c) = (
        taken_by("a", Some(5)),
        taken_by("b", Some(5)),
        taken_by("c", Some(5)),
    );
    assert_eq!(decide(&[a.clone(), b.clone(), c.clone()]), Decision::Split);
    assert_eq!(decide(&[a.clone(), a.clone(), b.clone()]), Decision::Busy);
    assert_eq!(decide(&[yes(true), a.clone(), b.clone()]), Decision::Split);
    // The silent node may be a's.
    assert_eq!(
        decide(&[Ballot::Dead, a.clone(), b.clone()]),
        Decision::Busy
    );
    assert_eq!(
        decide(&[Ballot::Open, a.clone(), b.clone()]),
        Decision::Wait
    );
    let even = [yes(true), yes(true), a.clone(), a];
    assert_eq!(decide(&even), Decision::Split, "two halves of four");
}

#[test]
fn the_foremost_owner_stands_on_the_most_nodes() {
    let (one, other) = (taken_by("z", None), taken_by("a", None));
    assert_eq!(foremost_owner(&[other.clone(), one, other]), Some("a"));
}

#[test]
fn a_key_left_to_others_is_nobodys() {
    let yields = Ballot::Answered(Vote::Yields);
    assert_eq!(
        decide(&[yes(true), yields.clone(), yields.clone()]),
        Decision::Yielded
    );
    assert_eq!(
        decide(&[yes(true), yes(true), yields.clone()]),
        Decision::Granted
    );
    let a = taken_by("a", Some(5));
    assert_eq!(decide(&[a.clone(), a, yields.clone()]), Decision::Busy);
    assert_eq!(
        decide(&[Ballot::Open, yields.clone(), yields]),
        Decision::Yielded
    );
}

#[test]
fn a_refusal_ends_when_a_majority_could_be_free() {
    let ends = |ballots: &[Ballot]| refusal(ballots).remaining.map(|end| end.as_millis());
    let (soon, late) = (taken_by("a", Some(100)), taken_by("a", Some(900)));
    assert_eq!(ends(&[soon.clone(), late.clone(), late.clone()]), Some(900));
    assert_eq!(ends(&[soon.clone(), soon.clone(), late.clone()]), Some(100));
    assert_eq!(ends(&[yes(true), soon.clone(), late.clone()]), Some(100));
    assert_eq!(ends(&[Ballot::Dead, soon.clone(), late.clone()]), Some(900));
    let endless = taken_by("a", None);
    assert_eq!(ends(&[endless.clone(), endless, soon]), None);
}

#[test]
fn a_waiter_relies_on_pushes_of_a_majority_only() {
    let a = taken_by("a", Some(100));
    assert!(refusal(&[a.clone(), a.clone(), Ballot::Dead]).pushed);
    assert!(!refusal(&[a.clone(), yes(true), Ballot::Dead]).pushed);
    let cooling = taken_by("cooling/a", Some(100));
    assert!(refusal(&[cooling.clone(), cooling, a]).cooling);
}

#[test]
fn a_release_counts_those_that_had_the_key() {
    use Ended::{Absent, Other, Yes};
    let five = |answers: [Option<Ended>; 5]| given_back(&answers, 0);
    assert_eq!(
        five([Some(Yes), Some(Yes), Some(Yes), None, None]),
        Some(Yes)
    );
    assert_eq!(
        five([Some(Yes), Some(Yes), Some(Yes), Some(Absent), Some(Other)]),
        Some(Yes)
    );
    assert_eq!(
        five([Some(Yes), Some(Yes), Some(Absent), None, None]),
        Some(Yes),
        "it may have been"
    );
    assert_eq!(
        five([
            Some(Yes),
            Some(Yes),
            Some(Absent),
            Some(Absent),
            Some(Absent)
        ]),
        Some(Absent)
    );
    assert_eq!(
        five([
            Some(Yes),
            Some(Yes),
            Some(Other),
            Some(Absent),
            Some(Absent)
        ]),
        Some(Other)
    );
    assert_eq!(
        five([Some(Yes), Some(Yes), None, None, None]),
        None,
        "too few answered"
    );
    let answers = [Some(Yes), Some(Absent), None];
    assert_eq!(given_back(&answers, 1), None, "the third one decides");
}

#[test]
fn a_renewal_takes_a_majority_and_so_does_a_loss() {
    use Extended::{NotOurs, Unknown, Yes};
    assert_eq!(extended(&[Some(Yes), Some(Yes), None], 1), Some(Yes));
    assert_eq!(
        extended(&[Some(NotOurs), Some(NotOurs), None], 1),
        Some(NotOurs)
    );
    assert_eq!(extended(&[Some(Yes), Some(NotOurs), None], 1), None);
    assert_eq!(
        extended(&[Some(Yes), Some(NotOurs), None], 0),
        Some(Unknown)
    );
    assert_eq!(
        extended(&[Some(Yes), Some(NotOurs), Some(Unknown)], 0),
        Some(Unknown)
    );
    let even = [Some(Yes), Some(Yes), Some(NotOurs), Some(NotOurs)];
    assert_eq!(extended(&even, 0), Some(NotOurs), "half is no majority");
}

fn read_by(owner: &str) -> Ballot {
    let Ballot::Answered(Vote::Taken {
        owner,
        mut refusal,
        highest,
    }) = taken_by(owner, Some(5))
    else {
        unreachable!("it is taken");
    };
    refusal.shared = true;
    Ballot::Answered(Vote::Taken {
        owner,
        refusal,
        highest,
    })
}

#[test]
fn readers_have_a_key_where_one_of_them_may_have_a_majority() {
    let (one, other, several) = (read_by("a"), read_by("b"), read_by(SEVERAL_READERS));
    for (ballots, decision) in [
        (
            [one.clone(), several.clone(), other.clone()],
            Decision::Busy,
        ),
        (
            [several.clone(), several.clone(), yes(true)],
            Decision::Busy,
        ),
        ([one.clone(), one.clone(), other.clone()], Decision::Busy),
        ([one.clone(), other.clone(), Ballot::Dead], Decision::Busy),
        // Votes of readers that are over and not withdrawn yet.
        ([one.clone(), other.clone(), yes(true)], Decision::Split),
        (
            [one.clone(), other.clone(), taken_by("c", Some(5))],
            Decision::Split,
        ),
    ] {
        assert_eq!(decide(&ballots), decision, "{ballots:?}");
    }
    assert!(refusal(&[several.clone(), several, yes(true)]).shared);
}
