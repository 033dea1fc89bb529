//! The tables beside figures 3.2 and 3.3, and the conditions.

use super::*;
use wire::ConnectivityChange as Change;

const EVENTS: [Event; 5] = [LocalCci, NewRemoteCci, EchoedLocalCci, EchoedRemoteCci, SegmentSent];
const INITIATORS: [LocalStatus; 3] = [Idle, New, EchoAck];
const RESPONDERS: [RemoteStatus; 2] = [RemoteStatus::Idle, RemoteStatus::Echo];
const PEER_TIME: u32 = 1000;
const LATER: u32 = 1001;

/// A handshake that stands so.
fn standing(strict: bool, local: LocalStatus, remote: RemoteStatus) -> Handshake {
    let (local_cci_status, remote_cci_status) = (local, remote);
    Handshake { local_cci_status, remote_cci_status, ..Handshake::new(strict, PEER_TIME) }
}

/// What must come of an event: the actions, and the status afterwards.
type Arrow<S> = (S, Event, Actions, S);

/// Figure 3.2, as drawn.
fn figure_3_2() -> Vec<Arrow<LocalStatus>> {
    use Actions as A;
    vec![
        (Idle, LocalCci, A::TGL_LOCAL_CCI | A::REPROBE_PATH | A::FORCE_SEND, New),
        (New, EchoedLocalCci, A::UPD_CCI_PEER_E_TIME, EchoAck),
        (EchoAck, SegmentSent, A::empty(), Idle),
        (Idle, EchoedLocalCci, A::empty(), EchoAck),
    ]
}

/// Figure 3.3, as drawn.
fn figure_3_3() -> Vec<Arrow<RemoteStatus>> {
    use Actions as A;
    use RemoteStatus::{Echo, Idle};
    let new = A::TGL_REMOTE_CCI | A::UPD_CCI_PEER_TIME | A::REPROBE_PATH | A::FORCE_SEND;
    vec![
        (Idle, NewRemoteCci, new, Echo),
        (Echo, EchoedRemoteCci, A::empty(), Idle),
        (Echo, NewRemoteCci, new, Echo),
    ]
}

/// The corrected initiator's arrows: two that the figure lacks, and two with further actions.
fn corrected() -> Vec<Arrow<LocalStatus>> {
    use Actions as A;
    let another = A::REPROBE_PATH | A::FORCE_SEND | A::REMEMBER;
    vec![
        (Idle, LocalCci, A::TGL_LOCAL_CCI | A::REPROBE_PATH | A::FORCE_SEND, New),
        (New, LocalCci, another, New),
        (EchoAck, LocalCci, another, EchoAck),
        (New, EchoedLocalCci, A::UPD_CCI_PEER_E_TIME | A::ACKNOWLEDGE, EchoAck),
        (EchoAck, SegmentSent, A::empty(), Idle),
        (Idle, EchoedLocalCci, A::ACKNOWLEDGE, EchoAck),
    ]
}

/// Plays every event in every state. What no arrow leaves is left as it was, down to the last variable.
fn verify(strict: bool, initiator: &[Arrow<LocalStatus>]) {
    let responder = figure_3_3();
    let (mut edges, mut rests) = (0, 0);
    for local in INITIATORS {
        for remote in RESPONDERS {
            for event in EVENTS {
                let before = standing(strict, local, remote);
                let left = initiator.iter().find(|arrow| (arrow.0, arrow.1) == (local, event));
                let right = responder.iter().find(|arrow| (arrow.0, arrow.1) == (remote, event));
                let done =
                    left.map_or(NOTHING, |arrow| arrow.2) | right.map_or(NOTHING, |arrow| arrow.2);
                let time = |renewed, old| if done.contains(renewed) { LATER } else { old };
                let expected = Handshake {
                    strict,
                    local_cci: done.contains(Actions::TGL_LOCAL_CCI),
                    remote_cci: done.contains(Actions::TGL_REMOTE_CCI),
                    local_cci_status: left.map_or(local, |arrow| arrow.3),
                    remote_cci_status: right.map_or(remote, |arrow| arrow.3),
                    remote_cci_peer_time: time(Actions::UPD_CCI_PEER_TIME, PEER_TIME),
                    local_cci_peer_echo_time: time(Actions::UPD_CCI_PEER_E_TIME, PEER_TIME),
                    pending: done.contains(Actions::REMEMBER),
                };
                let mut after = before;
                assert_eq!(after.step(event, LATER), done, "{local:?} {remote:?} {event:?}");
                assert_eq!(after, expected, "{local:?} {remote:?} {event:?}");
                if left.is_none() && right.is_none() {
                    assert_eq!(after, before, "no arrow: {local:?} {remote:?} {event:?}");
                    rests += 1;
                } else {
                    edges += 1;
                }
            }
        }
    }
    // Each arrow of one figure is met in every state of the other.
    let arrows = 2 * initiator.len() + 3 * responder.len();
    assert_eq!((edges, rests), (arrows, 30 - arrows));
}

