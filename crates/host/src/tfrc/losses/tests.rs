use super::*;
use proptest::prelude::*;

/// Packets arrive one a millisecond; `arrives` says which of the first `count`. The first interval is
/// `first`.
fn history(count: u64, round_trip: u64, first: f64, arrives: impl Fn(u64) -> bool) -> LossHistory {
    let mut losses = LossHistory::default();
    for number in (0..count).filter(|&number| arrives(number)) {
        arrive(&mut losses, number, number, round_trip, first);
    }
    losses
}

fn arrive(losses: &mut LossHistory, at: u64, number: u64, round_trip: u64, first: f64) -> bool {
    let now = Time::ZERO + Duration::from_millis(at);
    let round_trip = Duration::from_millis(round_trip);
    losses.arrive(now, number, &PeerLosses::default(), round_trip, || first)
}

fn causes(runs: &[(LossCause, u32)]) -> PeerLosses {
    let mut causes = PeerLosses::default();
    runs.iter().for_each(|&(cause, count)| causes.push(cause, count));
    causes
}

#[test]
fn without_a_loss_the_rate_is_zero() {
    assert_eq!(history(1000, 10, 1.0, |_| true).loss_event_rate(), 0.0);
}

#[test]
fn three_later_packets_make_a_loss() {
    let mut losses = LossHistory::default();
    let begins: Vec<bool> =
        [0, 2, 3, 4, 5].map(|number| arrive(&mut losses, number, number, 10, 50.0)).into();
    assert_eq!(begins, [false, false, false, true, false]);
    // The present interval has packets 1 to 5, the guess is longer.
    assert_eq!(losses.loss_event_rate(), 1.0 / 50.0);
    assert_eq!(losses.counts(), LossCounts { lost: 1, corrupted: 0, events: 1 });
}

#[test]
fn a_packet_that_is_overtaken_by_two_is_not_lost() {
    let mut losses = LossHistory::default();
    for (at, number) in [0, 2, 3, 1, 4, 5, 6, 7].into_iter().enumerate() {
        assert!(!arrive(&mut losses, at as u64, number, 10, 50.0));
    }
    assert_eq!(losses.counts(), LossCounts::default());
}

#[test]
fn losses_within_a_round_trip_time_are_one_event() {
    // Ten packets in a round-trip time: the loss of packet 110 is the last of the first event.
    let losses = history(200, 10, 1.0, |number| ![100, 105, 110].contains(&number));
    assert_eq!(losses.counts().events, 1);
    let losses = history(200, 10, 1.0, |number| ![100, 105, 111].contains(&number));
    assert_eq!(losses.counts().events, 2);
    assert_eq!(losses.intervals[0], 11.0);
    // A long gap has an event for each round-trip time: packets 100, 111, 122, 133.
    let losses = history(200, 10, 1.0, |number| !(100..140).contains(&number));
    assert_eq!((losses.counts().events, losses.counts().lost), (4, 40));
    assert_eq!(losses.intervals[..3], [11.0; 3]);
}

#[test]
fn intervals_are_weighted_as_in_the_rfc() {
    // Events at multiples of 100 from 100 on, but the last interval open.
    let is_lost = |number: u64| number > 0 && number.is_multiple_of(100);
    let even = history(1001, 10, 100.0, |number| !is_lost(number));
    assert!((even.loss_event_rate() - 0.01).abs() < 1e-9, "{}", even.loss_event_rate());
    // RFC 5348 §5.4 with n = 8: a last interval of 50 packets has weight 1 of 6.
    let short = |number: u64| is_lost(number) || number == 950;
    let losses = history(996, 10, 100.0, |number| !short(number));
    let expected = 6.0 / (50.0 + 5.0 * 100.0);
    assert!((losses.loss_event_rate() - expected).abs() < 1e-9, "{}", losses.loss_event_rate());
    // The present interval counts only once it raises the mean: when it is longer than that.
    let rates: Vec<f64> = [950, 1000, 1010, 1100, 1400]
        .map(|count| {
            history(count, 10, 100.0, |number| !is_lost(number) || number > 900).loss_event_rate()
        })
        .into();
    assert!(rates[..2].iter().all(|rate| (rate - 0.01).abs() < 1e-9), "{rates:?}");
    assert!(rates[2] < 0.01 && rates[3] < rates[2] && rates[4] < rates[3], "{rates:?}");
}

#[test]
fn what_was_corrupted_starts_no_event_and_belongs_to_an_interval() {
    let mut losses = LossHistory::default();
    let now = |number: u64| Time::ZERO + Duration::from_millis(number);
    let round_trip = Duration::from_millis(10);
    let causes = causes(&[(LossCause::Corruption, 2), (LossCause::Congestion, 1)]);
    arrive(&mut losses, 0, 0, 10, 9.0);
    // Packets 1, 2 and 3 are missing; 3 was lost to congestion.
    losses.arrive(now(4), 4, &causes, round_trip, || 9.0);
    (5..100).for_each(|number| {
        arrive(&mut losses, number, number, 10, 9.0);
    });
    assert_eq!(losses.counts(), LossCounts { lost: 1, corrupted: 2, events: 1 });
    assert_eq!(losses.event.map(|event| event.0), Some(3));
    assert_eq!(losses.loss_event_rate(), 1.0 / 97.0);
}

