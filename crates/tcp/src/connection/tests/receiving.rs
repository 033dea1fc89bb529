//! What is delivered, what is acknowledged, and when.

use super::*;
use crate::congestion::CeMarks;

fn delayed() -> Config {
    Config { delayed_ack: Some(Duration::from_millis(40)), ..config() }
}

#[test]
fn without_delay_every_segment_is_acknowledged_at_once() {
    let mut t = established(config());
    for n in 1..=3 {
        t.send(data(n));
        t.recv([ack(n + 1)]);
    }
    assert_eq!(t.connection.take_events(), Events::READABLE);
    assert_eq!(t.read(0), 3000);
}

#[test]
fn with_delay_every_second_segment_is_acknowledged() {
    // RFC 5681 §4.2, RFC 9293 §3.8.6.3
    let mut t = established(delayed());
    for n in [1, 3, 5] {
        t.send(data(n));
        t.silent();
        t.send(data(n + 1));
        t.recv([ack(n + 2)]);
    }
}

#[test]
fn with_delay_a_single_segment_is_acknowledged_when_the_delay_is_over() {
    let mut t = established(delayed());
    t.send(data(1));
    t.time(139);
    t.silent();
    t.time(140);
    t.recv([ack(2)]);
    t.send(data(2)); // And it begins anew.
    t.time(180);
    t.recv([ack(3)]);
}

#[test]
fn data_takes_the_acknowledgment_along() {
    let mut t = established(delayed());
    t.send(data(1));
    t.silent();
    t.write(500);
    t.recv([bytes(0, 500).acking(at(2))]);
    t.time(900); // Nothing is left to acknowledge.
    t.silent();
}

#[test]
fn what_arrives_after_a_gap_is_acknowledged_at_once_with_its_blocks() {
    // RFC 5681 §4.2; RFC 2018 §4: the block that holds the latest segment comes first.
    let mut t = established(delayed());
    t.send(data(2));
    t.recv([ack(1).sack(2..=2)]);
    t.send(data(4));
    t.recv([ack(1).sack(4..=4).sack(2..=2)]);
    t.send(data(3));
    t.recv([ack(1).sack(2..=4)]);
    t.send(data(6));
    t.recv([ack(1).sack(6..=6).sack(2..=4)]);
    assert_eq!(t.connection.take_events(), Events::empty());
    t.send(data(1)); // It fills a gap: at once, too.
    t.recv([ack(5).sack(6..=6)]);
    t.send(data(5));
    t.recv([ack(7)]);
    assert_eq!(t.read(0), 6000);
}

#[test]
fn no_more_than_four_blocks_are_sent() {
    let mut t = established(config());
    for n in [2, 4, 6, 8] {
        t.send(data(n));
    }
    t.unseen.clear();
    t.send(data(10));
    t.recv([ack(1).sack(10..=10).sack(8..=8).sack(6..=6).sack(4..=4)]);
}

#[test]
fn without_permission_no_blocks_are_sent() {
    let mut t = established(Config { recovery: Recovery::Reno, ..config() });
    t.send(data(2));
    t.recv([ack(1)]);
    t.send(data(3));
    t.recv([ack(1)]);
    t.send(data(1));
    t.recv([ack(4)]);
}

#[test]
fn what_arrives_twice_is_acknowledged_at_once_and_delivered_once() {
    let mut t = established(delayed());
    t.send(data(1));
    t.send(data(2));
    t.recv([ack(3)]);
    t.send(data(2));
    t.recv([ack(3)]);
    t.send(data(1));
    t.recv([ack(3)]);
    t.send(data(4));
    t.recv([ack(3).sack(4..=4)]);
    t.send(data(4));
    t.recv([ack(3).sack(4..=4)]);
    t.send(data(3));
    t.recv([ack(5)]);
    assert_eq!(t.read(0), 4000);
}

#[test]
fn what_overlaps_is_delivered_once() {
    let mut t = established(config());
    t.send(data(1));
    t.recv([ack(2)]);
    t.send(bytes(500, 1500));
    t.recv([ack(1).acking(1501)]);
    t.send(bytes(2000, 2500));
    t.recv([ack(1).acking(1501).sack_bytes(2001, 2501)]);
    t.send(bytes(1800, 2700)); // On both sides of what is there.
    t.recv([ack(1).acking(1501).sack_bytes(1801, 2701)]);
    t.send(bytes(1400, 2600));
    t.recv([ack(1).acking(2701)]);
    assert_eq!(t.read(0), 2700);
}

#[test]
fn what_lies_beyond_the_window_is_acknowledged_and_dropped() {
    // RFC 9293 §3.10.7.4, first.
    let mut t = established(Config { receive_window: ReceiveWindow::fixed(2000), ..config() });
    t.send(data(3));
    t.recv([ack(1)]);
    t.send(data(2)); // This one just fits.
    t.recv([ack(1).sack(2..=2)]);
    t.send(data(1));
    t.recv([ack(3)]);
    assert_eq!(t.read(0), 2000);
    t.recv([ack(3)]); // There is room again.
    t.send(data(3));
    t.recv([ack(4)]);
}

