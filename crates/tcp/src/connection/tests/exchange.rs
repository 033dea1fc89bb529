//! Two connections over a network that loses, doubles and reorders, and whose MTU shrinks: what must
//! hold at every step.

use super::*;
use crate::mechanism::{Eten, ForwardEten, Mechanism, Suppression};
use crate::{EcnMode, MtuProbing};
use base::{Random, Seed};
use proptest::prelude::*;

/// A packet in flight, or the report of its corruption to its sender or receiver, or that it was too
/// big.
#[derive(Clone, Copy)]
struct Flying {
    at: Time,
    to: usize,
    packet: Packet,
    corrupted: bool,
    /// It goes back to its sender, for the path takes this MSS only.
    too_big: Option<u16>,
}

/// The MSS that the path takes from a time on.
#[derive(Clone, Copy, Debug)]
struct Narrow {
    from: Time,
    mss: u16,
    /// Senders are told.
    icmp: bool,
}

/// How often things go wrong, each packet on its own.
#[derive(Clone, Copy, Debug)]
struct Luck {
    lost: f64,
    corrupted: f64,
    doubled: f64,
    late: f64,
    /// Of what is ECN-capable.
    marked: f64,
}

/// The packets and reports in flight.
struct Air {
    flying: Vec<Flying>,
    luck: Luck,
    narrow: Option<Narrow>,
    random: Random,
}

impl Air {
    fn next(&self) -> Time {
        self.flying.iter().map(|flying| flying.at).min().unwrap_or(Time::NEVER)
    }

    /// What comes next.
    fn first(&self) -> Option<usize> {
        let next = self.next();
        self.flying.iter().position(|flying| flying.at == next)
    }

    fn send(&mut self, now: Time, to: usize, mut packet: Packet) {
        let Luck { lost, corrupted, doubled, late, marked } = self.luck;
        if self.random.chance(lost) {
            return;
        }
        if packet.ip.ecn == Ecn::Capable && self.random.chance(marked) {
            packet.ip.ecn = Ecn::Congested;
        }
        let size = packet.len() - packet.ip.len() as u32 - Segment::HEADER as u32;
        if let Some(Narrow { from, mss, icmp }) = self.narrow
            && now >= from
            && size > u32::from(mss)
        {
            if !icmp {
                return;
            }
            let (at, too_big) = (now + Duration::from_millis(20), Some(mss));
            self.flying.push(Flying { at, to: 1 - to, packet, corrupted: false, too_big });
            return;
        }
        let copies = if self.random.chance(doubled) { 2 } else { 1 };
        let corrupted = self.random.chance(corrupted);
        for _ in 0..copies {
            let jitter = if self.random.chance(late) { self.random.bits() % 60 } else { 0 };
            let at = now + Duration::from_millis(50 + jitter);
            self.flying.push(Flying { at, to, packet, corrupted, too_big: None });
        }
    }
}

/// Reads the stream that comes from an end, as far as it is the right one.
struct Checked<'a> {
    from: usize,
    read: &'a mut u64,
}

impl Reader for Checked<'_> {
    fn take(&mut self, payload: Payload) -> bool {
        assert_eq!((payload.stream, payload.offset), (self.from as u32, *self.read));
        *self.read = payload.end();
        true
    }
}

struct Exchange {
    ends: [Predicted; 2],
    now: Time,
    air: Air,
    limited_transmit: bool,
    /// A corruption is indicated to the receiver, not to the sender.
    forward: bool,
    /// Segments take the fast path where they can.
    fast: bool,
    /// Everything that was ever sent.
    trace: Vec<(Time, usize, Packet)>,
    /// Per end: the SACK blocks that have arrived from the other.
    sacked: [Vec<(SeqNumber, SeqNumber)>; 2],
    /// Per end: bytes read.
    read: [u64; 2],
}

impl Exchange {
    fn new(config: &Config, luck: Luck, narrow: Option<Narrow>, seed: u64) -> Exchange {
        Exchange {
            ends: [
                Connection::new(config, Side::Active, IDENTITY).into(),
                Connection::new(
                    config,
                    Side::Passive,
                    Identity {
                        local_port: 2,
                        remote_port: 1,
                        iss: PEER_ISS,
                        timestamp_offset: 9,
                        is_ipv6: false,
                        secret: 4,
                    },
                )
                .into(),
            ],
            now: Time::ZERO,
            air: Air { flying: Vec::new(), luck, narrow, random: Seed(seed).stream("exchange") },
            limited_transmit: config.limited_transmit,
            forward: matches!(config.mechanisms[..], [Mechanism::ForwardEten(_)]),
            fast: true,
            trace: Vec::new(),
            sacked: [vec![], vec![]],
            read: [0; 2],
        }
    }

