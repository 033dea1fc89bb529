//! The program leaves the same bytes in packets as the lab's box.

use crate::frames::{ETHERNET, Frame, frames};
use crate::lab::Lab;
use crate::permitted;
use base::Duration;
use marker::{Marker, Settings};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// A frame as it leaves the kernel.
fn left(marker: &mut Marker, frame: &[u8]) -> Vec<u8> {
    let mut left = vec![0; frame.len()];
    let measured = marker.run(frame, &mut left, 1).unwrap();
    assert_eq!(measured.verdict, -1, "every packet goes on");
    left
}

const SETTINGS: Settings = Settings {
    flows: 1024,
    idle: Duration::from_secs(60),
    interface: 0,
    link_header: ETHERNET as u32,
};

#[test]
fn whatever_packets_come_the_same_bytes_leave() {
    if !permitted() {
        return;
    }
    let marked = std::cell::Cell::new(0);
    let mut runner = TestRunner::default();
    let outcome = runner.run(&frames(), |frames| {
        let (mut marker, mut lab) = (Marker::load(&SETTINGS).unwrap(), Lab::new(&SETTINGS));
        for frame in frames {
            let bytes = frame.bytes();
            prop_assert_eq!(left(&mut marker, &bytes), lab.left(&bytes), "{:?}", frame);
        }
        let counts = marker.counts().unwrap();
        prop_assert_eq!(counts.marked, lab.count("marked"));
        prop_assert_eq!(counts.new_flows, lab.count("new_flows"));
        prop_assert_eq!((counts.expired_flows, counts.contended), (0, 0));
        prop_assert_eq!(marker.flows().unwrap() as u64, counts.new_flows);
        marked.set(marked.get() + counts.marked);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    assert!(marked.get() > 1000, "only {} packets had the option", marked.get());
}

#[test]
fn a_flow_that_was_idle_begins_anew_in_both() {
    if !permitted() {
        return;
    }
    let settings = Settings { idle: Duration::from_millis(200), ..SETTINGS };
    let (mut marker, mut lab) = (Marker::load(&settings).unwrap(), Lab::new(&settings));
    for (pause, sequence) in [(0, 1), (50, 2), (400, 3), (0, 4)] {
        std::thread::sleep(std::time::Duration::from_millis(pause));
        lab.now += Duration::from_millis(pause);
        let bytes = Frame::of(1, 7, sequence).bytes();
        assert_eq!(left(&mut marker, &bytes), lab.left(&bytes), "packet {sequence}");
    }
    assert_eq!((marker.counts().unwrap().expired_flows, lab.count("expired_flows")), (1, 1));
}

#[test]
fn the_table_is_bounded_and_flows_that_are_used_stay() {
    if !permitted() {
        return;
    }
    let settings = Settings { flows: 1000, ..SETTINGS };
    let (mut marker, mut lab) = (Marker::load(&settings).unwrap(), Lab::new(&settings));
    let own = Frame::of(1, 0, 0);
    for round in 0..200_u32 {
        let mut bytes = Frame { sequence: round, ..own.clone() }.bytes();
        assert_eq!(left(&mut marker, &bytes), lab.left(&bytes), "round {round}");
        for other in 0..100 {
            bytes = Frame::of(2, 1 + round * 100 + other, 5).bytes();
            left(&mut marker, &bytes);
        }
    }
    let flows = marker.flows().unwrap();
    assert!(flows <= 1000, "{flows}");
    assert_eq!(marker.counts().unwrap().new_flows, 1 + 200 * 100);
}
