//! TCP Fast Open (RFC 7413): cookies of servers and clients, limits, and failures.

use super::*;
use wire::FastOpenCookie;

fn config() -> Config {
    Config { fast_open: true, ..Config::default() }
}

/// A server on ports 80 and 81 that takes in streams 0, 1, 2, ... in the order of their connections.
fn server() -> Host<Traffic> {
    let mut server = host(SERVER);
    let streams = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    for port in [80, 81] {
        let streams = streams.clone();
        server.listen(port, move || {
            let stream = streams.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            (config(), Traffic::Sink(Sink::new(stream)))
        });
    }
    server
}

/// Opens a connection for a request of 100 bytes of `stream`: its SYN.
fn open(now: Time, client: &mut Host<Traffic>, port: u16, stream: u32) -> Packet {
    client.open(Opening { config: config(), ..transfer(now, port, stream, 100) });
    client.handle_timeout(now);
    let syns = sent(client, now);
    assert_eq!((syns.len(), tcp_of(&syns[0]).flags - Flags::PSH), (1, Flags::SYN));
    syns[0]
}

/// The bytes that a SYN carries, and its Fast Open option.
fn carries(syn: &Packet) -> (u32, Option<FastOpenCookie>) {
    (syn.payload.len, syn.unparsed.fast_open())
}

/// A client that has a cookie of the server since time zero.
fn known() -> (Host<Traffic>, Host<Traffic>) {
    let (mut client, mut server) = (host(CLIENT), server());
    let syn = open(Time::ZERO, &mut client, 80, 0);
    assert_eq!(carries(&syn), (0, Some(FastOpenCookie::REQUEST)));
    server.handle_packet(Time::ZERO, &syn);
    converse(Time::ZERO, &mut client, &mut server);
    assert_eq!((received(&server), server.statistics().fast_opens), (vec![(100, 0)], 0));
    (client, server)
}

/// The answer of a server to a SYN, and whether it acknowledges its data.
fn answer(now: Time, server: &mut Host<Traffic>, syn: &Packet) -> (Packet, bool) {
    server.handle_packet(now, syn);
    let answer = sent(server, now)[0];
    assert_eq!(tcp_of(&answer).flags, Flags::SYN | Flags::ACK);
    let acked = tcp_of(&answer).ack - (tcp_of(syn).seq + 1);
    assert!(acked == 0 || acked == syn.payload.len);
    (answer, acked > 0)
}

#[test]
fn with_the_cookie_of_an_earlier_connection_a_request_arrives_with_the_syn() {
    let (mut client, mut server) = known();
    for (stream, port) in [(1, 80), (2, 81)] {
        let at = millis(u64::from(stream));
        let syn = open(at, &mut client, port, stream);
        let (len, cookie) = carries(&syn);
        assert_eq!((len, cookie.unwrap().as_bytes().len()), (100, 8));
        let (answer, accepted) = answer(at, &mut server, &syn);
        assert!(accepted && received(&server)[stream as usize] == (100, 0));
        client.handle_packet(at, &answer);
        converse(at, &mut client, &mut server);
    }
    assert_eq!(server.statistics().fast_opens, 2);
    run_until(millis(100_000), &mut client, &mut server);
    assert!(client.is_quiet() && server.is_quiet());
}

#[test]
fn a_cookie_is_learned_from_packets_one_by_one_too() {
    let (mut client, mut server) = (host(CLIENT), server());
    let syn = open(Time::ZERO, &mut client, 80, 0);
    let (answer, _) = answer(Time::ZERO, &mut server, &syn);
    Tray { next: answer, sent: Vec::new() }.exchange(&mut client, millis(1));
    assert_eq!(carries(&open(millis(2), &mut client, 80, 1)).0, 100);
}

#[test]
fn without_the_setting_there_is_no_option_and_no_cookie() {
    let (mut client, _) = known();
    let syn = open(millis(1), &mut client, 80, 1);
    let mut plain = super::server(80);
    let (answer, accepted) = answer(millis(1), &mut plain, &syn);
    assert_eq!((accepted, answer.unparsed.fast_open()), (false, None));
    let syn = super::syn(millis(2), &mut client);
    assert_eq!(carries(&syn), (0, None));
}

#[test]
fn a_cookie_is_good_for_one_client_only() {
    let (mut client, mut server) = known();
    let syn = open(millis(1), &mut client, 80, 1);
    let cookie = carries(&syn).1.unwrap();
    let forged = |cookie: &[u8]| {
        let mut forged = syn;
        forged.unparsed.clear();
        assert!(forged.unparsed.add_fast_open(&FastOpenCookie::new(cookie).unwrap()));
        forged
    };
    let mut all = vec![forged(&[]), forged(&cookie.as_bytes()[..6]), forged(&[0; 16])];
    for bit in 0..64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(cookie.as_bytes());
        bytes[bit / 8] ^= 1 << (bit % 8);
        all.push(forged(&bytes));
    }
    let mut other = syn;
    other.ip.source = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 7));
    all.push(other);
    for (port, mut forged) in (1..).zip(all) {
        forged.tcp_mut().unwrap().source_port = port;
        let (answer, accepted) = answer(millis(1), &mut server, &forged);
        let granted = answer.unparsed.fast_open();
        assert!(!accepted, "{forged:?}");
        assert_eq!(granted == Some(cookie), forged.ip.source == CLIENT);
    }
    assert_eq!(server.statistics().fast_opens, 0);
    assert!(answer(millis(1), &mut server, &syn).1);
}

