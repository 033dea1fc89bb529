//! The three-way handshake and what it agrees on.

use super::*;

#[test]
fn an_active_open_sends_its_offers_and_acknowledges_the_answer() {
    let mut t = Diagram::new(&config(), Side::Active);
    t.recv([syn()]);
    let offer = t.last().options;
    assert_eq!((offer.mss, offer.window_scale), (Some(1000), Some(SHIFT)));
    assert!(offer.sack_permitted);
    assert_eq!(t.last().window, u16::MAX, "RFC 7323 §2.2: the window of a SYN is not scaled");
    t.time(100);
    t.send(syn_ack());
    t.recv([ack(1)]);
    assert_eq!((t.state(), t.connection.take_events()), (State::Established, Events::CONNECTED));
    assert_eq!(t.last().options.len(), 0, "the offers are for the SYN alone");
    assert_eq!(t.connection.poll_timeout(), Time::NEVER);
}

#[test]
fn a_passive_open_answers_with_its_offers_and_waits_for_the_acknowledgment() {
    let mut t = Diagram::new(&config(), Side::Passive);
    t.silent();
    t.send(syn());
    t.recv([syn_ack()]);
    let offer = t.last().options;
    assert_eq!((offer.mss, offer.window_scale), (Some(1000), Some(SHIFT)));
    assert!(offer.sack_permitted);
    assert_eq!((t.state(), t.connection.take_events()), (State::SynReceived, Events::empty()));
    t.time(100);
    t.send(ack(1).seq(1));
    t.silent();
    assert_eq!((t.state(), t.connection.take_events()), (State::Established, Events::CONNECTED));
}

#[test]
fn data_carries_the_acknowledgment_of_the_handshake() {
    let mut t = Diagram::new(&config(), Side::Active);
    t.recv([syn()]);
    t.write(1500);
    t.silent(); // Nothing before the peer has spoken.
    t.time(100);
    t.send(syn_ack());
    t.recv([data(1), bytes(1000, 1500)]);
}

#[test]
fn data_before_the_handshake_is_over_waits() {
    let mut t = Diagram::new(&config(), Side::Passive);
    t.send(syn());
    t.recv([syn_ack()]);
    t.write(1000);
    t.silent();
    t.time(100);
    t.send(ack(1));
    t.recv([data(1)]);
}

#[test]
fn the_smaller_of_the_two_segment_sizes_counts() {
    for (mine, peers, smaller) in [(1000, 400, 400), (400, 1000, 400), (1000, 9000, 1000)] {
        let mut t = Diagram::new(&Config { mss: mine, ..config() }, Side::Active);
        t.recv([syn()]);
        t.offer.mss = Some(peers);
        t.write(1000);
        t.send(syn_ack());
        let cuts = (0..1000).step_by(smaller);
        t.recv(
            cuts.map(|from| from as u32).map(|from| bytes(from, (from + smaller as u32).min(1000))),
        );
    }
}

#[test]
fn a_peer_cannot_ask_for_tiny_segments() {
    // Linux: tcp_min_snd_mss. Less than our own segments have is no size that a peer asks for.
    for (minimum, mine, peers, size) in [
        (48, 1000, 1, 48),
        (48, 1000, 0, 48),
        (48, 1000, 50, 50),
        (48, 20, 1, 20),
        (0, 1000, 30, 30),
    ] {
        let config = Config { mss: mine, minimum_mss: minimum, ..config() };
        let mut t = Diagram::new(&config, Side::Active);
        t.recv([syn()]);
        t.offer.mss = Some(peers);
        t.write(100);
        t.send(syn_ack());
        let cuts = (0..100).step_by(size as usize);
        t.recv(cuts.map(|from| bytes(from, (from + size).min(100))));
    }
    // The least that there may be, whatever is said.
    let mut t = Diagram::new(&Config { minimum_mss: 0, ..config() }, Side::Active);
    t.recv([syn()]);
    t.offer.mss = Some(0);
    t.write(2);
    t.send(syn_ack());
    t.recv([bytes(0, 1), bytes(1, 2)]);
}