#[test]
fn a_leap_of_numbers_takes_no_time() {
    let mut losses = LossHistory::default();
    for number in [0, u64::from(u32::MAX / 2), 1 << 31, (1 << 31) + 1, (1 << 31) + 2] {
        losses.arrive(
            Time::from_nanos(number),
            number,
            &PeerLosses::default(),
            Duration::ZERO,
            || 1.0,
        );
    }
    assert!(losses.loss_event_rate() > 0.5, "{}", losses.loss_event_rate());
}

proptest! {
    /// As in RFC 5348 §5: computed from the list of all losses.
    #[test]
    fn events_and_intervals_are_those_of_the_losses(
        pattern in prop::collection::vec(prop::bool::weighted(0.9), 20..600),
        round_trip in 1u64..60,
    ) {
        let count = pattern.len() as u64;
        // Beginning and end arrive.
        let arrives = |number: u64| {
            number == 0 || number + 3 >= count || pattern[number as usize]
        };
        let losses = history(count, round_trip, 25.0, arrives);
        let mut starts: Vec<u64> = Vec::new();
        for number in (0..count).filter(|&number| !arrives(number)) {
            // One packet a millisecond: T_loss is the number.
            if starts.last().is_none_or(|start| start + round_trip < number) {
                starts.push(number);
            }
        }
        prop_assert_eq!(losses.counts().events, starts.len() as u64);
        if let Some(&last) = starts.last() {
            let mut intervals: Vec<f64> =
                starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64).rev().collect();
            intervals.push(25.0);
            intervals.truncate(8);
            let mean = |intervals: &[f64]| {
                let weighed = intervals.iter().zip(WEIGHTS);
                let (sum, weights) =
                    weighed.fold((0.0, 0.0), |all, (x, w)| (all.0 + x * w, all.1 + w));
                sum / weights
            };
            let with = [&[(count - last) as f64][..], &intervals[..intervals.len() - 1]].concat();
            let expected = 1.0 / mean(&intervals).max(mean(&with));
            let found = losses.loss_event_rate();
            prop_assert!((found - expected.min(1.0)).abs() < 1e-9, "{} {}", found, expected);
        }
    }

    /// Losses, copies and packets that are late.
    #[test]
    fn any_order_of_packets_gives_a_rate(
        arrivals in prop::collection::vec((0u64..300, 0u64..5), 1..400),
        round_trip in 0u64..60,
        corrupted in prop::collection::vec((any::<bool>(), 1u32..4), 0..9),
    ) {
        let runs: Vec<(LossCause, u32)> = corrupted.iter().map(|&(corruption, count)| {
            (if corruption { LossCause::Corruption } else { LossCause::Congestion }, count)
        }).collect();
        let causes = causes(&runs);
        let (mut losses, mut time) = (LossHistory::default(), 0);
        for &(number, span) in &arrivals {
            time += span;
            let now = Time::ZERO + Duration::from_millis(time);
            let before = losses.loss_event_rate();
            let began = losses.arrive(now, number, &causes, Duration::from_millis(round_trip), || 10.0);
            let rate = losses.loss_event_rate();
            prop_assert!((0.0..=1.0).contains(&rate));
            // Without a new event it only falls.
            prop_assert!(began || rate <= before + 1e-12, "{} {}", rate, before);
            prop_assert!(losses.gaps.windows(2).all(|pair| pair[0].end <= pair[1].first));
            prop_assert!(losses.gaps.iter().all(|gap| gap.first < gap.end && gap.later < LATER));
            let LossCounts { lost, corrupted, events } = losses.counts();
            prop_assert!(lost + corrupted <= 300 && events <= lost);
        }
    }

    #[test]
    fn copies_and_what_is_overtaken_by_two_change_nothing(
        pattern in prop::collection::vec((prop::bool::weighted(0.95), any::<bool>(), any::<bool>()), 20..300),
    ) {
        let numbers: Vec<u64> =
            (0u64..).zip(&pattern).filter(|(_, kept)| kept.0).map(|(number, _)| number).collect();
        let (mut plain, mut other) = (LossHistory::default(), LossHistory::default());
        let end = pattern.len() as u64;
        let all = numbers.iter().copied().chain(end..end + 5);
        let order: Vec<u64> = all.collect();
        for &number in &order {
            arrive(&mut plain, number, number, 20, 10.0);
        }
        let mut swapped = order.clone();
        for (pair, (_, swap, _)) in swapped.as_chunks_mut::<2>().0.iter_mut().zip(&pattern) {
            // Not the first one, from which numbers are counted.
            if *swap && pair[0] != order[0] {
                pair.swap(0, 1);
            }
        }
        for (place, &number) in swapped.iter().enumerate() {
            arrive(&mut other, order[place], number, 20, 10.0);
            if pattern.get(place).is_some_and(|copy| copy.2) {
                arrive(&mut other, order[place], number, 20, 10.0);
            }
        }
        prop_assert_eq!(other.counts().lost, plain.counts().lost);
    }
}
