//! The peer's window: closed, small, shrinking, reordered (RFC 9293 §3.8.6); ours: full, cut.

use super::*;
use crate::Pressure;

/// The peer has closed its window; 1 MB wait since 100 ms.
fn closed(config: Config) -> Diagram {
    let mut t = established(config);
    t.send(ack(1).window(0));
    t.write(1 << 20);
    t.silent();
    t
}

/// One octet of the stream.
fn octet(from: u32) -> Seg {
    bytes(from, from + 1)
}

#[test]
fn a_closed_window_is_probed_with_an_octet_less_and_less_often() {
    // RFC 9293 §3.8.6.1: after a retransmission timeout, then exponentially.
    let mut t = closed(config());
    for millis in [1100, 3100, 7100, 15_100, 31_100, 63_100, 123_100, 183_100] {
        t.time(millis - 1);
        t.silent();
        t.time(millis);
        t.recv([octet(0)]);
        t.send(ack(1).window(0));
        t.silent();
    }
    assert_eq!(t.windows(), (segments(10), u64::MAX), "that is no congestion");
    assert_eq!(t.statistics().timeouts, 0);
}

#[test]
fn a_refused_octet_goes_again_when_the_window_opens() {
    let mut t = closed(config());
    t.time(1100);
    t.recv([octet(0)]);
    t.send(ack(1).window(0));
    t.time(2000);
    t.send(ack(1).window(3008));
    t.recv([octet(0), bytes(1, 1001), bytes(1001, 2001), bytes(2001, 3001)]);
}

#[test]
fn an_accepted_octet_does_not_go_again() {
    let mut t = closed(config());
    t.time(1100);
    t.recv([octet(0)]);
    t.send(ack(1).acking(2).window(2000));
    t.recv([bytes(1, 1001), bytes(1001, 2001)]);
}

#[test]
fn a_lost_window_update_is_found_out_by_a_probe() {
    let mut t = closed(config());
    // The peer has opened its window, and its window update is lost.
    t.time(1100);
    t.recv([octet(0)]);
    t.time(1200);
    t.send(ack(1).acking(2));
    t.recv((0..10).map(|n| bytes(1 + n * MSS, 1 + (n + 1) * MSS)));
}

#[test]
fn a_lost_probe_is_sent_again() {
    let mut t = closed(config());
    for millis in [1100, 3100, 7100] {
        t.time(millis);
        t.recv([octet(0)]);
    }
    t.send(ack(1).acking(2).window(1008));
    t.recv([bytes(1, 1001)]);
    t.time(7200);
    t.send(ack(1).acking(1001).window(1008)); // It is as if nothing had happened.
    t.recv([bytes(1001, 2001)]);
    assert_eq!(t.connection.vitals().rto, Duration::from_secs(1));
}

#[test]
fn a_peer_that_answers_probes_is_never_given_up() {
    // RFC 9293 §3.8.6.1, MUST-37.
    let user_timeout = Some(Duration::from_secs(100));
    let mut t = closed(Config { retries: 2, user_timeout, ..config() });
    for minute in 0..60 {
        for _ in 0..1000 {
            t.now = t.connection.poll_timeout();
            if t.now > Time::ZERO + Duration::from_secs(60 * (minute + 1)) {
                break;
            }
            t.connection.handle_timeout(t.now);
            t.transmit();
            t.recv([octet(0)]);
            t.send(ack(1).window(0));
            t.silent();
        }
    }
    assert_eq!(t.state(), State::Established);
    t.send(ack(1).window(1008));
    t.recv([octet(0), bytes(1, 1001)]);
}

#[test]
fn a_peer_that_answers_no_probe_is_given_up() {
    let mut t = closed(Config { retries: 2, ..config() });
    for millis in [1100, 3100, 7100] {
        t.time(millis);
        t.recv([octet(0)]);
    }
    t.time(15_100);
    t.silent();
    assert_eq!(t.connection.take_events(), Events::TIMED_OUT | Events::CLOSED);
}

