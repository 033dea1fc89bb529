//! Bulk data in steady state allocates next to nothing: a queue that grows once more, at most.

use base::{Duration, Events, Rate, Time};
use srp::{Association, Config, Ends, StreamId};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::{Payload, Srp};

/// Counts allocations, and leaves them to the system.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes unchanged to the system's allocator.
#[allow(unsafe_code, reason = "an allocator")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Two ends over a hop with a delay of 20 ms, which carries 20 Mbit/s; what is sent keeps to that.
struct World {
    now: Time,
    ends: [Association; 2],
    /// What is on its way to each end.
    flying: [VecDeque<(Time, Srp, Payload)>; 2],
    /// Of the packets sent, every so many is lost.
    loses_every: u64,
    sent: u64,
    streams: Vec<(StreamId, u64)>,
}

impl World {
    fn new(config: &Config, streams: u16, loses_every: u64) -> World {
        let now = Time::ZERO + Duration::from_secs(1);
        let mut opener = Association::connect(now, config, 7);
        let (srp, _) = opener.poll_transmit(now).expect("it opens");
        let acceptor = Association::accept(now, config, &srp).expect("it is an OPEN");
        let flying = [0, 1].map(|_| VecDeque::with_capacity(1 << 16));
        let (ends, none) = ([opener, acceptor], Vec::new());
        let mut world = World { now, ends, flying, loses_every, sent: 0, streams: none };
        // Until it is open.
        world.run(Duration::from_secs(2));
        let address = IpAddr::from([10, 0, 0, 1]);
        let opened = (0..streams).map(|client_port| {
            let ends = Ends { client: address, server: address, client_port, server_port: 80 };
            (world.ends[0].open(world.now, ends).expect("there is room"), 0)
        });
        world.streams = opened.collect();
        world
    }

    /// All streams have data to send, and are read.
    fn use_streams(&mut self) {
        let [opener, acceptor] = &mut self.ends;
        for (number, (id, written)) in (0..).zip(&mut self.streams) {
            if let Some(mut stream) = opener.stream(*id)
                && stream.unacknowledged() < 500_000
            {
                stream.write(number, *written, 100_000);
                *written += 100_000;
            }
        }
        while opener.poll_events().is_some() {}
        while let Some((id, _)) = acceptor.poll_incoming() {
            acceptor.accept_stream(id);
        }
        while let Some((id, events)) = acceptor.poll_events() {
            if events.contains(Events::READABLE)
                && let Some(mut stream) = acceptor.stream(id)
            {
                while stream.read_up_to(u32::MAX).is_some() {}
            }
        }
    }

    fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while self.now < until {
            self.use_streams();
            for end in 0..2 {
                while let Some((srp, payload)) = self.ends[end].poll_transmit(self.now) {
                    self.sent += 1;
                    if self.loses_every == 0 || !self.sent.is_multiple_of(self.loses_every) {
                        let arrival = self.now + Duration::from_millis(20);
                        self.flying[1 - end].push_back((arrival, srp, payload));
                    }
                }
            }
            let arrivals = self.flying.each_ref().map(|flying| flying.front().map(|first| first.0));
            let wakes = self.ends.each_ref().map(Association::poll_timeout);
            let next = arrivals.into_iter().flatten().chain(wakes).min().expect("there are two");
            self.now = next.max(self.now).min(until);
            for end in 0..2 {
                if let Some((at, srp, payload)) = self.flying[end].front().copied()
                    && at <= self.now
                {
                    self.flying[end].pop_front();
                    self.ends[end].handle(self.now, &srp, payload);
                }
                if self.ends[end].poll_timeout() <= self.now {
                    self.ends[end].handle_timeout(self.now);
                }
            }
        }
    }
}

/// One test, because all threads share the counter.
#[test]
fn bulk_data_in_steady_state_hardly_allocates() {
    let rate = Rate::from_bps(20_000_000);
    let known = Config { rate, ..Config::default() };
    let cases = [
        ("a stream", 1, 0, known.clone()),
        ("a stream, 2 % lost", 1, 50, known.clone()),
        ("50 streams, 2 % lost", 50, 50, known.clone()),
        ("50 streams, 10 % lost", 50, 10, known),
        ("shared, 1 % lost", 5, 97, Config { share: true, rate, ..Config::default() }),
    ];
    for (name, streams, loses_every, config) in cases {
        let mut world = World::new(&config, streams, loses_every);
        // Nearly all queues have reached their largest size.
        world.run(Duration::from_secs(100));
        let before = (ALLOCATIONS.load(Ordering::Relaxed), world.ends[1].statistics().received);
        world.run(Duration::from_secs(20));
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before.0;
        let segments = world.ends[1].statistics().received - before.1;
        println!("{name}: {allocations} allocations for {segments} segments");
        assert!(segments > 1000, "{segments}");
        assert!(allocations <= segments / 10_000, "{name}");
    }
}