    /// Runs until nothing is in flight and no timer is set.
    fn run(&mut self) {
        self.transmit(0);
        for _ in 0..200_000 {
            let timers = [0, 1].map(|end| self.ends[end].poll_timeout());
            let timer = timers[0].min(timers[1]);
            let next = self.air.next();
            if timer.min(next) == Time::NEVER {
                return;
            }
            if next <= timer {
                self.now = next;
                let flying = self.air.flying.remove(self.air.first().unwrap());
                self.arrive(flying);
            } else {
                self.now = timer;
                let end = usize::from(timers[0] != timer);
                self.ends[end].handle_timeout(self.now);
                self.after(end);
            }
        }
        let states = [0, 1].map(|end| self.ends[end].state());
        panic!("it never ends: {states:?} at {}, {} on their way", self.now, self.air.flying.len());
    }

    fn arrive(&mut self, Flying { to, packet, corrupted, too_big, .. }: Flying) {
        let wire::Body::Tcp(segment) = packet.body else { panic!("not TCP") };
        if let Some(mss) = too_big {
            self.ends[to].indicate(self.now, &Indication::TooBig { seq: segment.seq, mss });
            return self.after(to);
        }
        if corrupted {
            let (seq, len, copy) = (segment.seq, packet.payload.len, segment.copy);
            let (end, indication) = match self.forward {
                false => (1 - to, Indication::Corrupted { seq, len, copy, timestamp: None }),
                true => (to, Indication::PeerCorrupted { seq, len, copy }),
            };
            if self.ends[end].side == Side::Passive && self.ends[end].receiver.nxt() == 0 {
                return; // There is no connection yet.
            }
            self.ends[end].indicate(self.now, &indication);
            return self.after(end);
        }
        if self.ends[to].state() == State::Closed && segment.flags.contains(Flags::ACK) {
            // The host's answer for a connection that is no more (RFC 9293 §3.10.7.1).
            let rst = Segment { seq: segment.ack, flags: Flags::RST, ..Segment::default() };
            self.ends[1 - to].handle_segment(self.now, &rst, Payload::default(), Ecn::NotCapable);
            return self.after(1 - to);
        }
        if self.fast {
            match self.arrive_on_fast_path(to, packet) {
                None => return,
                // The last of a run is no case for that.
                Some(left) => return self.take_in(to, left),
            }
        }
        self.take_in(to, packet);
    }

    fn take_in(&mut self, to: usize, packet: Packet) {
        let wire::Body::Tcp(segment) = packet.body else { panic!("not TCP") };
        if self.is_acceptable(to, &segment, packet.payload.len) {
            let blocks = segment.options.sack.as_slice().iter();
            self.sacked[to].extend(blocks.map(|block| (block.start, block.end)));
        }
        let (end, now) = (&mut self.ends[to], self.now);
        end.handle_segment(now, &segment, packet.payload, packet.ecn_fields());
        self.after(to);
    }