#[test]
fn a_fin_waits_for_a_window_and_probes_it() {
    let mut t = established(config());
    t.send(ack(1).window(0));
    t.close();
    t.silent();
    t.time(1100);
    t.recv([ack(1).fin()]);
    t.send(ack(1).window(0));
    t.time(3100);
    t.recv([ack(1).fin()]);
    t.send(ack(1).acking(2).window(0));
    assert_eq!((t.state(), t.connection.poll_timeout()), (State::FinWait2, Time::NEVER));
}

#[test]
fn a_window_that_shrinks_below_what_is_outstanding_sends_nothing_new() {
    // RFC 9293 §3.8.6, SHLD-15, 16, MAY-7: retransmissions go on, new data stops.
    let mut t = sending(Config { initial_window: InitialWindow::Segments(4), ..config() });
    t.time(200);
    t.send(ack(2).window(1008)); // It had allowed all four, and allows one.
    t.silent();
    t.time(1200);
    t.recv([data(2)]);
    t.time(1300);
    t.send(ack(3).window(1008));
    t.recv(each(3..=4));
    t.time(1400);
    t.send(ack(5).window(0));
    t.silent();
    t.send(ack(5).window(1008));
    t.recv([data(5)]);
}

#[test]
fn a_window_that_closes_on_what_is_outstanding_is_probed_and_is_no_congestion() {
    let mut t = sending(Config { initial_window: InitialWindow::Segments(4), ..config() });
    t.time(200);
    t.send(ack(2).window(0));
    t.silent();
    let before = t.windows();
    t.time(1200);
    t.recv([data(2)]);
    t.send(ack(2).window(0));
    assert_eq!((t.windows(), t.statistics().timeouts), (before, 0));
    assert_eq!(t.statistics().reductions, 0, "the answer is no duplicate");
    t.time(1300);
    t.send(ack(2).window(8000));
    t.recv([data(2), data(5), data(6)]);
}

#[test]
fn acknowledgments_do_not_stand_behind_an_octet_that_was_refused() {
    // The peer takes nothing behind its closed window (RFC 9293 §3.10.7.4, first).
    let mut t = closed(config());
    t.time(1100);
    t.recv([octet(0)]);
    t.send(data(1).window(0));
    t.recv([ack(2)]);
    t.send(ack(1).seq(at(2)).acking(2));
    t.recv((0..10).map(|n| bytes(1 + n * MSS, 1 + (n + 1) * MSS).acking(at(2))));
    t.send(data(2).acking(2));
    t.recv([ack(3).seq(2 + 10 * MSS)]);
}

#[test]
fn an_acknowledgment_from_before_an_octet_that_was_taken_counts() {
    // The peer has probed our window; the answer that there was room by then has not reached it.
    let mut t = established(Config { receive_window: ReceiveWindow::fixed(1000), ..config() });
    t.write(2000);
    t.recv(each(1..=2));
    t.send(data(1));
    t.recv([ack(2).seq(at(3))]);
    t.read(0);
    t.recv([ack(2).seq(at(3))]);
    t.send(bytes(1000, 1001));
    t.recv([ack(1).seq(at(3)).acking(at(2) + 1)]);
    t.send(ack(2).seq(at(2)).window(3008));
    t.silent(); // Three answers would be duplicate ACKs.
    assert_eq!(t.connection.info().peer_window, 3008);
    t.send(ack(2).seq(at(2)).window(4000));
    t.silent();
    assert_eq!(t.connection.info().peer_window, 4000);
    t.send(bytes(1000, 1001).acking(at(2) + 500)); // The octet again, which is answered.
    t.recv([ack(1).seq(at(3)).acking(at(2) + 1)]);
    assert_eq!(t.connection.vitals().flight, 500);
    t.send(ack(2).seq(at(2)).acking(at(2) + 500).window(4000)); // A keep-alive.
    t.recv([ack(1).seq(at(3)).acking(at(2) + 1)]);
    t.send(ack(3).seq(at(2) - 1)); // That is older than any probe.
    t.recv([ack(1).seq(at(3)).acking(at(2) + 1)]);
    assert_eq!(t.connection.vitals().flight, 500);
}

