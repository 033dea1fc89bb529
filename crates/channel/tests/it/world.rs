//! Two gateways, the network between them, and what it must hold: each payload is opened at most once, and only
//! if the other end has sealed it.

use base::{Duration, Random, Seed, Time};
use channel::{Channel, Config, Event, HEADER, OVERHEAD, SealError, SecretKey, TAG};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(crate) fn address(end: usize, place: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, end as u8 + 1], 5000 + place))
}

/// Random bytes that depend on a seed.
pub(crate) fn entropy(mut random: Random) -> impl FnMut() -> Option<[u8; 32]> + Send {
    move || {
        let words = [0; 4].map(|_: u64| random.bits().to_le_bytes());
        words.concat().try_into().ok()
    }
}

pub(crate) fn secret(end: usize) -> SecretKey {
    SecretKey::generate(&mut || Some([end as u8 + 1; 32])).unwrap()
}

/// The settings of an end that knows where the other is.
pub(crate) fn config(end: usize) -> Config {
    let address = Some(address(1 - end, 0));
    Config { address, unix_time: 1 << 60, ..Config::new(secret(end), secret(1 - end).public()) }
}

/// What the network does to datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Network {
    pub(crate) delay: Duration,
    pub(crate) jitter: Duration,
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    pub(crate) corruption: f64,
    /// Longer probes of the path are lost; other datagrams are fragmented.
    pub(crate) longest: usize,
}

impl Network {
    pub(crate) const GOOD: Network = Network {
        delay: Duration::from_millis(300),
        jitter: Duration::ZERO,
        loss: 0.0,
        duplication: 0.0,
        corruption: 0.0,
        longest: 1472,
    };
}

/// A payload: who has sealed it, in which of its lives, and its number.
type Payload = (usize, u64, u64);

pub(crate) struct End {
    pub(crate) channel: Channel,
    pub(crate) config: Config,
    /// Its clock is ahead by this.
    pub(crate) ahead: Duration,
    /// Restarts so far.
    pub(crate) life: u64,
    /// Where it is: the number of its port.
    pub(crate) place: u16,
    pub(crate) sealed: u64,
    pub(crate) opened: BTreeSet<Payload>,
    pub(crate) events: Vec<Event>,
    /// The longest datagrams that were known to arrive.
    pub(crate) longest: Vec<u16>,
    /// The life of the peer as events show it: payloads of earlier ones must not come.
    peer_life: Option<u64>,
}

/// A datagram on its way: to which end, from where, where to, and its bytes.
type Flying = (usize, SocketAddr, SocketAddr, Vec<u8>);

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) ends: [End; 2],
    pub(crate) network: Network,
    pub(crate) random: Random,
    flying: BTreeMap<(Time, u64), Flying>,
    /// Datagrams that an attacker has recorded: to whom, from where, and the bytes.
    pub(crate) recorded: Vec<(usize, SocketAddr, Vec<u8>)>,
    /// The numbers of transport packets, by the index of the session and the sender.
    numbers: BTreeSet<(usize, u32, u32)>,
    sent: u64,
}

impl World {
    pub(crate) fn new(seed: u64, configs: [Config; 2]) -> World {
        let now = Time::ZERO + secs(1);
        let ends = configs.map(|config| {
            let bytes = entropy(Seed(seed).stream(&format!("entropy {:?}", config.peer)));
            let channel = Channel::new(now, config.clone(), bytes).unwrap();
            End {
                channel,
                config,
                ahead: Duration::ZERO,
                life: 0,
                place: 0,
                sealed: 0,
                opened: BTreeSet::new(),
                events: Vec::new(),
                longest: Vec::new(),
                peer_life: None,
            }
        });
        World {
            now,
            ends,
            network: Network::GOOD,
            random: Seed(seed).stream("network"),
            flying: BTreeMap::new(),
            recorded: Vec::new(),
            numbers: BTreeSet::new(),
            sent: 0,
        }
    }

