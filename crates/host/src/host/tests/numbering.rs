//! Sequence numbers and timestamps that connections start with.

use super::*;

/// The SYN of a connection that `client` opens at `now`, from the same port each time.
fn first(now: Time, client: &mut Host<Traffic>) -> Segment {
    client.next_port = 0;
    let mut opening = transfer(now, 80, 0, 1);
    opening.config.timestamps = true;
    client.open(opening);
    client.handle_timeout(now);
    tcp_of(&sent(client, now)[0])
}

fn seeded(seed: u64) -> Host<Traffic> {
    Host::new(CLIENT, Seed(seed).stream("node.0"))
}

#[test]
fn numbers_depend_on_the_hosts_secrets_and_on_the_connection() {
    let start = |seed| {
        let segment = first(Time::ZERO, &mut seeded(seed));
        (segment.seq, segment.options.timestamps.unwrap().value)
    };
    assert_eq!(start(1), start(1));
    assert_ne!(start(1).0, start(2).0);
    assert_ne!(start(1).1, start(2).1);

    // And on nothing in common between two connections.
    let mut client = seeded(1);
    client.open(transfer(Time::ZERO, 80, 0, 1));
    client.open(transfer(Time::ZERO, 81, 0, 1));
    client.handle_timeout(Time::ZERO);
    let [a, b] = sent(&mut client, Time::ZERO)[..] else { panic!("two SYNs") };
    assert!(tcp_of(&a).seq.beyond(tcp_of(&b).seq).unsigned_abs() > 1 << 16);
}

#[test]
fn the_next_connection_between_the_same_ports_starts_as_much_later_as_the_clock_went_on() {
    // RFC 6528 §3: a tick every four microseconds; RFC 7323 §5.4: here, one every millisecond.
    let (a, b) = (first(millis(7), &mut seeded(1)), first(millis(1007), &mut seeded(1)));
    assert_eq!((a.source_port, b.seq - a.seq), (b.source_port, 250_000));
    let value = |segment: Segment| segment.options.timestamps.unwrap().value;
    assert_eq!(value(b).wrapping_sub(value(a)), 1000);
}

#[test]
fn a_host_that_is_restored_under_another_clock_goes_on_counting() {
    for shift in [0, 1, 123_456_789, 1 << 40] {
        let client = seeded(1);
        let later = |millis: u64| Time::from_nanos(millis * 1_000_000 + shift);
        let mut restored: Host<Traffic> =
            Host::adopt(client.snapshot(millis(7)), later(7)).unwrap();
        let undisturbed = first(millis(1007), &mut seeded(1));
        assert_eq!(first(later(1007), &mut restored), undisturbed);
    }
}
