use super::*;
use crate::scoreboard::{Record, Sent};

fn ms(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

const NONE: [u64; 0] = [];

/// Five segments of 100 octets, sent 10 ms apart from 10 ms on.
fn flight() -> Scoreboard {
    let mut board = Scoreboard::default();
    for n in 0..5 {
        let sent = Sent { at: ms(10 * (n + 1)), ..Sent::default() };
        let (start, copy, state) = (n * 100, CopyId(n as u32 + 1), State::empty());
        board.push(Record { start, len: 100, copy, sent, state });
    }
    board
}

/// An acknowledgment on a path of 100 ms.
fn at(now: Time) -> AckContext {
    let rtt = Duration::from_millis(100);
    AckContext { now, dsack: false, recovering: false, min_rtt: rtt, srtt: rtt }
}

/// The segments that are lost once a SACK block has arrived at `now`.
fn losses(rack: &mut Rack, board: &mut Scoreboard, now: Time, block: (u64, u64)) -> Vec<u64> {
    let delivery = board.sack(&[block], now).delivery;
    rack.on_ack(board, &at(now), &delivery);
    overdue(rack, board, now)
}

fn overdue(rack: &mut Rack, board: &mut Scoreboard, now: Time) -> Vec<u64> {
    let mut lost = Vec::new();
    while let Some(index) = rack.next_loss(board, now) {
        board.mark_latest_copy_lost(index, false);
        lost.push(index);
    }
    lost
}

#[test]
fn a_segment_is_lost_a_quarter_of_a_round_trip_after_one_sent_later_has_arrived() {
    let (mut rack, mut board) = (Rack::default(), flight());
    assert_eq!(losses(&mut rack, &mut board, ms(130), (200, 300)), NONE);
    // Sent at 20 ms, and the round trip is 100 ms: RFC 8985 §6.2, step 5.
    assert_eq!(rack.deadline(&board), Some(ms(20 + 100 + 25)));
    assert_eq!(overdue(&mut rack, &mut board, ms(134)), NONE);
    assert_eq!(overdue(&mut rack, &mut board, ms(135)), [0]);
    assert_eq!(overdue(&mut rack, &mut board, ms(145)), [1]);
    assert_eq!(rack.deadline(&board), None, "what was sent later is not in doubt");
}

#[test]
fn three_sacked_segments_need_no_reordering_window() {
    let (mut rack, mut board) = (Rack::default(), flight());
    assert_eq!(losses(&mut rack, &mut board, ms(130), (200, 300)), NONE);
    assert_eq!(losses(&mut rack, &mut board, ms(140), (200, 400)), [0]);
    assert_eq!(losses(&mut rack, &mut board, ms(141), (200, 500)), [1]);
}

#[test]
fn a_path_seen_to_reorder_has_the_window_whatever_is_sacked() {
    let (mut rack, mut board) = (Rack::default(), flight());
    assert_eq!(losses(&mut rack, &mut board, ms(120), (100, 200)), NONE);
    // The first arrives after the second.
    let delivery = board.advance(100, board.fack(), ms(121)).delivery;
    assert!(delivery.reordered);
    rack.on_ack(&board, &at(ms(121)), &delivery);
    assert_eq!(losses(&mut rack, &mut board, ms(155), (300, 500)), NONE);
    assert_eq!(rack.deadline(&board), Some(ms(30 + 105 + 25)));
}

#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
    let (mut rack, mut board) = (Rack::default(), flight());
    let resend = |board: &mut Scoreboard, rack: &mut Rack, index, copy, at| {
        board.resend(index, CopyId(copy), Sent { at, ..Sent::default() });
        rack.on_retransmit(index, CopyId(copy));
    };
    assert_eq!(losses(&mut rack, &mut board, ms(150), (200, 500)), [0, 1]);
    resend(&mut board, &mut rack, 0, 6, ms(150));
    resend(&mut board, &mut rack, 1, 7, ms(151));
    // The second retransmission is delivered; the first was sent before.
    assert_eq!(losses(&mut rack, &mut board, ms(251), (100, 200)), [0]);
    assert_eq!(overdue(&mut rack, &mut board, ms(999)), NONE, "found once");
    resend(&mut board, &mut rack, 0, 8, ms(251));
    assert_eq!(overdue(&mut rack, &mut board, ms(999)), NONE, "nothing sent after it has arrived");
}

#[test]
fn each_round_with_a_dsack_block_widens_the_window_and_sixteen_recoveries_narrow_it() {
    let (mut rack, board) = (Rack::default(), flight());
    rack.reordering_seen = true;
    let window = |rack: &mut Rack, dsack| {
        rack.on_ack(&board, &AckContext { dsack, ..at(ms(200)) }, &Delivery::default());
        rack.window.as_nanos() / 1_000_000
    };
    assert_eq!(window(&mut rack, false), 25);
    assert_eq!(window(&mut rack, true), 50);
    assert_eq!(window(&mut rack, true), 50, "once in a round trip");
    rack.dsack_round = Some(0); // The round is over.
    assert_eq!(window(&mut rack, true), 75);
    for _ in 0..3 {
        rack.dsack_round = None;
        window(&mut rack, true);
    }
    assert_eq!(window(&mut rack, false), 100, "no more than a round trip");
    (0..15).for_each(|_| rack.on_recovery_end());
    assert_eq!(window(&mut rack, false), 100);
    rack.on_recovery_end();
    assert_eq!(window(&mut rack, false), 25);
}

#[test]
fn a_retransmission_younger_than_a_round_trip_says_nothing_about_others() {
    let (mut rack, mut board) = (Rack::default(), flight());
    board.resend(0, CopyId(6), Sent { at: ms(110), ..Sent::default() });
    // The original has arrived: only retransmissions from before 15 ms can have.
    let delivery = board.sack(&[(0, 100)], ms(15)).delivery;
    rack.on_ack(&board, &at(ms(115)), &delivery);
    assert_eq!(overdue(&mut rack, &mut board, ms(999)), NONE);
}