#[test]
fn strictly_the_tables_are_figures_3_2_and_3_3_and_nothing_else() {
    assert_eq!((INITIATOR.len(), RESPONDER.len()), (4, 3));
    verify(true, &figure_3_2());
}

#[test]
fn corrected_an_echo_is_acknowledged_and_a_second_indication_remembered() {
    assert_eq!(CORRECTED.len(), 6);
    verify(false, &corrected());
}

/// An option that says only this.
fn option(c: bool, cs: LocalStatus, ec: bool, ecs: bool) -> Option<Change> {
    Some(Change { c, cs, ec, ecs, ..Change::default() })
}

/// What a segment at `time` does to a handshake that stands so.
fn after_segment(
    local: LocalStatus,
    remote: RemoteStatus,
    option: Option<Change>,
    time: u32,
) -> Handshake {
    let mut handshake = standing(true, local, remote);
    handshake.on_segment(option, time);
    handshake
}

#[test]
fn a_new_remote_indication_has_another_bit_says_so_and_is_later() {
    // C_NEW_REMOTE_CCI
    let (at_rest, echoes) = (RemoteStatus::Idle, RemoteStatus::Echo);
    let status = |option, time| {
        after_segment(Idle, at_rest, option, time).remote_cci_status == RemoteStatus::Echo
    };
    assert!(status(option(true, New, false, false), LATER));
    assert!(!status(option(false, New, false, false), LATER), "the bit that is known");
    for cs in [Idle, EchoAck] {
        assert!(!status(option(true, cs, false, false), LATER), "{cs:?}");
    }
    assert!(!status(option(true, New, false, false), PEER_TIME), "at the same time");
    assert!(!status(option(true, New, false, false), PEER_TIME - 1), "before");
    assert!(!status(None, LATER));
    let renewed = after_segment(Idle, echoes, option(true, New, false, false), LATER);
    assert_eq!((renewed.remote_cci, renewed.remote_cci_peer_time), (true, LATER));
}

#[test]
fn the_echo_of_the_local_indication_has_its_bit_says_so_and_is_later() {
    // C_ECHOED_LOCAL_CCI; the bit of the first indication would be 1, here it is 0.
    let status = |option, time| {
        after_segment(New, RemoteStatus::Idle, option, time).local_cci_status == EchoAck
    };
    assert!(status(option(false, Idle, false, true), LATER));
    assert!(!status(option(false, Idle, true, true), LATER), "of another indication");
    assert!(!status(option(false, Idle, false, false), LATER), "no echo");
    assert!(!status(option(false, Idle, false, true), PEER_TIME), "at the same time");
    assert!(!status(option(false, Idle, false, true), PEER_TIME - 1), "before");
    assert!(!status(None, LATER));
}

#[test]
fn the_acknowledgment_of_the_echo_has_its_bit_says_so_and_is_later() {
    // C_ECHOED_REMOTE_CCI
    let status = |option, time| {
        after_segment(Idle, RemoteStatus::Echo, option, time).remote_cci_status
            == RemoteStatus::Idle
    };
    assert!(status(option(false, EchoAck, false, false), LATER));
    assert!(!status(option(true, EchoAck, false, false), LATER), "of another indication");
    for cs in [Idle, New] {
        assert!(!status(option(false, cs, false, false), LATER), "{cs:?}");
    }
    assert!(!status(option(false, EchoAck, false, false), PEER_TIME), "at the same time");
    assert!(!status(option(false, EchoAck, false, false), PEER_TIME - 1), "before");
    assert!(!status(None, LATER));
}