#[test]
fn a_syn_without_an_answer_is_given_up_after_three_minutes() {
    // RFC 9293 §3.8.3, MUST-23.
    let mut t = Diagram::new(&config(), Side::Active);
    t.recv([syn()]);
    for seconds in [1, 3, 7, 15, 31, 63, 123] {
        t.time(seconds * 1000);
        t.recv([syn()]);
    }
    t.time(182_999);
    assert_eq!(t.state(), State::SynSent);
    t.time(183_000);
    assert_eq!(t.connection.take_events(), Events::TIMED_OUT | Events::CLOSED);
}

#[test]
fn an_answer_to_a_syn_that_is_not_acknowledged_is_given_up_sooner() {
    let mut t = Diagram::new(&config(), Side::Passive);
    t.send(syn());
    t.recv([syn_ack()]);
    for seconds in [1, 3, 7, 15, 31] {
        t.time(seconds * 1000);
        t.recv([syn_ack()]);
    }
    t.time(62_999);
    assert_eq!(t.state(), State::SynReceived);
    t.time(63_000);
    assert_eq!(t.state(), State::Closed);
}

#[test]
fn retries_limit_those_of_a_syn() {
    for (retries, syn_retries) in [(1, 7), (15, 1)] {
        let mut t = Diagram::new(&Config { retries, syn_retries, ..config() }, Side::Active);
        t.recv([syn()]);
        t.time(1000);
        t.recv([syn()]);
        t.time(3000);
        assert_eq!(t.state(), State::Closed);
    }
    // Once it is acknowledged, those of data count.
    let mut t = sending_only(1, Config { retries: 3, syn_retries: 0, ..config() });
    for millis in [1100, 3100, 7100] {
        t.time(millis);
        t.recv([data(1)]);
    }
    t.time(15_100);
    assert_eq!(t.state(), State::Closed);
}

#[test]
fn a_peer_that_does_not_name_its_segment_size_gets_536_bytes() {
    // RFC 9293 §3.7.1, MUST-15.
    let mut t = Diagram::new(&config(), Side::Active);
    t.recv([syn()]);
    t.offer.mss = None;
    t.write(1000);
    t.send(syn_ack());
    t.recv([bytes(0, 536), bytes(536, 1000)]);
}

#[test]
fn over_ipv6_that_is_1220_bytes() {
    let mut t = Diagram::new(&Config { mss: 1440, ..config() }, Side::Active);
    let identity = Identity { is_ipv6: true, ..IDENTITY };
    t.connection = Connection::new(&Config { mss: 1440, ..config() }, Side::Active, identity);
    t.unseen.clear();
    t.transmit();
    t.recv([syn()]);
    t.offer.mss = None;
    t.write(2000);
    t.send(syn_ack());
    t.recv([bytes(0, 1220), bytes(1220, 2000)]);
}

#[test]
fn windows_are_scaled_if_both_offer_it() {
    let mut t = Diagram::new(&config(), Side::Active);
    t.recv([syn()]);
    t.window = 48_000;
    t.send(syn_ack().window(3000));
    t.recv([ack(1)]);
    assert_eq!(u32::from(t.last().window) << SHIFT, config().receive_window.maximum);
    t.write(1 << 30);
    t.recv(each(1..=3)); // The window of the SYN is what it says ...
    t.time(100);
    t.send(ack(1)); // ... and that of any other segment is shifted: 3000 = 48000 >> 4.
    t.recv(each(4..=10));
}

#[test]
fn windows_are_not_scaled_if_the_peer_does_not_offer_it() {
    // RFC 7323 §2.2: without the option in both SYNs, both shifts are zero.
    let mut t = Diagram::new(&config(), Side::Active);
    t.recv([syn()]);
    t.offer.window_scale = None;
    t.peer_shift = 0;
    t.window = 3000;
    t.send(syn_ack());
    t.recv([ack(1)]);
    assert_eq!(t.last().window, u16::MAX);
    t.write(1 << 30);
    t.recv(each(1..=3));
    t.time(100);
    t.send(ack(2));
    t.recv([data(4)]);
}

