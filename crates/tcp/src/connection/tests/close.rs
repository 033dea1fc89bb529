//! The end of a connection: FIN from either side, or RST.

use super::*;
use crate::KeepAlive;

/// Ours: one minute after both sides have finished (RFC 9293 §3.6.1).
const TIME_WAIT: u64 = 60_000;

fn finished(t: &mut Diagram) {
    // The last segment may have acknowledged our FIN.
    let events = t.connection.take_events() - Events::FINISHED;
    assert_eq!((t.state(), events), (State::Closed, Events::CLOSED));
    assert_eq!(t.connection.poll_timeout(), Time::NEVER);
}

#[test]
fn the_side_that_closes_first_waits_in_time_wait() {
    let mut t = established(config());
    t.write(1500);
    t.recv([data(1), bytes(1000, 1500)]);
    t.close();
    t.recv([ack(1).seq(1501).fin()]);
    assert_eq!(t.state(), State::FinWait1);
    t.time(200);
    t.send(ack(1).acking(1502)); // The FIN counts for one.
    t.silent();
    assert_eq!((t.state(), t.connection.take_events()), (State::FinWait2, Events::FINISHED));
    t.time(300);
    t.send(ack(1).acking(1502).fin());
    t.recv([ack(1).seq(1502).acking(2)]);
    assert_eq!((t.state(), t.connection.take_events()), (State::TimeWait, Events::PEER_CLOSED));
    t.time(300 + TIME_WAIT - 1);
    assert_eq!(t.state(), State::TimeWait);
    t.time(300 + TIME_WAIT);
    finished(&mut t);
}

#[test]
fn the_side_that_closes_second_is_done_with_the_last_acknowledgment() {
    let mut t = established(config());
    t.send(data(1).fin());
    t.recv([ack(1).acking(1002)]);
    assert_eq!(t.state(), State::CloseWait);
    assert_eq!(t.connection.take_events(), Events::READABLE | Events::PEER_CLOSED);
    assert_eq!(t.read(0), 1000);
    t.close();
    t.recv([ack(1).acking(1002).fin()]);
    assert_eq!(t.state(), State::LastAck);
    t.time(200);
    t.send(ack(1).seq(1002).acking(2));
    t.silent();
    finished(&mut t);
}

#[test]
fn a_fin_goes_with_the_last_data() {
    let mut t = established(Config { initial_window: InitialWindow::Segments(1), ..config() });
    t.write(1000);
    t.recv([data(1)]);
    t.write(500);
    t.close();
    t.silent();
    t.time(200);
    t.send(ack(2));
    t.recv([bytes(1000, 1500).fin()]);
}

#[test]
fn a_fin_takes_no_room_in_a_full_sized_segment_nor_in_the_congestion_window() {
    // RFC 9293 §3.10.4; in the window for ten segments the tenth goes with the FIN.
    let mut t = established(config());
    t.connection.write(3, 0, segments(10));
    t.close();
    t.recv(each(1..=9).into_iter().chain([data(10).fin()]));
    t.time(200);
    t.send(ack(1).acking(10_002));
    assert_eq!(t.state(), State::FinWait2);
}

#[test]
fn a_fin_alone_does_not_wait_for_the_congestion_window() {
    let mut t = sending_only(10, config());
    t.close();
    t.recv([ack(1).seq(10_001).fin()]);
}

#[test]
fn a_fin_that_was_sent_with_data_goes_again_with_it() {
    let mut t = established(config());
    t.connection.write(3, 0, segments(2));
    t.close();
    t.recv([data(1), data(2).fin()]);
    t.time(200);
    t.send(ack(2));
    t.time(1200);
    t.recv([data(2).fin()]);
    t.send(ack(3)); // The data has arrived, the FIN was cut off.
    t.time(3200);
    t.recv([ack(1).seq(2001).fin()]);
}