#[test]
fn a_cookie_is_good_in_its_period_and_the_next_in_which_it_is_replaced() {
    const HOURS: u64 = 3_600_000;
    for (at, good, new) in [
        (HOURS, true, false),
        (2 * HOURS, true, true),
        (4 * HOURS - 1, true, true),
        (4 * HOURS, false, true),
    ] {
        let (mut client, mut server) = known();
        let syn = open(millis(at), &mut client, 80, 1);
        let (answer, accepted) = answer(millis(at), &mut server, &syn);
        assert_eq!((accepted, answer.unparsed.fast_open().is_some()), (good, new), "{at}");
        client.handle_packet(millis(at), &answer);
        converse(millis(at), &mut client, &mut server);
        assert_eq!(received(&server)[1], (100, 0));
        assert_eq!(client.fast_open_cookies.paths[0].failures, 0);
        // The next has the new one at once: a new key is no failure of the path.
        let again = open(millis(at), &mut client, 80, 2);
        assert_eq!((again.payload.len, carries(&again) != carries(&syn)), (100, new));
        assert!(self::answer(millis(at), &mut server, &again).1);
    }
}

#[test]
fn beyond_a_limit_handshakes_are_normal() {
    // RFC 7413 §4.2.2 and §5.1.
    let (mut client, mut server) = known();
    server.set(Settings { fast_open_backlog: 2, ..server.settings() });
    let syns: Vec<_> = (1..=4).map(|n| open(millis(1), &mut client, 80, n)).collect();
    let answers: Vec<_> = syns.iter().map(|syn| answer(millis(1), &mut server, syn)).collect();
    let accepted: Vec<_> = answers.iter().map(|answer| answer.1).collect();
    assert_eq!(accepted, [true, true, false, false]);
    assert_eq!(server.statistics().fast_opens_limited, 2);
    // All is delivered, and there is room again.
    answers.iter().for_each(|(answer, _)| client.handle_packet(millis(2), answer));
    converse(millis(2), &mut client, &mut server);
    assert_eq!(received(&server), [(100, 0); 5]);
    let mut other = host(CLIENT);
    other.fast_open_cookies = client.fast_open_cookies.clone();
    other.fast_open_cookies.paths[0].paused_until = Time::ZERO;
    let late: Vec<_> = (5..=7).map(|n| open(millis(3), &mut other, 80, n)).collect();
    assert_eq!(late.iter().map(|syn| syn.payload.len).collect::<Vec<_>>(), [100; 3]);
    assert!(answer(millis(3), &mut server, &late[0]).1);
    // A reset makes no room for a minute: it may be an attacker's (§5.1).
    let reset = changed(&late[0], |segment| {
        segment.seq = segment.seq + 101;
        segment.flags = Flags::RST;
    });
    server.handle_packet(millis(3), &Packet { payload: wire::Payload::default(), ..reset });
    sent(&mut server, millis(3));
    assert!(answer(millis(60_002), &mut server, &late[1]).1);
    assert!(!answer(millis(60_002), &mut server, &late[2]).1);
    let last = changed(&late[2], |segment| segment.source_port = 7);
    assert!(answer(millis(60_003), &mut server, &last).1);
}

#[test]
fn a_cookie_that_comes_late_shows_that_the_path_works() {
    // RFC 7413 §4.1.3.1: only the first SYN has asked for it, so that was slow, not dropped.
    let (mut client, mut server) = (host(CLIENT), server());
    let syn = open(Time::ZERO, &mut client, 80, 0);
    let (answer, _) = answer(Time::ZERO, &mut server, &syn);
    client.handle_timeout(millis(1000));
    assert_eq!(carries(&sent(&mut client, millis(1000))[0]), (0, None));
    client.handle_packet(millis(1000), &answer);
    sent(&mut client, millis(1000));
    assert_eq!(client.fast_open_cookies.paths[0].failures, 0);
    assert_eq!(carries(&open(millis(2000), &mut client, 80, 1)).0, 100);
}

#[test]
fn the_size_of_a_syn_is_bounded_by_the_last_mss_of_the_server() {
    // Not every SYN-ACK has a cookie (RFC 7413 §4.1.3).
    let (mut client, mut server) = known();
    let syn = open(millis(1), &mut client, 80, 1);
    let (answer, _) = answer(millis(1), &mut server, &syn);
    assert_eq!(answer.unparsed.fast_open(), None);
    let small = changed(&answer, |segment| segment.options.mss = Some(90));
    client.handle_packet(millis(1), &small);
    sent(&mut client, millis(1));
    assert_eq!(carries(&open(millis(2), &mut client, 80, 2)).0, 50);
}

