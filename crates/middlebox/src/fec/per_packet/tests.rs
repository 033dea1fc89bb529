use super::*;
use crate::ceten::Meter;
use crate::fec::tests::FLOW;
use crate::fec::{Encoder, Settings, SideChannel, Strength};
use base::{Random, Seed};
use host::{LinkEvent, Outbox};
use wire::{Body, Causes, Ip, PathForm, Payload};

/// A data packet of the flow, as TCP sends it where nodes update path fields.
fn data(len: u32) -> Packet {
    let mut packet = Packet { ip: Ip::new(FLOW.source, FLOW.destination), ..Packet::BLANK };
    packet.make_tcp().destination_port = FLOW.port;
    packet.payload = Payload { stream: 1, offset: 0, len };
    fields(Causes::SURVIVES, Causes::SURVIVES).put(false, &mut packet.unparsed);
    packet.unparsed.set_zero_size(true);
    packet
}

fn fields(forward: Causes<Probability>, echoed: Causes<Probability>) -> PathFields {
    PathFields::Exact { forward, echoed }
}

/// An acknowledgment that echoes the path fields of a data packet.
fn ack(of: &Packet) -> Packet {
    let mut packet = Packet { ip: Ip::new(FLOW.destination, FLOW.source), ..Packet::BLANK };
    packet.make_tcp().source_port = FLOW.port;
    let Some(PathFields::Exact { forward, .. }) = PathFields::of(of) else { panic!("{of:?}") };
    fields(Causes::SURVIVES, forward).put(false, &mut packet.unparsed);
    packet
}

fn echoed_loss(packet: &Packet) -> f64 {
    let Some(PathFields::Exact { echoed, .. }) = PathFields::of(packet) else { panic!() };
    1.0 - echoed.corruption.get()
}

#[test]
fn the_probability_of_more_wrong_bytes_is_the_tail_of_the_binomial_distribution() {
    // By hand: of 3 bytes, more than one.
    let p = 0.1;
    assert!((beyond(3, 1, p) - (3.0 * p * p * (1.0 - p) + p * p * p)).abs() < 1e-15);
    assert!((beyond(3, 2, p) - p * p * p).abs() < 1e-15);
    assert_eq!((beyond(3, 3, p), beyond(1000, 2, 0.0)), (0.0, 0.0));
    // By the complement, where that is exact.
    for (bytes, p) in [(100, 0.01), (1040, 1e-3), (1500, 0.02)] {
        let mut exactly = libm::pow(1.0 - p, f64::from(bytes));
        let mut at_most = exactly;
        for corrects in 0..15u8 {
            let found = beyond(bytes, corrects, p);
            assert!((found - (1.0 - at_most)).abs() < 1e-12, "{bytes} {p} {corrects}: {found}");
            let wrong = u32::from(corrects);
            exactly *= f64::from(bytes - wrong) / f64::from(wrong + 1) * p / (1.0 - p);
            at_most += exactly;
        }
    }
    // Where the complement has no digits left: nearly (np)^3 / 6.
    let small = beyond(1000, 2, 1e-9);
    assert!((small / (1e-18 / 6.0) - 1.0).abs() < 0.01, "{small}");
}

#[test]
fn a_code_that_follows_corruption_is_just_strong_enough() {
    for target in [1e-6, 1e-3] {
        let strength = PacketStrength::Following(target);
        let mut last = 0;
        for byte in [0.0, 1e-12, 1e-9, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 2e-3, 5e-3, 0.1] {
            let corrects = strength.corrects(1040, byte, 0);
            let enough = |t| beyond(coded_len(1040, t), t, byte) <= target;
            assert!(corrects == PacketStrength::MOST || enough(corrects), "{byte}");
            assert!(corrects == 0 || !enough(corrects - 1), "{byte}");
            assert!(corrects >= last);
            for near in 0..=PacketStrength::MOST {
                assert_eq!(strength.corrects(1040, byte, near), corrects);
            }
            last = corrects;
        }
        assert_eq!(last, PacketStrength::MOST);
    }
}

/// A path of one link, with a meter at its end, that makes bytes wrong.
struct Path {
    encoder: PacketEncoder,
    meter: Meter,
    decoder: PacketDecoder,
    random: Random,
    byte: f64,
}

/// The results of a number of packets.
#[derive(Debug, Default)]
struct Came {
    lost: u32,
    /// The sum of the losses that acknowledgments report to TCP.
    reported: f64,
    acks: u32,
    weakest: u8,
    strongest: u8,
}

impl Path {
    fn new(strength: PacketStrength, a: f64, byte: f64) -> Path {
        Path {
            encoder: PacketEncoder::new(FLOW, strength, a),
            meter: Meter::new(a, PathForm::Probability),
            decoder: PacketDecoder::new(FLOW),
            random: Seed(3).stream("bytes"),
            byte,
        }
    }

    fn wrong(&mut self, bytes: u32) -> u64 {
        let (mut wrong, mut at) = (0, self.random.geometric(self.byte));
        while at < u64::from(bytes) {
            wrong += 1;
            at = at.saturating_add(self.random.geometric(self.byte)).saturating_add(1);
        }
        wrong
    }

