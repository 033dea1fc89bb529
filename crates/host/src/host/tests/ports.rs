//! Which local port a connection gets.

use super::super::opening::{DYNAMIC_PORTS, FIRST_DYNAMIC_PORT};
use super::*;

/// Opens so many connections to a port and returns their local ports.
fn ports(client: &mut Host<Traffic>, remote_port: u16, count: u16) -> Vec<u16> {
    for _ in 0..count {
        client.open(transfer(Time::ZERO, remote_port, 0, 1));
    }
    client.handle_timeout(Time::ZERO);
    let mut ports: Vec<_> =
        sent(client, Time::ZERO).iter().map(|packet| tcp_of(packet).source_port).collect();
    assert_eq!(ports.len(), usize::from(count));
    ports.reverse(); // The latest is the first to send.
    ports
}

#[test]
fn ports_to_one_destination_follow_each_other_from_a_secret_start() {
    // RFC 6056 §3.3.3
    let mut client = host(CLIENT);
    let [here, there] = [80, 81].map(|port| ports(&mut client, port, 3));
    for ports in [&here, &there] {
        assert!(ports.iter().all(|&port| port >= FIRST_DYNAMIC_PORT));
        for pair in ports.windows(2) {
            assert_eq!(pair[1].wrapping_sub(pair[0]) % DYNAMIC_PORTS, 1);
        }
    }
    assert_ne!(there[0].wrapping_sub(here[2]) % DYNAMIC_PORTS, 1);
    assert_ne!(ports(&mut Host::new(CLIENT, Seed(2).stream("other")), 80, 3), here);
}

#[test]
fn ports_that_are_in_use_or_listened_on_are_passed_over() {
    let mut client = host(CLIENT);
    let first = ports(&mut client, 80, 1)[0];
    let next = |port: u16| port.checked_add(1).unwrap_or(FIRST_DYNAMIC_PORT);
    client.listen(next(first), || unreachable!("there is no client"));
    client.next_port = 0;
    assert_eq!(ports(&mut client, 80, 1), [next(next(first))]);
}

#[test]
fn a_host_that_shares_its_address_opens_connections_of_its_share_alone() {
    let own = |tuple: &FourTuple| tuple.local_port % 3 == 1;
    let mut client = host(CLIENT);
    client.share(own);
    assert!(ports(&mut client, 80, 50).into_iter().all(|port| port % 3 == 1));
    let from =
        |local_port| Opening { local_port: Some(local_port), ..transfer(Time::ZERO, 81, 0, 1) };
    assert!(client.connect(Time::ZERO, from(3 * 1000)).is_none());
    assert!(client.connect(Time::ZERO, from(3 * 1000 + 1)).is_some());
}

#[test]
fn a_host_without_a_port_left_opens_nothing() {
    let mut client = host(CLIENT);
    let mut used = ports(&mut client, 80, DYNAMIC_PORTS);
    used.sort_unstable();
    assert!(used.iter().copied().eq(FIRST_DYNAMIC_PORT..=u16::MAX));
    client.open(transfer(Time::ZERO, 80, 0, 1));
    assert_eq!(ports(&mut client, 81, 1).len(), 1, "another remote port has its own");
    assert_eq!(client.statistics().unopened, 1);
}

#[test]
fn a_port_is_free_again_once_its_connection_is_over() {
    let (mut client, mut server) = (host(CLIENT), server(80));
    client.open(transfer(Time::ZERO, 80, 0, 1000));
    assert!(!client.is_finished() && server.is_finished());
    run_until(millis(30_000), &mut client, &mut server);
    assert_eq!(client.open_connections(), 1, "TIME-WAIT keeps it");
    assert!(client.is_finished() && !client.is_quiet());
    assert_eq!(server.open_connections(), 0);
    run_until(millis(61_000), &mut client, &mut server);
    assert_eq!(client.open_connections(), 0);
    client.next_port = 0;
    client.open(transfer(millis(70_000), 80, 1, 500));
    run_until(millis(200_000), &mut client, &mut server);
    assert_eq!(received(&server), [(1000, 0), (500, 0)]);
    let tuples: Vec<_> = server.slots.iter().map(Slot::tuple).collect();
    assert_eq!(tuples[0], tuples[1]);
    let ids: Vec<_> = server.connections().map(|(id, ..)| id).collect();
    assert_ne!(ids[0], ids[1], "and ids are for good");
}

#[test]
fn a_host_that_keeps_nothing_has_nothing_left() {
    let (mut client, mut server) = (host(CLIENT), server(80));
    for host in [&mut client, &mut server] {
        host.set(Settings::default());
    }
    let mut ids = Vec::new();
    for round in 0..3 {
        let at = millis(round * 100_000);
        client.open(transfer(at, 80, round as u32, 1000));
        client.open(transfer(at, 81, 0, 1000)); // There is no listener.
        client.handle_timeout(at);
        ids.extend(client.connections().map(|(id, ..)| id));
        converse(at, &mut client, &mut server);
        run_until(at + Duration::from_secs(90), &mut client, &mut server);
        for host in [&client, &server] {
            assert!(host.is_quiet());
            assert_eq!(
                (host.connections().count(), host.slots.count()),
                (0, host.slots.vacant().len())
            );
        }
    }
    assert_eq!((client.slots.count(), server.slots.count()), (2, 1), "slots are used again");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 6, "ids are not");
    assert!(ids.iter().all(|&id| client.connection(id).is_none()));
}
