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
