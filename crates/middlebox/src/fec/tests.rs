//! Encoder and decoder with a path between them that loses packets.

use super::{Decoder, Encoder, Flow, Settings, SideChannel, Signal, Statistics, Strength};
use base::{Duration, Time};
use core::net::IpAddr;
use host::{Middlebox, Outbox, Port, Verdict};
use proptest::prelude::*;
use std::collections::BTreeMap;
use wire::{
    Body, Causes, Ecn, Flags, Ip, Packet, PathFields, Payload, Place, Probability, Segment,
    SeqNumber,
};

pub(super) const FLOW: Flow = Flow {
    source: IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 1)),
    destination: IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 2)),
    port: 5000,
};

/// Encoder, path without delay, decoder.
struct Pipe<F> {
    encoder: Encoder,
    decoder: Decoder,
    side_channel: SideChannel,
    now: Time,
    /// Whether the path loses the packet with this number, counted from 0.
    lose: F,
    sent: u64,
    offset: u64,
    delivered: Outbox,
    /// Every packet on the path, and whether it was lost.
    log: Vec<(Packet, bool)>,
}

impl<F: FnMut(u64) -> bool> Pipe<F> {
    fn new(settings: Settings, signal: Signal, bytes: bool, lose: F) -> Pipe<F> {
        let side_channel = SideChannel::default();
        if bytes {
            side_channel.use_bytes();
        }
        Pipe {
            encoder: Encoder::new(FLOW, settings, side_channel.clone()),
            decoder: Decoder::new(FLOW, settings, signal, side_channel.clone()),
            side_channel,
            now: Time::ZERO,
            lose,
            sent: 0,
            offset: 0,
            delivered: Outbox::default(),
            log: Vec::new(),
        }
    }

    /// TCP sends a segment with so many bytes.
    fn send(&mut self, len: u32) {
        let payload = Payload { stream: 1, offset: self.offset, len };
        let seq = SeqNumber(self.offset as u32);
        self.offset += u64::from(len);
        let segment = Segment {
            source_port: 4000,
            destination_port: FLOW.port,
            seq,
            flags: Flags::ACK,
            ..Segment::default()
        };
        let ip = Ip { ecn: Ecn::Capable, ..Ip::new(FLOW.source, FLOW.destination) };
        let mut packet = Packet { ip, body: Body::Tcp(segment), payload, ..Packet::BLANK };
        let mut made = Outbox::default();
        let verdict = self.encoder.packet(self.now, None, &mut packet, &mut made.context());
        if verdict == Verdict::Forward {
            made.context().send(packet);
        }
        self.transmit(made.into_packets());
    }

    fn transmit(&mut self, packets: Vec<Packet>) {
        for mut packet in packets {
            self.sent += 1;
            let lost = (self.lose)(self.sent - 1);
            self.log.push((packet, lost));
            if lost {
                continue;
            }
            packet.ip.hop_limit -= 1;
            let mut cx = self.delivered.context();
            let verdict = self.decoder.packet(self.now, Some(Port(0)), &mut packet, &mut cx);
            if verdict == Verdict::Forward {
                self.delivered.context().send(packet);
            }
        }
    }

    /// Time goes on.
    fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            let (encoder, decoder) = (self.encoder.next_wake(), self.decoder.next_wake());
            let next = encoder.min(decoder);
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            if encoder == next {
                let mut made = Outbox::default();
                self.encoder.wake(next, &mut made.context());
                self.transmit(made.into_packets());
            } else {
                self.decoder.wake(next, &mut self.delivered.context());
                assert!(self.decoder.next_wake() > next, "it would be woken for ever");
            }
        }
    }

    /// Where the packets that were delivered are in the stream.
    fn offsets(&self) -> Vec<u64> {
        self.delivered.packets.iter().map(|sent| sent.packet.payload.offset).collect()
    }

    fn marks(&self) -> Vec<bool> {
        self.delivered.packets.iter().map(|sent| sent.packet.ip.ecn == Ecn::Congested).collect()
    }

    fn statistics(&self) -> Statistics {
        self.side_channel.statistics()
    }
}

