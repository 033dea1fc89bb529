//! SYN cookies (RFC 4987 §3.6).

use super::*;
use tcp::EcnMode;
use tcp::InitialWindow;

/// A server on port 80 with a backlog of two, whose connections have these settings and are taken in by a
/// sink each.
fn narrow(config: Config) -> Host<Traffic> {
    let mut server = host(SERVER);
    let mut streams = 0..;
    let accept = move |_| (config.clone(), Traffic::Sink(Sink::new(streams.next().unwrap())));
    server.add_listener(Listener::new(80, accept).backlog(2));
    server
}

/// So many SYNs from addresses that answer nothing.
fn flood(now: Time, server: &mut Host<Traffic>, count: u16) -> Vec<Packet> {
    let like = syn(now, &mut host(CLIENT));
    for port in 1..=count {
        let mut forged = changed(&like, |segment| segment.source_port = port);
        forged.ip.source = IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 1));
        server.handle_packet(now, &forged);
    }
    sent(server, now)
}

/// A client that opens a connection for a transfer of stream 2 to a server that is flooded: the server, and
/// the client, which has just got its answer.
fn answered(config: Config) -> (Host<Traffic>, Host<Traffic>) {
    let mut server = narrow(config.clone());
    let answers = flood(Time::ZERO, &mut server, 10);
    assert!(answers.iter().all(|packet| tcp_of(packet).flags == Flags::SYN | Flags::ACK));
    assert_eq!((answers.len(), server.connections().count()), (10, 2));
    let mut client = host(CLIENT);
    client.open(Opening { config, ..transfer(millis(1), 80, 2, 100_000) });
    client.handle_timeout(millis(1));
    for syn in sent(&mut client, millis(1)) {
        server.handle_packet(millis(1), &syn);
    }
    assert_eq!((server.connections().count(), server.statistics().cookies), (2, 9));
    for answer in sent(&mut server, millis(1)) {
        client.handle_packet(millis(2), &answer);
    }
    (client, server)
}

#[test]
fn a_flood_does_not_keep_a_client_out() {
    for timestamps in [false, true] {
        let config = Config { timestamps, ..Config::default() };
        let (mut client, mut server) = answered(config);
        converse(millis(3), &mut client, &mut server);
        run_until(millis(50_000), &mut client, &mut server);
        assert_eq!(received(&server).last(), Some(&(100_000, 0)));
        assert_eq!(server.statistics().cookies_accepted, 1);
        let (_, ours, _) = server.connections().last().unwrap();
        assert_eq!(ours.state(), State::Closed);
    }
}

/// SYNs from addresses that answer nothing, evenly over two seconds.
fn flood_for_two_seconds(server: &mut Host<Traffic>, per_second: u32) -> usize {
    let like = syn(Time::ZERO, &mut host(CLIENT));
    let mut answers = 0;
    for n in 0..2 * per_second {
        let now =
            Time::ZERO + Duration::from_nanos(u64::from(n) * 1_000_000_000 / u64::from(per_second));
        server.handle_timeout(now);
        let mut forged = changed(&like, |segment| segment.source_port = n as u16);
        forged.ip.source = IpAddr::V4(core::net::Ipv4Addr::from(0xc612_0000 + (n >> 16)));
        server.handle_packet(now, &forged);
        answers += sent(server, now).len();
    }
    answers
}

/// A client connects at `at` to the server, and sends 10 kB; the options that the server has negotiated.
fn connects(server: &mut Host<Traffic>, at: Time, config: Config, last: u8) -> tcp::Info {
    let mut client = host(IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 1, last)));
    client.open(Opening { config, ..transfer(at, 80, 0, 10_000) });
    client.handle_timeout(at);
    server.handle_timeout(at);
    converse(at, &mut client, server);
    let (_, ours, _) = client.connections().next().unwrap();
    assert_eq!((ours.state(), ours.unacknowledged()), (State::TimeWait, 0), "at {at}");
    let slot = server.slots.iter().find(|slot| slot.tuple().remote == client.address()).unwrap();
    slot.connection.info()
}