#[test]
fn the_window_shrinks_with_what_the_application_leaves_unread() {
    let mut t = established(Config { receive_window: ReceiveWindow::fixed(3000), ..config() });
    for (n, left) in [(1, 2000), (2, 1000), (3, 0)] {
        t.send(data(n));
        t.recv([ack(n + 1)]);
        assert_eq!(t.last().window, left);
    }
    t.send(data(4));
    t.recv([ack(4)]);
    assert_eq!(t.read(0), 3000);
    t.recv([ack(4)]); // A window update.
    assert_eq!(t.last().window, 3000);
    t.send(data(4));
    t.recv([ack(5)]);
    assert_eq!(t.last().window, 2000);
}

#[test]
fn a_segment_without_an_acknowledgment_is_dropped() {
    // RFC 9293 §3.10.7.4, fifth.
    let mut t = established(config());
    t.send(Seg { flags: Flags::empty(), ..data(1) });
    t.silent();
    assert_eq!(t.read(0), 0);
}

#[test]
fn a_syn_inside_the_connection_is_answered_and_not_obeyed() {
    // RFC 5961 §4: a challenge.
    for seq in [0, 1, 5000, 1 << 30] {
        let mut t = established(config());
        t.send(syn().seq(seq));
        t.recv([ack(1)]);
        assert_eq!(t.state(), State::Established);
    }
}

#[test]
fn acknowledgments_are_not_acknowledged() {
    let mut t = established(config());
    for _ in 0..3 {
        t.send(ack(1));
        t.silent();
    }
    t.send(ack(1).seq(0)); // Unless they lie outside of the window.
    t.recv([ack(1)]);
}

#[test]
fn a_block_covers_the_fin_that_arrived_with_its_data() {
    // RFC 2018 §3 speaks of sequence space, in which a FIN takes one place. Without it the sender
    // does not know that its last segment, which ends with the FIN, has arrived.
    let mut t = established(config());
    t.send(data(2).fin());
    t.recv([ack(1).sack_bytes(1001, 2002)]);
}

#[test]
fn a_pure_acknowledgment_at_the_edge_of_the_window_is_processed() {
    // The peer has used our window up, and its first segment is missing: all its bare
    // acknowledgments lie one past the window. The letter of RFC 9293 §3.10.7.4 drops them, and
    // answers; two such ends would answer each other for ever. Linux and the BSDs take them.
    let mut t = established(Config {
        receive_window: ReceiveWindow::fixed(2000),
        initial_window: InitialWindow::Segments(2),
        ..config()
    });
    t.write(1 << 30);
    t.recv(each(1..=2));
    t.time(200);
    t.send(data(2));
    t.recv([ack(1).seq(at(3)).sack(2..=2)]);
    t.send(ack(2).seq(at(3)));
    t.recv(each(3..=4));
}

#[test]
fn what_is_not_read_stays_for_the_next_time() {
    let mut t = established(config());
    t.send(data(1));
    t.recv([ack(2)]);
    t.send(data(2));
    t.recv([ack(3)]);
    let mut read = |most| t.connection.read_up_to(most).map(|run| (run.offset, run.len));
    assert_eq!(read(0), None);
    assert_eq!(read(700), Some((0, 700)));
    assert_eq!(read(700), Some((700, 700)));
    assert_eq!(read(700), Some((1400, 600)));
    assert_eq!(read(700), None);
}

#[test]
fn what_can_be_read_can_be_looked_at_first() {
    let mut t = established(config());
    t.send(data(2));
    t.send(data(1));
    let runs: Vec<_> = t.connection.peek().collect();
    assert_eq!(runs, [Payload { stream: 7, offset: 0, len: 2 * MSS }]);
    assert_eq!(t.connection.readable(), 2000);
    t.connection.read_up_to(500);
    assert_eq!(t.connection.peek().next(), Some(Payload { stream: 7, offset: 500, len: 1500 }));
    assert_eq!((t.connection.readable(), t.connection.info().received), (1500, 2000));
}

#[test]
fn the_info_of_a_connection() {
    let mut t = sending(Config { timestamps: true, ..config() });
    let info = t.connection.info();
    let expected = Info {
        mss: MSS,
        offered_mss: MSS as u16,
        recovery_state: RecoveryState::Open,
        sack: true,
        timestamps: false, // The peer has not agreed.
        ecn: false,
        accurate_ecn: false,
        delivered_marks: CeMarks::default(),
        received_marks: CeMarks::default(),
        window_shifts: Some((PEER_SHIFT, SHIFT)),
        peer_window: u64::from(t.window),
        own_window: u64::from(config().receive_window.maximum),
        written: 1 << 40,
        sent: 10_000,
        received: 0,
        min_rtt: Some(Duration::from_millis(100)),
    };
    assert_eq!(info, expected);
    t.time(200);
    t.send(ack(1).sack(2..=2));
    assert_eq!(t.connection.info().recovery_state, RecoveryState::Disorder);
    t.send(ack(1).sack(2..=4));
    assert_eq!(t.connection.info().recovery_state, RecoveryState::Recovery);
    t.unseen.clear();
    t.until(t.connection.poll_timeout());
    assert_eq!(t.connection.info().recovery_state, RecoveryState::Loss);
    t.unseen.clear();
}
