//! What the standards ask for and the code does not do: these tests fail.

use super::*;

#[test]
fn a_closed_window_is_probed() {
    // RFC 9293 §3.8.6.1, MUST-36: else a lost window update stops the connection for ever.
    let mut t = sending(config());
    t.time(200);
    t.send(ack(11).window(0));
    t.silent();
    assert_ne!(t.connection.poll_timeout(), Time::NEVER);
}

#[test]
fn reading_opens_a_closed_window_again() {
    // RFC 9293 §3.8.6.2.2: the peer must hear of it.
    let mut t = established(Config { receive_window: 2000, ..config() });
    t.send(data(1));
    t.send(data(2));
    t.recv([ack(2), ack(3)]);
    assert_eq!(t.read(0), 2000);
    t.transmit();
    t.recv([ack(3)]);
    assert_eq!(t.last().window, 2000);
}
