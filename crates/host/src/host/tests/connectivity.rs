//! Indications of connectivity to connections.

use super::*;
use crate::PacedSource;
use tcp::mechanism::Rlci;
use tcp::{Connectivity, Recovery};

const OTHER: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 3));
const CHANGED: Connectivity = Connectivity::Changed { window: None };

/// Settings that heed a change. Without loss probes: what is stalled is silent.
fn heedful() -> Config {
    let mechanisms = vec![Mechanism::Rlci(Rlci::default())];
    Config { mechanisms, recovery: Recovery::Sack, timestamps: true, ..Config::default() }
}

/// A host that has asked two others for a connection, and got no answer from either.
fn asking() -> Host<Traffic> {
    let mut client = host(CLIENT);
    for remote in [SERVER, OTHER] {
        client.open(Opening { remote, config: heedful(), ..transfer(Time::ZERO, 80, 0, 1000) });
    }
    client.handle_timeout(Time::ZERO);
    assert_eq!(sent(&mut client, Time::ZERO).len(), 2);
    client
}

/// The peers to which the client retransmits after an indication of a change.
fn retransmits_to(peers: &[IpAddr]) -> Vec<IpAddr> {
    let mut client = asking();
    client.on_connectivity(millis(100), CHANGED, peers);
    let mut asked: Vec<IpAddr> =
        sent(&mut client, millis(100)).iter().map(|packet| packet.ip.destination).collect();
    asked.sort();
    asked
}

#[test]
fn a_change_concerns_the_connections_with_the_peers_that_are_named_or_all() {
    assert_eq!(retransmits_to(&[SERVER]), [SERVER]);
    assert_eq!(retransmits_to(&[OTHER, CLIENT]), [OTHER]);
    assert_eq!(retransmits_to(&[]), [SERVER, OTHER]);
    assert!(retransmits_to(&[CLIENT]).is_empty());
}

#[test]
fn connections_without_a_mechanism_for_it_do_nothing() {
    let mut client = host(CLIENT);
    client.open(transfer(Time::ZERO, 80, 0, 1000));
    client.handle_timeout(Time::ZERO);
    let _ = sent(&mut client, Time::ZERO);
    client.on_connectivity(millis(100), CHANGED, &[]);
    assert!(sent(&mut client, millis(100)).is_empty());
}

/// A client that shares probes, and its server. Of its three connections the first has said all that
/// it had to say, and what the two others have sent is lost.
fn stalled() -> (Host<Traffic>, Host<Traffic>) {
    let (mut client, mut server) = (host(CLIENT), host(SERVER));
    client.set(Settings { shared_probe: true, ..client.settings() });
    server.listen(80, || (heedful(), Traffic::Sink(Sink::of_any())));
    let open = |client: &mut Host<Traffic>, at: u64, stream| {
        let application = match stream {
            0 => PacedSource::new(0, None, 100, Duration::from_secs(100)).into(),
            stream => Traffic::Source(Source::new(stream, Some(100_000))),
        };
        let local_port = Some(1000 + stream as u16);
        let opening = transfer(millis(at), 80, stream, 0);
        client.open(Opening { local_port, config: heedful(), application, ..opening });
        client.handle_timeout(millis(at));
    };
    open(&mut client, 0, 0);
    converse(Time::ZERO, &mut client, &mut server);
    run_until(millis(50), &mut client, &mut server);
    for stream in [2, 1] {
        let now = millis(100 * u64::from(3 - stream));
        open(&mut client, 100 * u64::from(3 - stream), stream);
        sent(&mut client, now).iter().for_each(|packet| server.handle_packet(now, packet));
        sent(&mut server, now).iter().for_each(|packet| client.handle_packet(now, packet));
        assert_eq!(sent(&mut client, now).len(), 10);
    }
    (client, server)
}

/// Which connections of the client speak, by their ports, and in how many packets.
fn speakers(packets: &[Packet]) -> Vec<(u16, usize)> {
    let ports = packets.iter().map(|packet| tcp_of(packet).source_port);
    let mut counts = std::collections::BTreeMap::new();
    ports.for_each(|port| *counts.entry(port).or_insert(0) += 1);
    counts.into_iter().collect()
}

#[test]
fn connections_that_share_a_probe_follow_the_longest_stalled_once_that_is_answered() {
    let (mut client, mut server) = stalled();
    client.on_connectivity(millis(500), CHANGED, &[]);
    let probe = sent(&mut client, millis(500));
    assert_eq!(speakers(&probe), [(1000, 1), (1002, 10)], "who has no data says so at once");
    probe.iter().for_each(|packet| server.handle_packet(millis(550), packet));
    let answers = sent(&mut server, millis(550));
    answers.iter().for_each(|packet| client.handle_packet(millis(600), packet));
    let more = speakers(&sent(&mut client, millis(600)));
    assert!(more.iter().all(|(port, _)| *port != 1001), "{more:?}");
    assert_eq!(client.poll_timeout(), millis(650), "half a round trip later");
    client.handle_timeout(millis(650));
    assert_eq!(speakers(&sent(&mut client, millis(650))), [(1001, 1)]);
}

#[test]
fn whose_turn_had_not_come_when_the_path_changed_again_has_it_then() {
    let (mut client, _) = stalled();
    client.on_connectivity(millis(500), CHANGED, &[]);
    let _ = sent(&mut client, millis(500));
    client.on_connectivity(millis(600), CHANGED, &[CLIENT]);
    assert_eq!(speakers(&sent(&mut client, millis(600))), [(1001, 10)]);
}

#[test]
fn a_known_window_of_the_new_path_needs_no_shared_probe() {
    let (mut client, _) = stalled();
    client.on_connectivity(millis(500), Connectivity::Changed { window: Some(3) }, &[]);
    assert_eq!(speakers(&sent(&mut client, millis(500))), [(1000, 1), (1001, 3), (1002, 3)]);
}