/// Opens a connection at `now` over a path that drops SYNs with the option; runs for ten seconds.
fn through_a_black_hole(
    now: Time,
    client: &mut Host<Traffic>,
    server: &mut Host<Traffic>,
    stream: u32,
) -> Packet {
    let syn = open(now, client, 80, stream);
    if carries(&syn).1.is_none() {
        server.handle_packet(now, &syn);
        converse(now, client, server);
    }
    run_until(now + Duration::from_secs(10), client, server);
    syn
}

#[test]
fn a_client_does_without_on_a_path_that_drops_it_for_longer_and_longer() {
    // RFC 7413 §4.1.3.1
    let (mut client, mut server) = known();
    // Each fails a second later, after the timeout. The first may be an ordinary loss.
    let tries = [
        (0, true),
        (11, true),
        (60, false),
        (71, false),
        (73, true),
        (130, false),
        (193, false),
        (195, true),
    ];
    for (stream, (at, fast)) in (1..).zip(tries) {
        let syn = through_a_black_hole(millis(1000 * at + 1), &mut client, &mut server, stream);
        assert_eq!(carries(&syn).1.is_some(), fast, "at {at} s");
        assert_eq!(received(&server)[stream as usize], (100, 0), "at {at} s");
    }
    // Once it works again, the next failure is the first.
    let syn = open(millis(500_000), &mut client, 80, 9);
    assert_eq!(syn.payload.len, 100);
    server.handle_packet(millis(500_000), &syn);
    converse(millis(500_000), &mut client, &mut server);
    assert_eq!(client.fast_open_cookies.paths[0].failures, 0);
}

#[test]
fn a_client_does_without_after_a_server_that_never_answers() {
    let (mut client, _) = known();
    let at = open(millis(1), &mut client, 80, 1);
    assert_eq!(at.payload.len, 100);
    let mut silent = host(SERVER);
    run_until(millis(300_000), &mut client, &mut silent);
    sent(&mut client, millis(300_000));
    assert_eq!(client.fast_open_cookies.paths[0].failures, 1);
}

#[test]
fn a_request_that_is_answered_ends_a_row_of_failures() {
    let (mut client, mut server) = (host(CLIENT), server());
    for (stream, failures) in [(0, 1), (1, 0)] {
        let at = millis(20_000 * u64::from(stream));
        let syn = open(at, &mut client, 80, stream);
        assert_eq!(carries(&syn), (0, Some(FastOpenCookie::REQUEST)));
        if stream == 1 {
            server.handle_packet(at, &syn);
            converse(at, &mut client, &mut server);
        }
        run_until(at + Duration::from_secs(10), &mut client, &mut server);
        assert_eq!(client.fast_open_cookies.paths[0].failures, failures);
    }
}

#[test]
fn a_cookie_in_a_syn_that_acknowledges_nothing_is_not_learned() {
    let (mut client, mut server) = (host(CLIENT), server());
    let syn = open(Time::ZERO, &mut client, 80, 0);
    let (answer, _) = answer(Time::ZERO, &mut server, &syn);
    client.handle_packet(millis(1), &changed(&answer, |segment| segment.flags = Flags::SYN));
    let opened = client.connections().next().unwrap().1.state();
    assert_eq!((opened, client.fast_open_cookies.paths[0].cookie), (State::SynReceived, None));
}

#[test]
fn a_client_remembers_a_limited_number_of_servers() {
    let (mut client, _) = known();
    let other = |n: u16| IpAddr::V4(core::net::Ipv4Addr::new(10, 1, (n >> 8) as u8, n as u8));
    for n in 0..600 {
        let opening = Opening { remote: other(n), ..transfer(millis(1), 80, 0, 100) };
        client.open(Opening { config: config(), ..opening });
        client.handle_timeout(millis(1));
        sent(&mut client, millis(1));
        // The first server stays in use.
        if n % 500 == 0 {
            assert_eq!(open(millis(1), &mut client, 80, 1).payload.len, 100);
        }
    }
    assert_eq!(client.fast_open_cookies.paths.len(), 512);
    assert!(client.fast_open_cookies.paths.iter().any(|path| path.remote == SERVER));
    assert!(client.fast_open_cookies.paths.iter().all(|path| path.remote != other(0)));
}

#[test]
fn a_restored_client_has_its_cookies() {
    let (client, mut server) = known();
    let snapshot = client.snapshot(millis(1));
    let mut client = Host::adopt(snapshot, millis(9_000_000)).unwrap();
    let syn = open(millis(9_000_000), &mut client, 80, 1);
    assert!(answer(millis(2), &mut server, &syn).1);
}