/// Blocks of four with so many repair packets for each source packet.
fn blocks_of_four(ratio: f64) -> Settings {
    Settings { block: 4, strength: Strength::Fixed(ratio), ..Settings::default() }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_lost_packet_is_rebuilt_and_delivered_in_its_place() {
    let mut pipe = Pipe::new(blocks_of_four(0.25), Signal::None, true, |sent| sent == 1);
    for _ in 0..4 {
        pipe.send(100);
    }
    assert_eq!(pipe.offsets(), [0, 100, 200, 300]);
    let expected = Statistics { sources: 4, repairs: 1, rebuilt: 1, ..Statistics::default() };
    assert_eq!(pipe.statistics(), Statistics { lost: 1, ..expected });
}

#[test]
fn what_comes_behind_a_gap_waits_for_the_repair() {
    let mut pipe = Pipe::new(blocks_of_four(0.25), Signal::None, true, |sent| sent == 1);
    for _ in 0..3 {
        pipe.send(100);
    }
    assert_eq!(pipe.offsets(), [0]);
    pipe.send(100);
    assert_eq!(pipe.offsets(), [0, 100, 200, 300]);
}

#[test]
fn a_block_is_cut_short_when_the_flow_pauses() {
    let mut pipe = Pipe::new(blocks_of_four(0.25), Signal::None, true, |sent| sent == 1);
    pipe.send(100);
    pipe.pass(millis(60));
    pipe.send(70);
    pipe.pass(millis(39));
    assert_eq!((pipe.offsets(), pipe.sent), (vec![0], 2));
    pipe.pass(millis(1));
    assert_eq!((pipe.offsets(), pipe.sent), (vec![0, 100], 3));
}

#[test]
fn a_block_beyond_repair_is_given_up_when_three_packets_of_the_next_have_come() {
    let lost = |sent| sent == 0 || sent == 2;
    let mut pipe = Pipe::new(blocks_of_four(0.25), Signal::None, true, lost);
    for _ in 0..6 {
        pipe.send(100);
    }
    assert_eq!(pipe.offsets(), []);
    pipe.send(100);
    assert_eq!(pipe.offsets(), [100, 300, 400, 500, 600]);
    assert_eq!(pipe.statistics().abandoned, 1);
}

#[test]
fn a_block_beyond_repair_is_given_up_after_twice_the_wait() {
    let lost = |sent| sent == 1 || sent == 4;
    let mut pipe = Pipe::new(blocks_of_four(0.25), Signal::None, true, lost);
    for _ in 0..4 {
        pipe.send(100);
    }
    pipe.pass(millis(199));
    assert_eq!(pipe.offsets(), [0]);
    pipe.pass(millis(1));
    assert_eq!(pipe.offsets(), [0, 200, 300]);
    assert_eq!(pipe.statistics().abandoned, 1);
}

#[test]
fn on_a_path_that_corrupts_nothing_a_code_that_follows_it_adds_nothing() {
    let settings = Settings { strength: Strength::Following(1e-3), ..blocks_of_four(0.0) };
    let mut pipe = Pipe::new(settings, Signal::All, true, |_| false);
    for _ in 0..9 {
        pipe.send(100);
    }
    assert_eq!((pipe.sent, pipe.statistics()), (9, Statistics::default()));
    assert!(pipe.delivered.packets.iter().all(|sent| sent.packet.unparsed.is_empty()));
    pipe.encoder.set_corruption(0.05);
    for _ in 0..4 {
        pipe.send(100);
    }
    assert_eq!(pipe.statistics().sources, 4);
    assert_eq!(pipe.statistics().repairs, pipe.sent - 13);
    assert!(pipe.sent > 13);
}

#[test]
fn encoder_and_decoder_learn_of_the_path_from_its_fields() {
    let settings = Settings { strength: Strength::Following(1e-3), ..blocks_of_four(0.0) };
    let mut pipe = Pipe::new(settings, Signal::Share, true, |sent| sent % 9 == 8);
    pipe.encoder.follow(0.5);
    // Nodes report half of the corruption; there are no other losses.
    let corrupted = Causes { corruption: Probability::of(0.95), congestion: Probability::ONE };
    let fields = |forward, echoed| PathFields::Exact { forward, echoed };
    let mut answer = Packet { ip: Ip::new(FLOW.destination, FLOW.source), ..Packet::BLANK };
    answer.make_tcp().source_port = FLOW.port;
    fields(Causes::SURVIVES, corrupted).put(false, &mut answer.unparsed);
    let mut data = Packet { ip: Ip::new(FLOW.source, FLOW.destination), ..Packet::BLANK };
    data.make_tcp().destination_port = FLOW.port;
    fields(corrupted, Causes::SURVIVES).put(false, &mut data.unparsed);
    let mut outbox = Outbox::default();
    let mut cx = outbox.context();
    for _ in 0..2000 {
        pipe.encoder.packet(Time::ZERO, Some(Port(1)), &mut answer, &mut cx);
        pipe.decoder.packet(Time::ZERO, Some(Port(0)), &mut data, &mut cx);
    }
    for _ in 0..40 {
        pipe.send(100);
    }
    let expected = Strength::Following(1e-3).repairs(4, 0.1);
    assert_eq!(pipe.statistics().repairs, 10 * u64::from(expected));
    assert!(pipe.statistics().lost > 0);
    assert_eq!((pipe.offsets().len(), pipe.statistics().marked), (40, 0));
}

#[test]
fn every_loss_is_signalled_as_congestion_unless_it_is_known_to_be_corruption() {
    // The second of every block of four with its repair packet.
    let lost = |sent| sent % 5 == 1;
    let marks = |signal, congestion| {
        let mut pipe = Pipe::new(blocks_of_four(0.25), signal, false, lost);
        pipe.decoder.set_congestion(congestion);
        for _ in 0..16 {
            pipe.send(100);
        }
        assert_eq!(pipe.offsets().len(), 16);
        pipe.marks().into_iter().filter(|marked| *marked).count()
    };
    assert_eq!(marks(Signal::All, 0.0), 4);
    assert_eq!(marks(Signal::None, 1.0), 0);
    assert_eq!(marks(Signal::Share, 1.0), 4);
    assert_eq!(marks(Signal::Share, 0.5), 2);
    assert_eq!(marks(Signal::Share, 0.0), 0);
}

#[test]
fn the_loss_of_a_repair_packet_is_signalled_too() {
    let mut pipe = Pipe::new(blocks_of_four(0.25), Signal::All, false, |sent| sent == 4);
    for _ in 0..8 {
        pipe.send(100);
    }
    let marked: Vec<_> = pipe.marks().iter().map(|marked| usize::from(*marked)).collect();
    assert_eq!(marked, [0, 0, 0, 0, 0, 0, 1, 0]);
}

#[derive(Clone, Debug)]
enum Step {
    Send(u32),
    Pass(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (1u32..1500).prop_map(Step::Send),
        1 => (1u64..150).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..80)
}

/// Where the packets are in the stream that ought to be delivered: all of a block of which enough has
/// come, and of others what has come.
fn due(log: &[(Packet, bool)]) -> Vec<u64> {
    let mut blocks: BTreeMap<u32, (Vec<(u64, bool)>, usize)> = BTreeMap::new();
    for (packet, lost) in log {
        let (place, offset) = match packet.body {
            Body::Repair(repair) => (repair.place, None),
            _ => (Place::of(packet).expect("a tag"), Some(packet.payload.offset)),
        };
        let (sources, come) = blocks.entry(place.sequence - u32::from(place.index)).or_default();
        sources.extend(offset.map(|offset| (offset, *lost)));
        *come += usize::from(!lost);
    }
    let due = blocks.into_values().flat_map(|(sources, come)| {
        let repairable = come >= sources.len();
        sources.into_iter().filter(move |(_, lost)| repairable || !lost)
    });
    due.map(|(offset, _)| offset).collect()
}

/// What is delivered in a run and what ought to be, what was counted, and what was lost.
fn run(
    steps: &[Step],
    settings: Settings,
    losses: &[bool],
    bytes: bool,
) -> (Vec<Packet>, Vec<u64>, Statistics, u64) {
    let lose = |sent: u64| losses.get(sent as usize).copied().unwrap_or(false);
    let mut pipe = Pipe::new(settings, Signal::All, bytes, lose);
    for step in steps {
        match *step {
            Step::Send(len) => pipe.send(len),
            Step::Pass(span) => pipe.pass(millis(span)),
        }
    }
    // Three places more than any loss is found out by.
    pipe.pass(millis(1000));
    for _ in 0..settings.block {
        pipe.send(1);
    }
    pipe.pass(millis(1000));
    assert_eq!(pipe.decoder.next_wake(), Time::NEVER);
    let dropped = pipe.log.iter().filter(|(_, lost)| *lost).count() as u64;
    let (due, statistics) = (due(&pipe.log), pipe.statistics());
    (pipe.delivered.into_packets(), due, statistics, dropped)
}

proptest! {
    #[test]
    fn blocks_of_which_enough_comes_are_delivered_in_order_and_bytes_make_no_difference(
        steps in steps(),
        losses in prop::collection::vec(prop::bool::weighted(0.1), 60),
        block in 3u8..12,
        ratio in 0.1f64..1.0,
    ) {
        let strength = Strength::Fixed(ratio);
        let settings = Settings { block, strength, ..Settings::default() };
        let (delivered, due, statistics, dropped) = run(&steps, settings, &losses, true);
        let (same, _, counts, _) = run(&steps, settings, &losses, false);
        prop_assert_eq!(&delivered, &same);
        prop_assert_eq!(statistics, counts);
        prop_assert_eq!(statistics.faults, 0);
        let offsets: Vec<u64> = delivered.iter().map(|packet| packet.payload.offset).collect();
        prop_assert_eq!(offsets, due);
        // Losses near the end may not have been found out by then.
        if losses.len() as u64 + 3 <= statistics.sources {
            prop_assert_eq!(statistics.lost, dropped);
        }
    }

    #[test]
    fn as_many_losses_in_a_block_as_it_has_repair_packets_are_repaired(
        block in 1u8..30,
        repairs in 1u8..10,
        pattern in any::<u64>(),
    ) {
        let repairs = repairs.min(block);
        let ratio = f64::from(repairs) / f64::from(block);
        let settings = Settings { block, strength: Strength::Fixed(ratio), ..Settings::default() };
        let size = u64::from(block + repairs);
        let mut left = 0;
        // In each block, the first places that the pattern names, as many as can be repaired.
        let lose = |sent: u64| {
            if sent.is_multiple_of(size) {
                left = repairs;
            }
            let lost = left > 0 && pattern >> (sent % 64) & 1 == 1;
            left -= u8::from(lost);
            lost
        };
        let mut pipe = Pipe::new(settings, Signal::All, true, lose);
        for _ in 0..4 * u32::from(block) {
            pipe.send(1000);
        }
        let expected: Vec<_> = (0..4 * u64::from(block)).map(|packet| 1000 * packet).collect();
        prop_assert_eq!(pipe.offsets(), expected);
        prop_assert_eq!(pipe.statistics().faults, 0);
    }
}
