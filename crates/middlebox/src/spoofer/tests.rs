//! What the box does with the packets of a handshake, and with connections that it cannot split.

mod connect;

use super::*;
use base::{Duration, Seed};
use core::net::Ipv4Addr;
use host::Outbox;
use tcp::ReceiveWindow;
use tcp::mechanism::{Eten, Mechanism, Rlci};
use wire::{CopyId, CorruptionNotice, Flags, Icmp, Options, Payload, SeqNumber, Timestamps};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const BOX: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));

fn splitter() -> Splitter {
    let receive_window = ReceiveWindow::fixed(4 << 20);
    let config = Config { delayed_ack: None, receive_window, ..Config::default() };
    let split = split(&config, Policy::default());
    Splitter::new(BOX, Seed(1).stream("box"), split)
}

fn millis(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// A segment of the client, or of the server.
fn packet(of_client: bool, flags: Flags, seq: u32, ack: u32, len: u32) -> Packet {
    let mut packet = Packet::BLANK;
    let (source, destination) = if of_client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    packet.ip = wire::Ip::new(source, destination);
    let segment = packet.make_tcp();
    let (source_port, destination_port) = if of_client { (4000, 80) } else { (80, 4000) };
    *segment = Segment {
        source_port,
        destination_port,
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags,
        window: 60_000,
        ..Segment::default()
    };
    packet.payload = Payload { stream: u32::from(!of_client), offset: 0, len };
    packet
}

fn stamps(value: u32, echo: u32) -> Option<Timestamps> {
    Some(Timestamps { value, echo })
}

/// A SYN with sequence number 1000, and its answer with 5000.
fn syn() -> Packet {
    let mut packet = packet(true, Flags::SYN, 1000, 0, 0);
    packet.tcp_mut().unwrap().options = Options {
        mss: Some(1400),
        window_scale: Some(2),
        sack_permitted: true,
        timestamps: stamps(77_000, 0),
        ..Options::default()
    };
    packet
}

fn syn_ack() -> Packet {
    let mut packet = packet(false, Flags::SYN | Flags::ACK, 5000, 1001, 0);
    packet.tcp_mut().unwrap().options = Options {
        mss: Some(1200),
        window_scale: Some(5),
        sack_permitted: true,
        timestamps: stamps(88_000, 77_000),
        ..Options::default()
    };
    packet
}

/// Passes a packet to the box; returns its verdict and what it sent.
fn pass(splitter: &mut Splitter, at: u64, mut packet: Packet) -> (Verdict, Vec<Packet>) {
    let mut outbox = Outbox::default();
    let port = Some(Port(0));
    let verdict = splitter.packet(millis(at), port, &mut packet, &mut outbox.context());
    (verdict, outbox.into_packets())
}

fn passes(splitter: &mut Splitter, at: u64, packet: Packet) {
    assert_eq!(pass(splitter, at, packet), (Verdict::Forward, Vec::new()));
}

fn count(splitter: &Splitter, name: &str) -> u64 {
    let mut found = 0;
    splitter.counts(&mut |other, value| found += if other == name { value } else { 0 });
    found
}

fn segment(packet: &Packet) -> &Segment {
    let Body::Tcp(segment) = &packet.body else { panic!("{packet:?}") };
    segment
}

#[test]
fn a_handshake_passes_end_to_end_and_each_half_continues_it() {
    let mut splitter = splitter();
    passes(&mut splitter, 0, syn());
    passes(&mut splitter, 30, syn_ack());
    let mut request = packet(true, Flags::ACK | Flags::PSH, 1001, 5001, 100);
    request.tcp_mut().unwrap().options.timestamps = stamps(77_530, 88_000);
    let (verdict, sent) = pass(&mut splitter, 530, request);
    assert_eq!(verdict, Verdict::Consume);
    assert_eq!(count(&splitter, "split connections"), 1);
    let [to_server, to_client] = &sent[..] else { panic!("{sent:?}") };
    let (to_server, to_client) = match to_server.ip.destination == SERVER {
        true => (to_server, to_client),
        false => (to_client, to_server),
    };
    // The request goes on with the numbers of the client, in segments that the server takes.
    let onward = segment(to_server);
    assert_eq!((to_server.ip.source, to_server.ip.destination), (CLIENT, SERVER));
    assert_eq!((onward.seq, onward.ack), (SeqNumber(1001), SeqNumber(5001)));
    assert_eq!((to_server.payload.stream, to_server.payload.len), (0, 100));
    // It is acknowledged to the client as the server would.
    let back = segment(to_client);
    assert_eq!((to_client.ip.source, to_client.ip.destination), (SERVER, CLIENT));
    assert_eq!((back.seq, back.ack, to_client.payload.len), (SeqNumber(5001), SeqNumber(1101), 0));
    // Timestamps go on from those that the ends have sent.
    let value = |segment: &Segment| segment.options.timestamps.unwrap();
    assert_eq!((value(onward).value, value(onward).echo), (77_530, 88_000));
    assert_eq!((value(back).value, value(back).echo), (88_500, 77_530));
    // The windows are those of the box, scaled as negotiated.
    assert_eq!(u32::from(onward.window) << 2, 65_535 << 2);
    assert_eq!(u32::from(back.window) << 5, ((65_535 << 5) - 100) & !31);
}

#[test]
fn a_lost_acknowledgment_of_the_handshake_is_made_up_for_by_data() {
    let mut splitter = splitter();
    passes(&mut splitter, 0, syn());
    passes(&mut splitter, 30, syn_ack());
    // The second segment of the client overtakes the first.
    let later = packet(true, Flags::ACK, 1101, 5001, 100);
    let (verdict, sent) = pass(&mut splitter, 530, later);
    assert_eq!(verdict, Verdict::Consume);
    assert!(sent.iter().all(|packet| packet.payload.len == 0), "nothing is in order yet");
    let first = packet(true, Flags::ACK, 1001, 5001, 100);
    let (_, sent) = pass(&mut splitter, 531, first);
    let passed: u32 = sent.iter().map(|packet| packet.payload.len).sum();
    assert_eq!(passed, 200);
}

#[test]
fn options_that_only_one_end_has_are_not_used() {
    let mut splitter = splitter();
    passes(&mut splitter, 0, syn());
    let mut plain = syn_ack();
    plain.tcp_mut().unwrap().options = Options::default();
    passes(&mut splitter, 30, plain);
    let (_, sent) = pass(&mut splitter, 530, packet(true, Flags::ACK, 1001, 5001, 2000));
    for packet in &sent {
        let segment = segment(packet);
        assert_eq!(segment.options, Options::default());
        // The server has announced no segment size.
        assert!(packet.payload.len <= 536);
        assert!(segment.window >= 60_000 - 2000);
    }
    assert!(sent.iter().any(|packet| packet.payload.len == 536), "{sent:?}");
}

#[test]
fn connections_whose_handshake_did_not_pass_are_left_alone() {
    // On an asymmetric route the box sees one direction.
    let mut splitter = splitter();
    passes(&mut splitter, 30, syn_ack());
    passes(&mut splitter, 60, packet(false, Flags::ACK, 5001, 1101, 1000));
    assert_eq!(count(&splitter, "connections not split: SYN not seen"), 1);
    let mut splitter = self::splitter();
    passes(&mut splitter, 0, syn());
    passes(&mut splitter, 60, packet(true, Flags::ACK, 1001, 5001, 1000));
    assert_eq!(count(&splitter, "split connections"), 0);
}

#[test]
fn what_cannot_be_split_is_left_alone_and_counted() {
    let cases: [(&[u8], &str); 4] = [
        (&[19, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "authenticated"),
        (&[29, 4, 1, 1], "authenticated"),
        (&[30, 4, 1, 0], "Multipath TCP"),
        (&[], "data in the SYN"),
    ];
    for (options, name) in cases {
        let name = format!("connections not split: {name}");
        let mut splitter = splitter();
        let mut first = syn();
        first.unparsed.set_tcp_options(options).unwrap();
        first.payload.len = if options.is_empty() { 10 } else { 0 };
        passes(&mut splitter, 0, first);
        passes(&mut splitter, 30, syn_ack());
        passes(&mut splitter, 530, packet(true, Flags::ACK, 1001, 5001, 100));
        assert_eq!(count(&splitter, &name), 1, "{name}");
        assert_eq!(count(&splitter, "split connections"), 0);
    }
}

#[test]
fn a_reset_of_an_end_ends_a_handshake_and_that_of_one_who_does_not_know_its_numbers_does_not() {
    for (from_client, flags, seq, ack, is_answered) in [
        (true, Flags::RST, 1001, 0, true),
        (false, Flags::RST | Flags::ACK, 0, 1001, false),
        (false, Flags::RST, 5001, 0, true),
    ] {
        for off in [0, 1, u32::MAX, 1 << 31] {
            let mut splitter = splitter();
            passes(&mut splitter, 0, syn());
            if is_answered {
                passes(&mut splitter, 30, syn_ack());
            }
            let (seq, ack) = (off.wrapping_add(seq), off.wrapping_add(ack));
            passes(&mut splitter, 40, packet(from_client, flags, seq, ack, 0));
            passes(&mut splitter, 60, syn_ack());
            pass(&mut splitter, 530, packet(true, Flags::ACK, 1001, 5001, 100));
            let split = count(&splitter, "split connections");
            assert_eq!(split, u64::from(off != 0), "{from_client} {flags:?} {off}");
        }
    }
}

#[test]
fn pending_handshakes_are_bounded_and_forged_ones_do_not_keep_out_others() {
    let mut splitter = splitter();
    for number in 0..70_000_u32 {
        let mut packet = syn();
        packet.ip.source = IpAddr::V4(Ipv4Addr::from_bits(number));
        passes(&mut splitter, u64::from(number) / 100, packet);
    }
    let overflow = "connections not split: too many handshakes";
    assert_eq!(count(&splitter, overflow), 70_000 - 65_536);
    assert_eq!(splitter.handshakes.remembered(), 65_536);
    // The oldest give way.
    assert_eq!(open(&mut splitter, 701, 4000), Verdict::Consume);
    assert_eq!(count(&splitter, overflow), 70_000 - 65_536 + 1);
}

#[test]
fn one_user_does_not_fill_the_table_of_handshakes() {
    let mut splitter = splitter();
    for port in 0..10_000 {
        let mut packet = syn();
        packet.ip.source = IpAddr::V4(Ipv4Addr::from_bits(7));
        packet.tcp_mut().unwrap().source_port = port;
        passes(&mut splitter, 0, packet);
    }
    let overflow = "connections not split: too many handshakes";
    assert_eq!(count(&splitter, overflow), 10_000 - 4096);
    assert_eq!(open(&mut splitter, 100, 4000), Verdict::Consume);
}

/// Passes the handshake of a client port and a first request; returns the verdict about that.
fn open(splitter: &mut Splitter, at: u64, port: u16) -> Verdict {
    let of = |mut packet: Packet| {
        let is_client = packet.ip.source == CLIENT;
        let segment = packet.tcp_mut().unwrap();
        *(if is_client { &mut segment.source_port } else { &mut segment.destination_port }) = port;
        packet
    };
    passes(splitter, at, of(syn()));
    passes(splitter, at + 30, of(syn_ack()));
    pass(splitter, at + 530, of(packet(true, Flags::ACK, 1001, 5001, 100))).0
}

#[test]
fn connections_beyond_the_limit_pass_until_there_is_room_again() {
    let mut splitter = splitter().with_limit(2);
    assert_eq!(open(&mut splitter, 0, 4000), Verdict::Consume);
    assert_eq!(open(&mut splitter, 1000, 4001), Verdict::Consume);
    assert_eq!(open(&mut splitter, 2000, 4002), Verdict::Forward);
    // Its further segments pass, too, and it counts once.
    let mut next = packet(true, Flags::ACK, 1101, 5001, 100);
    next.tcp_mut().unwrap().source_port = 4002;
    passes(&mut splitter, 2600, next);
    let full = "connections not split: too many connections";
    assert_eq!((count(&splitter, "split connections"), count(&splitter, full)), (2, 1));
    // A reset of either end ends both halves of the first.
    pass(&mut splitter, 3000, packet(true, Flags::RST, 1101, 5001, 0));
    assert_eq!(count(&splitter, "split connections that are over"), 1);
    assert_eq!(open(&mut splitter, 4000, 4003), Verdict::Consume);
    assert_eq!((count(&splitter, "split connections"), count(&splitter, full)), (3, 1));
}

#[test]
fn the_payload_that_is_held_is_that_which_may_still_be_sent() {
    let held = |splitter: &Splitter| {
        let mut held = Vec::new();
        splitter.held_payloads(&mut |payload| held.push((payload.offset, payload.len)));
        held
    };
    let mut splitter = splitter();
    open(&mut splitter, 0, 4000);
    assert_eq!(held(&splitter), [(0, 100)]);
    // The second segment of the client overtakes the first: neither has been read.
    let of_client = |seq: u32, len: u32| {
        let mut packet = packet(true, Flags::ACK, seq, 5001, len);
        packet.payload.offset = u64::from(seq - 1001);
        packet
    };
    pass(&mut splitter, 600, of_client(1301, 50));
    assert_eq!(held(&splitter), [(300, 50), (300, 50), (0, 100)]);
    pass(&mut splitter, 610, of_client(1101, 200));
    assert_eq!(held(&splitter), [(0, 350)]);
    // What the server has acknowledged is no longer held.
    pass(&mut splitter, 620, packet(false, Flags::ACK, 5001, 1201, 0));
    assert_eq!(held(&splitter), [(200, 150)]);
    pass(&mut splitter, 630, packet(false, Flags::ACK, 5001, 1351, 0));
    assert_eq!(held(&splitter), []);
}

#[test]
fn a_connection_of_an_end_with_itself_is_left_alone() {
    let mut splitter = splitter();
    for (at, mut packet) in
        [(0, syn()), (30, syn_ack()), (530, packet(true, Flags::ACK, 1001, 5001, 100))]
    {
        packet.ip = wire::Ip::new(SERVER, SERVER);
        let segment = packet.tcp_mut().unwrap();
        (segment.source_port, segment.destination_port) = (80, 80);
        passes(&mut splitter, at, packet);
    }
    assert_eq!(count(&splitter, "split connections"), 0);
}

#[test]
fn handshakes_that_are_reset_take_no_memory_behind_one_that_lasts() {
    let mut splitter = splitter();
    passes(&mut splitter, 0, syn());
    for number in 0..200_000_u32 {
        let mut packet = syn();
        packet.ip.source = IpAddr::V4(Ipv4Addr::from_bits(number));
        passes(&mut splitter, 1 + u64::from(number) / 1000, packet);
        let segment = packet.tcp_mut().unwrap();
        (segment.seq, segment.flags) = (segment.seq + 1, Flags::RST);
        passes(&mut splitter, 1 + u64::from(number) / 1000, packet);
    }
    assert!(splitter.handshakes.remembered() <= 2 * 65_536);
}

/// Passes a handshake from another port or client; returns whether its connection is split.
fn is_split(splitter: &mut Splitter, client: IpAddr, port: u16) -> bool {
    let before = count(splitter, "split connections");
    let of_client = |mut packet: Packet| {
        packet.ip = wire::Ip::new(client, SERVER);
        packet.tcp_mut().unwrap().source_port = port;
        packet
    };
    let mut answer = syn_ack();
    answer.ip = wire::Ip::new(SERVER, client);
    answer.tcp_mut().unwrap().destination_port = port;
    let mut last = packet(true, Flags::ACK, 1001, 5001, 0);
    last.tcp_mut().unwrap().options.timestamps = stamps(77_530, 88_000);
    for (at, packet) in [(0, of_client(syn())), (30, answer), (60, of_client(last))] {
        pass(splitter, at, packet);
    }
    count(splitter, "split connections") > before
}

#[test]
fn a_user_who_has_as_many_connections_as_he_may_leaves_room_for_others() {
    let other = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 9));
    let mut splitter = splitter();
    let limits = Limits { connections_per_user: Some(2), ..Limits::default() };
    splitter.relays_mut().set_limits(limits);
    let all = [(CLIENT, 1), (CLIENT, 2), (CLIENT, 3), (other, 1), (CLIENT, 4), (other, 2)];
    let split = all.map(|(client, port)| is_split(&mut splitter, client, 4000 + port));
    assert_eq!(split, [true, true, false, true, false, true]);
    assert_eq!(count(&splitter, "connections not split: too many connections of a user"), 2);
    // Without a limit again.
    splitter.relays_mut().set_limits(Limits::default());
    assert!(is_split(&mut splitter, CLIENT, 4005));
}