    pub(crate) fn connected(seed: u64, configs: [Config; 2]) -> World {
        let mut world = World::new(seed, configs);
        world.run(secs(5));
        assert!([0, 1].iter().all(|&end| world.is_connected(end)));
        world
    }

    pub(crate) fn local(&self, end: usize) -> Time {
        self.now + self.ends[end].ahead
    }

    pub(crate) fn is_connected(&self, end: usize) -> bool {
        self.ends[end].channel.is_connected(self.local(end))
    }

    pub(crate) fn events(&mut self, end: usize) -> Vec<Event> {
        std::mem::take(&mut self.ends[end].events)
    }

    pub(crate) fn clear_events(&mut self) {
        self.ends.iter_mut().for_each(|end| end.events.clear());
    }

    /// The end loses its state, and starts again with this clock.
    pub(crate) fn restart(&mut self, end: usize, unix_time: u64) {
        let now = self.local(end);
        let bits = self.random.bits();
        let it = &mut self.ends[end];
        it.config.unix_time = unix_time;
        let bytes = entropy(Seed(bits).stream("entropy"));
        it.channel = Channel::new(now, it.config.clone(), bytes).unwrap();
        it.life += 1;
        it.events.clear();
        it.peer_life = None;
        self.settle(end);
    }

    /// The time of an end passes, and it is not running.
    pub(crate) fn jump(&mut self, end: usize, time: Duration) {
        self.ends[end].ahead = self.ends[end].ahead + time;
        self.settle(end);
    }

    /// Seals a payload and sends it.
    pub(crate) fn send(&mut self, end: usize, length: usize) -> Result<(), SealError> {
        let now = self.local(end);
        let it = &mut self.ends[end];
        let mut packet = vec![0; OVERHEAD + 17 + length];
        let mut words = packet[HEADER..].chunks_mut(8);
        for word in [it.life, it.sealed] {
            words.next().unwrap().copy_from_slice(&word.to_be_bytes());
        }
        packet[HEADER + 16] = end as u8;
        if packet.len() > OVERHEAD + it.channel.longest_payload() {
            let mut parts = Vec::new();
            let payload = &packet[HEADER..packet.len() - TAG];
            let send = |part: &[u8], to| parts.push((part.to_vec(), to));
            it.channel.seal_parts(now, payload, &mut Vec::new(), send)?;
            it.sealed += 1;
            for (part, to) in parts {
                self.transmit(end, to, part);
            }
            return Ok(());
        }
        let to = it.channel.seal(now, &mut packet)?;
        it.sealed += 1;
        self.transmit(end, to, packet);
        Ok(())
    }

