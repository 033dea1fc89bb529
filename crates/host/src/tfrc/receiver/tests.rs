use super::*;
use tcp::LossCause;

const ROUND_TRIP: u32 = 100_000;

fn micros(micros: u64) -> Time {
    Time::ZERO + Duration::from_micros(micros)
}

fn data(at: u64, sequence: u32, round_trip: u32) -> TfrcMessage {
    TfrcMessage::Data { sequence, timestamp: at as u32, round_trip }
}

/// A packet of 1000 bytes, sent at once.
fn arrive(receiver: &mut TfrcReceiver, at: u64, sequence: u32) -> Option<TfrcMessage> {
    while receiver.poll_timeout() <= micros(at) {
        let due = receiver.poll_timeout();
        receiver.handle_timeout(due);
        if let Some(feedback) = receiver.poll_transmit(due) {
            assert!(matches!(feedback, TfrcMessage::Feedback { .. }));
        }
    }
    let payload = Payload { stream: 0, offset: u64::from(sequence) * 960, len: 960 };
    receiver.handle_packet(micros(at), 1000, &data(at, sequence, ROUND_TRIP), payload);
    receiver.poll_transmit(micros(at))
}

#[test]
fn the_first_packet_is_answered_at_once_and_then_one_per_round_trip_time() {
    let mut receiver = TfrcReceiver::new(false);
    let first = arrive(&mut receiver, 1_000_000, 0);
    let expected = TfrcMessage::Feedback {
        timestamp: 1_000_000,
        delay: 0,
        receive_rate: 0,
        loss_event_rate: Probability(0),
    };
    assert_eq!(first, Some(expected));
    for number in 1..10 {
        assert_eq!(arrive(&mut receiver, 1_000_000 + 10_000 * u64::from(number), number), None);
    }
    assert_eq!(receiver.poll_timeout(), micros(1_100_000));
    receiver.handle_timeout(micros(1_100_000));
    let expected = TfrcMessage::Feedback {
        timestamp: 1_090_000,
        delay: 10_000,
        receive_rate: 90_000,
        loss_event_rate: Probability(0),
    };
    assert_eq!(receiver.poll_transmit(micros(1_100_000)), Some(expected));
    assert_eq!(receiver.poll_timeout(), micros(1_200_000));
    // Without data there is no feedback, and the next packet is answered at once.
    receiver.handle_timeout(micros(1_200_000));
    assert_eq!(receiver.poll_transmit(micros(1_200_000)), None);
    assert_eq!(receiver.poll_timeout(), Time::NEVER);
    assert!(arrive(&mut receiver, 1_500_000, 10).is_some());
}

#[test]
fn until_there_is_a_round_trip_time_each_packet_is_answered() {
    let mut receiver = TfrcReceiver::new(false);
    for number in 0..3 {
        let at = 1_000_000 * u64::from(number);
        receiver.handle_packet(micros(at), 1000, &data(at, number, 0), Payload::default());
        assert!(receiver.poll_transmit(micros(at)).is_some(), "{number}");
        assert_eq!(receiver.poll_timeout(), Time::NEVER);
    }
}

/// Packets at 1 Mbyte/s; the first feedback after packet 500 is missing, and after what packet it comes.
fn with_a_loss(receiver: &mut TfrcReceiver, losses: Option<PeerLosses>) -> Option<(u32, f64)> {
    for number in (0..1000).filter(|number| *number != 500) {
        if let (501, Some(losses)) = (number, losses) {
            receiver.indicate(number, losses);
        }
        let feedback = arrive(receiver, 1_000 * u64::from(number), number);
        if let (501.., Some(TfrcMessage::Feedback { loss_event_rate, .. })) = (number, feedback) {
            return Some((number, loss_event_rate.get()));
        }
    }
    None
}

#[test]
fn a_loss_event_is_reported_at_once_with_the_rate_that_gives_what_was_received() {
    let (number, p) = with_a_loss(&mut TfrcReceiver::new(false), None).unwrap();
    assert_eq!(number, 503);
    let rate = equation::throughput(1000, Duration::from_millis(100), p);
    assert!((rate / 1e6 - 1.0).abs() < 0.05, "{rate}");
}

#[test]
fn a_loss_by_corruption_is_none_if_causes_count() {
    let mut losses = PeerLosses::default();
    losses.push(LossCause::Corruption, 1);
    let mut receiver = TfrcReceiver::new(true);
    assert_eq!(with_a_loss(&mut receiver, Some(losses)), None);
    assert_eq!(receiver.losses().counts().corrupted, 1);
    assert_eq!(receiver.losses().loss_event_rate(), 0.0);
    assert!(with_a_loss(&mut TfrcReceiver::new(false), Some(losses)).is_some());
    let mut congestion = PeerLosses::default();
    congestion.push(LossCause::Congestion, 1);
    assert!(with_a_loss(&mut TfrcReceiver::new(true), Some(congestion)).is_some());
}

#[test]
fn sequence_numbers_may_wrap() {
    let mut receiver = TfrcReceiver::new(false);
    for number in 0..1000u32 {
        arrive(&mut receiver, 1_000 * u64::from(number), number.wrapping_sub(500));
    }
    assert_eq!(receiver.losses().counts().lost, 0);
    assert_eq!(receiver.sink().received, 1000);
}