#[test]
fn a_fin_waits_for_the_peers_window() {
    let mut t = established(config());
    t.send(ack(1).window(2000));
    t.connection.write(3, 0, segments(2));
    t.close();
    t.recv([data(1), data(2)]);
    t.time(200);
    t.send(ack(3).window(0));
    t.silent();
    t.time(1200); // RFC 9293 §3.8.6.1: the FIN is the probe.
    t.recv([ack(1).seq(2001).fin()]);
    t.send(ack(3).window(0));
    t.time(1300);
    t.send(ack(3).window(1 << 18));
    t.recv([ack(1).seq(2001).fin()]);
}

#[test]
fn nothing_is_written_after_the_close() {
    let mut t = established(config());
    t.write(500);
    t.recv([bytes(0, 500)]);
    t.close();
    t.recv([ack(1).seq(501).fin()]);
    t.connection.write(3, 500, 500);
    t.transmit();
    t.silent();
}

#[test]
fn both_may_close_at_once() {
    let mut t = established(config());
    t.close();
    t.recv([ack(1).fin()]);
    t.send(ack(1).fin()); // Sent before ours had arrived.
    t.recv([ack(1).seq(2).acking(2)]);
    assert_eq!((t.state(), t.connection.take_events()), (State::Closing, Events::PEER_CLOSED));
    t.time(200);
    t.send(ack(1).seq(2).acking(2));
    t.silent();
    assert_eq!(t.state(), State::TimeWait);
    t.time(200 + TIME_WAIT);
    finished(&mut t);
}

#[test]
fn one_segment_may_acknowledge_our_fin_and_carry_theirs() {
    let mut t = established(config());
    t.close();
    t.recv([ack(1).fin()]);
    t.time(200);
    t.send(ack(1).acking(2).fin());
    t.recv([ack(1).seq(2).acking(2)]);
    assert_eq!(t.state(), State::TimeWait);
}

#[test]
fn a_connection_half_closed_by_us_still_receives() {
    let mut t = established(config());
    t.close();
    t.recv([ack(1).fin()]);
    t.time(200);
    for n in 1..=3 {
        t.send(data(n).acking(2));
        t.recv([ack(n + 1).seq(2)]);
    }
    assert_eq!((t.state(), t.read(0)), (State::FinWait2, 3000));
    t.send(data(4).acking(2).fin());
    t.recv([ack(1).seq(2).acking(at(5) + 1)]);
    assert_eq!((t.state(), t.read(3000)), (State::TimeWait, 1000));
}

#[test]
fn a_connection_half_closed_by_the_peer_still_sends() {
    let mut t = established(config());
    t.send(ack(1).fin());
    t.recv([ack(1).acking(2)]);
    assert_eq!(t.connection.take_events(), Events::PEER_CLOSED);
    t.write(2000);
    t.recv([data(1).acking(2), data(2).acking(2)]);
    t.time(200);
    t.send(ack(3).seq(2));
    t.silent();
    t.close();
    t.recv([ack(1).seq(at(3)).acking(2).fin()]);
    t.time(300);
    t.send(ack(1).seq(2).acking(at(3) + 1));
    finished(&mut t);
}

#[test]
fn a_lost_fin_is_sent_again() {
    let mut t = established(config());
    t.close();
    t.recv([ack(1).fin()]);
    for millis in [1100, 3100, 7100] {
        t.time(millis);
        t.recv([ack(1).fin()]);
    }
    t.send(ack(1).acking(2));
    assert_eq!((t.state(), t.connection.poll_timeout()), (State::FinWait2, Time::NEVER));
}

#[test]
fn a_repeated_fin_is_acknowledged_and_starts_time_wait_again() {
    // RFC 9293 §3.10.7.4, eighth, TIME-WAIT.
    let mut t = established(config());
    t.close();
    t.recv([ack(1).fin()]);
    t.send(ack(1).acking(2).fin());
    t.recv([ack(1).seq(2).acking(2)]);
    t.time(30_000);
    t.send(ack(1).acking(2).fin());
    t.recv([ack(1).seq(2).acking(2)]);
    t.time(30_000 + TIME_WAIT - 1);
    assert_eq!(t.state(), State::TimeWait);
    t.time(30_000 + TIME_WAIT);
    assert_eq!(t.state(), State::Closed);
}

