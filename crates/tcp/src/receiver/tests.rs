use super::*;
use crate::ReceiveWindow;
use proptest::prelude::*;

fn receiver() -> Receiver {
    let receive_window = ReceiveWindow::fixed(1 << 20);
    let config = Config { delayed_ack: None, receive_window, dsack: false, ..Config::default() };
    let mut receiver = Receiver::new(&config);
    receiver.on_syn(1000, true);
    receiver.on_ack_sent(true);
    receiver
}

fn piece(start: u64, end: u64) -> Payload {
    Payload { stream: 1, offset: start - 1, len: (end - start) as u32 }
}

fn blocks(receiver: &Receiver) -> Vec<(u32, u32)> {
    let mut blocks = SackBlocks::default();
    receiver.clone().write_sack_blocks(4, |seq| SeqNumber(seq as u32), &mut blocks);
    blocks.as_slice().iter().map(|b| (b.start.0, b.end.0)).collect()
}

fn data(receiver: &mut Receiver, start: u64, end: u64) {
    let mut none = Mechanisms::default();
    receiver.on_data(Time::ZERO, start, piece(start, end), false, &mut none);
}

#[test]
fn the_block_that_grew_last_comes_first() {
    let mut receiver = receiver();
    data(&mut receiver, 101, 201);
    data(&mut receiver, 301, 401);
    assert_eq!(blocks(&receiver), [(301, 401), (101, 201)]);
    data(&mut receiver, 201, 251);
    assert_eq!(blocks(&receiver), [(101, 251), (301, 401)]);
    data(&mut receiver, 251, 301);
    assert_eq!(blocks(&receiver), [(101, 401)]);
    data(&mut receiver, 1, 101);
    assert_eq!((receiver.nxt(), !receiver.reassembly.is_empty()), (401, false));
    assert_eq!(receiver.read(u32::MAX), Some(piece(1, 401)));
}

#[test]
fn adjacent_octets_of_two_streams_are_one_block() {
    let mut receiver = receiver();
    let mut arrive = |start, stream, offset, len| {
        let payload = Payload { stream, offset, len };
        receiver.on_data(Time::ZERO, start, payload, false, &mut Mechanisms::default());
        blocks(&receiver)
    };
    arrive(301, 7, 0, 100);
    arrive(201, 8, 0, 100);
    arrive(501, 9, 0, 100);
    assert_eq!(arrive(101, 9, 0, 100), [(101, 401), (501, 601)]);
    assert_eq!(arrive(401, 1, 0, 100), [(101, 601)]);
}

#[test]
fn every_out_of_order_segment_gets_an_acknowledgment_of_its_own() {
    let mut receiver = receiver();
    data(&mut receiver, 101, 201);
    data(&mut receiver, 201, 301);
    for _ in 0..2 {
        assert!(receiver.ack_due());
        receiver.on_ack_sent(true);
    }
    assert!(!receiver.ack_due());
}

#[test]
fn delayed_acknowledgments_wait_for_a_second_segment_or_the_timer() {
    let mut receiver = receiver();
    receiver.delayed_ack = Some(Duration::from_millis(200));
    data(&mut receiver, 1, 101);
    assert!(!receiver.ack_due());
    assert_eq!(receiver.deadline(), Time::ZERO + Duration::from_millis(200));
    data(&mut receiver, 101, 201);
    assert!(receiver.ack_due());
    receiver.on_ack_sent(true);
    data(&mut receiver, 201, 301);
    receiver.on_deadline(Time::ZERO + Duration::from_millis(200));
    assert!(receiver.ack_due());
}

#[test]
fn a_unit_of_two_segments_is_acknowledged_at_once() {
    let mut receiver = receiver();
    receiver.delayed_ack = Some(Duration::from_millis(200));
    data(&mut receiver, 1, 2000);
    assert!(!receiver.ack_due());
    receiver.on_ack_sent(true);
    data(&mut receiver, 2000, 4000);
    assert!(receiver.ack_due());
}

#[test]
fn what_lies_outside_the_window_is_acknowledged_and_dropped() {
    let mut receiver = receiver();
    let far = 1 + (1 << 20);
    data(&mut receiver, far, far + 1);
    assert!(receiver.ack_due() && receiver.reassembly.is_empty());
}

proptest! {
    /// Whatever arrives in whatever order, overlapping or not: what is read is the stream.
    #[test]
    fn the_stream_is_read_whole_in_order_and_once(
        pieces in prop::collection::vec((0u64..300, 1u64..60), 1..200)
    ) {
        let mut receiver = receiver();
        let mut held = vec![false; 400];
        let mut read = 0;
        for (start, len) in pieces {
            data(&mut receiver, 1 + start, 1 + start + len);
            held[start as usize..(start + len) as usize].fill(true);
            while let Some(payload) = receiver.read(u32::MAX) {
                prop_assert_eq!(payload.offset, read);
                read = payload.end();
            }
            let prefix = held.iter().take_while(|&&h| h).count() as u64;
            prop_assert_eq!(read, prefix);
            // The blocks are the held runs beyond the gap.
            for (start, end) in blocks(&receiver) {
                let run = &held[start as usize - 1..end as usize - 1];
                prop_assert!(run.iter().all(|&h| h));
                prop_assert!(!held[start as usize - 2] && !held[end as usize - 1]);
            }
        }
    }
}

#[test]
fn without_a_measured_round_trip_a_window_lasts_one() {
    let receive_window = ReceiveWindow { initial: 20_000, maximum: 1 << 20 };
    let mut receiver =
        Receiver::new(&Config { delayed_ack: None, receive_window, ..Config::default() });
    receiver.on_syn(1000, true);
    for n in 0..25 {
        let now = Time::ZERO + Duration::from_millis(10 * n);
        assert_eq!(receiver.is_tuning_due(now), n <= 20, "{n}");
        if n <= 20 {
            receiver.tune(now, None, None);
        }
        data(&mut receiver, 1 + 1000 * n, 1001 + 1000 * n);
        receiver.read(u32::MAX);
        receiver.advertise_window();
    }
    // The window at the start was full after 200 ms, and 20 segments are twice the ten of the start.
    assert_eq!(receiver.full_buffer_size, 3 * (2 * 20_000 + 16_000));
    assert_eq!(receiver.tuning.rtt, Some(Duration::from_millis(200)));
}
