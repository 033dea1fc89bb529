//! Connections with servers by handshakes of the node's own.

use super::*;

fn box_that(connect: Connect) -> Splitter {
    splitter().with_connect(connect)
}

/// What a box sends in response to a packet, which it takes.
fn taken(splitter: &mut Splitter, at: u64, packet: Packet) -> Vec<Packet> {
    let (verdict, sent) = pass(splitter, at, packet);
    assert_eq!(verdict, Verdict::Consume, "{packet:?}");
    sent
}

/// A segment that answers one of the box, with sequence number `seq`.
fn answer(to: &Packet, flags: Flags, seq: u32, len: u32) -> Packet {
    let asked = segment(to);
    let syn = u32::from(asked.flags.contains(Flags::SYN));
    let of_client = to.ip.destination == CLIENT;
    let ack = asked.seq + syn + to.payload.len;
    packet(of_client, flags, seq, ack.0, len)
}

#[test]
fn a_server_is_connected_to_before_its_client_is_answered() {
    let mut splitter = box_that(Connect::First);
    let sent = taken(&mut splitter, 0, syn());
    let [onward] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((onward.ip.source, onward.ip.destination), (CLIENT, SERVER));
    assert_eq!(segment(onward).flags, Flags::SYN);
    // Its client asks again, and waits.
    assert_eq!(taken(&mut splitter, 20, syn()), []);
    let accepts = answer(onward, Flags::SYN | Flags::ACK, 5000, 0);
    let sent = taken(&mut splitter, 30, accepts);
    let to_client = sent.iter().find(|packet| packet.ip.destination == CLIENT).unwrap();
    assert_eq!(segment(to_client).flags, Flags::SYN | Flags::ACK);
    assert_eq!(segment(to_client).ack, SeqNumber(1001));
    // Options are those of each half: the server has offered none.
    assert!(segment(to_client).options.sack_permitted);
    let to_server = sent.iter().find(|packet| packet.ip.destination == SERVER).unwrap();
    assert_eq!((segment(to_server).flags, segment(to_server).ack), (Flags::ACK, SeqNumber(5001)));
}

#[test]
fn a_client_is_refused_as_its_server_does_it() {
    let mut splitter = box_that(Connect::First);
    let sent = taken(&mut splitter, 0, syn());
    let sent = taken(&mut splitter, 30, answer(&sent[0], Flags::RST | Flags::ACK, 0, 0));
    let [refusal] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((refusal.ip.destination, segment(refusal).ack), (CLIENT, SeqNumber(1001)));
    assert!(segment(refusal).flags.contains(Flags::RST));
    assert_eq!(
        (splitter.relays.open_connections(), splitter.relays.half_open_connections()),
        (0, 0)
    );
}

#[test]
fn a_client_is_accepted_at_once_and_its_data_waits_for_the_server() {
    let mut splitter = box_that(Connect::AtOnce);
    let sent = taken(&mut splitter, 0, syn());
    let [accepts] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((accepts.ip.source, segment(accepts).flags), (SERVER, Flags::SYN | Flags::ACK));
    // Until the client has shown that it is there, the server hears nothing.
    assert_eq!(splitter.relays.half_open_connections(), 1);
    // It sends all that it has, and closes.
    let sent = taken(&mut splitter, 2, answer(accepts, Flags::ACK | Flags::FIN, 1001, 100));
    let onward = sent.iter().find(|packet| packet.ip.destination == SERVER).unwrap();
    assert_eq!((segment(onward).flags, onward.payload.len), (Flags::SYN, 0));
    let sent = taken(&mut splitter, 500, answer(onward, Flags::SYN | Flags::ACK, 5000, 0));
    let to_server = sent.iter().filter(|packet| packet.ip.destination == SERVER);
    let data: u32 = to_server.clone().map(|packet| packet.payload.len).sum();
    assert_eq!(data, 100);
    assert!(to_server.clone().any(|packet| segment(packet).flags.contains(Flags::FIN)));
    assert_eq!(splitter.relays.half_open_connections(), 0);
}

#[test]
fn a_client_that_was_accepted_at_once_is_reset_where_its_server_refuses() {
    let mut splitter = box_that(Connect::AtOnce);
    let accepts = taken(&mut splitter, 0, syn());
    let sent = taken(&mut splitter, 2, answer(&accepts[0], Flags::ACK, 1001, 100));
    let onward = sent.iter().find(|packet| packet.ip.destination == SERVER).unwrap();
    let sent = taken(&mut splitter, 30, answer(onward, Flags::RST | Flags::ACK, 0, 0));
    let [reset] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(reset.ip.destination, CLIENT);
    assert!(segment(reset).flags.contains(Flags::RST));
    assert_eq!(splitter.relays.open_connections(), 0);
}

#[test]
fn clients_that_do_not_exist_take_no_more_than_a_part_and_no_server_hears_of_them() {
    let mut splitter = box_that(Connect::AtOnce);
    let mut passed = 0;
    for number in 0..10_000_u32 {
        let mut packet = syn();
        packet.ip.source = IpAddr::V4(Ipv4Addr::from_bits(0x0b00_0000 + number));
        let (verdict, sent) = pass(&mut splitter, 1, packet);
        passed += usize::from(verdict == Verdict::Forward);
        assert!(sent.iter().all(|packet| packet.ip.destination != SERVER), "{sent:?}");
    }
    assert_eq!(passed, 10_000 - Relays::HALF_OPEN);
    assert_eq!(splitter.handshakes.remembered(), passed);
    // Each is forgotten once it does not answer for a while.
    let mut now = Time::ZERO;
    while splitter.next_wake() < Time::NEVER {
        now = splitter.next_wake();
        splitter.wake(now, &mut Outbox::default().context());
    }
    assert_eq!(splitter.relays.open_connections(), 0);
    assert!(now < millis(300_000), "{now:?}");
}