    /// Takes in the packet, and all that come to this end before anything else happens. Gives back
    /// one that is no case for that, as it was.
    fn arrive_on_fast_path(&mut self, to: usize, mut packet: Packet) -> Option<Packet> {
        let other = self.ends[1 - to].poll_timeout();
        let wake = self.ends[to].poll_timeout();
        let mut anew = self.ends[to].clone();
        anew.predict();
        let remembered = self.ends[to].prediction;
        assert!(anew.prediction.contains(remembered), "{remembered:?}, not {:?}", anew.prediction);
        let Some(mut path) = self.ends[to].fast_path(wake) else { return Some(packet) };
        loop {
            let arrived = packet;
            let mut reader = Checked { from: 1 - to, read: &mut self.read[to] };
            match path.exchange(self.now, &mut packet, &mut reader) {
                FastPathOutcome::Refused => {
                    assert_eq!(packet, arrived);
                    return Some(packet);
                }
                FastPathOutcome::Taken => {}
                FastPathOutcome::Answered { len, ecn } => {
                    packet.ip.ecn = ecn;
                    assert_eq!(packet.len() - packet.ip.len() as u32, 20 + len);
                    self.trace.push((self.now, to, packet));
                    self.air.send(self.now, 1 - to, packet);
                    while path.has_more() {
                        let Some(len) = path.poll_transmit(self.now, &mut packet) else { break };
                        packet.ip.ecn = path.data_ecn();
                        assert_eq!(packet.len() - packet.ip.len() as u32, 20 + len);
                        self.trace.push((self.now, to, packet));
                        self.air.send(self.now, 1 - to, packet);
                    }
                }
            }
            let wire::Body::Tcp(segment) = arrived.body else { panic!("not TCP") };
            let blocks = segment.options.sack.as_slice().iter();
            self.sacked[to].extend(blocks.map(|block| (block.start, block.end)));
            if path.is_over() {
                break;
            }
            let next = self.air.first().map(|first| (first, self.air.flying[first]));
            match next {
                Some((first, next))
                    if next.to == to
                        && !next.corrupted
                        && next.too_big.is_none()
                        && next.at <= wake.min(other) =>
                {
                    self.air.flying.remove(first);
                    self.now = next.at;
                    packet = next.packet;
                }
                _ => break,
            }
        }
        let over = path.is_over();
        let sent = self.trace.len();
        assert!(over || self.ends[to].events.is_empty(), "there were events");
        if !over && sent.is_multiple_of(2) {
            return None; // The next packet finds the fast path as it was left.
        }
        self.after(to);
        let sooner = self.ends[to].poll_timeout() < wake;
        assert!(over || self.trace.len() == sent && !sooner, "there was more to do");
        None
    }

    /// Whether an end takes in the acknowledgment in this segment: it is not an old one, by its number
    /// and by its timestamp (RFC 7323 §5.3), and a bare one must lie in the window or at its edge (RFC
    /// 9293 §3.10.7.4, first).
    fn is_acceptable(&self, end: usize, segment: &Segment, len: u32) -> bool {
        let Connection { iss, irs, sender, receiver, timestamps, .. } = &*self.ends[end];
        let stamp = segment.options.timestamps;
        if stamp.is_some_and(|stamp| timestamps.is_old(self.now, stamp.value)) {
            return false;
        }
        let into = segment.seq.beyond(*irs + receiver.nxt() as u32);
        let inside = into >= 0 && into as u64 <= receiver.window();
        // Of data, some must be new.
        let new = len > 0 && into + (len as i32) > 0;
        segment.ack.beyond(*iss + sender.una() as u32) >= 0 && (new || len == 0 && inside)
    }

    /// The application of an end: it reads all. The first end closes at once, the other after it.
    fn after(&mut self, end: usize) {
        let connection = &mut self.ends[end];
        let mut reader = Checked { from: 1 - end, read: &mut self.read[end] };
        while let Some(payload) = connection.read() {
            reader.take(payload);
        }
        let last_word = if end == 0 { Events::CONNECTED } else { Events::PEER_CLOSED };
        if connection.take_events().contains(last_word) {
            connection.close();
        }
        self.transmit(end);
    }

    fn transmit(&mut self, end: usize) {
        let (mut packet, mut over) = (Packet::BLANK, false);
        loop {
            let before = self.ends[end].sender.clone();
            let (connection, now) = (&mut self.ends[end], self.now);
            let Some(written) = connection.poll_transmit(now, 1, &mut packet) else { return };
            assert!(!over, "there was another after the last");
            over = !written.more;
            packet.ip.ecn = written.ecn;
            self.check(end, &before, &packet);
            self.trace.push((self.now, end, packet));
            self.air.send(self.now, 1 - end, packet);
        }
    }

    /// What every transmission must keep to.
    fn check(&self, end: usize, before: &Sender, packet: &Packet) {
        let wire::Body::Tcp(segment) = packet.body else { panic!("not TCP") };
        // A FIN is not held against the window.
        let fin = u64::from(segment.flags.contains(Flags::FIN));
        let sent = (self.ends[end].sender.nxt() - before.nxt()).saturating_sub(fin);
        if sent > 0 && !segment.flags.contains(Flags::SYN) {
            // New data: what is in the network stays within the window (RFC 6675 §5), but for two
            // segments of limited transmit (RFC 3042). A copy that was sent again on a notice
            // alone is counted once. A loss probe ignores the window (RFC 8985 §7.3).
            let pipe = before.pipe().min(before.outstanding());
            let limited = self.limited_transmit
                && before.outstanding() + sent <= before.window() + 2 * u64::from(MSS);
            assert!(
                pipe + sent <= before.window() || limited || before.probes_with_new_data(),
                "pipe {pipe} + {sent} > window {}",
                before.window()
            );
        } else if packet.payload.len > 0 {
            let (from, to) = (segment.seq, segment.seq + packet.payload.len + fin as u32);
            for &(start, stop) in &self.sacked[end] {
                let held = from.beyond(start) >= 0 && stop.beyond(to) >= 0;
                assert!(!held, "{from} to {to} was sent again, but is known to have arrived");
            }
        }
    }
}

