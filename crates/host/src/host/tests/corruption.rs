//! Corruption notices to the receiver, and notices with damaged ports (`bbn8333` §2.1.3, §6).

use super::*;
use tcp::mechanism::ForwardEten;
use wire::CorruptedCopy;

/// Two hosts with this number of connections to port 80, all with forward ETEN, and their data in
/// flight.
fn meeting(connections: u32) -> (Host<Traffic>, Host<Traffic>, Vec<Packet>) {
    let mechanisms = vec![Mechanism::ForwardEten(ForwardEten::default())];
    let config = Config { mechanisms, ..Config::default() };
    let (mut client, mut server) = (host(CLIENT), host(SERVER));
    let (accepted, mut streams) = (config.clone(), 0..);
    server
        .listen(80, move || (accepted.clone(), Traffic::Sink(Sink::new(streams.next().unwrap()))));
    for stream in 0..connections {
        let opening = transfer(Time::ZERO, 80, stream, 100_000);
        client.open(Opening { config: config.clone(), ..opening });
    }
    client.handle_timeout(Time::ZERO);
    let syns = sent(&mut client, Time::ZERO);
    syns.iter().for_each(|syn| server.handle_packet(Time::ZERO, syn));
    for answer in sent(&mut server, Time::ZERO) {
        client.handle_packet(Time::ZERO, &answer);
    }
    let data = sent(&mut client, Time::ZERO);
    (client, server, data.into_iter().filter(|packet| packet.payload.len > 0).collect())
}

fn about(packet: &Packet) -> CorruptionNotice {
    CorruptionNotice::about(CLIENT, SERVER, &tcp_of(packet), packet.payload.len)
}

/// A message about a packet, to the host at `to`.
fn message(notice: CorruptionNotice, to: IpAddr) -> Packet {
    let mut message = Packet::BLANK;
    message.ip.destination = to;
    message.body = Body::Icmp(Icmp::Corruption { notice, size: 56 });
    message
}

/// The copies that the answers of a host echo.
fn echoes(host: &mut Host<Traffic>) -> Vec<Option<CopyId>> {
    let copy = |packet: &Packet| tcp_of(packet).options.corrupted.map(|echo| echo.copy);
    sent(host, millis(1)).iter().map(copy).collect()
}

#[test]
fn a_notice_to_the_destination_makes_the_receiver_echo_it_to_the_sender() {
    let (mut client, mut server, data) = meeting(1);
    server.handle_packet(millis(1), &message(about(&data[1]), SERVER));
    let answers = sent(&mut server, millis(1));
    let [answer] = answers[..] else { panic!("one acknowledgment, not {}", answers.len()) };
    client.handle_packet(millis(1), &answer);
    let again: Vec<_> = sent(&mut client, millis(1)).iter().map(|p| tcp_of(p).seq).collect();
    assert_eq!(again, [tcp_of(&data[1]).seq]);
}

#[test]
fn a_marked_packet_is_word_of_itself_and_nothing_is_taken_from_it() {
    let (_, mut server, data) = meeting(1);
    let mut marked = data[0];
    assert!(marked.unparsed.mark_corrupted(false));
    server.handle_packet(millis(1), &marked);
    assert_eq!(received(&server), [(0, 0)]);
    assert_eq!(echoes(&mut server), [Some(tcp_of(&data[0]).copy)]);
    // The fast way takes nothing from it, either.
    let mut tray = Tray { next: marked, sent: Vec::new() };
    tray.exchange(&mut server, millis(1));
    assert_eq!((received(&server), tray.sent.len()), (vec![(0, 0)], 0));
}

