//! Who is let in.

use super::*;
use wire::Payload;

/// A server on port 80 that lets so many be half open, and drops the SYNs of others.
fn narrow(backlog: u32) -> Host<Traffic> {
    let mut server = host(SERVER);
    server.set(Settings { syn_cookies: false, ..server.settings() });
    let accept = |_| (Config::default(), Traffic::Sink(Sink::new(0)));
    server.add_listener(Listener::new(80, accept).backlog(backlog));
    server
}

/// SYNs of different connections.
fn syns(now: Time, count: usize) -> (Host<Traffic>, Vec<Packet>) {
    let mut client = host(CLIENT);
    let syns = (0..count).map(|_| syn(now, &mut client)).collect();
    (client, syns)
}

fn half_open(host: &Host<Traffic>) -> usize {
    host.listeners.by_binding[&Binding::from(80)].half_open as usize
}

#[test]
fn beyond_the_backlog_a_syn_is_dropped_without_a_word() {
    let mut server = narrow(2);
    let (mut client, syns) = syns(Time::ZERO, 3);
    syns.iter().for_each(|syn| server.handle_packet(Time::ZERO, syn));
    server.handle_packet(Time::ZERO, &syns[0]); // Again: it has its place.
    assert_eq!((server.connections().count(), half_open(&server)), (2, 2));
    assert_eq!((server.statistics().overflows, server.statistics().no_connection), (1, 0));
    let answers = sent(&mut server, Time::ZERO);
    assert!(answers.iter().all(|packet| tcp_of(packet).flags == Flags::SYN | Flags::ACK));

    // An established connection makes room.
    answers.iter().for_each(|packet| client.handle_packet(Time::ZERO, packet));
    converse(Time::ZERO, &mut client, &mut server);
    assert_eq!(half_open(&server), 0);
    server.handle_packet(Time::ZERO, &syns[2]);
    assert_eq!((server.connections().count(), half_open(&server)), (3, 1));
}

#[test]
fn a_connection_that_is_never_established_leaves_no_trace() {
    for by_reset in [true, false] {
        let mut server = narrow(1);
        let (_, syns) = syns(Time::ZERO, 1);
        server.handle_packet(Time::ZERO, &syns[0]);
        assert_eq!(sent(&mut server, Time::ZERO).len(), 1);
        let (id, ..) = server.connections().next().unwrap();
        if by_reset {
            let reset = changed(&syns[0], |segment| {
                segment.flags = Flags::RST;
                segment.seq = segment.seq + 1;
            });
            server.handle_packet(Time::ZERO, &reset);
            assert!(sent(&mut server, Time::ZERO).is_empty());
        } else {
            // There is no answer: the connection is given up after the last retransmission.
            while server.poll_timeout() < Time::NEVER {
                let now = server.poll_timeout();
                server.handle_timeout(now);
                sent(&mut server, now);
            }
        }
        assert!(server.connection(id).is_none(), "although the host keeps what is over");
        assert!(server.is_quiet());
        assert_eq!(half_open(&server), 0);
    }
}

#[test]
fn syn_acks_are_repeated_once_where_more_than_half_of_the_backlog_waits() {
    let spans = |backlog: u32, count: usize| {
        let mut server = narrow(backlog);
        let (_, syns) = syns(Time::ZERO, count);
        syns.iter().for_each(|syn| server.handle_packet(Time::ZERO, syn));
        assert_eq!(sent(&mut server, Time::ZERO).len(), count);
        let mut left = Vec::new();
        for second in [2, 4, 62, 64] {
            while server.poll_timeout() <= millis(1000 * second) {
                let now = server.poll_timeout();
                server.handle_timeout(now);
                for packet in sent(&mut server, now) {
                    assert_eq!(tcp_of(&packet).flags, Flags::SYN | Flags::ACK, "no reset");
                }
            }
            left.push(half_open(&server));
        }
        left
    };
    assert_eq!(spans(20, 10), [10, 10, 10, 0]);
    assert_eq!(spans(20, 11), [11, 10, 10, 0]);
    assert_eq!(spans(20, 20), [20, 10, 10, 0]);
    // A backlog of a few is not judged by its half.
    assert_eq!(spans(1, 1), [1, 1, 1, 0]);
    assert_eq!(spans(6, 6), [6, 4, 4, 0]);
}

#[test]
fn a_client_far_away_keeps_its_place_in_a_full_backlog() {
    // A round trip of 2.5 s, as over satellites with long queues.
    let mut server = narrow(20);
    let (mut client, syns) = syns(Time::ZERO, 20);
    syns.iter().for_each(|syn| server.handle_packet(Time::ZERO, syn));
    let answers = sent(&mut server, Time::ZERO);
    server.handle_timeout(millis(1000));
    sent(&mut server, millis(1000));
    answers.iter().for_each(|packet| client.handle_packet(millis(1250), packet));
    for ack in sent(&mut client, millis(1250)) {
        server.handle_packet(millis(2500), &ack);
    }
    assert_eq!(half_open(&server), 0);
    assert_eq!(server.open_connections(), 20);
}

/// An application that must not be called.
struct Uncalled;

