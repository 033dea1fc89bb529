//! Small segments (Nagle, RFC 9293 §3.7.4).

use super::*;

#[test]
fn nagle_holds_a_small_segment_until_all_is_acknowledged() {
    // RFC 9293 §3.7.4
    let mut t = established(Config { nagle: true, ..config() });
    t.write(300);
    t.recv([bytes(0, 300)]);
    t.write(300);
    t.write(300);
    t.silent();
    t.write(600); // 1200 wait: a full-sized segment goes, the rest does not.
    t.recv([bytes(300, 1300)]);
    t.time(200);
    t.send(ack(1).acking(301));
    t.silent();
    t.send(ack(1).acking(1301));
    t.recv([bytes(1300, 1500)]);
}

#[test]
fn nagle_lets_the_last_of_a_stream_go() {
    let mut t = established(Config { nagle: true, ..config() });
    t.write(300);
    t.recv([bytes(0, 300)]);
    t.write(300);
    t.silent();
    t.close();
    t.recv([bytes(300, 600).fin()]);
}

#[test]
fn nagle_meets_a_delayed_acknowledgment() {
    // Two small writes and a peer that waits for a second segment: the second write waits for the
    // peer's delay (RFC 9293 §3.8.6.3, RFC 1122 §4.2.3.4). Without Nagle it does not.
    for (nagle, first) in [(true, 300), (false, 600)] {
        let mut t = established(Config { nagle, ..config() });
        let mut peer =
            established(Config { delayed_ack: Some(Duration::from_millis(200)), ..config() });
        t.write(300);
        t.recv([bytes(0, 300)]);
        peer.send(bytes(0, 300));
        peer.silent();
        t.write(300);
        if first == 600 {
            t.recv([bytes(300, 600)]);
            peer.send(bytes(300, 600));
            peer.recv([ack(1).acking(601)]);
            continue;
        }
        t.silent();
        peer.time(300); // 200 ms later.
        peer.recv([ack(1).acking(301)]);
        t.time(300);
        t.send(ack(1).acking(301));
        t.recv([bytes(300, 600)]);
    }
}

/// Whether the last segment was pushed.
fn pushed(t: &Diagram) -> bool {
    t.last().flags.contains(Flags::PSH)
}

fn write_more(t: &mut Diagram, len: u64) {
    let end = t.connection.sender.stream.end() - 1;
    t.connection.write_more(3, end, len);
    t.transmit();
}

#[test]
fn what_is_to_be_followed_waits_to_fill_a_segment() {
    let mut t = established(config());
    write_more(&mut t, 300);
    t.silent();
    write_more(&mut t, 900);
    t.recv([bytes(0, 1000)]);
    assert!(!pushed(&t));
    t.write(100); // Nothing follows.
    t.recv([bytes(1000, 1300)]);
    assert!(pushed(&t));
    write_more(&mut t, 100);
    t.close();
    t.recv([bytes(1300, 1400).fin()]);
}

#[test]
fn what_is_to_be_followed_goes_at_last_and_is_not_pushed() {
    let mut t = established(config());
    write_more(&mut t, 300);
    t.time(1099);
    t.silent();
    t.time(1100); // A timeout after it was written.
    t.recv([bytes(0, 300)]);
    write_more(&mut t, 300);
    t.silent();
    t.connection.flush();
    t.transmit();
    t.recv([bytes(300, 600)]);
    assert!(!pushed(&t));
}

#[test]
fn a_segment_sent_while_data_was_held_has_a_full_timeout() {
    let mut t = established(config());
    write_more(&mut t, 300);
    t.time(1050);
    t.write(700);
    t.recv([bytes(0, 1000)]);
    t.time(2049);
    t.silent();
    t.time(2050);
    t.recv([bytes(0, 1000)]);
    assert_eq!(t.statistics().timeouts, 1);
}

#[test]
fn holding_data_back_is_no_timeout_and_backs_nothing_off() {
    let mut t = established(config());
    for n in 0..5 {
        write_more(&mut t, 300);
        t.time(1000 * u64::from(n) + 1100);
        t.recv([bytes(300 * n, 300 * n + 300)]);
        t.send(ack(1).acking(300 * n + 301));
        t.silent();
    }
    assert_eq!(t.connection.vitals().rto, Duration::from_secs(1));
    assert_eq!((t.statistics().timeouts, t.statistics().retransmissions), (0, 0));
}

#[test]
fn a_flush_sends_nothing_twice() {
    let mut t = established(config());
    for n in 0..5 {
        write_more(&mut t, 300);
        t.silent();
        t.connection.flush();
        t.transmit();
        t.recv([bytes(300 * n, 300 * n + 300)]);
    }
    t.time(200);
    t.send(ack(1).acking(301));
    t.send(ack(1).acking(1501));
    t.silent();
    assert_eq!(t.connection.vitals().rto, Duration::from_secs(1));
}

#[test]
fn data_that_is_held_back_behind_a_closed_window_is_held_once_there_is_room() {
    let mut t = established(config());
    t.send(ack(1).window(0));
    write_more(&mut t, 300);
    t.time(600);
    t.send(ack(1).window(1 << 18));
    t.silent();
    t.time(1599);
    t.silent();
    t.time(1600);
    t.recv([bytes(0, 300)]);
    assert_eq!(t.connection.vitals().rto, Duration::from_secs(1));
}

#[test]
fn a_corked_connection_opens() {
    let mut t = Diagram::new(&config(), Side::Passive);
    t.connection.cork(true);
    t.send(syn());
    t.recv([syn_ack()]);
}

#[test]
fn a_corked_connection_sends_full_sized_segments_until_it_is_uncorked() {
    let mut t = established(config());
    t.connection.cork(true);
    t.write(40);
    t.write(1000);
    t.recv([bytes(0, 1000)]);
    t.connection.flush(); // This once.
    t.transmit();
    t.recv([bytes(1000, 1040)]);
    t.write(40);
    t.silent();
    t.connection.cork(false);
    t.transmit();
    t.recv([bytes(1040, 1080)]);
    assert!(pushed(&t));
    t.write(40);
    t.recv([bytes(1080, 1120)]);
}

#[test]
fn nagle_can_be_changed_at_any_time() {
    let mut t = established(Config { nagle: true, ..config() });
    t.write(300);
    t.recv([bytes(0, 300)]);
    t.write(300);
    t.silent();
    t.connection.set_nagle(false);
    t.transmit();
    t.recv([bytes(300, 600)]);
}

#[test]
fn a_record_ends_a_segment_and_is_pushed() {
    // A segment carries one stream only: that is how a record is kept from the next.
    let mut t = established(config());
    for (stream, len) in [(3, 400), (4, 400), (5, 1400)] {
        t.connection.write(stream, 0, len);
    }
    let mut packet = Packet::BLANK;
    let mut sent = Vec::new();
    while t.connection.poll_transmit(t.now, 1, &mut packet).is_some() {
        let wire::Body::Tcp(segment) = packet.body else { panic!("not TCP") };
        sent.push((packet.payload.len, segment.flags.contains(Flags::PSH)));
    }
    assert_eq!(sent, [(400, true), (400, true), (1000, false), (400, true)]);
}