#[test]
fn what_cannot_be_split_is_left_alone() {
    for connect in [Connect::First, Connect::AtOnce] {
        let mut splitter = box_that(connect);
        let mut multipath = syn();
        multipath.unparsed.set_tcp_options(&[30, 4, 1, 0]).unwrap();
        passes(&mut splitter, 0, multipath);
        passes(&mut splitter, 30, syn_ack());
        passes(&mut splitter, 530, packet(true, Flags::ACK, 1001, 5001, 100));
        assert_eq!(count(&splitter, "connections not split: Multipath TCP"), 1);
        // Nor is one that was there before.
        passes(&mut splitter, 600, packet(false, Flags::ACK, 5001, 1101, 1000));
        assert_eq!(count(&splitter, "split connections"), 0);
    }
}

/// A SYN of a client with such an address.
fn syn_of(client: u32) -> Packet {
    let mut packet = syn();
    packet.ip.source = IpAddr::V4(Ipv4Addr::from_bits(client));
    packet
}

#[test]
fn a_client_that_has_not_shown_that_it_is_there_is_half_open_though_its_server_has_accepted() {
    let mut splitter = box_that(Connect::First);
    let sent = taken(&mut splitter, 0, syn());
    let sent = taken(&mut splitter, 30, answer(&sent[0], Flags::SYN | Flags::ACK, 5000, 0));
    assert_eq!(splitter.relays.half_open_connections(), 1);
    let accepts = sent.iter().find(|packet| packet.ip.destination == CLIENT).unwrap();
    taken(&mut splitter, 60, answer(accepts, Flags::ACK, 1001, 0));
    assert_eq!(splitter.relays.half_open_connections(), 0);
    assert_eq!(splitter.relays.open_connections(), 1);
}

#[test]
fn servers_that_accept_clients_that_do_not_exist_take_no_more_than_a_part() {
    let mut splitter = box_that(Connect::First);
    let mut passed = 0;
    for number in 0..10_000_u32 {
        let (verdict, sent) = pass(&mut splitter, 1, syn_of(0x0b00_0000 + number));
        passed += usize::from(verdict == Verdict::Forward);
        if verdict == Verdict::Consume {
            let mut accepts = answer(&sent[0], Flags::SYN | Flags::ACK, 5000, 0);
            accepts.ip.destination = sent[0].ip.source;
            taken(&mut splitter, 1, accepts);
        }
    }
    assert_eq!(passed, 10_000 - Relays::HALF_OPEN);
    assert_eq!(splitter.relays.open_connections(), Relays::HALF_OPEN);
    // The next ones pass, too, until the first are old. Then these give way, and their servers are told.
    assert_eq!(pass(&mut splitter, 5000, syn_of(1)).0, Verdict::Forward);
    assert_eq!(pass(&mut splitter, 5001, syn_of(1)).0, Verdict::Forward, "what passes goes on so");
    let sent = taken(&mut splitter, 5001, syn());
    let resets = sent.iter().filter(|packet| segment(packet).flags.contains(Flags::RST));
    assert!(resets.clone().any(|packet| packet.ip.destination == SERVER), "{sent:?}");
    assert_eq!(splitter.relays.open_connections(), Relays::HALF_OPEN);
}

#[test]
fn where_too_many_are_half_open_handshakes_pass_and_connections_are_split_afterwards() {
    for connect in [Connect::First, Connect::AtOnce] {
        let mut splitter = box_that(connect);
        (0..5000).for_each(|number| drop(pass(&mut splitter, 1, syn_of(0x0b00_0000 + number))));
        passes(&mut splitter, 10, syn());
        passes(&mut splitter, 40, syn_ack());
        assert_eq!(count(&splitter, "split connections"), Relays::HALF_OPEN as u64);
        taken(&mut splitter, 70, packet(true, Flags::ACK, 1001, 5001, 100));
        assert_eq!(count(&splitter, "split connections"), Relays::HALF_OPEN as u64 + 1);
    }
}

#[test]
fn clients_that_do_not_exist_do_not_keep_out_a_user_who_was_there_before() {
    let mut splitter = box_that(Connect::First);
    let sent = taken(&mut splitter, 0, syn());
    let sent = taken(&mut splitter, 30, answer(&sent[0], Flags::SYN | Flags::ACK, 5000, 0));
    let accepts = sent.iter().find(|packet| packet.ip.destination == CLIENT).unwrap();
    taken(&mut splitter, 60, answer(accepts, Flags::ACK, 1001, 0));
    (0..5000).for_each(|number| drop(pass(&mut splitter, 70, syn_of(0x0b00_0000 + number))));
    let mut again = syn();
    again.tcp_mut().unwrap().source_port += 1;
    taken(&mut splitter, 80, again);
    assert_eq!(splitter.relays.half_open_connections(), Relays::HALF_OPEN);
}

#[test]
fn one_user_may_have_a_part_of_the_half_open_connections() {
    for connect in [Connect::First, Connect::AtOnce] {
        let mut splitter = box_that(connect);
        for port in 0..1000 {
            let mut packet = syn_of(7);
            packet.tcp_mut().unwrap().source_port = port;
            pass(&mut splitter, 1, packet);
        }
        assert_eq!(splitter.relays.half_open_connections(), Relays::HALF_OPEN_OF_ONE);
        taken(&mut splitter, 2, syn());
    }
}