#[test]
fn a_fin_waits_for_what_is_missing_before_it() {
    let mut t = established(config());
    t.send(data(2).fin());
    t.recv([ack(1).sack_bytes(1001, 2002)]);
    assert_eq!((t.state(), t.connection.take_events()), (State::Established, Events::empty()));
    t.send(data(1));
    t.recv([ack(1).acking(at(3) + 1)]);
    assert_eq!((t.state(), t.read(0)), (State::CloseWait, 2000));
}

#[test]
fn a_reset_of_the_very_next_octet_closes_at_once() {
    let mut t = sending(config());
    t.send(ack(1).rst());
    t.silent();
    assert_eq!(t.state(), State::Closed);
    assert_eq!(t.connection.take_events(), Events::RESET | Events::CLOSED);
}

#[test]
fn a_reset_outside_of_the_window_does_nothing() {
    // RFC 9293 §3.10.7.4, first and second.
    let window = config().receive_window.maximum;
    for seq in [0, window + 2, 1 << 31] {
        let mut t = sending(config());
        t.send(ack(1).seq(seq).rst());
        t.silent();
        assert_eq!((t.state(), t.connection.take_events()), (State::Established, Events::empty()));
    }
}

#[test]
fn a_reset_is_final() {
    let mut t = sending(config());
    t.send(ack(1).rst());
    t.time(200);
    t.send(ack(5));
    t.send(data(1));
    t.write(1000);
    t.close();
    t.silent();
    assert_eq!(t.state(), State::Closed);
}

#[test]
fn a_connection_that_was_reset_has_no_deadline() {
    // Else its host would wake once a minute for ever, and count timeouts.
    let mut t = sending(config());
    t.send(ack(1).rst());
    assert_eq!(t.connection.poll_timeout(), Time::NEVER);
}

#[test]
fn a_peer_that_stays_silent_is_given_up() {
    // RFC 9293 §3.8.3, R2: here after three retransmissions of the same segment.
    let mut t =
        sending(Config { initial_window: InitialWindow::Segments(2), retries: 3, ..config() });
    for millis in [1100, 3100, 7100] {
        t.time(millis);
        t.recv([data(1)]);
    }
    t.send(ack(2)); // It lives, and the count begins anew.
    t.recv([data(2), data(3)]);
    for millis in [15_100, 31_100, 63_100] {
        t.time(millis);
        t.recv([data(2)]);
    }
    t.time(63_100 + 60_000);
    t.silent();
    assert_eq!(t.state(), State::Closed);
    assert_eq!(t.connection.take_events(), Events::TIMED_OUT | Events::CLOSED);
    assert_eq!(t.connection.poll_timeout(), Time::NEVER);
}

#[test]
fn a_segment_after_the_peers_fin_is_answered_with_where_it_ended() {
    // Nothing can follow a FIN; a peer that believes so has not understood (RFC 9293 §3.10.7.4).
    let mut t = established(config());
    t.close();
    t.recv([ack(1).fin()]);
    t.send(ack(1).acking(2).fin());
    t.recv([ack(1).seq(2).acking(2)]);
    t.send(ack(1).seq(2).acking(2));
    t.silent();
    t.send(ack(1).seq(3).acking(2));
    t.recv([ack(1).seq(2).acking(2)]);
    assert_eq!(t.state(), State::TimeWait);
}

/// The application closes and reads no more.
fn close_both(t: &mut Diagram) {
    t.connection.close_both(t.now + t.ahead);
    t.transmit();
}

#[test]
fn a_connection_that_is_read_no_more_waits_a_minute_for_the_peers_fin() {
    // Under keep-alive, too: a peer that answers probes and never closes would keep it for ever.
    for keep_alive in
        [None, Some(KeepAlive { idle: Duration::from_secs(50), ..KeepAlive::default() })]
    {
        let mut t = established(Config { keep_alive, ..config() });
        close_both(&mut t);
        t.recv([ack(1).fin()]);
        t.time(200);
        t.send(ack(1).acking(2));
        t.time(30_000);
        t.send(ack(1).acking(2).window(5000)); // Nothing but a FIN is waited for.
        t.time(60_199);
        assert_eq!(t.state(), State::FinWait2);
        t.time(60_200);
        t.silent();
        finished(&mut t);
    }
}