#[test]
fn two_seconds_of_forged_syns_cost_later_clients_nothing() {
    let accept = |config: &Config| {
        let config = config.clone();
        move |_| (config.clone(), Traffic::Sink(Sink::new(0)))
    };
    let with = Config { timestamps: true, delayed_ack: None, ..Config::default() };
    let without = Config { timestamps: false, ..with.clone() };
    let mut server = host(SERVER);
    server.set(Settings { memory: Some(1 << 30), ..server.settings() });
    server.add_listener(Listener::new(80, accept(&with)));
    flood_for_two_seconds(&mut server, 10_000);
    assert_eq!((server.open_connections(), server.statistics().overflows), (4096, 0));

    // The backlog is full of connections that may be those of slow paths: cookies help.
    let info = connects(&mut server, millis(2100), with.clone(), 1);
    assert!(info.sack && info.timestamps && info.window_shifts.is_some());
    let info = connects(&mut server, millis(2100), without.clone(), 2);
    assert!(!info.sack && info.window_shifts.is_none());

    // Three seconds after their SYNs, half of them have gone, and nothing is left out for anybody.
    let mut repeated = 0;
    while server.poll_timeout() <= millis(3500) {
        let now = server.poll_timeout();
        server.handle_timeout(now);
        repeated += sent(&mut server, now).len();
    }
    assert!(server.open_connections() <= 2048, "{}", server.open_connections());
    assert!(repeated < 4096, "{repeated}: most SYN-ACKs are retransmitted once");
    for (n, config) in [with, without].into_iter().enumerate() {
        let info = connects(&mut server, millis(3500), config.clone(), 3 + n as u8);
        assert_eq!((info.sack, info.timestamps), (true, config.timestamps));
        assert!(info.window_shifts.is_some());
    }
    assert_eq!(server.statistics().cookies_accepted, 2);
}

#[test]
fn what_was_agreed_on_comes_back_in_the_timestamp() {
    for (timestamps, sack, ecn) in
        [(true, true, true), (true, true, false), (true, false, false), (false, true, true)]
    {
        let recovery = if sack { tcp::Recovery::Sack } else { tcp::Recovery::NewReno };
        let mode = if ecn { EcnMode::Classic } else { EcnMode::Off };
        let config = Config { timestamps, ecn: mode, recovery, mss: 1300, ..Config::default() };
        let (mut client, mut server) = answered(config);
        for packet in sent(&mut client, millis(3)) {
            server.handle_packet(millis(3), &packet);
        }
        let ours = server.connections().nth(2).unwrap().1.info();
        let theirs = client.connections().next().unwrap().1.info();
        let agreed = |info: tcp::Info| (info.timestamps, info.sack, info.ecn);
        let all = (timestamps, sack && timestamps, ecn && timestamps);
        assert_eq!((agreed(ours), agreed(theirs)), (all, all));
        let state_changed = |(one, other)| (other, one);
        assert_eq!(ours.window_shifts, theirs.window_shifts.map(state_changed));
        assert_eq!(ours.window_shifts.is_some(), timestamps);
        // The size is rounded down to one that a cookie can name.
        assert_eq!(ours.mss, 1220 - if timestamps { 12 } else { 0 });
    }
}

#[test]
fn the_answer_times_no_round_trip() {
    let (mut client, mut server) = answered(Config { timestamps: true, ..Config::default() });
    for packet in sent(&mut client, millis(700)) {
        server.handle_packet(millis(700), &packet);
    }
    let vitals = server.connections().nth(2).unwrap().1.vitals();
    assert_eq!((vitals.srtt, vitals.rto), (None, Duration::from_secs(1)));
    assert_eq!(vitals.window, InitialWindow::Segments(10).bytes(1460 - 12));
}