fn luck() -> impl Strategy<Value = Luck> {
    let p = |most: f64| prop_oneof![Just(0.0), 0.0..most];
    (p(0.2), p(0.2), p(0.1), p(0.3), p(0.2)).prop_map(|(lost, corrupted, doubled, late, marked)| {
        Luck { lost, corrupted, doubled, late, marked }
    })
}

fn narrow() -> impl Strategy<Value = Option<Narrow>> {
    prop::option::weighted(0.3, (0u64..4000, 100u16..1000, any::<bool>())).prop_map(|narrow| {
        let (from, mss, icmp) = narrow?;
        Some(Narrow { from: Time::ZERO + Duration::from_millis(from), mss, icmp })
    })
}

fn configs() -> impl Strategy<Value = Config> {
    let recovery = prop::sample::select(Recovery::ALL).prop_map(|(_, recovery)| recovery);
    let eten = prop::option::of((any::<bool>(), prop::sample::select(&Suppression::EVERY[..])));
    let flags = [(); 4].map(|()| any::<bool>());
    let ecn = prop::sample::select(vec![EcnMode::Off, EcnMode::Classic, EcnMode::Accurate]);
    (recovery, eten, flags, ecn, 1u32..=12, 4u32..=64).prop_map(
        |(recovery, eten, flags, ecn, initial_window, window)| {
            let [limited_transmit, delay, timestamps, frto] = flags;
            Config {
                ecn,
                recovery,
                frto,
                timestamps,
                limited_transmit,
                delayed_ack: delay.then_some(Duration::from_millis(40)),
                initial_window: InitialWindow::Segments(initial_window),
                receive_window: ReceiveWindow::fixed(window * MSS),
                retries: u32::MAX, // However bad the luck.
                syn_retries: u32::MAX,
                syn_ack_retries: u32::MAX,
                mechanisms: eten
                    .map(|(forward, suppress_dupacks)| match forward {
                        true => Mechanism::ForwardEten(ForwardEten::new(suppress_dupacks)),
                        false => Mechanism::Eten(Eten::new(suppress_dupacks)),
                    })
                    .into_iter()
                    .collect(),
                ..config()
            }
        },
    )
}

/// Many, for they are short; `PROPTEST_CASES` may say otherwise.
fn cases() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(4000),
    }
}

proptest! {
    #![proptest_config(cases())]

    /// Whole, in order, once, within the window, and then there is peace; both ways at once.
    #[test]
    fn two_ends_exchange_their_streams(
        config in configs(),
        luck in luck(),
        narrow in narrow(),
        sizes in (0u64..150_000, prop_oneof![Just(0), 0u64..50_000]),
        probing in prop::sample::select(vec![MtuProbing::Off, MtuProbing::BlackHole, MtuProbing::On]),
        seed in any::<u64>(),
    ) {
        // A black hole has to be found.
        let holes = narrow.is_some_and(|narrow| !narrow.icmp);
        let blind = probing == MtuProbing::Off && holes;
        let mtu_probing = if blind { MtuProbing::BlackHole } else { probing };
        let config = Config { mtu_probing, ..config };
        let mut exchange = Exchange::new(&config, luck, narrow, seed);
        exchange.ends[0].write(0, 0, sizes.0);
        exchange.ends[1].write(1, 0, sizes.1);
        exchange.run();
        prop_assert_eq!(exchange.read, [sizes.1, sizes.0]);
        prop_assert_eq!(exchange.ends[0].state(), State::Closed);
        prop_assert_eq!(exchange.ends[1].state(), State::Closed);

        // The general path comes to the same.
        let mut general = Exchange { fast: false, ..Exchange::new(&config, luck, narrow, seed) };
        general.ends[0].write(0, 0, sizes.0);
        general.ends[1].write(1, 0, sizes.1);
        general.run();
        prop_assert_eq!(&exchange.trace, &general.trace);
        let clocks = |exchange: &Exchange| exchange.ends.each_ref().map(|end| format!("{:?}", end.timestamps));
        prop_assert_eq!(clocks(&exchange), clocks(&general));
    }
}
