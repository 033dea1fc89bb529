//! A fixed host, a base station with Snoop and a mobile host: whatever the wired path and the hop do
//! to packets, both streams arrive whole, the station forgets the connection, and senders have no more
//! timeouts than without it.

use base::{Duration, Random, Seed, Time};
use core::net::{IpAddr, Ipv4Addr};
use host::{Application, Host, LinkEvent, Middlebox, Opening, Outbox, Outlet, Port, Verdict};
use middlebox::{Retransmitter, Snoop};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tcp::{Config, Connection, Events, Recovery, State};
use wire::Packet;

const FIXED: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const MOBILE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
const PORT: u16 = 80;

/// Writes a stream, closes, and reads that of the peer.
#[derive(Clone, Debug)]
struct Program {
    stream: u32,
    size: u64,
    received: u64,
    wrong: u64,
    timeouts: u64,
}

impl Program {
    fn new(stream: u32, size: u64) -> Program {
        Program { stream, size, received: 0, wrong: 0, timeouts: 0 }
    }
}

impl Application for Program {
    fn handle(&mut self, _: Time, connection: &mut Connection, events: Events) {
        if events.contains(Events::CONNECTED) {
            connection.write(self.stream, 0, self.size);
            connection.close();
        }
        while let Some(payload) = connection.read() {
            let expected = (1 - self.stream, self.received);
            self.wrong += u64::from((payload.stream, payload.offset) != expected);
            self.received += u64::from(payload.len);
        }
        self.timeouts = connection.statistics().timeouts;
    }
}

/// What a path does to packets, in each direction.
#[derive(Clone, Copy, Debug)]
struct Path {
    delay: Duration,
    /// The largest delay besides, which differs from packet to packet.
    jitter: Duration,
    loss: f64,
    duplication: f64,
    /// The share of packets that the queue at its start drops.
    drops: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Fixed,
    Station,
    Mobile,
}

/// The ports of the links: towards the mobile host the even ones.
const WIRED: u32 = 0;
const HOP: u32 = 2;

struct World {
    now: Time,
    number: u64,
    flying: BTreeMap<(Time, u64), (Port, Place, Packet)>,
    hosts: [Host<Program>; 2],
    snoop: Option<Retransmitter>,
    paths: [Path; 2],
    random: Random,
    most_cached: usize,
}

#[derive(Default)]
struct Sent(Option<Packet>, Vec<Packet>);

impl<A> Outlet<A> for Sent {
    fn packet(&mut self) -> &mut Packet {
        self.0.get_or_insert(Packet::BLANK)
    }

    fn send(&mut self, _: u32, _: &mut Option<u32>, _: Option<&A>) {
        self.1.extend(self.0);
    }
}

impl World {
    fn new(seed: u64, sizes: [u64; 2], paths: [Path; 2], recovery: Recovery) -> World {
        let stream = |name: &str| Seed(seed).stream(name);
        let config = Config { recovery, time_wait: Duration::from_secs(10), ..Config::default() };
        let host = |address: IpAddr| {
            let mut host = Host::new(address, stream(&address.to_string()));
            host.set(host::Settings { keep_closed: true, ..host::Settings::default() });
            host
        };
        let (mut fixed, mut mobile) = (host(FIXED), host(MOBILE));
        let (accepted, of_fixed) = (config.clone(), Program::new(0, sizes[0]));
        fixed.listen(PORT, move || (accepted.clone(), of_fixed.clone()));
        mobile.open(Opening {
            at: Time::ZERO,
            remote: FIXED,
            remote_port: PORT,
            local: None,
            local_port: None,
            config,
            application: Program::new(1, sizes[1]),
        });
        World {
            now: Time::ZERO,
            number: 0,
            flying: BTreeMap::new(),
            hosts: [fixed, mobile],
            snoop: None,
            paths,
            random: stream("paths"),
            most_cached: 0,
        }
    }

    fn with_snoop(self, cache: u32) -> World {
        let settings = Snoop { cache, ..Snoop::default() };
        let snoop = Retransmitter::new(&settings, vec![Port(HOP).opposite()]);
        World { snoop: Some(snoop), ..self }
    }

    /// Runs until nothing happens any more, at most for hours. Returns whether that was before.
    fn run(&mut self) -> bool {
        let end = Time::ZERO + Duration::from_secs(4 * 3600);
        loop {
            let arrival = self.flying.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
            let hosts = self.hosts.each_ref().map(|host| host.poll_timeout());
            let station = self.snoop.as_ref().map_or(Time::NEVER, Middlebox::next_wake);
            let next = arrival.min(hosts[0]).min(hosts[1]).min(station);
            if next == Time::NEVER || next > end {
                return next == Time::NEVER;
            }
            self.now = next.max(self.now);
            if arrival == next {
                let (_, (port, to, packet)) = self.flying.pop_first().unwrap();
                self.arrive(port, to, packet);
            } else if let Some(host) = hosts.iter().position(|&at| at == next) {
                self.hosts[host].handle_timeout(self.now);
                self.flush(host);
            } else {
                let mut outbox = Outbox::default();
                let now = self.now;
                self.snoop.iter_mut().for_each(|snoop| snoop.wake(now, &mut outbox.context()));
                self.forward_all(outbox);
            }
            let cached = self.snoop.as_ref().map_or(0, Retransmitter::cached);
            self.most_cached = self.most_cached.max(cached);
        }
    }

