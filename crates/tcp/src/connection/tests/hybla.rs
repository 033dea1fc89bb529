//! Hybla over a connection: what the round trip of the handshake changes.

use super::*;
use crate::congestion::Congestion;

#[test]
fn the_round_trip_of_the_handshake_scales_the_first_window() {
    // 100 ms are four times the reference: 4 segments, and four times the threshold.
    let config = Config {
        congestion: Congestion::Hybla,
        initial_window: InitialWindow::Segments(1),
        initial_ssthresh: Some(segments(10)),
        ..config()
    };
    let mut t = established(config.clone());
    assert_eq!(t.windows(), (segments(4), segments(40)));
    t.write(segments(10));
    t.recv((1..=4).map(data));
    // An acknowledgment adds 2^4 - 1 segments.
    t.time(200);
    t.send(ack(2));
    assert_eq!(t.windows().0, segments(19));

    // Without Hybla it does not.
    let aimd = established(Config { congestion: Congestion::Aimd, ..config });
    assert_eq!(aimd.windows(), (segments(1), segments(10)));
}
