//! Resets, aborts and SYNs in every state.

use super::*;

/// A connection in this state, and the next octet of the peer and of ours.
fn reached(state: State) -> (Diagram, u32, u32) {
    let half_closed = || {
        let mut t = established(config());
        t.close();
        t.recv([ack(1).fin()]);
        t
    };
    let (mut t, peer, ours) = match state {
        State::SynSent => {
            let mut t = Diagram::new(&config(), Side::Active);
            t.recv([syn()]);
            (t, 1, 1)
        }
        State::SynReceived => {
            let mut t = Diagram::new(&config(), Side::Passive);
            t.send(syn());
            t.recv([syn_ack()]);
            (t, 1, 1)
        }
        State::Established => (established(config()), 1, 1),
        State::FinWait1 => (half_closed(), 1, 2),
        State::FinWait2 => {
            let mut t = half_closed();
            t.send(ack(1).acking(2));
            (t, 1, 2)
        }
        State::CloseWait | State::LastAck => {
            let mut t = established(config());
            t.send(ack(1).fin());
            t.recv([ack(1).acking(2)]);
            if state == State::LastAck {
                t.close();
                t.recv([ack(1).acking(2).fin()]);
            }
            (t, 2, if state == State::LastAck { 2 } else { 1 })
        }
        State::Closing => {
            let mut t = half_closed();
            t.send(ack(1).fin());
            t.recv([ack(1).seq(2).acking(2)]);
            (t, 2, 2)
        }
        State::TimeWait => {
            let mut t = half_closed();
            t.send(ack(1).acking(2).fin());
            t.recv([ack(1).seq(2).acking(2)]);
            (t, 2, 2)
        }
        State::Closed => {
            let (mut t, peer, ours) = reached(State::LastAck);
            t.send(ack(1).seq(2).acking(2));
            (t, peer, ours)
        }
    };
    assert_eq!(t.state(), state);
    t.connection.take_events();
    (t, peer, ours)
}

const SYNCHRONIZED: [State; 7] = [
    State::Established,
    State::FinWait1,
    State::FinWait2,
    State::CloseWait,
    State::Closing,
    State::LastAck,
    State::TimeWait,
];

#[test]
fn a_reset_of_the_next_octet_ends_every_state_but_time_wait() {
    // RFC 9293 §3.10.7.3 and §3.10.7.4, second; RFC 5961 §3.2.
    let all = [State::SynSent, State::SynReceived].into_iter().chain(SYNCHRONIZED);
    for state in all {
        let (mut t, peer, _) = reached(state);
        t.send(ack(1).seq(peer).rst());
        t.silent();
        let events = match state {
            State::TimeWait => Events::empty(), // RFC 1337
            // A passive open goes back to listening; the application was not notified of it.
            State::SynReceived => Events::CLOSED,
            _ => Events::RESET | Events::CLOSED,
        };
        let after = if state == State::TimeWait { state } else { State::Closed };
        assert_eq!((t.state(), t.connection.take_events()), (after, events), "{state:?}");
        if after == State::Closed {
            assert_eq!(t.connection.poll_timeout(), Time::NEVER);
        }
    }
}

#[test]
fn a_reset_inside_the_window_is_challenged_in_every_state() {
    // RFC 5961 §3.2
    for state in [State::SynReceived].into_iter().chain(SYNCHRONIZED) {
        let (mut t, peer, ours) = reached(state);
        t.send(ack(1).seq(peer + 1).rst());
        match state {
            State::TimeWait => t.silent(),
            _ => t.recv([ack(1).seq(ours).acking(peer)]),
        }
        assert_eq!((t.state(), t.connection.take_events()), (state, Events::empty()));
    }
}

#[test]
fn a_reset_outside_the_window_does_nothing_in_any_state() {
    for state in [State::SynReceived].into_iter().chain(SYNCHRONIZED) {
        let (mut t, peer, _) = reached(state);
        t.send(ack(1).seq(peer.wrapping_sub(1)).rst());
        t.send(ack(1).seq(peer + config().receive_window.maximum + 2).rst());
        t.silent();
        assert_eq!((t.state(), t.connection.take_events()), (state, Events::empty()));
    }
}

#[test]
fn a_reset_that_acknowledges_nothing_does_not_refuse_an_open() {
    // RFC 9293 §3.10.7.3, second.
    let (mut t, ..) = reached(State::SynSent);
    t.send(reset(1));
    t.silent();
    assert_eq!((t.state(), t.connection.take_events()), (State::SynSent, Events::empty()));
}

#[test]
fn a_syn_is_challenged_in_every_synchronized_state() {
    // RFC 5961 §4.2, RFC 9293 §3.10.7.4, fourth.
    for state in SYNCHRONIZED {
        let (mut t, peer, ours) = reached(state);
        for seq in [0, peer, 1 << 30] {
            t.send(syn().seq(seq));
            t.recv([ack(1).seq(ours).acking(peer)]);
        }
        assert_eq!((t.state(), t.connection.take_events()), (state, Events::empty()));
    }
}

#[test]
fn an_abort_resets_the_peer_unless_it_has_all_or_never_answered() {
    // RFC 9293 §3.10.5, but for CLOSING and LAST-ACK: the peer may still wait for data.
    let all = [State::SynSent, State::SynReceived].into_iter().chain(SYNCHRONIZED);
    for state in all {
        let (mut t, peer, ours) = reached(state);
        t.abort();
        match state {
            State::SynSent | State::TimeWait => t.silent(),
            _ => t.recv([ack(1).seq(ours).acking(peer).rst()]),
        }
        assert_eq!((t.state(), t.connection.take_events()), (State::Closed, Events::CLOSED));
        t.time(1_000_000);
        t.silent();
    }
}

#[test]
fn a_closed_connection_is_deaf_and_dumb() {
    let (mut t, peer, ours) = reached(State::Closed);
    t.send(syn());
    t.send(data(1).seq(peer));
    t.write(1000);
    t.close();
    t.abort();
    t.connection.handle_timeout(t.now);
    t.transmit();
    t.silent();
    assert_eq!((t.state(), t.connection.take_events()), (State::Closed, Events::empty()));
    assert_eq!(t.connection.last_sent(), ISS + ours);
}

#[test]
fn an_abort_drops_what_was_not_sent() {
    let mut t = sending(config());
    t.abort();
    t.recv([ack(1).seq(at(11)).rst()]);
    assert_eq!(t.last().window, 0);
    t.send(ack(11));
    t.time(100_000);
    t.silent();
}

#[test]
fn a_connection_that_was_given_up_says_so_once() {
    let mut t = sending_only(1, Config { retries: 0, ..config() });
    t.time(1100);
    assert_eq!(t.connection.take_events(), Events::TIMED_OUT | Events::CLOSED);
    t.connection.handle_timeout(t.now);
    assert_eq!(t.connection.take_events(), Events::empty());
}

#[test]
fn a_reset_just_beyond_the_window_does_nothing() {
    // RFC 5961 §3.2, case 3: the window ends before RCV.NXT + RCV.WND. What a SYN cannot say of the
    // window, the peer does not know of.
    for (state, window) in [
        (State::SynReceived, u32::from(u16::MAX)),
        (State::Established, config().receive_window.maximum),
    ] {
        let (mut t, peer, ours) = reached(state);
        t.send(ack(1).seq(peer + window).rst());
        t.silent();
        t.send(ack(1).seq(peer + window - 1).rst());
        t.recv([ack(1).seq(ours).acking(peer)]);
    }
}