#[test]
fn once_the_hop_is_there_again_what_went_over_it_is_sent_again_at_once() {
    let [of_lan, of_hop] = [Port(0), Port(2)];
    let resent = |signal: Option<bool>, link: Port| {
        let mut rlci = Rlci::default();
        rlci.signal = signal.unwrap_or_default();
        let mechanisms = signal.map(|_| Mechanism::Rlci(rlci)).into_iter().collect();
        let config = Config { mechanisms, ..Config::default() };
        let mut splitter =
            Splitter::new(BOX, Seed(1).stream("box"), split(&config, Policy::default()));
        splitter.hop = vec![of_hop];
        let mut request = packet(true, Flags::ACK | Flags::PSH, 1001, 5001, 100);
        request.tcp_mut().unwrap().options.timestamps = stamps(77_530, 88_000);
        let mut answer = packet(false, Flags::ACK | Flags::PSH, 5001, 1001, 200);
        answer.tcp_mut().unwrap().options.timestamps = stamps(88_540, 77_000);
        for (at, from, mut packet) in [
            (0, of_lan, syn()),
            (30, of_hop, syn_ack()),
            (530, of_lan, request),
            (540, of_hop, answer),
        ] {
            splitter.packet(millis(at), Some(from), &mut packet, &mut Outbox::default().context());
        }
        let mut outbox = Outbox::default();
        let up = LinkEvent::Up { peer: SERVER };
        splitter.link(millis(550), link, up, &mut outbox.context());
        let sent = outbox.into_packets().into_iter();
        sent.map(|packet| (packet.ip.destination, packet.payload.len)).collect::<Vec<_>>()
    };
    assert_eq!(resent(Some(false), of_hop), [(SERVER, 100)]);
    assert_eq!(resent(Some(false), of_lan), []);
    assert_eq!(resent(None, of_hop), []);
}

