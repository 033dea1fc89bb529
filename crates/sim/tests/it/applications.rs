//! Applications that are limited by themselves, over a path that would carry more.

use crate::common::boxes::{Tap, segment};
use crate::common::{Hop, MSS, PORT, mbps, plain, secs};
use base::settings::{Bytes, Span};
use base::{Duration, Seed, Time};
use host::{
    BufferedSource, Opening, PacedSource, Requester, Requests, Responder, Sink, SlowSink, Traffic,
};
use sim::{NodeId, Topology, World};
use tcp::{Config, InitialWindow};
use wire::Packet;

/// What came of a connection between two applications.
struct Outcome {
    world: World<Traffic>,
    ends: [NodeId; 2],
    /// What passed the opening end's node.
    seen: Vec<(Time, Packet)>,
}

impl Outcome {
    fn application(&self, end: usize) -> &Traffic {
        self.world.host(self.ends[end]).connections().next().expect("it was opened").2
    }

    /// What the accepting end has received, and how long it took from the first byte to the last.
    fn transfer(&self) -> (u64, f64) {
        let sink = self.application(1).sink().expect("it receives");
        assert_eq!(sink.misplaced, 0);
        let (Some(first), Some(last)) = (sink.first_at, sink.finished_at) else {
            panic!("it did not end")
        };
        let took = last.since(first);
        (sink.received, took.as_secs_f64())
    }

    /// Times at which data left the opening end, and how much.
    fn departures(&self) -> Vec<(Time, u32)> {
        let own = |packet: &Packet| segment(packet).is_some_and(|s| s.destination_port == PORT);
        let seen = self.seen.iter().filter(|(_, packet)| own(packet) && packet.payload.len > 0);
        seen.map(|(at, packet)| (*at, packet.payload.len)).collect()
    }

    /// How often the window of the accepting end closes, and opens again.
    fn closures(&self) -> (usize, usize) {
        let windows = self.seen.iter().filter_map(|(_, packet)| {
            segment(packet).filter(|s| s.source_port == PORT).map(|s| s.window)
        });
        let closed: Vec<bool> = windows.map(|window| window == 0).collect();
        let count = |change: [bool; 2]| closed.windows(2).filter(|pair| *pair == change).count();
        (count([false, true]), count([true, false]))
    }
}

/// Ten megabits a second, a round trip of 100 ms; until both ends are at peace.
fn run(opening: Traffic, accepting: Traffic, tcp: &Config) -> Outcome {
    let mut network = Topology::new();
    let ends = ["a", "b"].map(|name| network.add_node(name));
    let Hop { delay, queue, forward, .. } = Hop::default();
    let direction = link::Config {
        rate: mbps(10),
        delay,
        queue,
        errors: forward.into(),
        ..link::Config::default()
    };
    network.add_link(ends[0], ends[1], direction.clone(), direction);
    let mut world = network.build(Seed(1));
    let tap = Tap::default();
    world.add_box(ends[0], Box::new(tap.clone()));
    let config = tcp.clone();
    world.host_mut(ends[1]).listen(PORT, move || (config.clone(), accepting.clone()));
    world.host_mut(ends[0]).open(Opening {
        at: Time::ZERO,
        remote: ends[1].address(),
        remote_port: PORT,
        local: None,
        local_port: None,
        config: tcp.clone(),
        application: opening,
    });
    world.wake(ends[0]);
    world.run_until(secs(1000));
    assert!(ends.iter().all(|&end| world.host(end).is_quiet()));
    let seen = tap.seen();
    Outcome { world, ends, seen }
}

/// Never limited by the congestion window.
fn eager() -> Config {
    Config { initial_window: InitialWindow::Segments(30), ..plain() }
}

fn sink() -> Traffic {
    Traffic::Sink(Sink::new(0))
}

fn source(size: u64) -> Traffic {
    Traffic::Source(host::Source::new(0, Some(size)))
}

