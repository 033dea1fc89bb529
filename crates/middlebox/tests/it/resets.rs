//! Ends of connections whose state is lost, against a model of such ends.

use base::{Duration, Random, Seed, Time};
use core::net::Ipv4Addr;
use host::{FourTuple, Outbox};
use middlebox::Resets;
use proptest::prelude::*;
use std::collections::BTreeMap;
use wire::{Flags, SeqNumber};

const SECOND: Duration = Duration::from_secs(1);
/// The time between losing the state and the end of a run: asking takes 31.5 s at most.
const END: Time = Time::from_nanos(60_000_000_000);

fn connection() -> FourTuple {
    let [local, remote] = [1, 2].map(|number| Ipv4Addr::new(192, 0, 2, number).into());
    FourTuple { local, local_port: 1000, remote, remote_port: 80 }
}

/// An end of a connection (RFC 9293 §3.10.7, RFC 5961).
#[derive(Clone, Copy)]
struct End {
    is_open: bool,
    has_closed: bool,
    next: SeqNumber,
    expected: SeqNumber,
}

/// What a segment needs here.
#[derive(Clone, Copy)]
struct Sent {
    seq: SeqNumber,
    ack: SeqNumber,
    flags: Flags,
}

impl End {
    fn sends(&self, flags: Flags) -> Sent {
        Sent { seq: self.next, ack: self.expected, flags: flags | Flags::ACK }
    }

    /// It closes, or sends its FIN again.
    fn close(&mut self) -> Option<Sent> {
        let fin = self.sends(Flags::FIN);
        self.has_closed = true;
        self.is_open.then_some(fin)
    }

    fn receives(&mut self, sent: Sent) -> Option<Sent> {
        if !self.is_open {
            let flags = Flags::RST;
            return (!sent.flags.contains(flags)).then_some(Sent { seq: sent.ack, flags, ..sent });
        }
        if sent.flags.contains(Flags::RST) {
            self.is_open = sent.seq != self.expected;
            return None;
        }
        let next = if self.has_closed { self.next + 1 } else { self.next };
        Some(Sent { seq: next, ack: self.expected, flags: Flags::ACK })
    }
}

enum Event {
    ToEnd(Sent),
    ToBox(Sent),
    Close,
    Ask,
}

#[derive(Debug, Default, PartialEq)]
struct Outcome {
    is_open: bool,
    /// Segments that go on to the other end.
    passed: u32,
    given_up: bool,
    sent: u32,
}

