//! What connections hear of the way to their peers.

use super::*;
use tcp::Connectivity;
use tcp::mechanism::Rlci;

const OTHER: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 3));
const CHANGED: Connectivity = Connectivity::Changed { window: None };

/// A host that has asked two others for a connection, and got no answer from either.
fn asking() -> Host<Traffic> {
    let mut client = host(CLIENT);
    for remote in [SERVER, OTHER] {
        let mechanisms = vec![Mechanism::Rlci(Rlci::default())];
        let config = Config { mechanisms, timestamps: true, ..Config::default() };
        client.open(Opening { remote, config, ..transfer(Time::ZERO, 80, 0, 1000) });
    }
    client.handle_timeout(Time::ZERO);
    assert_eq!(sent(&mut client, Time::ZERO).len(), 2);
    client
}

/// To whom it speaks again when it hears of a change.
fn asked_again(peers: &[IpAddr]) -> Vec<IpAddr> {
    let mut client = asking();
    client.on_connectivity(millis(100), CHANGED, peers);
    let mut asked: Vec<IpAddr> =
        sent(&mut client, millis(100)).iter().map(|packet| packet.ip.destination).collect();
    asked.sort();
    asked
}

#[test]
fn a_change_concerns_the_connections_with_the_peers_that_are_named_or_all() {
    assert_eq!(asked_again(&[SERVER]), [SERVER]);
    assert_eq!(asked_again(&[OTHER, CLIENT]), [OTHER]);
    assert_eq!(asked_again(&[]), [SERVER, OTHER]);
    assert!(asked_again(&[CLIENT]).is_empty());
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
