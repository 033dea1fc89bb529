use super::*;
use proptest::prelude::*;

fn board(segments: u64) -> Scoreboard {
    let mut board = Scoreboard::default();
    for i in 0..segments {
        board.push(Record {
            start: i * 100,
            len: 100,
            copy: CopyId(i as u32 + 1),
            sent: Sent::default(),
            state: State::empty(),
        });
    }
    board
}

#[test]
fn whole_records_are_removed_as_by_any_acknowledgment() {
    let sent = |mut board: Scoreboard| {
        (0..5).for_each(|i| board.edit(i, |record| record.sent.at = Time::from_nanos(i)));
        board
    };
    for ack in [100, 200, 500] {
        let (mut fast, mut general) = (sent(board(5)), sent(board(5)));
        let (whole, advanced) =
            (fast.advance_whole(ack).unwrap(), general.advance(ack, general.fack(), Time::NEVER));
        assert!(advanced.timed);
        assert_eq!((whole.acked, whole.acked), (advanced.acked, advanced.delivered));
        assert_eq!((whole.sent_at, whole.last.at), (advanced.sent_at, advanced.last.at));
        let left = |board: &Scoreboard| (board.una(), board.outstanding(), board.head());
        assert_eq!(left(&fast), left(&general));
    }
}

#[test]
fn what_is_no_acknowledgment_of_whole_records_leaves_them_as_they_are() {
    let mut board = board(5);
    for ack in [0, 150, 600] {
        assert!(board.advance_whole(ack).is_none());
    }
    board.edit(1, |record| record.state |= State::AMBIGUOUS);
    assert!(board.advance_whole(200).is_none());
    assert_eq!((board.una(), board.head()), (0, 0));
    assert!(board.advance_whole(100).is_some());
}

#[test]
fn three_sacked_segments_above_make_a_hole_lost_and_two_do_not() {
    let mut board = board(6);
    board.sack(&[(100, 300)], Time::NEVER);
    assert_eq!(board.next_sack_loss(100), None);
    board.sack(&[(100, 400)], Time::NEVER);
    assert_eq!(board.next_sack_loss(100), Some(0));
    board.mark_lost(0, false);
    assert_eq!(board.next_sack_loss(100), None);
}

#[test]
fn three_short_sacked_runs_above_make_every_hole_below_lost() {
    // Runs shorter than a segment: the octet rule alone (2 * 1000) would not see them.
    let mut board = board(8);
    board.sack(&[(100, 200), (300, 400), (500, 600)], Time::NEVER);
    assert_eq!(board.next_sack_loss(1000), Some(0));
    assert_eq!(board.next_sack_loss(1000), None);
}

#[test]
fn pipe_counts_each_copy_that_is_held_to_be_in_the_network() {
    let mut board = board(5);
    assert_eq!(board.in_network(), 500);
    board.sack(&[(100, 400)], Time::NEVER);
    assert_eq!(board.in_network(), 200);
    board.mark_lost(0, false);
    assert_eq!(board.in_network(), 100);
    board.resend(0, CopyId(9), Sent::default());
    assert_eq!(board.in_network(), 200);
    assert_eq!(board.next_pending(), None);
    board.mark_latest_copy_lost(0, true);
    assert!(board.next_pending() == Some(0) && board.has_corruption_loss());
    board.advance(400, board.fack(), Time::NEVER);
    assert_eq!(board.in_network(), 100);
    assert!(board.next_pending().is_none() && !board.has_corruption_loss());
}

#[test]
fn a_partial_acknowledgment_splits_a_record() {
    let mut board = board(2);
    let advanced = board.advance(30, board.fack(), Time::NEVER);
    assert_eq!((advanced.acked, advanced.delivered), (30, 30));
    assert_eq!((board.first().unwrap().start, board.first().unwrap().len), (30, 70));
}

/// RFC 6675 §4, IsLost, hole by hole.
fn lowest_lost(board: &Scoreboard, mss: u32) -> Option<u64> {
    let sacked = |&i: &u64| board.get(i).state.contains(State::SACKED);
    let end = board.records.end();
    let is_lost = |&hole: &u64| {
        let above: Vec<u64> = (hole + 1..end).filter(sacked).collect();
        let octets: u32 = above.iter().map(|&i| board.get(i).len).sum();
        let runs = above.iter().filter(|&&i| !sacked(&(i - 1))).count();
        runs >= 3 || octets > 2 * mss
    };
    let open = |&i: &u64| !board.get(i).state.intersects(State::SACKED | State::LOST);
    (board.records.begin()..end).filter(open).find(is_lost)
}