#[test]
fn what_a_small_window_had_room_for_was_not_refused() {
    // RFC 9293 §3.8.6.2.1: it goes after a while, as a probe does.
    let mut t = established(config());
    t.send(ack(1).window(16));
    t.write(1 << 20);
    t.silent();
    t.time(1100);
    t.recv([bytes(0, 16)]);
    t.send(ack(1).window(16));
    t.silent();
    t.time(1200);
    t.send(ack(1).acking(17).window(592));
    t.silent(); // Too little of the largest window.
    t.send(ack(1).acking(17).window(1008));
    t.recv([bytes(16, 1016)]);
    assert_eq!(t.statistics().retransmissions, 0);
}

#[test]
fn a_closed_window_is_probed_even_where_the_peer_has_discarded_what_it_had_sacked() {
    // RFC 2018 §8: the head was SACKed, and is not acknowledged.
    let mut t = sending(Config { initial_window: InitialWindow::Segments(4), ..config() });
    t.time(200);
    t.send(ack(2).sack(3..=3).window(0));
    t.send(ack(3).window(0));
    t.silent();
    t.time(1200);
    t.recv([data(3)]);
    t.send(ack(3).window(0));
    t.silent();
    t.time(3200);
    t.recv([data(3)]);
    assert_eq!(t.statistics().timeouts, 0);
}

#[test]
fn answers_to_probes_are_no_duplicates() {
    // RFC 5681 §2 would count them: they carry nothing and announce the same window.
    let newreno = Config { recovery: Recovery::NewReno, ..config() };
    let mut t = sending(Config { initial_window: InitialWindow::Segments(4), ..newreno });
    t.time(200);
    t.send(ack(2).window(0));
    for millis in [1200, 3200, 7200, 15_200] {
        t.time(millis);
        t.recv([data(2)]);
        t.send(ack(2).window(0));
        t.silent();
    }
    assert_eq!((t.statistics().reductions, t.statistics().timeouts), (0, 0));
}

#[test]
fn exactly_half_of_the_largest_window_is_worth_a_segment() {
    // RFC 9293 §3.8.6.2.1, condition 3 with Fs = 1/2.
    let mut t = Diagram::new(&config(), Side::Active);
    t.recv([syn()]);
    t.window = 1216;
    t.time(100);
    t.send(syn_ack());
    t.recv([ack(1)]);
    t.write(1 << 20);
    t.recv([data(1)]);
    t.send(ack(2).window(608));
    t.recv([bytes(1000, 1608)]);
}

#[test]
fn silly_window_avoidance_of_the_sender() {
    // RFC 9293 §3.8.6.2.1: less than a segment goes if it is half of the largest window.
    let mut t = Diagram::new(&config(), Side::Active);
    t.recv([syn()]);
    t.window = 1200;
    t.time(100);
    t.send(syn_ack());
    t.recv([ack(1)]);
    t.write(1 << 20);
    t.recv([data(1)]); // 200 bytes remain unused.
    t.send(ack(2).window(592));
    t.silent();
    t.send(ack(2).window(608));
    t.recv([bytes(1000, 1608)]);
}

#[test]
fn silly_window_avoidance_of_the_sender_waits_for_acknowledgments_under_nagle() {
    // §3.8.6.2.1, the bracketed condition: SND.NXT = SND.UNA.
    for nagle in [true, false] {
        let mut t = Diagram::new(&Config { nagle, ..config() }, Side::Active);
        t.recv([syn()]);
        t.window = 1200;
        t.time(100);
        t.send(syn_ack());
        t.recv([ack(1)]);
        t.write(300);
        t.recv([bytes(0, 300)]);
        t.write(1 << 20);
        if nagle {
            t.silent(); // 900 bytes would be more than half of the window.
            t.send(ack(1).acking(301));
            t.recv([bytes(300, 1300)]);
        } else {
            t.recv([bytes(300, 1200)]);
        }
    }
}