/// What becomes of an end that closes after some time, and sends its FIN again every 300 ms; segments take `delay`, and are
/// lost with this probability.
fn run(seed: u64, delay: Duration, loss: f64, closes: Option<Duration>) -> Outcome {
    let mut random: Random = Seed(seed).stream("network");
    let mut resets = Resets::new(Seed(seed).stream("resets"));
    let mut end = End {
        is_open: true,
        has_closed: false,
        next: SeqNumber(random.bits() as u32),
        expected: SeqNumber(random.bits() as u32),
    };
    let connection = connection();
    resets.add(Time::ZERO, connection);
    let mut outcome = Outcome::default();
    let mut events = BTreeMap::from([((Time::ZERO, 0), Event::Ask)]);
    events.extend(closes.map(|after| ((Time::ZERO + after, 1), Event::Close)));
    let mut number = 2;
    while let Some(((now, _), event)) = events.pop_first() {
        if now > END {
            break;
        }
        let mut add = |at: Time, event: Event| {
            number += 1;
            events.insert((at, number), event);
        };
        let mut is_lost = || random.chance(loss);
        match event {
            Event::ToEnd(sent) => {
                let answer = end.receives(sent).filter(|_| !is_lost());
                answer.into_iter().for_each(|answer| add(now + delay, Event::ToBox(answer)));
            }
            Event::Close => {
                let Some(fin) = end.close() else { continue };
                add(now + Duration::from_millis(300), Event::Close);
                if !is_lost() {
                    add(now + delay, Event::ToBox(fin));
                }
            }
            Event::ToBox(sent) => {
                if !resets.take(now, &connection, sent.flags) {
                    outcome.passed += u32::from(!sent.flags.contains(Flags::RST));
                    assert!(outcome.passed == 0 || outcome.given_up, "passed at {now}");
                } else if !sent.flags.contains(Flags::RST) && !is_lost() {
                    let reset = Sent { seq: sent.ack, ack: sent.seq, flags: Flags::RST };
                    add(now + delay, Event::ToEnd(reset));
                }
                add(resets.poll_timeout().max(now), Event::Ask);
            }
            Event::Ask => {
                let mut outbox = Outbox::default();
                resets.send(now, &mut outbox.context(), |silent| {
                    assert_eq!(silent, connection);
                    outcome.given_up = true;
                });
                for packet in outbox.into_packets() {
                    outcome.sent += 1;
                    let wire::Body::Tcp(segment) = packet.body else { unreachable!() };
                    assert_eq!(FourTuple::of_segment(&packet.ip, &segment).reversed(), connection);
                    if !is_lost() {
                        let wire::Segment { seq, ack, flags, .. } = segment;
                        add(now + delay, Event::ToEnd(Sent { seq, ack, flags }));
                    }
                }
                if !resets.is_empty() {
                    add(resets.poll_timeout(), Event::Ask);
                }
            }
        }
    }
    assert!(resets.is_empty() && resets.poll_timeout() == Time::NEVER);
    outcome.is_open = end.is_open;
    outcome
}

#[test]
fn an_end_is_asked_reset_and_asked_again() {
    for closes in [None, Some(Duration::from_millis(70)), Some(Duration::from_millis(120))] {
        let outcome = run(1, Duration::from_millis(50), 0.0, closes);
        assert_eq!(outcome, Outcome { sent: 2, ..Outcome::default() }, "{closes:?}");
    }
}

#[test]
fn an_end_that_answers_nothing_is_given_up() {
    let outcome = run(1, Duration::from_millis(50), 1.0, None);
    assert_eq!(outcome, Outcome { is_open: true, given_up: true, sent: 6, passed: 0 });
}

#[test]
fn another_connection_between_the_same_ends_passes() {
    let connection = connection();
    for opened in [connection, connection.reversed()] {
        let mut resets = Resets::new(Seed(1).stream("resets"));
        resets.add(Time::ZERO, connection);
        assert!(resets.take(Time::ZERO, &connection, Flags::ACK));
        assert!(!resets.take(Time::ZERO, &opened, Flags::SYN));
        assert!(!resets.take(Time::ZERO, &connection, Flags::ACK));
        assert!(resets.is_empty());
    }
}

#[test]
fn what_arrives_in_great_numbers_is_not_asked_as_often() {
    let connection = connection();
    let mut resets = Resets::new(Seed(1).stream("resets"));
    resets.add(Time::ZERO, connection);
    let mut sent = 0;
    for _ in 0..1000 {
        assert!(resets.take(Time::ZERO, &connection, Flags::ACK));
        let mut outbox = Outbox::default();
        resets.send(Time::ZERO + SECOND / 100, &mut outbox.context(), |_| unreachable!());
        sent += outbox.into_packets().len();
    }
    assert_eq!(sent, 1);
}

proptest! {
    #[test]
    fn nothing_of_an_end_passes_before_it_is_reset_or_given_up(
        seed in any::<u64>(),
        delay in 1..400_u64,
        loss in prop_oneof![Just(0.0), 0.0..0.6],
        closes in proptest::option::of(0..3000_u64),
    ) {
        let closes = closes.map(Duration::from_millis);
        let outcome = run(seed, Duration::from_millis(delay), loss, closes);
        prop_assert!(outcome.sent <= 7);
        prop_assert!(!outcome.is_open || outcome.given_up);
        if loss == 0.0 {
            prop_assert!(!outcome.is_open && !outcome.given_up);
        }
    }
}