proptest! {
    /// However they come about, one after the other.
    #[test]
    fn a_hole_is_lost_as_soon_as_enough_is_sacked_above(
        operations in prop::collection::vec((0u8..5, 0u64..16, 1u64..4), 1..40)
    ) {
        let mut board = board(16);
        for (operation, at, n) in operations {
            let start = at * 100;
            match operation {
                0 if start > board.una() => {
                    board.advance(start, board.fack(), Time::NEVER);
                }
                1 if at + n == 16 => board.mark_all_lost(Time::NEVER),
                2 => if let Some(i) = board.find(start) { board.mark_lost(i, true) },
                _ => {
                    board.sack(&[(start, start + n * 100)], Time::NEVER);
                }
            }
            while let Some(hole) = lowest_lost(&board, 100) {
                prop_assert_eq!(board.next_sack_loss(100), Some(hole));
                board.mark_lost(hole, false);
            }
            prop_assert_eq!(board.next_sack_loss(100), None);
        }
    }

    /// RFC 2018 §8: a receiver that has thrown all away is one that never had it.
    #[test]
    fn what_the_receiver_has_thrown_away_is_forgotten_without_a_trace(
        before in prop::collection::vec((0u64..16, 1u64..5), 0..12),
        after in prop::collection::vec((prop::collection::vec((0u64..16, 1u64..5), 1..4), 0u64..3), 1..20),
    ) {
        let (mut reneged, mut fresh) = (board(16), board(16));
        for (at, n) in before {
            reneged.sack(&[(at * 100, (at + n) * 100)], Time::NEVER);
            reneged.next_sack_loss(100);
        }
        reneged.sack(&[(0, 100)], Time::NEVER);
        reneged.forget_reneged();
        for (blocks, advance) in after {
            let mut both = [&mut reneged, &mut fresh].map(|board| {
                let blocks: Vec<_> = blocks.iter().map(|&(at, n)| (at * 100, (at + n) * 100)).collect();
                let new: Vec<_> = blocks.iter().map(|&block| board.is_new_block(block)).collect();
                let newly_sacked = board.sack(&blocks, Time::NEVER).octets;
                let losses: Vec<_> = core::iter::from_fn(|| board.next_sack_loss(100)).collect();
                let una = board.una() + 100 * advance;
                if una > board.una() && una <= board.nxt() {
                    board.advance(una, board.fack(), Time::NEVER);
                }
                (new, newly_sacked, losses, board.in_network())
            });
            let [reneged, fresh] = both.each_mut();
            prop_assert_eq!(reneged, fresh);
        }
    }

    /// Whatever happens, the totals are those that counting from scratch gives.
    #[test]
    fn totals_follow_the_records(
        operations in prop::collection::vec((0u8..6, 0u64..40, 1u64..6), 1..120)
    ) {
        let mut board = board(40);
        for (operation, at, n) in operations {
            let start = at * 100;
            match operation {
                0 if start > board.una() && start <= board.nxt() => {
                    board.advance(start, board.fack(), Time::NEVER);
                }
                1 => {
                    board.sack(&[(start, start + n * 100)], Time::NEVER);
                }
                2 => if let Some(i) = board.find(start) { board.mark_lost(i, n == 1) },
                3 => if let Some(i) = board.find(start) {
                    board.resend(i, CopyId(n as u32), Sent::default());
                },
                4 => if let Some(i) = board.next_sack_loss(100) { board.mark_lost(i, false) },
                5 if n == 5 => board.mark_all_lost(Time::NEVER),
                _ => {}
            }
            let mut fresh = Scoreboard { una: board.una, nxt: board.nxt, ..Scoreboard::default() };
            for record in board.records.iter() {
                fresh.count::<true>(record.len, record.state);
            }
            prop_assert_eq!(fresh.in_network(), board.in_network());
            prop_assert_eq!(fresh.pending, board.pending);
            prop_assert_eq!(fresh.corruption_losses, board.corruption_losses);
            let scan = (board.records.begin()..board.records.end()).find(|&i| board.get(i).is_pending());
            prop_assert_eq!(board.next_pending(), scan);
        }
    }
}