#[test]
fn silly_window_avoidance_of_the_receiver() {
    // RFC 9293 §3.8.6.2.2: the edge moves by a segment, or by half of the buffer.
    let mut t = established(Config { receive_window: ReceiveWindow::fixed(3000), ..config() });
    for (from, to) in [(0, 900), (900, 1200), (1200, 3000)] {
        t.send(bytes(from, to));
        t.recv([ack(1).acking(1 + to)]);
        assert_eq!(u32::from(t.last().window), 3000 - to);
    }
    t.send(bytes(3000, 3001)); // A probe: still no room.
    t.recv([ack(1).acking(3001)]);
    assert_eq!(t.last().window, 0);
    assert_eq!(t.read(0), 3000);
    t.recv([ack(1).acking(3001)]);
    assert_eq!(t.last().window, 3000);
}

#[test]
fn an_acknowledgment_after_a_small_read_announces_no_small_window() {
    // RFC 9293 §3.8.6.2.2: the edge stays until it moves by a segment.
    let mut t = established(Config { receive_window: ReceiveWindow::fixed(4000), ..config() });
    for n in 1..=4 {
        t.send(data(n));
        t.recv([ack(n + 1)]);
    }
    let mut read = 0;
    for (bytes, window) in [(1, 0), (998, 0), (1, 1000), (999, 1000), (1, 2000)] {
        read += t.connection.read_up_to(bytes).map_or(0, |payload| payload.len);
        t.transmit();
        t.silent(); // Too little for a window update.
        t.send(ack(1).seq(at(20)).fin()); // Outside the window: that asks.
        t.recv([ack(5)]);
        assert_eq!(u32::from(t.last().window), window, "{read} bytes were read");
    }
    // Half of the buffer is.
    for bytes in [1000, 999, 1] {
        t.silent();
        t.connection.read_up_to(bytes);
        t.transmit();
    }
    t.recv([ack(5)]);
    assert_eq!(t.last().window, 4000);
}

#[test]
fn a_window_that_is_open_does_not_follow_small_reads() {
    let mut t = established(Config { receive_window: ReceiveWindow::fixed(4000), ..config() });
    t.send(data(1));
    t.recv([ack(2)]);
    t.connection.read_up_to(400);
    t.transmit();
    t.silent();
    t.send(data(2));
    t.recv([ack(3)]);
    assert_eq!(t.last().window, 2000); // And 400 bytes of the buffer.
    t.connection.read_up_to(600);
    t.transmit();
    t.silent(); // A segment is not worth an acknowledgment of its own ...
    t.send(data(3));
    t.recv([ack(4)]);
    assert_eq!(t.last().window, 2000); // ... but goes with one.
}

#[test]
fn a_peer_with_a_window_gets_no_needless_update() {
    let mut t = established(Config { receive_window: ReceiveWindow::fixed(10_000), ..config() });
    for n in 1..=5 {
        t.send(data(n));
        t.recv([ack(n + 1)]);
        if n < 5 {
            t.read(1000 * u64::from(n - 1)); // More than half of the buffer is open all the time.
            t.silent();
        }
    }
}