    fn transmit(&mut self, end: usize, to: SocketAddr, bytes: Vec<u8>) {
        if bytes[1] >= 4 {
            let index = u32::from_be_bytes(bytes[2..6].try_into().unwrap());
            let number = u32::from_be_bytes(bytes[6..10].try_into().unwrap());
            assert!(self.numbers.insert((end, index, number)), "a number is used twice");
        }
        let from = address(end, self.ends[end].place);
        self.recorded.push((1 - end, from, bytes.clone()));
        let Network { delay, jitter, loss, duplication, corruption, longest } = self.network;
        if bytes[1] == 6 && bytes.len() > longest {
            return;
        }
        let copies = 1 + usize::from(duplication > 0.0 && self.random.chance(duplication));
        for _ in 0..copies {
            if loss > 0.0 && self.random.chance(loss) {
                continue;
            }
            let mut bytes = bytes.clone();
            if corruption > 0.0 && self.random.chance(corruption) {
                let bit = self.random.bits() as usize % (bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let longer = jitter.as_nanos().max(1);
            let at = self.now + delay + Duration::from_nanos(self.random.bits() % longer);
            self.sent += 1;
            self.flying.insert((at, self.sent), (1 - end, from, to, bytes));
        }
    }

    /// Sends what the end has to send, and reads its events.
    pub(crate) fn settle(&mut self, end: usize) {
        let now = self.local(end);
        let mut bytes = Vec::new();
        while let Some(to) = self.ends[end].channel.poll_path_probe(now, &mut bytes) {
            self.transmit(end, to, bytes.clone());
        }
        let mut steps = 0;
        while let Some(to) = self.ends[end].channel.poll_transmit(now, &mut bytes) {
            self.transmit(end, to, bytes.clone());
            steps += 1;
            assert!(steps < 10, "an endless stream of datagrams");
        }
        while let Some(event) = self.ends[end].channel.poll_event() {
            if matches!(event, Event::Connected | Event::PeerRestarted) {
                self.ends[end].peer_life = Some(self.ends[1 - end].life);
            }
            match event {
                Event::Datagrams(longest) => self.ends[end].longest.push(longest),
                _ => self.ends[end].events.push(event),
            }
        }
    }

    /// Hands a datagram to an end. Returns whether it had a payload.
    pub(crate) fn deliver(&mut self, end: usize, from: SocketAddr, mut bytes: Vec<u8>) -> bool {
        let now = self.local(end);
        let payload = self.ends[end].channel.handle_datagram(now, from, &mut bytes);
        let joined = self.ends[end].channel.take_joined();
        let payload = payload.map(|payload| payload.to_vec()).or(joined);
        self.settle(end);
        let Some(payload) = payload else { return false };
        let word = |at| u64::from_be_bytes(payload[at..at + 8].try_into().unwrap());
        let (life, number) = (word(0), word(8));
        let other = &self.ends[1 - end];
        assert_eq!(usize::from(payload[16]), 1 - end, "a payload of its own");
        assert!(life <= other.life && number < other.sealed, "never sealed");
        let it = &mut self.ends[end];
        assert!(it.peer_life.is_some_and(|known| known >= life), "an event must come first");
        let newest = it.opened.last().map(|&(_, life, _)| life);
        assert!(newest.is_none_or(|newest| newest <= life), "of an earlier life");
        assert!(it.opened.insert((1 - end, life, number)), "opened twice: {life} {number}");
        true
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, time: Duration) {
        let until = self.now + time;
        let mut stuck = 0;
        loop {
            let arrival = self.flying.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
            let timeouts = [0, 1].map(|end| {
                let at = self.ends[end].channel.poll_timeout();
                if at >= Time::NEVER { at } else { (at - self.ends[end].ahead).max(self.now) }
            });
            let next = arrival.min(timeouts[0]).min(timeouts[1]);
            if next > until {
                break;
            }
            stuck = if next > self.now { 0 } else { stuck + 1 };
            assert!(stuck < 1000, "time stands still");
            self.now = next;
            if arrival == next {
                let (_, (end, from, to, bytes)) = self.flying.pop_first().unwrap();
                if to == address(end, self.ends[end].place) {
                    self.deliver(end, from, bytes);
                }
                continue;
            }
            let end = usize::from(timeouts[0] != next);
            let now = self.local(end);
            self.ends[end].channel.handle_timeout(now);
            self.settle(end);
        }
        self.now = until;
    }

    /// Both ends send a payload every so often for a time. Returns those sealed and opened, by sender.
    pub(crate) fn exchange(&mut self, every: Duration, time: Duration) -> [(u64, u64); 2] {
        let until = self.now + time;
        let before = [0, 1].map(|end| self.carried(end));
        while self.now < until {
            for end in [0, 1] {
                // Without a session, the payload is lost.
                let _ = self.send(end, 100);
            }
            self.run(every);
        }
        // What is on its way arrives.
        self.run(self.network.delay + self.network.jitter);
        let after = [0, 1].map(|end| self.carried(end));
        [0, 1].map(|end| (after[end].0 - before[end].0, after[end].1 - before[end].1))
    }

    /// Payloads of this end that were sealed, and opened.
    fn carried(&self, end: usize) -> (u64, u64) {
        (self.ends[end].sealed, self.ends[1 - end].opened.len() as u64)
    }
}