    fn arrive(&mut self, port: Port, to: Place, mut packet: Packet) {
        let host = match to {
            Place::Fixed => 0,
            Place::Mobile => 1,
            Place::Station => {
                let mut outbox = Outbox::default();
                let verdict = self.snoop.as_mut().map_or(Verdict::Forward, |snoop| {
                    snoop.packet(self.now, Some(port), &mut packet, &mut outbox.context())
                });
                if verdict == Verdict::Forward {
                    outbox.context().send(packet);
                }
                return self.forward_all(outbox);
            }
        };
        self.hosts[host].handle_packet(self.now, &packet);
        self.flush(host);
    }

    fn flush(&mut self, host: usize) {
        let mut sent = Sent::default();
        let _ = self.hosts[host].transmit(self.now, &mut sent);
        let port = [Port(WIRED), Port(HOP).opposite()][host];
        for packet in sent.1 {
            self.fly(port, Place::Station, packet);
        }
    }

    /// The station sends packets by the links that lead to their destinations.
    fn forward_all(&mut self, outbox: Outbox) {
        for mut packet in outbox.into_packets() {
            let (port, to) = match packet.ip.destination == MOBILE {
                true => (Port(HOP), Place::Mobile),
                false => (Port(WIRED).opposite(), Place::Fixed),
            };
            let drops = self.random.chance(self.path(port).drops);
            let mut outbox = Outbox::default();
            if let Some(snoop) = &mut self.snoop {
                let context = &mut outbox.context();
                match drops {
                    true => snoop.link(self.now, port, LinkEvent::Dropped(&packet), context),
                    false => snoop.queued(self.now, port, &mut packet, context),
                }
            }
            assert!(outbox.is_empty());
            if !drops {
                self.fly(port, to, packet);
            }
        }
    }

    fn path(&self, port: Port) -> Path {
        self.paths[usize::from(port.0 >= HOP)]
    }

    fn fly(&mut self, port: Port, to: Place, packet: Packet) {
        let path = self.path(port);
        let copies = if self.random.chance(path.duplication) { 2 } else { 1 };
        for _ in 0..copies {
            if self.random.chance(path.loss) {
                continue;
            }
            let jitter = path.jitter.as_nanos() as f64 * self.random.uniform();
            let at = self.now + path.delay + Duration::from_nanos(jitter as u64);
            self.flying.insert((at, self.number), (port, to, packet));
            self.number += 1;
        }
    }

    /// Checks that both ends have got everything, and are closed.
    fn check(&self) -> Result<(), TestCaseError> {
        let ends = self.hosts.each_ref().map(|host| host.connections().next());
        let [Some(fixed), Some(mobile)] = ends else {
            return Err(TestCaseError::fail("a connection was not opened"));
        };
        for ((_, connection, program), (_, _, peer)) in [(fixed, mobile), (mobile, fixed)] {
            prop_assert_eq!(connection.state(), State::Closed);
            prop_assert_eq!((program.received, program.wrong), (peer.size, 0));
        }
        Ok(())
    }

    fn timeouts(&self) -> u64 {
        let programs = self.hosts.iter().filter_map(|host| host.connections().next());
        programs.map(|(_, _, program)| program.timeouts).sum()
    }
}

fn millis(most: u64) -> impl Strategy<Value = Duration> {
    (0..=most).prop_map(Duration::from_millis)
}

fn path(delay: u64) -> impl Strategy<Value = Path> {
    let share = |most: f64| prop_oneof![2 => Just(0.0), 1 => 0.0..most];
    let jitter = prop_oneof![2 => Just(Duration::ZERO), 1 => millis(30)];
    (millis(delay), jitter, share(0.15), share(0.2), share(0.05)).prop_map(
        |(delay, jitter, loss, duplication, drops)| Path {
            delay,
            jitter,
            loss,
            duplication,
            drops,
        },
    )
}

fn recovery() -> impl Strategy<Value = Recovery> {
    let all: Vec<Recovery> = Recovery::ALL.iter().map(|&(_, recovery)| recovery).collect();
    prop::sample::select(all)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases * 8,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn both_streams_arrive_whole_and_the_station_forgets_them(
        seed in any::<u64>(),
        sizes in [0..200_000_u64, 0..50_000_u64],
        paths in (path(100), path(20)),
        recovery in recovery(),
        cache in prop_oneof![Just(256_u32), 1..20_u32],
    ) {
        let mut world = World::new(seed, sizes, paths.into(), recovery).with_snoop(cache);
        prop_assert!(world.run(), "it goes on");
        world.check()?;
        let snoop = world.snoop.as_ref().unwrap();
        prop_assert_eq!((snoop.watched(), snoop.cached()), (0, 0));
        prop_assert!(world.most_cached <= cache as usize);
    }
}

#[test]
fn senders_have_fewer_timeouts_than_without() {
    let wired = Path {
        delay: Duration::from_millis(40),
        jitter: Duration::ZERO,
        loss: 0.0,
        duplication: 0.0,
        drops: 0.0,
    };
    for &(name, recovery) in Recovery::ALL {
        for loss in [0.01, 0.05, 0.1] {
            let hop = Path { delay: Duration::from_millis(2), loss, ..wired };
            let timeouts = |snoop: bool| {
                (1..=20).map(move |seed| {
                    let world = World::new(seed, [100_000, 0], [wired, hop], recovery);
                    let mut world = if snoop { world.with_snoop(256) } else { world };
                    assert!(world.run());
                    world.check().unwrap();
                    world.timeouts()
                })
            };
            let (with, without): (u64, u64) = (timeouts(true).sum(), timeouts(false).sum());
            eprintln!("{name}, {loss}: {with} timeouts, {without} without Snoop");
            assert!(with <= without, "{name}, {loss}: {with} timeouts, {without} without Snoop");
        }
    }
}