#[test]
fn reports_that_a_packet_brings_are_of_its_own_connection() {
    let (_, mut server, data) = meeting(2);
    let mine = |packet: &&Packet| tcp_of(packet).source_port == tcp_of(&data[0]).source_port;
    let data: Vec<_> = data.iter().filter(mine).collect();
    let Segment { seq, copy, .. } = tcp_of(data[0]);
    let mut carrier = *data[1];
    assert!(carrier.unparsed.add_corrupted_copy(false, CorruptedCopy { seq, copy, len: 1000 }));
    server.handle_packet(millis(1), &carrier);
    // One for the report, one for the segment.
    assert_eq!(echoes(&mut server), [Some(copy), Some(copy)]);
    // One about the segment that brings it has come too late.
    let Segment { seq, copy, .. } = tcp_of(data[0]);
    let mut carrier = *data[0];
    assert!(carrier.unparsed.add_corrupted_copy(false, CorruptedCopy { seq, copy, len: 1000 }));
    server.handle_packet(millis(1), &carrier);
    assert_eq!(echoes(&mut server), [None]);
}

/// The same notice with a bit of a port flipped.
fn damaged(notice: CorruptionNotice, of_source: bool, bit: u32) -> CorruptionNotice {
    let CorruptionNotice { source_port, destination_port, .. } = notice;
    match of_source {
        true => CorruptionNotice { source_port: source_port ^ 1 << bit, ..notice },
        false => CorruptionNotice { destination_port: destination_port ^ 1 << bit, ..notice },
    }
}

#[test]
fn a_bit_of_a_port_that_was_damaged_is_made_up_for() {
    for of_source in [true, false] {
        for bit in 0..16 {
            let (mut client, mut server, data) = meeting(3);
            let wrong = damaged(about(&data[0]), of_source, bit);
            let named = |packet: &Packet| tcp_of(packet).source_port == wrong.source_port;
            if of_source && data.iter().any(named) {
                // It has become the name of another connection, which it cannot be about.
                continue;
            }
            server.handle_packet(millis(1), &message(wrong, SERVER));
            assert_eq!(echoes(&mut server), [Some(wrong.copy)]);
            client.handle_packet(millis(1), &message(wrong, CLIENT));
            for host in [&client, &server] {
                assert_eq!((host.statistics().recovered, host.statistics().no_connection), (1, 0));
            }
        }
    }
}

#[test]
fn a_notice_whose_ports_no_damaged_bit_explains_matches_no_connection() {
    let (mut client, _, data) = meeting(3);
    let right = about(&data[0]);
    let twice = damaged(damaged(right, true, 1), false, 2);
    let outside = damaged(CorruptionNotice { seq: right.seq + (1 << 30), ..right }, false, 0);
    let others = damaged(CorruptionNotice { destination: CLIENT, ..right }, false, 0);
    for notice in [twice, outside, others] {
        client.handle_packet(millis(1), &message(notice, IpAddr::from([10, 9, 9, 9])));
    }
    assert_eq!((client.statistics().recovered, client.statistics().no_connection), (0, 3));
}

#[test]
fn a_damaged_notice_that_may_be_about_two_connections_matches_none() {
    // From ports 1 and 2 to the same octets, which both miss: 3 is a bit from either.
    let (mut server, mut streams) = (host(SERVER), 0..);
    let mechanisms = vec![Mechanism::ForwardEten(ForwardEten::default())];
    let config = Config { mechanisms, ..Config::default() };
    server.listen(80, move || (config.clone(), Traffic::Sink(Sink::new(streams.next().unwrap()))));
    let syn = |source_port| {
        let (seq, flags) = (SeqNumber(1000), Flags::SYN);
        let ends = Segment { source_port, destination_port: 80, ..Segment::default() };
        let segment = Segment { seq, flags, window: 1000, ..ends };
        Packet { ip: Ip::new(CLIENT, SERVER), body: Body::Tcp(segment), ..Packet::BLANK }
    };
    let notify = |server: &mut Host<Traffic>| {
        let notice = CorruptionNotice {
            source: CLIENT,
            destination: SERVER,
            source_port: 3,
            destination_port: 80,
            seq: SeqNumber(1001),
            len: 100,
            copy: CopyId(1),
            timestamp: None,
        };
        server.handle_packet(millis(1), &message(notice, SERVER));
        (server.statistics().recovered, server.statistics().no_connection)
    };
    server.handle_packet(Time::ZERO, &syn(1));
    assert_eq!(notify(&mut server), (1, 0));
    server.handle_packet(Time::ZERO, &syn(2));
    assert_eq!(notify(&mut server), (1, 1));
}