#[test]
fn a_reader_of_small_pieces_does_not_open_the_window_by_small_pieces() {
    let mut t = established(Config { receive_window: ReceiveWindow::fixed(4000), ..config() });
    // Pieces of 400 bytes that are read one by one: their identities do not go on.
    for n in 0..10 {
        let segment = Segment {
            seq: PEER_ISS + 1 + 400 * n,
            ack: ISS + 1,
            flags: Flags::ACK,
            window: 100,
            ..Segment::default()
        };
        let payload = Payload { stream: n, offset: 0, len: 400 };
        t.connection.handle_segment(t.now, &segment, payload, Ecn::NotCapable);
        t.transmit();
    }
    t.unseen.clear();
    assert_eq!(t.last().window, 0);
    let mut updates = vec![];
    for n in 1..=10 {
        t.connection.read().unwrap();
        t.transmit();
        if t.unseen.pop_front().is_some() {
            updates.push((n, t.last().window));
        }
    }
    assert_eq!(updates, [(5, 2000), (10, 4000)], "by half of the buffer");
}

#[test]
fn an_old_segment_does_not_change_the_window() {
    // RFC 9293 §3.10.7.4: SND.WL1 < SEG.SEQ or (SND.WL1 = SEG.SEQ and SND.WL2 =< SEG.ACK).
    let mut t = established(Config { receive_window: ReceiveWindow::fixed(5000), ..config() });
    t.send(data(2).window(2000)); // Later than ...
    t.recv([ack(1).sack(2..=2)]);
    t.send(data(1).window(0)); // ... this one.
    t.recv([ack(3)]);
    t.write(1 << 20);
    t.recv(each(1..=2).into_iter().map(|seg| seg.acking(at(3))));
    t.send(ack(1).seq(at(3)).acking(at(3)).window(1008));
    t.recv([data(3).acking(at(3))]);
    t.send(ack(1).seq(at(3)).acking(at(2)).window(20_000)); // Of an older acknowledgment.
    t.silent();
    t.send(ack(1).seq(at(3)).acking(at(3)).window(2000)); // The same numbers: its window counts.
    t.recv([data(4).acking(at(3))]);
}

#[test]
fn what_is_partly_outside_the_window_is_trimmed() {
    // RFC 9293 §3.10.7.4, first: on both sides.
    let mut t = established(Config { receive_window: ReceiveWindow::fixed(2000), ..config() });
    t.send(data(1));
    t.recv([ack(2)]);
    t.send(bytes(500, 2500).fin()); // What lies before, what lies beyond, and so the FIN.
    t.recv([ack(3)]);
    assert_eq!((t.state(), t.last().window, t.read(0)), (State::Established, 0, 2000));
    t.recv([ack(3)]);
    t.send(bytes(2000, 2500).fin());
    t.recv([ack(1).acking(2502)]);
    assert_eq!((t.state(), t.read(2000)), (State::CloseWait, 500));
}

#[test]
fn a_fin_finds_room_in_a_closed_window() {
    let mut t = established(Config { receive_window: ReceiveWindow::fixed(2000), ..config() });
    t.send(bytes(0, 2000));
    t.recv([ack(3)]);
    t.send(ack(1).seq(at(3)).fin());
    t.recv([ack(1).acking(at(3) + 1)]);
    assert_eq!((t.state(), t.read(0)), (State::CloseWait, 2000));
}

#[test]
fn an_acknowledgment_with_data_for_a_closed_window_is_processed() {
    // RFC 9293 §3.10.7.4, first: "special allowance should be made to accept valid ACKs".
    let mut t = established(Config { receive_window: ReceiveWindow::fixed(1000), ..config() });
    t.write(3000);
    t.recv(each(1..=3));
    t.send(data(1));
    t.recv([ack(2).seq(at(4))]);
    t.send(data(2).acking(at(4)));
    t.recv([ack(2).seq(at(4))]);
    assert_eq!((t.connection.vitals().flight, t.read(0)), (0, 1000));
}