#[test]
fn selective_acknowledgments_need_the_permission_of_both() {
    // RFC 2018 §2. Without, an acknowledgment's blocks mean nothing, and none are sent.
    for (recovery, permitted) in [(Recovery::Sack, false), (Recovery::NewReno, true)] {
        let mut t = Diagram::new(&Config { recovery, ..config() }, Side::Active);
        t.recv([syn()]);
        assert_eq!(t.last().options.sack_permitted, recovery == Recovery::Sack);
        t.offer.sack_permitted = permitted;
        t.send(syn_ack());
        t.recv([ack(1)]);
        t.send(data(2));
        t.recv([ack(1)]);
    }
    let mut t = Diagram::new(&config(), Side::Passive);
    t.offer.sack_permitted = false;
    t.send(syn());
    t.recv([syn_ack()]);
    assert!(!t.last().options.sack_permitted);
}

#[test]
fn without_selective_acknowledgments_newreno_recovers_instead() {
    let mut t = Diagram::new(&config(), Side::Active);
    t.recv([syn()]);
    t.offer.sack_permitted = false;
    t.write(1 << 30);
    t.time(100);
    t.send(syn_ack());
    t.recv(each(1..=10));
    t.time(200);
    for _ in 0..2 {
        t.send(ack(1));
        t.silent();
    }
    t.send(ack(1));
    t.recv([data(1)]);
    t.time(300);
    t.send(ack(4)); // A partial acknowledgment: the next hole (RFC 6582 §3.2).
    t.recv([data(4)]);
}

#[test]
fn a_lost_syn_is_sent_again_after_one_two_and_four_seconds() {
    let mut t = Diagram::new(&Config { syn_retries: 15, ..config() }, Side::Active);
    t.recv([syn()]);
    for seconds in [1, 3, 7, 15, 31, 63, 123, 183] {
        t.time(1000 * seconds); // RFC 6298 §5.5; the last two meet the maximum of 60 s.
        t.recv([syn()]);
    }
    assert_eq!(t.statistics().timeouts, 8);
}

#[test]
fn after_a_lost_syn_data_starts_with_one_segment_and_three_seconds() {
    let mut t = Diagram::new(&config(), Side::Active);
    t.recv([syn()]);
    t.write(1 << 30);
    t.time(1000);
    t.recv([syn()]);
    t.time(1100);
    t.send(syn_ack());
    t.recv([data(1)]); // RFC 5681 §3.1: IW is one segment.
    assert_eq!(t.windows(), (segments(1), u64::MAX));
    t.time(4100); // RFC 6298 §5.7: there is no sample, so it is three seconds.
    t.recv([data(1)]);
    t.time(10_100);
    t.recv([data(1)]);
}

#[test]
fn the_acknowledgment_of_a_syn_does_not_grow_the_window() {
    // RFC 5681 §3.1: the SYN/ACK and its acknowledgment must not increase the window.
    let t = sending(config());
    assert_eq!(t.windows(), (segments(10), u64::MAX));
}

#[test]
fn an_answer_to_another_syn_is_not_believed() {
    for wrong in [0, 2] {
        let mut t = Diagram::new(&config(), Side::Active);
        t.recv([syn()]);
        t.send(syn_ack().acking(wrong));
        t.recv([reset(wrong)]);
        t.send(syn_ack().acking(wrong).rst());
        t.silent();
        assert_eq!(t.state(), State::SynSent);
    }
}

#[test]
fn a_refused_connection_closes() {
    let mut t = Diagram::new(&config(), Side::Active);
    t.recv([syn()]);
    t.send(ack(1).seq(0).rst());
    t.silent();
    assert_eq!(t.state(), State::Closed);
    assert_eq!(t.connection.take_events(), Events::RESET | Events::CLOSED);
    t.time(100_000); // It does not try again.
}