#[test]
fn that_minute_begins_when_reading_ends() {
    let mut t = established(config());
    t.close();
    t.recv([ack(1).fin()]);
    t.time(200);
    t.send(ack(1).acking(2));
    t.time(500_000);
    t.restore(7000);
    close_both(&mut t);
    t.time(559_999);
    assert_eq!(t.state(), State::FinWait2);
    t.time(560_000);
    finished(&mut t);
}

#[test]
fn a_half_closed_connection_waits_for_its_peer_as_long_as_that_likes() {
    let mut t = established(config());
    t.close();
    t.recv([ack(1).fin()]);
    t.time(200);
    t.send(ack(1).acking(2));
    t.time(24 * 3600 * 1000); // The peer takes its time, and then answers.
    t.send(data(1).acking(2));
    t.recv([ack(2).seq(2)]);
    assert_eq!((t.state(), t.read(0)), (State::FinWait2, 1000));
    t.time(48 * 3600 * 1000);
    t.send(data(2).acking(2).fin());
    t.recv([ack(1).seq(2).acking(at(3) + 1)]);
    assert_eq!((t.state(), t.read(1000)), (State::TimeWait, 1000));
}

#[test]
fn a_limit_of_fin_wait_2_can_be_done_without() {
    let mut t = established(Config { fin_wait_2: None, ..config() });
    close_both(&mut t);
    t.recv([ack(1).fin()]);
    t.send(ack(1).acking(2));
    assert_eq!((t.state(), t.connection.poll_timeout()), (State::FinWait2, Time::NEVER));
}

#[test]
fn the_minute_is_over_with_the_peers_fin() {
    let mut t = established(config());
    close_both(&mut t);
    t.recv([ack(1).fin()]);
    t.send(ack(1).acking(2));
    t.time(60_000);
    t.send(ack(1).acking(2).fin());
    t.recv([ack(1).seq(2).acking(2)]);
    t.time(60_000 + TIME_WAIT - 1);
    assert_eq!(t.state(), State::TimeWait);
}

#[test]
fn what_will_not_be_read_is_answered_with_a_reset() {
    // RFC 9293 §3.6.1, SHLD-3: what is there already, and what comes.
    let mut t = established(config());
    t.send(data(1));
    t.recv([ack(2)]);
    close_both(&mut t);
    t.recv([ack(2).rst()]);
    assert_eq!(t.state(), State::Closed);

    let mut t = established(config());
    close_both(&mut t);
    t.recv([ack(1).fin()]);
    t.send(data(1));
    t.recv([ack(2).seq(2).rst()]);
    let events = t.connection.take_events();
    assert_eq!((t.state(), events), (State::Closed, Events::CLOSED));
}

#[test]
fn a_fin_that_is_held_is_acknowledged_when_it_is_released() {
    let mut t = established(config());
    t.connection.hold_fin();
    t.send(data(1).fin());
    t.recv([ack(1).acking(1001)]);
    let events = Events::READABLE | Events::PEER_CLOSING;
    assert_eq!((t.state(), t.connection.take_events()), (State::Established, events));
    assert_eq!(t.connection.read().map(|payload| payload.len), Some(1000));
    // The peer's timer expires.
    t.time(1000);
    t.send(data(1).fin());
    t.recv([ack(1).acking(1001)]);
    t.time(1500);
    t.connection.release_fin(t.now);
    t.transmit();
    t.recv([ack(1).acking(1002)]);
    assert_eq!(
        (t.state(), t.connection.take_events()),
        (State::CloseWait, Events::PEER_CLOSING | Events::PEER_CLOSED)
    );
    t.close();
    t.recv([ack(1).acking(1002).fin()]);
}

#[test]
fn a_fin_that_is_released_before_it_arrives_is_acknowledged_at_once() {
    let mut t = established(config());
    t.connection.hold_fin();
    t.connection.release_fin(t.now);
    t.send(data(1).fin());
    t.recv([ack(1).acking(1002)]);
    assert_eq!(t.state(), State::CloseWait);
}