impl Application for Uncalled {
    fn handle(&mut self, _: Time, _: &mut Connection, events: Events) {
        panic!("{events:?}");
    }

    fn take(&mut self, _: Time, _: Payload) -> bool {
        false
    }

    fn next_wake(&self) -> Time {
        Time::ZERO
    }

    fn wake(&mut self, now: Time, _: &mut Connection) {
        panic!("woken at {now}");
    }
}

#[test]
fn and_its_application_is_not_called() {
    let mut server = Host::new(SERVER, Seed(1).stream("server"));
    server.listen(80, || (Config { retries: 1, ..Config::default() }, Uncalled));
    server.handle_packet(Time::ZERO, &syns(Time::ZERO, 1).1[0]);
    let mut tray = Tray { next: Packet::BLANK, sent: Vec::new() };
    let _ = server.transmit(Time::ZERO, &mut tray);
    while server.poll_timeout() < Time::NEVER {
        let now = server.poll_timeout();
        server.handle_timeout(now);
        let _ = server.transmit(now, &mut tray);
    }
    assert!(server.is_quiet() && tray.sent.len() > 1);
}

#[test]
fn a_syn_may_ask_for_congestion_notification() {
    // RFC 3168 §6.1.1
    let mut server = narrow(1);
    let asks = changed(&syns(Time::ZERO, 1).1[0], |s| s.flags |= Flags::ECE | Flags::CWR);
    server.handle_packet(Time::ZERO, &asks);
    assert_eq!(server.connections().count(), 1);
}

#[test]
fn a_listener_in_the_place_of_another_takes_over_its_backlog() {
    let mut server = narrow(1);
    let (_, syns) = syns(Time::ZERO, 2);
    server.handle_packet(Time::ZERO, &syns[0]);
    let accept = |_| (Config::default(), Traffic::Sink(Sink::new(0)));
    server.add_listener(Listener::new(80, accept).backlog(1));
    server.handle_packet(Time::ZERO, &syns[1]);
    assert_eq!((server.connections().count(), server.statistics().overflows), (1, 1));
}

/// A server whose connection is in TIME-WAIT, and the SYN that had opened that.
fn in_time_wait() -> (Host<Traffic>, Packet) {
    // The server closes first.
    let mut server = host(SERVER);
    server.listen(80, || (Config::default(), Traffic::Source(Source::new(0, Some(1_000_000)))));
    let mut client = host(CLIENT);
    let mut opening = transfer(Time::ZERO, 80, 0, 0);
    opening.application = Traffic::Sink(Sink::new(0));
    client.open(opening);
    client.handle_timeout(Time::ZERO);
    let syn = sent(&mut client, Time::ZERO)[0];
    server.handle_packet(Time::ZERO, &syn);
    run_until(millis(1000), &mut client, &mut server);
    assert_eq!(received(&client), [(1_000_000, 0)]);
    let states: Vec<_> = server.connections().map(|(_, c, _)| c.state()).collect();
    assert_eq!(states, [State::TimeWait]);
    (server, syn)
}

#[test]
fn a_later_syn_replaces_a_connection_in_time_wait() {
    // RFC 9293 §3.6.1, RFC 6191
    let (mut server, syn) = in_time_wait();
    let last = server.connections().next().unwrap().1.last_sent();
    let later = changed(&syn, |segment| {
        segment.seq = segment.seq + 1000;
        if let Some(stamp) = &mut segment.options.timestamps {
            stamp.value += 1000;
        }
    });
    let mut tray = Tray { next: later, sent: Vec::new() };
    tray.exchange(&mut server, millis(1000));
    let states: Vec<_> = server.connections().map(|(_, c, _)| c.state()).collect();
    assert_eq!(states, [State::Closed, State::SynReceived]);
    let answer = tcp_of(&tray.sent[0]);
    assert_eq!((answer.flags, answer.ack), (Flags::SYN | Flags::ACK, tcp_of(&later).seq + 1));
    // It has sent a megabyte within a second, which is more than the clock of RFC 6528 ticks.
    assert!(answer.seq.beyond(last) > 0, "RFC 9293 §3.4.3");
    assert!(matches!(
        server.connections().next().unwrap().2,
        Traffic::Source(Source { closed_at: Some(_), .. })
    ));
}

#[test]
fn an_old_syn_does_not() {
    let (mut server, syn) = in_time_wait();
    let mut tray = Tray { next: syn, sent: Vec::new() };
    tray.exchange(&mut server, millis(1000));
    let states: Vec<_> = server.connections().map(|(_, c, _)| c.state()).collect();
    assert_eq!(states, [State::TimeWait]);
    assert_eq!(tcp_of(&tray.sent[0]).flags, Flags::ACK, "a challenge (RFC 5961 §4)");
}

#[test]
fn no_connection_is_replaced_without_a_listener() {
    let (mut server, syn) = in_time_wait();
    server.unlisten(80);
    server.handle_packet(millis(1000), &changed(&syn, |s| s.seq = s.seq + 1000));
    let states: Vec<_> = server.connections().map(|(_, c, _)| c.state()).collect();
    assert_eq!(states, [State::TimeWait]);
}