    fn send(&mut self, packets: u32) -> Came {
        let mut came = Came { weakest: u8::MAX, ..Came::default() };
        let (mut sent, now) = (Outbox::default(), Time::ZERO);
        for _ in 0..packets {
            let mut packet = data(1000);
            self.encoder.packet(now, None, &mut packet, &mut sent.context());
            let corrects = packet.unparsed.corrects();
            assert_eq!(packet.len(), 1040 + 4 * u32::from(corrects));
            came.weakest = came.weakest.min(corrects);
            came.strongest = came.strongest.max(corrects);
            let wrong = self.wrong(packet.len());
            if wrong > u64::from(corrects) {
                came.lost += 1;
                self.meter.link(now, Port(0), LinkEvent::Corrupted(&packet), &mut sent.context());
                continue;
            }
            if wrong > 0 {
                self.meter.link(now, Port(0), LinkEvent::Corrected(&packet), &mut sent.context());
            }
            self.meter.packet(now, Some(Port(0)), &mut packet, &mut sent.context());
            self.decoder.packet(now, Some(Port(0)), &mut packet, &mut sent.context());
            assert_eq!((packet.unparsed.corrects(), packet.len()), (0, 1040));
            let mut ack = ack(&packet);
            self.encoder.packet(now, Some(Port(1)), &mut ack, &mut sent.context());
            came.reported += echoed_loss(&ack);
            came.acks += 1;
        }
        assert!(sent.is_empty());
        came
    }
}

#[test]
fn the_errors_of_a_path_are_found_whatever_the_code_and_the_weight_in_nodes() {
    for byte in [2e-5, 1e-3] {
        for a in [0.5, 1.0 / 64.0] {
            for strength in [
                PacketStrength::Fixed(1),
                PacketStrength::Fixed(4),
                PacketStrength::Following(1e-6),
                PacketStrength::Following(1e-2),
            ] {
                let mut path = Path::new(strength, a, byte);
                path.send(20_000);
                // What is known goes back over a thousand packets: more of them, more of what is meant.
                let (mut sum, runs) = (0.0, 50);
                for _ in 0..runs {
                    path.send(2000);
                    sum += path.encoder.byte_errors(path.encoder.damaged);
                }
                let ratio = sum / f64::from(runs) / byte;
                assert!((ratio - 1.0).abs() < 0.1, "{byte} {a} {strength:?}: {ratio}");
            }
        }
    }
}

#[test]
fn a_code_that_follows_corruption_stays_as_strong_as_it_must_be_while_it_works() {
    let target = 1e-6;
    let mut path = Path::new(PacketStrength::Following(target), 0.5, 1e-4);
    // Nothing is known yet.
    assert_eq!(path.send(1).strongest, PacketStrength::MOST);
    assert!(path.send(5000).lost == 0);
    let came = path.send(100_000);
    let right = PacketStrength::Following(target).corrects(1040, 1e-4, 0);
    assert!(came.weakest + 1 >= right && came.strongest <= right + 1, "{right}: {came:?}");
    assert!(came.lost <= 2, "{came:?}");
    // Once nothing is wrong any more, a code must be less strong, and in the end there is none: three
    // million packets show that one in a million is damaged at most.
    path.byte = 0.0;
    path.send(20_000);
    assert_eq!(path.send(1).strongest, 1);
    path.send(2_950_000);
    assert_eq!(path.send(1).strongest, 1);
    path.send(100_000);
    assert_eq!(path.send(1).strongest, 0);
}

#[test]
fn what_is_seldom_is_not_forgotten() {
    // A packet in 8000 is damaged: in the mean over a thousand there is next to nothing of it.
    let mut path = Path::new(PacketStrength::Following(1e-6), 0.5, 1.2e-7);
    let came = path.send(400_000);
    assert!(came.weakest >= 1 && came.lost <= 2, "{came:?}");
}

#[test]
fn tcp_gets_reports_of_the_losses_that_remain_after_the_code() {
    // A flow without a code gets reports of (1 - a) p; one with a code the same of its own losses.
    let a = 0.5;
    for (corrects, byte) in [(1, 5e-4), (2, 1e-3), (0, 1e-4)] {
        let mut path = Path::new(PacketStrength::Fixed(corrects), a, byte);
        path.send(5000);
        let came = path.send(400_000);
        let lost = f64::from(came.lost) / 400_000.0;
        let reported = came.reported / f64::from(came.acks);
        assert!(
            (reported / ((1.0 - a) * lost) - 1.0).abs() < 0.1,
            "{corrects}: {reported}, {lost}"
        );
    }
}

#[test]
fn packets_in_the_direction_of_the_data_are_coded_and_packets_that_repair_it_are_as_strong() {
    let mut encoder = PacketEncoder::new(FLOW, PacketStrength::Fixed(3), 0.5);
    let mut sent = Outbox::default();
    let mut pass = |from, mut packet: Packet| {
        encoder.packet(Time::ZERO, from, &mut packet, &mut sent.context());
        packet.unparsed.corrects()
    };
    assert_eq!(pass(None, data(1000)), 3);
    // A segment without data, such as a SYN, as well.
    assert_eq!(pass(None, data(0)), 3);
    assert_eq!(pass(Some(Port(0)), data(1000)), 0);
    let mut other = data(1000);
    other.ip.destination = FLOW.source;
    assert_eq!(pass(None, other), 0);

    let settings = Settings { block: 2, strength: Strength::Fixed(0.5), ..Settings::default() };
    let mut erasures = Encoder::new(FLOW, settings, SideChannel::default());
    let mut sent = Outbox::default();
    for _ in 0..2 {
        let mut packet = data(1000);
        packet.unparsed.set_corrects(3);
        erasures.packet(Time::ZERO, None, &mut packet, &mut sent.context());
    }
    // The last source packet goes with its repair packet.
    let [source, repair] = &sent.clone().into_packets()[..] else { panic!("{sent:?}") };
    assert_eq!((source.unparsed.corrects(), repair.unparsed.corrects()), (3, 3));
    let Body::Repair(_) = repair.body else { panic!("{repair:?}") };
    // Symbols are of packets without codes: 1040 bytes and two for their length.
    assert_eq!(repair.payload.len, 1042);
}