#[test]
fn a_notice_is_believed_if_it_comes_from_where_the_segment_went_and_repeats_its_timestamp() {
    let [of_lan, of_hop] = [Port(0), Port(2)];
    let config = Config { mechanisms: vec![Mechanism::Eten(Eten::default())], ..Config::default() };
    let mut splitter = Splitter::new(BOX, Seed(1).stream("box"), split(&config, Policy::default()));
    splitter.hop = vec![of_hop];
    // As on real packets.
    splitter.relays_mut().gather();
    let mut request = packet(true, Flags::ACK | Flags::PSH, 1001, 5001, 100);
    request.tcp_mut().unwrap().options.timestamps = stamps(77_530, 88_000);
    let mut sent = Outbox::default();
    for (at, from, mut packet) in
        [(0, of_lan, syn()), (30, of_hop, syn_ack()), (530, of_lan, request)]
    {
        splitter.packet(millis(at), Some(from), &mut packet, &mut sent.context());
    }
    // About the request, which went over the hop, to the client, in whose name it was sent.
    let sent = sent.into_packets().into_iter().find(|packet| packet.payload.len == 100).unwrap();
    let sent = Segment { copy: CopyId::NONE, ..*segment(&sent) };
    let stamp = sent.options.timestamps.unwrap().value;
    let mut notified = |seq: u32, timestamp: Option<u32>, from: Port, at: u64| {
        let sent = Segment { seq: SeqNumber(seq), ..sent };
        let notice = CorruptionNotice::about(CLIENT, SERVER, &sent, 100);
        let notice = CorruptionNotice { timestamp, ..notice };
        let body = Body::Icmp(Icmp::Corruption { notice, size: 56 });
        let mut packet = Packet { ip: wire::Ip::new(BOX, CLIENT), body, ..Packet::BLANK };
        let mut outbox = Outbox::default();
        let verdict = splitter.packet(millis(at), Some(from), &mut packet, &mut outbox.context());
        let stamp_of = |sent: &Packet| segment(sent).options.timestamps.map(|both| both.value);
        let resent: Vec<_> = outbox.into_packets().iter().map(stamp_of).collect();
        let counts = ["notices of corruption", "notices of corruption, incredible"];
        (verdict, resent, counts.map(|name| count(&splitter, name)))
    };
    let right = Some(stamp);
    assert_eq!(notified(1001, right, of_lan, 540), (Verdict::Forward, vec![], [0, 1]));
    assert_eq!(notified(1001, None, of_hop, 540), (Verdict::Forward, vec![], [0, 2]));
    assert_eq!(notified(900, right, of_hop, 541), (Verdict::Consume, vec![], [1, 2]));
    assert_eq!(notified(5_000_000, right, of_hop, 542), (Verdict::Consume, vec![], [2, 2]));
    assert_eq!(notified(1001, Some(stamp + 1), of_hop, 543), (Verdict::Consume, vec![], [3, 2]));
    let later = Some(stamp + 30);
    assert_eq!(notified(1001, right, of_hop, 560), (Verdict::Consume, vec![later], [4, 2]));
    // It was about the copy before.
    assert_eq!(notified(1001, right, of_hop, 600), (Verdict::Consume, vec![], [5, 2]));
    let last = Some(stamp + 71);
    assert_eq!(notified(1001, later, of_hop, 601), (Verdict::Consume, vec![last], [6, 2]));
}