#[test]
fn the_first_fin_counts() {
    // A second one elsewhere, and data after the first, contradict it.
    let mut t = established(config());
    t.send(data(2).fin());
    t.recv([ack(1).sack_bytes(1001, 2002)]);
    t.send(data(4).fin());
    t.recv([ack(1).sack_bytes(1001, 2002)]);
    t.send(data(1).fin());
    t.recv([ack(1).acking(at(3) + 1)]);
    assert_eq!((t.state(), t.read(0)), (State::CloseWait, 2000));
    t.send(data(3));
    t.recv([ack(1).acking(at(3) + 1)]);
    assert_eq!(t.read(2000), 0);
}

#[test]
fn a_fin_before_what_has_arrived_is_no_end() {
    let mut t = established(config());
    t.send(data(3));
    t.recv([ack(1).sack(3..=3)]);
    t.send(data(1).fin());
    t.recv([ack(2).sack(3..=3)]);
    t.send(data(2));
    t.recv([ack(4)]);
    assert_eq!((t.state(), t.read(0)), (State::Established, 3000));
}

#[test]
fn an_event_says_when_more_may_be_written() {
    let mut t = sending_only(4, config());
    t.connection.notify_at(LowWater::Unacknowledged(2000));
    assert_eq!(t.connection.take_events(), Events::empty());
    t.send(ack(2));
    assert_eq!(t.connection.take_events(), Events::empty());
    t.send(ack(3));
    assert_eq!(
        (t.connection.take_events(), t.connection.unacknowledged()),
        (Events::WRITABLE, 2000)
    );
    t.send(ack(4)); // Once.
    assert_eq!(t.connection.take_events(), Events::empty());
    t.connection.notify_at(LowWater::Unacknowledged(1000)); // It is so already.
    assert_eq!(t.connection.take_events(), Events::WRITABLE);
}

#[test]
fn an_event_says_when_little_waits_to_be_sent_although_a_segment_is_missing() {
    let mut t = sending_only(4, config());
    t.write(2000);
    t.connection.notify_at(LowWater::Unsent(1000));
    t.send(ack(1).sack(2..=2));
    assert_eq!((t.connection.take_events(), t.connection.unsent()), (Events::empty(), 2000));
    t.unseen.clear();
    t.send(ack(1).sack(2..=3));
    t.unseen.clear();
    t.send(ack(1).sack(2..=4));
    assert!(t.connection.unsent() <= 1000);
    t.send(ack(1).sack(2..=5));
    assert_eq!(t.connection.take_events(), Events::WRITABLE);
}

#[test]
fn what_ends_the_written_data_is_pushed() {
    // RFC 9293 §3.9.1.2, SHLD-28: the last segment of what there is to send.
    let mut t = established(config());
    t.write(2500);
    t.recv([data(1), data(2), bytes(2000, 2500)]);
    let pushed = |t: &Diagram| {
        let sent = t.sent.iter().filter_map(|packet| match packet.body {
            wire::Body::Tcp(s) if packet.payload.len > 0 => Some(s.flags.contains(Flags::PSH)),
            _ => None,
        });
        sent.collect::<Vec<_>>()
    };
    assert_eq!(pushed(&t), [false, false, true]);
    t.time(1100);
    t.recv([data(1)]); // A retransmission of the middle pushes nothing.
    assert_eq!(pushed(&t).last(), Some(&false));
}

#[test]
fn a_probe_that_took_all_there_was_ends_the_probing() {
    let mut t = established(config());
    t.send(ack(1).window(0));
    t.write(1);
    t.time(1100);
    t.recv([octet(0)]);
    t.send(ack(1).acking(2));
    t.write(2000);
    t.recv([bytes(1, 1001), bytes(1001, 2001)]);
    t.time(1200);
    t.send(ack(1).acking(1002)); // Nothing is sent again for that.
    t.silent();
    assert_eq!(t.statistics().retransmissions, 0);
}

