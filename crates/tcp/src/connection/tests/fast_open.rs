//! TCP Fast Open (RFC 7413): data in the SYN.

use super::*;
use wire::FastOpenCookie;

fn cookie(byte: u8) -> FastOpenCookie {
    FastOpenCookie::new(&[byte; 8]).unwrap()
}

/// A client that has written `len` bytes before its SYN goes.
fn client(config: &Config, how: FastOpen, len: u64) -> Diagram {
    let mut t = Diagram::new(config, Side::Passive);
    t.connection = Connection::new(config, Side::Active, IDENTITY);
    t.connection.fast_open(how);
    if len > 0 {
        t.connection.write(3, 0, len);
    }
    t.transmit();
    t
}

fn offer() -> FastOpen {
    FastOpen::Offer { cookie: cookie(9), mss: MSS as u16 }
}

fn server(how: FastOpen) -> Diagram {
    let t = Diagram::new(&config(), Side::Passive);
    let mut t = Diagram { offer: wire::Options { sack_permitted: true, ..t.offer }, ..t };
    t.connection.fast_open(how);
    t
}

/// A SYN with data.
fn syn_data(len: u32) -> Seg {
    Seg { len, ..syn() }
}

/// The Fast Open option of the last segment.
fn option(t: &Diagram) -> Option<FastOpenCookie> {
    t.sent.last().unwrap().unparsed.fast_open()
}

#[test]
fn a_client_without_a_cookie_requests_one() {
    let mut t = client(&config(), FastOpen::Request, 500);
    t.recv([syn()]);
    assert_eq!(option(&t), Some(FastOpenCookie::REQUEST));
    assert_eq!(t.connection.take_events(), Events::empty());
    t.time(100);
    t.send(syn_ack());
    t.recv([bytes(0, 500)]);
    assert_eq!(option(&t), None);
    assert_eq!(t.connection.take_events(), Events::CONNECTED);
    assert_eq!(t.connection.fast_open_result(), None);
}

#[test]
fn the_first_data_goes_with_the_syn() {
    let mut t = client(&config(), offer(), 500);
    assert_eq!(t.connection.take_events(), Events::CONNECTED, "before any packet");
    t.recv([syn_data(500)]);
    assert_eq!(option(&t), Some(cookie(9)));
    assert_eq!(last_mark(&t), Ecn::NotCapable);
    assert!(t.last().flags.contains(Flags::PSH));
    t.write(300);
    t.silent(); // The window is not known yet.
    t.time(100);
    t.send(syn_ack().acking(501));
    t.recv([bytes(500, 800)]);
    assert_eq!((t.state(), t.connection.take_events()), (State::Established, Events::CONFIRMED));
    assert_eq!(t.connection.fast_open_result(), Some(FastOpenResult::Accepted));
    assert_eq!(t.windows().0, segments(10), "the initial window");
    assert_eq!(t.connection.vitals().srtt, Some(Duration::from_millis(100)));
}

#[test]
fn a_syn_has_at_most_a_segment_less_the_options() {
    // RFC 7413 §4.2.1: of the MSS that came with the cookie, or ours.
    for (cached, most) in [(536, 496), (1000, 960), (9000, 960), (20, 0)] {
        let mut t = client(&config(), FastOpen::Offer { cookie: cookie(9), mss: cached }, 2000);
        t.recv([syn_data(most)]);
        t.send(syn_ack().acking(1 + most));
        assert_eq!(t.unseen.front().unwrap().1.seq, 1 + most);
    }
}

#[test]
fn without_data_the_cookie_goes_alone() {
    let mut t = client(&config(), offer(), 0);
    t.recv([syn()]);
    assert_eq!(option(&t), Some(cookie(9)));
    t.write(500);
    t.silent(); // Only the first SYN has data.
    t.time(1000);
    t.recv([syn()]);
    t.send(syn_ack());
    t.recv([bytes(0, 500)]);
}

#[test]
fn data_that_the_server_has_not_accepted_follows_at_once() {
    // RFC 7413 §4.2.1; not as a loss: the window stays.
    for (acked, rest) in [(1, 0), (201, 200)] {
        let mut t = client(&config(), offer(), 500);
        t.recv([syn_data(500)]);
        t.write(300);
        t.time(100);
        t.send(syn_ack().acking(acked));
        t.recv([bytes(rest, 500), bytes(500, 800)]);
        assert_eq!(t.connection.fast_open_result(), Some(FastOpenResult::Refused));
        assert_eq!((t.windows().0, t.statistics().reductions), (segments(10), 0));
        t.time(200);
        t.send(ack(1).acking(801));
        t.silent();
        assert_eq!(t.connection.info().recovery_state, RecoveryState::Open);
    }
}

