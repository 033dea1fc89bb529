//! The events of a host.

use super::*;

fn drained(host: &mut Host<Traffic>) -> Vec<(ConnectionId, Event)> {
    core::iter::from_fn(|| host.poll_event()).collect()
}

#[test]
fn events_come_with_the_connection_that_they_are_of() {
    let (mut client, mut server) = (host(CLIENT), server(80));
    server.watch(true);
    client.open(transfer(Time::ZERO, 80, 0, 1));
    client.open(transfer(millis(1), 80, 1, 1));
    run_until(millis(100_000), &mut client, &mut server);
    assert!(drained(&mut client).is_empty(), "its events are not recorded");
    let events = drained(&mut server);
    for (id, ..) in server.connections() {
        let states = events.iter().filter_map(|(of, event)| match event {
            Event::State { to, .. } if *of == id => Some(*to),
            _ => None,
        });
        let life = [State::Established, State::CloseWait, State::LastAck, State::Closed];
        assert_eq!(states.collect::<Vec<_>>(), life);
    }
}

#[test]
fn the_last_events_of_a_removed_connection_are_returned() {
    let (mut client, mut server) = (host(CLIENT), server(80));
    client.set(Settings::default());
    client.watch(true);
    client.open(transfer(Time::ZERO, 81, 0, 1)); // There is no listener.
    run_until(millis(1), &mut client, &mut server);
    assert_eq!(client.connections().count(), 0);
    let closed = Event::State { from: State::SynSent, to: State::Closed };
    assert!(drained(&mut client).iter().any(|(_, event)| *event == closed));
}

#[test]
fn no_events_are_recorded_after_watching_ends() {
    let (mut client, mut server) = (host(CLIENT), server(80));
    client.watch(true);
    client.open(transfer(Time::ZERO, 80, 0, 1));
    run_until(millis(1), &mut client, &mut server);
    client.watch(false);
    client.open(transfer(millis(2), 80, 1, 1));
    run_until(millis(100_000), &mut client, &mut server);
    assert!(drained(&mut client).is_empty());
}