#[test]
fn a_full_sized_segment_moves_the_window_even_where_timestamps_make_it_shorter() {
    let mut t = Diagram::new(&Config { timestamps: true, ..config() }, Side::Active);
    t.recv([syn()]);
    t.stamp = Some(100);
    t.send(syn_ack());
    t.recv([ack(1)]);
    let window = t.last().window;
    t.send(bytes(0, MSS - 12));
    t.recv([ack(1).acking(1 + MSS - 12)]);
    t.read(0);
    t.send(bytes(MSS - 12, 2 * (MSS - 12)));
    t.recv([ack(1).acking(1 + 2 * (MSS - 12))]);
    t.read(u64::from(MSS - 12));
    assert!(window - t.last().window <= 1000 / 32 + 1, "{window} {}", t.last().window);
}

/// The octet after the last that our last segment asked for, if windows have this shift.
fn asked_for(t: &Diagram, shift: u8) -> u32 {
    let last = t.last();
    (last.ack - PEER_ISS) + (u32::from(last.window) << shift)
}

#[test]
fn while_memory_is_short_the_window_closes_but_takes_nothing_back() {
    // RFC 9293 §3.8.6: the right edge stays where it was announced, but for the rounding of the field.
    let mut t = established(config());
    let edge = asked_for(&t, SHIFT);
    t.connection.set_pressure(Pressure::Window);
    let (whole, mut read) = ((edge - 1) / MSS, 0);
    for n in 1..whole + 50 {
        t.send(data(n));
        read += t.read(read);
        t.recv([ack(n + 1)]);
        // A few segments are always asked for, so that the transfer goes on.
        let (least, most) = (at(n + 1) + 2 * MSS, at(n + 1) + 4 * MSS);
        let asked = asked_for(&t, SHIFT);
        assert!(asked + 31 >= edge.max(least) && asked <= edge.max(most), "{n}: {asked}");
    }
    t.connection.set_pressure(Pressure::None);
    let n = whole + 50;
    t.send(data(n));
    t.read(read);
    t.recv([ack(n + 1)]);
    assert!(asked_for(&t, SHIFT) > at(n + 1) + 100 * MSS);
}

#[test]
fn while_memory_is_short_a_reader_lets_the_peer_go_on() {
    let mut t = established(Config { receive_window: ReceiveWindow::fixed(10_000), ..config() });
    t.connection.set_pressure(Pressure::Window);
    for n in 1..=10 {
        t.send(data(n));
        t.recv([ack(n + 1)]);
    }
    assert_eq!(t.last().window, 0);
    assert_eq!(t.read(0), 10_000);
    t.recv([ack(11)]); // A window update.
    assert_eq!(asked_for(&t, 0), at(11) + 4 * MSS);
}

#[test]
fn a_syn_of_ours_is_held_to_what_it_has_said_of_the_window() {
    let mut t = Diagram::new(&config(), Side::Active);
    t.recv([syn()]);
    let promised = u32::from(t.last().window);
    t.connection.set_pressure(Pressure::Window);
    t.time(100);
    t.send(syn_ack());
    t.recv([ack(1)]);
    assert!(asked_for(&t, SHIFT) + 31 > promised);
}

#[test]
fn while_memory_is_short_what_is_out_of_order_is_dropped_and_what_was_kept_stays() {
    let mut t = established(config());
    t.send(data(3));
    t.recv([ack(1).sack(3..=3)]);
    t.connection.set_pressure(Pressure::OutOfOrder);
    t.connection.watch(true);
    t.send(data(5));
    t.recv([ack(1).sack(3..=3)]);
    let events = core::iter::from_fn(|| t.connection.poll_event());
    assert!(
        events
            .into_iter()
            .any(|event| event == crate::Event::Refused { why: crate::DropReason::QueueFull })
    );
    t.send(data(1));
    t.send(data(2)); // What is in order is taken as ever.
    t.recv([ack(2).sack(3..=3), ack(4)]);
    t.connection.set_pressure(Pressure::None);
    t.send(data(5));
    t.recv([ack(4).sack(5..=5)]);
    assert_eq!(t.read(0), 3000);
}