#[test]
fn a_syn_without_an_answer_is_sent_again_without_option_and_data() {
    // RFC 7413 §4.1.3.1
    let mut t = client(&config(), offer(), 500);
    t.recv([syn_data(500)]);
    t.time(1000);
    t.recv([syn()]);
    assert_eq!(option(&t), None);
    assert_eq!(t.connection.fast_open_result(), Some(FastOpenResult::Unanswered));
    t.time(3000);
    t.recv([syn()]);
    t.time(3100);
    t.send(syn_ack());
    t.recv([bytes(0, 500)]);
    assert_eq!(t.connection.fast_open_result(), Some(FastOpenResult::Unanswered));
    let mut t = client(&config(), FastOpen::Request, 500);
    t.recv([syn()]);
    t.time(1000);
    t.recv([syn()]);
    assert_eq!(option(&t), None);
    assert_eq!(t.connection.fast_open_result(), Some(FastOpenResult::Unanswered));
}

#[test]
fn a_late_answer_to_the_syn_with_data_acknowledges_the_data() {
    let mut t = client(&config(), offer(), 500);
    t.recv([syn_data(500)]);
    t.time(1000);
    t.recv([syn()]);
    t.send(syn_ack().acking(501));
    t.recv([ack(1).seq(501)]);
    assert_eq!(t.connection.unacknowledged(), 0);
}

#[test]
fn an_acknowledgment_of_more_than_was_sent_with_the_syn_is_refused() {
    let mut t = client(&config(), offer(), 500);
    t.recv([syn_data(500)]);
    t.send(syn_ack().acking(502));
    t.recv([reset(502)]);
    t.send(syn_ack().acking(0));
    t.recv([reset(0)]);
    assert_eq!(t.state(), State::SynSent);
}

#[test]
fn what_is_closed_before_the_handshake_is_complete_ends_after_it() {
    let mut t = client(&config(), offer(), 500);
    t.connection.close();
    t.recv([syn_data(500)]);
    assert_eq!(t.state(), State::SynSent);
    t.send(syn_ack().acking(501));
    t.recv([ack(1).seq(501).fin()]);
    assert_eq!(t.state(), State::FinWait1);
    t.send(ack(1).seq(1).acking(502));
    assert_eq!(t.state(), State::FinWait2);
}

#[test]
fn data_of_a_syn_ack_is_accepted() {
    let mut t = client(&config(), offer(), 500);
    t.recv([syn_data(500)]);
    t.send(Seg { len: 100, ..syn_ack().acking(501) });
    t.recv([ack(1).seq(501).acking(101)]);
    assert_eq!(t.read(0), 100);
}

#[test]
fn both_ends_may_open_at_once() {
    let mut t = client(&config(), offer(), 500);
    t.recv([syn_data(500)]);
    t.send(syn());
    t.recv([syn_ack()]);
    t.send(syn_ack());
    t.recv([bytes(0, 500)]);
    assert_eq!(t.state(), State::Established);
    assert_eq!(t.connection.take_events(), Events::CONNECTED | Events::CONFIRMED);
}

#[test]
fn a_server_without_a_valid_cookie_grants_one_and_ignores_the_data() {
    let mut t = server(FastOpen::Grant(cookie(5)));
    t.send(syn_data(500));
    t.recv([syn_ack()]);
    assert_eq!(option(&t), Some(cookie(5)));
    assert_eq!((t.connection.readable(), t.connection.take_events()), (0, Events::empty()));
    t.send(bytes(0, 500));
    t.recv([ack(1).seq(1).acking(501)]);
}

#[test]
fn a_server_delivers_the_data_of_the_syn_and_answers_before_the_handshake_is_complete() {
    // RFC 7413 §4.2.2
    let mut t = server(FastOpen::Accept(None));
    t.connection.write(3, 0, 0);
    t.arrive(syn_data(500));
    assert_eq!(t.connection.take_events(), Events::CONNECTED | Events::READABLE);
    assert_eq!(t.connection.read().map(|payload| (payload.offset, payload.len)), Some((0, 500)));
    t.write(1500);
    t.recv([syn_ack().acking(501), data(1).acking(501), bytes(1000, 1500).acking(501)]);
    assert_eq!(t.sent[0].unparsed.fast_open(), None);
    assert_eq!(t.state(), State::SynReceived);
    t.time(100);
    t.send(ack(1).seq(501).acking(1501));
    t.silent();
    assert_eq!((t.state(), t.connection.take_events()), (State::Established, Events::CONFIRMED));
}

#[test]
fn a_small_answer_does_not_wait_for_the_handshake_under_nagle() {
    // RFC 7413 §4.2.2: the SYN-ACK is no unacknowledged data.
    let config = Config { nagle: true, ..config() };
    let mut t = Diagram::new(&config, Side::Passive);
    t.connection.fast_open(FastOpen::Accept(None));
    t.arrive(syn_data(500));
    t.connection.read();
    t.write(100);
    t.recv([syn_ack().acking(501), bytes(0, 100).acking(501)]);
    t.write(100); // But the first answer is.
    t.silent();
}