#[test]
fn a_forged_acknowledgment_is_not_accepted() {
    let (mut client, mut server) = answered(Config { timestamps: true, ..Config::default() });
    let ack = sent(&mut client, millis(3))[0];
    let refused = |server: &mut Host<Traffic>, now: Time, forged: Packet| {
        server.handle_packet(now, &forged);
        let answer = sent(server, now);
        assert_eq!((server.connections().count(), server.statistics().cookies_accepted), (2, 0));
        assert!(answer.iter().all(|packet| tcp_of(packet).flags.contains(Flags::RST)));
    };
    // Every bit of it counts, and all that it depends on.
    for bit in 0..32 {
        let forged = changed(&ack, |segment| segment.ack.0 ^= 1 << bit);
        refused(&mut server, millis(3), forged);
        let forged = changed(&ack, |segment| segment.seq.0 ^= 1 << bit);
        refused(&mut server, millis(3), forged);
    }
    for bit in 0..6 {
        let forged = changed(&ack, |s| s.options.timestamps.as_mut().unwrap().echo ^= 1 << bit);
        refused(&mut server, millis(3), forged);
    }
    refused(&mut server, millis(3), changed(&ack, |segment| segment.options.timestamps = None));
    refused(&mut server, millis(3), changed(&ack, |segment| segment.source_port ^= 1));
    let mut other = ack;
    other.ip.source = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 7));
    refused(&mut server, millis(3), other);
    // Nor any of many guesses.
    for guess in 0..10_000_u32 {
        let forged = changed(&ack, |s| s.ack.0 = s.ack.0.wrapping_add(1 + guess * 400_009));
        server.handle_packet(millis(3), &forged);
    }
    sent(&mut server, millis(3));
    assert_eq!(server.statistics().cookies_accepted, 0);
    // The true one is.
    server.handle_packet(millis(3), &ack);
    assert_eq!(server.statistics().cookies_accepted, 1);
}

#[test]
fn a_cookie_is_good_in_its_period_and_the_next() {
    for (at, good) in [(63_000, 1), (127_000, 1), (128_100, 0)] {
        let (mut client, mut server) = answered(Config::default());
        let ack = sent(&mut client, millis(3))[0];
        flood(millis(at), &mut server, 10);
        server.handle_packet(millis(at), &ack);
        assert_eq!(server.statistics().cookies_accepted, good, "{at}");
    }
}

#[test]
fn without_a_flood_no_cookie_is_taken() {
    // What RFC 9293 §3.10.7.2 says of an ACK to a listener holds again.
    let (mut client, mut server) = answered(Config::default());
    let ack = sent(&mut client, millis(3))[0];
    assert!(server.listeners.by_binding[&Binding::from(80)].cookies_until <= millis(128_001));
    server.listeners.by_binding.get_mut(&Binding::from(80)).unwrap().cookies_until = millis(100);
    server.handle_packet(millis(100), &ack);
    let reset = tcp_of(&sent(&mut server, millis(100))[0]);
    assert_eq!((reset.flags, reset.seq), (Flags::RST, tcp_of(&ack).ack));
    assert_eq!(server.connections().count(), 2);
}

#[test]
fn a_host_without_a_flood_is_the_same_with_and_without_cookies() {
    let run = |syn_cookies: bool| {
        let (mut client, mut server) = (host(CLIENT), server(80));
        server.set(Settings { syn_cookies, ..server.settings() });
        let mut all = Vec::new();
        for stream in 0..50 {
            client.open(transfer(millis(u64::from(stream)), 80, stream, 20_000));
        }
        loop {
            let now = client.poll_timeout().min(server.poll_timeout());
            if now > millis(100_000) {
                return (all, received(&server), server.statistics());
            }
            client.handle_timeout(now);
            server.handle_timeout(now);
            loop {
                let (there, back) = (sent(&mut client, now), sent(&mut server, now));
                if there.is_empty() && back.is_empty() {
                    break;
                }
                there.iter().for_each(|packet| server.handle_packet(now, packet));
                back.iter().for_each(|packet| client.handle_packet(now, packet));
                all.extend(there.into_iter().chain(back).map(|packet| (now, packet)));
            }
        }
    };
    assert!(run(true) == run(false));
}