#[test]
fn a_lost_answer_is_sent_again_and_so_is_a_lost_acknowledgment_of_it() {
    let mut t = Diagram::new(&config(), Side::Passive);
    t.send(syn());
    t.recv([syn_ack()]);
    t.time(1000);
    t.recv([syn_ack()]);
    let mut t = established(config());
    t.time(1100);
    t.send(syn_ack()); // Ours was lost: the peer sends its SYN again.
    t.recv([ack(1)]); // RFC 9293 §3.10.7.4, RFC 5961 §4.
    assert_eq!(t.state(), State::Established);
}

#[test]
fn a_second_syn_does_not_disturb_the_handshake() {
    let mut t = Diagram::new(&config(), Side::Passive);
    t.send(syn());
    t.recv([syn_ack()]);
    t.time(50);
    t.send(syn());
    t.unseen.clear(); // Whatever it says to that, ...
    t.time(100);
    t.send(ack(1));
    t.silent();
    assert_eq!(t.state(), State::Established);
}

#[test]
fn window_scaling_is_offered_in_answer_only_to_an_offer() {
    // RFC 7323 §2.2: the option may be in a SYN-ACK if it was in the SYN.
    let mut t = Diagram::new(&config(), Side::Passive);
    t.offer.window_scale = None;
    t.send(syn());
    t.recv([syn_ack()]);
    assert_eq!(t.last().options.window_scale, None);
}

#[test]
fn after_a_lost_syn_ack_data_starts_with_three_seconds() {
    // RFC 6298 §5.7 speaks of the timer that awaits "the ACK of a SYN segment": of either SYN.
    let mut t = Diagram::new(&config(), Side::Passive);
    t.send(syn());
    t.recv([syn_ack()]);
    t.write(1 << 30);
    t.time(1000);
    t.recv([syn_ack()]);
    t.time(1100);
    t.send(ack(1));
    t.recv([data(1)]);
    t.time(4100);
    t.recv([data(1)]);
}

#[test]
fn a_lost_syn_ack_leaves_the_threshold_as_a_lost_syn_does() {
    // RFC 5681 §3.1 reduces the initial window to one segment, and no more.
    let mut t = Diagram::new(&config(), Side::Passive);
    t.send(syn());
    t.recv([syn_ack()]);
    t.write(1 << 30);
    t.time(1000);
    t.recv([syn_ack()]);
    t.time(1100);
    t.send(ack(1));
    t.recv([data(1)]);
    assert_eq!(t.windows(), (segments(1), u64::MAX));
}

#[test]
fn a_connection_that_is_closed_before_it_is_open_is_over() {
    // RFC 9293 §3.10.4: "Delete the TCB". Its host needs the event to free the ports.
    let mut t = Diagram::new(&config(), Side::Active);
    t.recv([syn()]);
    t.close();
    assert_eq!((t.state(), t.connection.take_events()), (State::Closed, Events::CLOSED));
    assert_eq!(t.connection.poll_timeout(), Time::NEVER);
}

#[test]
fn an_acknowledgment_of_another_answer_than_ours_is_answered_with_a_reset() {
    // RFC 9293 §3.10.7.4, fifth, SYN-RECEIVED.
    for wrong in [2, 1000, 1 << 31, u32::MAX] {
        let mut t = Diagram::new(&config(), Side::Passive);
        t.send(syn());
        t.recv([syn_ack()]);
        t.send(ack(1).acking(wrong));
        t.recv([reset(wrong)]);
        assert_eq!(t.state(), State::SynReceived);
    }
}

#[test]
fn an_answer_to_a_syn_that_was_not_sent_yet_is_not_believed() {
    // RFC 9293 §3.10.7.3, first: SEG.ACK > SND.NXT, as an off-path attacker guesses it.
    let mut connection = Connection::new(&config(), Side::Active, IDENTITY);
    let (seq, ack, flags) = (PEER_ISS, ISS + 1, Flags::SYN | Flags::ACK);
    let guess = Segment { seq, ack, flags, window: 1000, ..Segment::default() };
    connection.handle_segment(Time::ZERO, &guess, Payload::default(), Ecn::NotCapable);
    assert_eq!((connection.state(), connection.take_events()), (State::SynSent, Events::empty()));
}