#[test]
fn the_room_of_a_syn_is_a_segment_less_the_options() {
    let t = client(&config(), FastOpen::Request, 0);
    assert_eq!(t.connection.syn_room(), 0);
    let mut connection = Connection::new(&config(), Side::Active, IDENTITY);
    connection.fast_open(offer());
    assert_eq!(connection.syn_room(), MSS - 40);
    let t = client(&config(), offer(), 500);
    assert_eq!(t.connection.syn_room(), 0, "it has left");
}

#[test]
fn the_end_of_the_handshake_does_not_start_a_servers_sender_again() {
    let mut t = server(FastOpen::Accept(None));
    t.arrive(syn_data(500));
    t.write(1 << 20);
    assert_eq!(t.unseen.len(), 1 + 9); // The SYN takes an octet of the window.
    t.unseen.clear();
    t.time(100);
    t.send(ack(6).seq(501));
    t.unseen.clear();
    assert_eq!(t.windows().0, segments(11), "slow start");
}

#[test]
fn a_server_keeps_to_the_window_of_the_syn() {
    let mut t = server(FastOpen::Accept(None));
    t.arrive(syn_data(500).window(1200));
    t.connection.read();
    t.write(5000);
    t.recv([syn_ack().acking(501), data(1).acking(501)]);
}

#[test]
fn a_server_with_a_new_key_accepts_the_data_and_sends_the_new_cookie() {
    let mut t = server(FastOpen::Accept(Some(cookie(6))));
    t.send(syn_data(500));
    t.recv([syn_ack().acking(501)]);
    assert_eq!(option(&t), Some(cookie(6)));
}

#[test]
fn unread_data_of_the_syn_takes_room_in_the_window() {
    for read in [false, true] {
        let mut t = Diagram::new(
            &Config { receive_window: ReceiveWindow::fixed(3000), ..config() },
            Side::Passive,
        );
        t.connection.fast_open(FastOpen::Accept(None));
        t.arrive(syn_data(500));
        if read {
            t.connection.read();
        }
        t.transmit();
        t.recv([syn_ack().acking(501)]);
        assert_eq!(t.last().window, if read { 3000 } else { 2500 });
    }
}

#[test]
fn a_duplicate_syn_does_not_deliver_its_data_again() {
    let mut t = server(FastOpen::Accept(None));
    t.send(syn_data(500));
    t.recv([syn_ack().acking(501)]);
    t.send(syn_data(500));
    t.recv([syn_ack().acking(501)]);
    t.send(syn()); // The client's retransmission.
    t.recv([syn_ack().acking(501)]);
    assert_eq!(t.read(0), 500);
}

#[test]
fn until_the_syn_ack_is_acknowledged_only_that_is_sent_again() {
    let mut t = server(FastOpen::Accept(None));
    t.arrive(syn_data(500));
    t.connection.read();
    t.write(1000);
    t.recv([syn_ack().acking(501), data(1).acking(501)]);
    t.time(1000);
    t.recv([syn_ack().acking(501)]);
    t.time(1100);
    t.send(ack(1).seq(501));
    t.recv([data(1).acking(501)]);
}

#[test]
fn a_server_answers_and_closes_before_the_handshake_is_complete() {
    let mut t = server(FastOpen::Accept(None));
    t.arrive(syn_data(500));
    t.connection.read();
    t.connection.write(3, 0, 100);
    t.close();
    t.recv([syn_ack().acking(501), bytes(0, 100).acking(501).fin()]);
    assert_eq!(t.state(), State::FinWait1);
    t.send(ack(1).seq(501).acking(102));
    t.silent();
    assert_eq!(t.state(), State::FinWait2);
}

#[test]
fn the_application_of_a_server_learns_of_a_reset() {
    // It knows of the connection, unlike without Fast Open (RFC 5961 §3, RFC 9293 §3.10.7.4).
    let mut t = server(FastOpen::Accept(None));
    t.send(syn_data(500));
    t.recv([syn_ack().acking(501)]);
    t.connection.take_events();
    t.send(reset(501));
    assert_eq!(t.connection.take_events(), Events::RESET | Events::CLOSED);
}

#[test]
fn a_connection_that_opens_fast_is_restored() {
    let mut t = client(&config(), offer(), 500);
    t.recv([syn_data(500)]);
    t.restore(777_000);
    t.time(1000);
    t.recv([syn()]);
    assert_eq!(option(&t), None);
    t.restore(5);
    t.send(syn_ack());
    t.recv([bytes(0, 500)]);
}
