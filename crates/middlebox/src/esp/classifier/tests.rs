//! The findings of the thesis' examples, and of hostile blocks.

use super::*;
use LossCause::{Congestion, Corruption};
use proptest::prelude::*;

fn spep(blocks: &[(u32, u32)]) -> Spep {
    let mut all = [(0, 0); Spep::BLOCKS];
    all[..blocks.len()].copy_from_slice(blocks);
    Spep { blocks: all }
}

/// The causes of what is missing before each packet that arrives with these blocks.
fn causes(arrivals: &[(u32, &[(u32, u32)])]) -> Vec<Vec<LossCause>> {
    let (mut classifier, mut counts) = (Classifier::default(), Counts::default());
    let mut arrive = |&(sequence, blocks): &(u32, &[(u32, u32)])| {
        classifier.arrive(sequence, &spep(blocks), &mut counts).iter().collect()
    };
    arrivals.iter().map(&mut arrive).collect()
}

#[test]
fn figure_4_4_packet_3_is_congestion_and_packet_4_is_corruption() {
    let found = causes(&[(1, &[(1, 1)]), (2, &[(1, 2)]), (5, &[(1, 2), (4, 5)])]);
    assert_eq!(found[2], [Congestion, Corruption]);
}

#[test]
fn table_4_2_what_is_late_counts_as_congestion_and_is_passed_on() {
    let found = causes(&[
        (1, &[(1, 1)]),
        (3, &[(1, 1), (3, 3)]),
        (4, &[(1, 1), (3, 4)]),
        (2, &[(1, 1), (3, 4), (2, 2)]),
        (5, &[(3, 4), (2, 2), (5, 5)]),
    ]);
    assert_eq!(found, [vec![], vec![Congestion], vec![], vec![], vec![]]);
}

#[test]
fn tables_4_3_and_4_4_a_loss_before_a_handoff_counts_as_congestion() {
    let found = causes(&[(1, &[(1, 1)]), (2, &[(1, 2)]), (4, &[(4, 4)]), (5, &[(4, 5)])]);
    assert_eq!(found[2..], [vec![Congestion], vec![]]);
}

#[test]
fn what_is_not_known_is_told_from_what_is() {
    let (mut classifier, mut counts) = (Classifier::default(), Counts::default());
    classifier.arrive(1, &spep(&[(1, 1)]), &mut counts);
    // Of 2 and 3 nothing is known any more, 4, 6 and 8 were received, 5 and 7 were not.
    let losses = classifier.arrive(9, &spep(&[(4, 4), (6, 6), (8, 9)]), &mut counts);
    let expected =
        [Congestion, Congestion, Corruption, Congestion, Corruption, Congestion, Corruption];
    assert_eq!(losses.iter().collect::<Vec<_>>(), expected);
    // A new base station, which has received 12 first.
    classifier.arrive(13, &spep(&[(12, 13)]), &mut counts);
    let expected = Counts {
        corruption: 4,
        congestion: 2,
        forgotten: 2,
        before_station: 2,
        ..Counts::default()
    };
    assert_eq!(counts, expected);
}

#[test]
fn numbers_wrap() {
    let found = causes(&[(u32::MAX - 1, &[(1, u32::MAX - 1)]), (2, &[(1, u32::MAX - 1), (0, 2)])]);
    assert_eq!(found[1], [Congestion, Corruption, Corruption]);
}

#[test]
fn a_host_that_knows_its_own_losses_needs_no_base_station() {
    let (mut classifier, mut counts) = (Classifier::default(), Counts::default());
    classifier.arrive_knowing(1, &mut counts);
    for damaged in [3, 4, 6] {
        classifier.damaged(damaged, &mut counts);
    }
    let losses = classifier.arrive_knowing(7, &mut counts);
    assert_eq!(
        losses.iter().collect::<Vec<_>>(),
        [Congestion, Corruption, Corruption, Congestion, Corruption]
    );
    assert!(classifier.damaged.is_empty());
}

#[test]
fn findings_are_compared_with_what_the_link_did() {
    let (mut classifier, mut counts) = (Classifier::default(), Counts::default());
    classifier.arrive(1, &spep(&[(1, 1)]), &mut counts);
    [2, 4].into_iter().for_each(|number| classifier.damaged(number, &mut counts));
    // The station says that it received 3, which it did not, and that it did not receive 4.
    classifier.arrive(6, &spep(&[(1, 3), (6, 6)]), &mut counts);
    let Counts { corruption, damaged_as_corruption, damaged_as_congestion, .. } = counts;
    assert_eq!((corruption, damaged_as_corruption, damaged_as_congestion), (2, 1, 1));
}

proptest! {
    #[test]
    fn every_missing_packet_gets_one_cause_whatever_the_blocks(
        start in any::<u32>(),
        arrivals in prop::collection::vec(
            (0_u32..20, prop::array::uniform3((any::<u32>(), any::<u32>())), any::<bool>()), 1..50,
        ),
    ) {
        let (mut classifier, mut counts) = (Classifier::default(), Counts::default());
        let mut sequence = start;
        classifier.arrive(sequence, &Spep::default(), &mut counts);
        for (step, mut blocks, near) in arrivals {
            if near {
                blocks = blocks.map(|(a, b)| {
                    let first = sequence.wrapping_add(a % 30).wrapping_sub(10);
                    (first, first.wrapping_add(b % 10))
                });
            }
            sequence = sequence.wrapping_add(step + 1);
            let losses = classifier.arrive(sequence, &Spep { blocks }, &mut counts);
            let total = losses.count(Congestion) + losses.count(Corruption);
            prop_assert_eq!(total, u64::from(step));
            let covers = |number: u32| blocks.iter().any(|&(first, last)| {
                (first, last) != (0, 0)
                    && (number.wrapping_sub(first) as i32) >= 0
                    && (last.wrapping_sub(number) as i32) >= 0
            });
            let numbers = (0..step).map(|place| sequence.wrapping_sub(step).wrapping_add(place));
            for (number, cause) in numbers.zip(losses.iter()) {
                if near {
                    prop_assert_eq!(cause == Corruption, covers(number), "{}", number);
                }
            }
        }
    }
}