#[test]
fn an_end_that_acknowledges_nothing_until_the_user_timeout_is_reset() {
    // It may be there: what it sends was lost.
    let user_timeout = Some(Duration::from_secs(5));
    let config = Config { user_timeout, ..Config::default() };
    let mut splitter = Splitter::new(BOX, Seed(1).stream("box"), split(&config, Policy::default()));
    passes(&mut splitter, 0, syn());
    passes(&mut splitter, 30, syn_ack());
    // The request goes on to a server that is not heard any more.
    let mut request = packet(true, Flags::ACK | Flags::PSH, 1001, 5001, 100);
    request.tcp_mut().unwrap().options.timestamps = stamps(77_530, 88_000);
    pass(&mut splitter, 530, request);
    let mut outbox = Outbox::default();
    while splitter.relays().open_connections() > 0 {
        let now = splitter.next_wake();
        assert!(now < millis(20_000), "it is given up");
        splitter.wake(now, &mut outbox.context());
    }
    let is_reset = |packet: &Packet| segment(packet).flags.contains(Flags::RST);
    let resets = outbox.into_packets().into_iter().filter(is_reset);
    let mut told: Vec<_> = resets.map(|packet| packet.ip.destination).collect();
    told.sort();
    assert_eq!(told, [CLIENT, SERVER]);
}