#[test]
fn one_option_may_fulfil_two_conditions() {
    // The peer echoes our indication and signals its own.
    let mut handshake = standing(true, New, RemoteStatus::Idle);
    let actions = handshake.on_segment(option(true, New, false, true), LATER);
    assert_eq!(actions, NEW_REMOTE | Actions::UPD_CCI_PEER_E_TIME);
    assert_eq!(handshake.local_cci_status, EchoAck);
    assert_eq!(handshake.remote_cci_status, RemoteStatus::Echo);
}

#[test]
fn timestamps_are_compared_across_the_wrap() {
    for (stamp, than, later) in [
        (0, u32::MAX, true),
        (u32::MAX, 0, false),
        (5, u32::MAX - 5, true),
        (7, 7, false),
        (1 << 31, 1, true),
        ((1 << 31) + 1, 1, false),
    ] {
        assert_eq!(is_later(stamp, than), later, "{stamp} {than}");
    }
    let mut handshake = Handshake::new(true, u32::MAX);
    handshake.on_segment(option(true, New, false, false), 0);
    assert!(handshake.remote_cci, "0 is later than {}", u32::MAX);
    handshake.on_segment(option(true, EchoAck, false, false), u32::MAX);
    assert_eq!(handshake.remote_cci_status, RemoteStatus::Echo, "from before the wrap");
}

#[test]
fn timestamps_older_than_half_of_the_comparable_range_are_renewed() {
    const LIFETIME: u32 = 1 << 30;
    for start in [0, u32::MAX - 10] {
        let mut handshake = Handshake::new(true, start);
        handshake.on_segment(None, start.wrapping_add(LIFETIME));
        assert_eq!(handshake.remote_cci_peer_time, start, "not older");
        handshake.on_segment(None, start.wrapping_add(LIFETIME + 9));
        assert_eq!(handshake.remote_cci_peer_time, start.wrapping_add(9));
        assert_eq!(handshake.local_cci_peer_echo_time, start.wrapping_add(9));
        handshake.on_segment(None, start.wrapping_sub(1));
        assert_eq!(handshake.remote_cci_peer_time, start.wrapping_add(9), "an old segment");
        // Through more than the whole circle, an indication is still new.
        for step in 1..=5 {
            handshake.on_segment(None, start.wrapping_add(LIFETIME.wrapping_mul(step)));
        }
        let now = start.wrapping_add(LIFETIME.wrapping_mul(5)).wrapping_add(1);
        handshake.on_segment(option(true, New, false, false), now);
        assert!(handshake.remote_cci);
        assert_eq!(handshake.remote_cci_peer_time, now);
    }
}

#[test]
fn the_option_has_the_four_variables_while_an_indication_is_signalled_or_echoed() {
    let encoding = Encoding::default();
    assert_eq!(standing(true, Idle, RemoteStatus::Idle).option(encoding), None);
    let mut handshake = standing(true, New, RemoteStatus::Echo);
    (handshake.local_cci, handshake.remote_cci) = (true, false);
    assert_eq!(handshake.option(encoding), option(true, New, false, true));
    for (local, remote) in [(EchoAck, RemoteStatus::Idle), (Idle, RemoteStatus::Echo)] {
        assert!(standing(true, local, remote).option(encoding).is_some(), "{local:?} {remote:?}");
    }
}

#[test]
fn a_remembered_indication_is_signalled_when_the_echo_has_been_acknowledged() {
    let mut handshake = standing(false, New, RemoteStatus::Idle);
    handshake.on_local_cci();
    handshake.on_local_cci();
    assert_eq!(handshake.on_segment_sent(), NOTHING, "not before");
    handshake.on_segment(option(false, Idle, false, true), LATER);
    // It was acted on when it came.
    assert_eq!(handshake.on_segment_sent(), Actions::TGL_LOCAL_CCI | Actions::FORCE_SEND);
    assert_eq!((handshake.local_cci_status, handshake.local_cci), (New, true));
    handshake.on_segment(option(false, Idle, true, true), LATER + 1);
    assert_eq!(handshake.on_segment_sent(), NOTHING, "two that came meanwhile are one");
    assert!(handshake.is_idle());
}
