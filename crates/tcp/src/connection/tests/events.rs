//! What a connection's log says of arrivals.

use super::*;
use crate::Event;

/// The events of arrivals so far.
fn arrivals(t: &mut Diagram) -> Vec<Event> {
    let events = core::iter::from_fn(|| t.connection.poll_event());
    let is_of_arrival = |event: &Event| {
        matches!(
            event,
            Event::Received { .. } | Event::OutOfOrder { .. } | Event::DuplicateAck | Event::Reset
        )
    };
    events.filter(is_of_arrival).collect()
}

fn received(until: u32) -> Event {
    Event::Received { next: u64::from(at(until + 1)) }
}

#[test]
fn data_that_advances_the_window_is_told_from_other_data() {
    let mut t = established(config());
    t.connection.watch(true);
    t.send(data(1));
    assert_eq!(arrivals(&mut t), [received(1)]);
    t.send(data(3));
    let len = u32::try_from(segments(1)).unwrap();
    assert_eq!(arrivals(&mut t), [Event::OutOfOrder { start: at(3).into(), len }]);
    t.send(data(2));
    assert_eq!(arrivals(&mut t), [received(3)], "the gap is filled");
}

#[test]
fn a_log_that_is_turned_on_later_misses_nothing_from_then_on() {
    let mut t = established(config());
    t.send(data(1));
    assert!(t.connection.on_fast_path);
    t.connection.watch(true);
    assert!(!t.connection.on_fast_path);
    t.send(data(2));
    assert_eq!(arrivals(&mut t), [received(2)]);
    t.connection.watch(false);
    assert!(t.connection.on_fast_path);
}

#[test]
fn duplicate_acknowledgments_are_counted_by_the_log() {
    let mut t = sending(config());
    t.connection.watch(true);
    t.time(200);
    t.send(ack(1).sack(2..=2));
    t.send(ack(1).sack(2..=3));
    assert_eq!(arrivals(&mut t), [Event::DuplicateAck, Event::DuplicateAck]);
    t.send(ack(4));
    assert_eq!(arrivals(&mut t), []);
}

#[test]
fn a_reset_that_is_believed_is_told_from_one_that_is_not() {
    let mut t = established(config());
    t.connection.watch(true);
    t.send(reset(5000));
    assert_eq!(arrivals(&mut t), []);
    t.send(reset(1));
    assert_eq!(arrivals(&mut t), [Event::Reset]);
}