#[test]
fn a_paced_source_sends_at_its_rate() {
    // 50 times 2000 bytes, 20 ms apart: 100 kB/s of more than 1 MB/s.
    let interval = Duration::from_millis(20);
    let paced = PacedSource::new(0, Some(100_000), 2000, interval);
    let outcome = run(paced.into(), sink(), &Config { nagle: false, ..eager() });
    let (received, took) = outcome.transfer();
    assert_eq!(received, 100_000);
    assert!((took - 49.0 * 0.02).abs() < 0.01, "{took}");
    // Two segments leave at each of its times, and nothing between them.
    let departures = outcome.departures();
    let first = departures[0].0;
    for (index, pair) in (0..).zip(departures.chunks(2)) {
        assert_eq!([pair[0], pair[1]], [(first + interval * index, MSS as u32); 2]);
    }
}

#[test]
fn a_buffered_source_sends_a_buffer_per_round_trip() {
    let buffer = 10 * MSS;
    let buffered = BufferedSource::new(0, Some(500_000), buffer);
    let outcome = run(buffered.into(), sink(), &plain());
    let (received, took) = outcome.transfer();
    assert_eq!(received, 500_000);
    // A segment and its acknowledgment take a little time on the link, too.
    let round_trip = 0.1 + 1080.0 * 8.0 / 10e6;
    let expected = 500_000.0 / buffer as f64 * round_trip;
    assert!((took / expected - 1.0).abs() < 0.06, "{took} instead of {expected}");
}

#[test]
fn a_slow_sink_slows_its_sender_down_to_its_own_rate() {
    // 1000 bytes every 20 ms, behind a receive buffer of 20 000.
    for chunk in [1000, 1500] {
        let slow = SlowSink::new(Sink::new(0), chunk, Duration::from_millis(20));
        let tcp = Config { receive_window: tcp::ReceiveWindow::fixed(20_000), ..eager() };
        let outcome = run(source(300_000), slow.into(), &tcp);
        let (received, took) = outcome.transfer();
        assert_eq!(received, 300_000);
        let rate = f64::from(chunk) / 0.02;
        assert!((300_000.0 / took / rate - 1.0).abs() < 0.01, "{rate}: {took}");
    }
}

#[test]
fn the_window_closes_before_a_slow_sink_and_opens_again_each_time() {
    // It takes all it has at once, every second: each time, the sender finds a closed window.
    let slow = SlowSink::new(Sink::new(0), 20_000, Duration::from_secs(1));
    let tcp = Config { receive_window: tcp::ReceiveWindow::fixed(20_000), ..eager() };
    let outcome = run(source(200_000), slow.into(), &tcp);
    let (received, took) = outcome.transfer();
    assert_eq!(received, 200_000);
    assert!((9.9..11.5).contains(&took), "{took}");
    let (closed, opened) = outcome.closures();
    assert!(closed >= 8 && opened == closed, "{closed}, {opened}");
}

#[test]
fn a_dialogue_is_silent_while_it_thinks() {
    let think = Duration::from_secs(3);
    let dialogue = Requests {
        request: Bytes(300),
        response: Bytes(20_000),
        think: Some(Span(think)),
        count: Some(5),
    };
    let outcome =
        run(Requester::new(0, dialogue).into(), Responder::new(0, dialogue).into(), &plain());
    let (Traffic::Requester(asking), Traffic::Responder(answering)) =
        (outcome.application(0), outcome.application(1))
    else {
        panic!("they were put in")
    };
    assert_eq!(
        (asking.responses.count(), asking.sink.received, asking.sink.misplaced),
        (5, 100_000, 0)
    );
    assert_eq!((answering.sink.received, answering.sink.misplaced), (1500, 0));
    let asked: Vec<_> = outcome.departures();
    assert_eq!(asked.iter().map(|(_, len)| *len).collect::<Vec<_>>(), [300; 5]);
    for pair in asked.windows(2) {
        let pause = pair[1].0.since(pair[0].0);
        assert!(pause > think && pause < think + Duration::from_secs(1), "{pause}");
    }
}
