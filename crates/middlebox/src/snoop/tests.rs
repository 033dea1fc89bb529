//! What the base station does with segments to the mobile host, and with what comes back.

use super::*;
use core::net::{IpAddr, Ipv4Addr};
use host::Outbox;
use wire::{SackBlock, SackBlocks, SeqNumber};

const FIXED: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const MOBILE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
/// Arriving from the mobile host, leaving to it, and the same of the wired link.
const FROM_HOP: Port = Port(3);
const TO_HOP: Port = Port(2);
const WIRED: Port = Port(0);

/// A base station, at a time.
struct Station {
    snoop: Retransmitter,
    now: Time,
}

fn station() -> Station {
    with(|_| ())
}

fn with(set: impl FnOnce(&mut Snoop)) -> Station {
    let mut settings = Snoop::default();
    set(&mut settings);
    Station { snoop: Retransmitter::new(&settings, vec![FROM_HOP]), now: Time::ZERO }
}

/// A segment of the fixed host: 100 bytes with this number.
fn data(number: u32) -> Packet {
    segment(true, Flags::ACK, 1000 + 100 * number, 1, 100)
}

fn segment(to_mobile: bool, flags: Flags, seq: u32, ack: u32, len: u32) -> Packet {
    let mut packet = Packet::BLANK;
    let ends = if to_mobile { (FIXED, MOBILE) } else { (MOBILE, FIXED) };
    packet.ip = wire::Ip::new(ends.0, ends.1);
    let segment = packet.make_tcp();
    let ports = if to_mobile { (80, 4000) } else { (4000, 80) };
    (segment.source_port, segment.destination_port) = ports;
    (segment.seq, segment.ack) = (SeqNumber(seq), SeqNumber(ack));
    (segment.flags, segment.window) = (flags, 5000);
    packet.payload.len = len;
    packet
}

/// The mobile host waits for the segment of this number, and has those of these ranges.
fn sack(number: u32, ranges: &[(u32, u32)]) -> Packet {
    let mut packet = segment(false, Flags::ACK, 1, 1000 + 100 * number, 0);
    let segment = packet.tcp_mut().unwrap();
    for &(start, end) in ranges {
        let [start, end] = [start, end].map(|number| SeqNumber(1000 + 100 * number));
        segment.options.sack.push(SackBlock { start, end });
    }
    packet
}

fn ack(number: u32) -> Packet {
    sack(number, &[])
}

fn number(packet: &Packet) -> u32 {
    let Body::Tcp(segment) = &packet.body else { panic!("{packet:?}") };
    (segment.seq.0 - 1000) / 100
}

fn blocks(packet: &Packet) -> SackBlocks {
    let Body::Tcp(segment) = &packet.body else { panic!("{packet:?}") };
    segment.options.sack
}

impl Station {
    fn after(&mut self, millis: u64) -> &mut Station {
        self.now += Duration::from_millis(millis);
        self
    }

    /// Passes segments from the fixed host to the mobile host.
    fn forwards(&mut self, numbers: impl IntoIterator<Item = u32>) -> &mut Station {
        for number in numbers {
            assert_eq!(self.passes(WIRED, &mut data(number)), (Verdict::Forward, vec![]));
            self.queue(data(number));
        }
        self
    }

    fn queue(&mut self, mut packet: Packet) {
        let mut outbox = Outbox::default();
        self.snoop.queued(self.now, TO_HOP, &mut packet, &mut outbox.context());
        assert!(outbox.is_empty());
    }

    /// Passes a packet; returns the verdict, and the numbers of the segments that are retransmitted.
    fn passes(&mut self, from: Port, packet: &mut Packet) -> (Verdict, Vec<u32>) {
        let mut outbox = Outbox::default();
        let context = &mut outbox.context();
        let verdict = self.snoop.packet(self.now, Some(from), packet, context);
        (verdict, self.take_hop(outbox))
    }

    /// What the box sends takes the hop.
    fn take_hop(&mut self, outbox: Outbox) -> Vec<u32> {
        let packets = outbox.into_packets();
        let sent: Vec<u32> = packets.iter().map(number).collect();
        packets.into_iter().for_each(|packet| self.queue(packet));
        sent
    }

    /// The mobile host's answer passes, and these segments are retransmitted.
    fn lets_pass(&mut self, mut answer: Packet, retransmits: &[u32]) -> Packet {
        let found = self.passes(FROM_HOP, &mut answer);
        assert_eq!(found, (Verdict::Forward, retransmits.to_vec()));
        answer
    }

    /// It does not pass.
    fn suppresses(&mut self, mut answer: Packet, retransmits: &[u32]) {
        let found = self.passes(FROM_HOP, &mut answer);
        assert_eq!(found, (Verdict::Consume, retransmits.to_vec()));
    }

    /// Waits for the next deadline; returns the segments that are retransmitted then.
    fn wakes(&mut self) -> Vec<u32> {
        self.now = self.snoop.next_wake();
        let mut outbox = Outbox::default();
        self.snoop.wake(self.now, &mut outbox.context());
        self.take_hop(outbox)
    }

    fn drops(&mut self, packet: &Packet) {
        let mut outbox = Outbox::default();
        let event = LinkEvent::Dropped(packet);
        self.snoop.link(self.now, TO_HOP, event, &mut outbox.context());
    }

    fn count(&self, name: &str) -> u64 {
        let mut found = 0;
        self.snoop.counts(&mut |other, value| found += if other == name { value } else { 0 });
        found
    }

    fn forgets_all(&mut self) {
        while self.snoop.watched() > 0 {
            self.wakes();
        }
        assert_eq!((self.snoop.cached(), self.snoop.next_wake()), (0, Time::NEVER));
    }
}

// --- The publication's rules. ---

#[test]
fn segments_are_kept_until_they_are_acknowledged() {
    let mut station = station();
    station.forwards(0..4);
    assert_eq!(station.snoop.cached(), 4);
    station.after(10).lets_pass(ack(3), &[]);
    assert_eq!(station.snoop.cached(), 1);
    station.lets_pass(ack(4), &[]);
    assert_eq!(station.snoop.cached(), 0);
    station.forgets_all();
}

#[test]
fn the_second_duplicate_ack_retransmits_and_the_expected_ones_are_suppressed() {
    let mut station = station();
    station.forwards(0..6).after(10).lets_pass(ack(1), &[]);
    // 1 is lost; 2, 3, 4 and 5 arrive.
    station.lets_pass(ack(1), &[]);
    station.suppresses(ack(1), &[1]);
    station.suppresses(ack(1), &[]);
    station.suppresses(ack(1), &[]);
    station.lets_pass(ack(6), &[]);
    assert_eq!(station.count("duplicate ACKs suppressed"), 3);
    assert_eq!(station.count("segments retransmitted over the hop"), 1);
}

#[test]
fn duplicate_acks_beyond_the_expected_ones_show_that_the_retransmission_is_lost() {
    let mut station = station();
    station.forwards(0..4).lets_pass(ack(1), &[]);
    station.lets_pass(ack(1), &[]);
    station.suppresses(ack(1), &[1]);
    // 4, 5 and 6 are sent behind the retransmission, and arrive.
    station.forwards(4..7);
    station.suppresses(ack(1), &[]);
    station.suppresses(ack(1), &[1]);
    station.suppresses(ack(1), &[]);
    station.lets_pass(ack(7), &[]);
}

#[test]
fn several_losses_are_repaired_by_the_acknowledgments_of_retransmissions() {
    let mut station = station();
    station.forwards(0..6).lets_pass(ack(1), &[]);
    // 1 and 3 are lost. The retransmission of 1 arrives behind 5, so 3 does not come any more.
    station.lets_pass(ack(1), &[]);
    station.suppresses(ack(1), &[1]);
    station.suppresses(ack(1), &[]);
    station.lets_pass(ack(3), &[3]);
    station.lets_pass(ack(6), &[]);
}

#[test]
fn a_needless_retransmission_causes_no_other() {
    let mut station = station();
    station.forwards(0..2).after(5).lets_pass(ack(1), &[]);
    assert_eq!(station.wakes(), [1]);
    // The first copy was late. The second is acknowledged, too, when 3 is on the hop.
    station.forwards(2..4).lets_pass(ack(3), &[]);
    station.lets_pass(ack(3), &[]);
    station.lets_pass(ack(4), &[]);
    assert_eq!(station.count("segments retransmitted over the hop"), 1);
}

#[test]
fn losses_before_the_base_station_are_the_senders() {
    let mut station = station();
    station.forwards([0, 1, 3, 4, 5]).lets_pass(ack(2), &[]);
    for _ in 0..3 {
        station.lets_pass(ack(2), &[]);
    }
    // The sender retransmits 2, which is marked: its loss concerns the sender, too.
    station.forwards([2]);
    station.lets_pass(ack(2), &[]);
    station.lets_pass(ack(6), &[]);
    assert_eq!(station.count("duplicate ACKs suppressed"), 0);
}

#[test]
fn a_segment_that_the_sender_retransmits_is_left_to_it() {
    let mut station = station();
    station.forwards(0..4).lets_pass(ack(1), &[]);
    station.lets_pass(ack(1), &[]);
    station.suppresses(ack(1), &[1]);
    station.forwards([1]);
    station.lets_pass(ack(1), &[]);
    station.lets_pass(ack(1), &[]);
}

#[test]
fn a_timer_of_the_hops_round_trip_retransmits_what_nothing_is_heard_of() {
    let mut station = with(|snoop| snoop.min_timeout = Span(Duration::from_millis(10)));
    station.forwards([0]).after(20).lets_pass(ack(1), &[]);
    station.forwards([1]);
    // SRTT 20 ms, RTTVAR 10 ms; then doubled.
    let sent_at = station.now;
    assert_eq!(station.wakes(), [1]);
    assert_eq!(station.now.since(sent_at), Duration::from_millis(60));
    assert_eq!(station.wakes(), [1]);
    assert_eq!(station.now.since(sent_at), Duration::from_millis(180));
    station.lets_pass(ack(2), &[]);
    assert_eq!(station.count("timeouts of the hop"), 2);
    station.forgets_all();
}

#[test]
fn the_timer_has_a_lower_bound() {
    let mut station = station();
    station.forwards([0]).after(2).lets_pass(ack(1), &[]);
    station.forwards([1]);
    let sent_at = station.now;
    assert_eq!(station.wakes(), [1]);
    assert_eq!(station.now.since(sent_at), Duration::from_millis(100));
}

#[test]
fn a_segment_is_retransmitted_so_often_and_then_left_to_the_sender() {
    let mut station = with(|snoop| snoop.retransmissions = 3);
    station.forwards(0..3);
    for _ in 0..3 {
        assert_eq!(station.wakes(), [0]);
    }
    assert_eq!(station.wakes(), []);
    assert_eq!(station.count("segments given up"), 1);
    station.lets_pass(ack(0), &[]);
    // The sender's copy begins a new count.
    station.forwards([0]);
    assert_eq!(station.wakes(), [0]);
    station.forgets_all();
}

// --- SACK, which the publication does not know. ---

#[test]
fn sack_blocks_find_all_losses_at_once() {
    let mut station = station();
    station.forwards(0..8).lets_pass(ack(1), &[]);
    station.suppresses(sack(1, &[(2, 3)]), &[1]);
    station.suppresses(sack(1, &[(4, 5), (2, 3)]), &[3]);
    // 5 and 6 are lost; the retransmission of 1 is behind 7.
    station.suppresses(sack(1, &[(7, 8), (4, 5), (2, 3)]), &[5, 6]);
    let passed = station.lets_pass(sack(3, &[(7, 8), (4, 5)]), &[]);
    assert!(blocks(&passed).is_empty(), "the sender learns of no gap");
    station.lets_pass(ack(8), &[]);
    assert_eq!(station.count("segments retransmitted over the hop"), 4);
    assert_eq!(station.count("ACKs without SACK blocks above a gap"), 1);
}

#[test]
fn with_sack_a_retransmission_that_is_lost_is_repeated() {
    let mut station = station();
    station.forwards(0..3).lets_pass(ack(1), &[]);
    station.suppresses(sack(1, &[(2, 3)]), &[1]);
    station.forwards([3]);
    station.suppresses(sack(1, &[(2, 4)]), &[1]);
    station.lets_pass(ack(4), &[]);
}

#[test]
fn gaps_of_the_wired_path_are_shown_and_gaps_of_the_hop_are_not() {
    let mut station = station();
    // 1 is lost before the base station, 3 on the hop.
    station.forwards([0, 2, 3, 4]).lets_pass(ack(1), &[]);
    let passed = station.lets_pass(sack(1, &[(2, 3)]), &[]);
    assert_eq!(blocks(&passed), blocks(&sack(1, &[(2, 3)])));
    let passed = station.lets_pass(sack(1, &[(4, 5), (2, 3)]), &[3]);
    assert_eq!(blocks(&passed), blocks(&sack(1, &[(2, 3)])));
    let passed = station.lets_pass(sack(1, &[(2, 5)]), &[]);
    assert_eq!(blocks(&passed), blocks(&sack(1, &[(2, 5)])));
}

#[test]
fn a_duplicate_sack_is_no_sign_of_a_loss() {
    let mut station = station();
    station.forwards(0..4).lets_pass(sack(2, &[(3, 4)]), &[2]);
    station.lets_pass(ack(4), &[]);
    station.forwards(4..6);
    let passed = station.lets_pass(sack(4, &[(2, 3)]), &[]);
    assert_eq!(blocks(&passed), blocks(&sack(4, &[(2, 3)])));
}

#[test]
fn a_mobile_host_may_discard_what_it_has_reported() {
    let mut station = station();
    station.forwards(0..3).lets_pass(ack(0), &[]);
    station.suppresses(sack(0, &[(1, 3)]), &[0]);
    // Without its blocks: it has nothing any more.
    station.lets_pass(ack(1), &[1, 2]);
}

#[test]
fn acknowledgments_with_a_digest_are_not_changed() {
    let mut station = station();
    station.forwards(0..6).lets_pass(ack(1), &[]);
    let mut signed = sack(2, &[(5, 6), (3, 4)]);
    signed.unparsed.set_tcp_options(&[29, 4, 1, 1]).unwrap();
    let passed = station.lets_pass(signed, &[2, 4]);
    assert_eq!(blocks(&passed), blocks(&signed));
}

// --- What is no loss of the hop. ---

#[test]
fn what_the_hops_queue_drops_is_congestion() {
    let mut station = station();
    station.forwards(0..4).lets_pass(ack(1), &[]);
    station.drops(&data(1));
    for _ in 0..3 {
        station.lets_pass(ack(1), &[]);
    }
}

#[test]
fn window_updates_data_and_probes_are_no_duplicate_acks() {
    let mut station = station();
    station.forwards(0..3).lets_pass(ack(1), &[]);
    let mut update = ack(1);
    update.tcp_mut().unwrap().window = 6000;
    station.lets_pass(update, &[]);
    let mut with_data = update;
    with_data.payload.len = 10;
    station.lets_pass(with_data, &[]);
    // A closed window: what is sent into it is discarded, and answered.
    let mut closed = ack(1);
    closed.tcp_mut().unwrap().window = 0;
    for _ in 0..3 {
        station.lets_pass(closed, &[]);
    }
    assert_eq!(station.wakes(), []);
    assert_eq!(station.snoop.next_wake(), Time::ZERO + Retransmitter::LIFETIME);
}

#[test]
fn the_answer_to_an_old_segment_is_no_duplicate_ack() {
    let mut station = station();
    station.forwards(0..4).lets_pass(ack(2), &[]);
    station.forwards([1]);
    station.lets_pass(ack(2), &[]);
    station.lets_pass(ack(2), &[]);
    station.suppresses(ack(2), &[2]);
}

#[test]
fn a_segment_beyond_the_cache_is_left_to_the_sender() {
    let mut station = with(|snoop| snoop.cache = 2);
    station.forwards(0..4).lets_pass(ack(2), &[]);
    station.lets_pass(ack(2), &[]);
    assert_eq!(station.count("segments not cached: cache full"), 2);
}

#[test]
fn other_packets_pass() {
    let mut station = station();
    station.forwards(0..3);
    let mut esp = data(0);
    esp.body = Body::Esp(wire::Esp { spi: 1, sequence: 1, iv: [0; 8] });
    station.queue(esp);
    assert_eq!(station.snoop.cached(), 3);
    assert_eq!(station.passes(FROM_HOP, &mut esp), (Verdict::Forward, vec![]));
    // Duplicate ACKs for data that went to others, or of another connection.
    assert_eq!(station.passes(WIRED, &mut ack(1)).0, Verdict::Forward);
    let mut other = ack(1);
    other.tcp_mut().unwrap().source_port = 4001;
    station.lets_pass(other, &[]);
    station.lets_pass(other, &[]);
    let mut outbox = Outbox::default();
    let elsewhere = WIRED.opposite();
    station.snoop.queued(station.now, elsewhere, &mut data(7), &mut outbox.context());
    assert_eq!(station.snoop.cached(), 3);
}

// --- State. ---

#[test]
fn a_reset_or_a_new_connection_ends_what_was() {
    for flags in [Flags::RST, Flags::SYN] {
        for to_mobile in [true, false] {
            let mut station = station();
            station.forwards(0..3);
            let from = if to_mobile { WIRED } else { FROM_HOP };
            let mut end = segment(to_mobile, flags, 1000, 0, 0);
            assert_eq!(station.passes(from, &mut end).0, Verdict::Forward);
            assert_eq!((station.snoop.cached(), station.snoop.watched()), (0, 0));
            assert_eq!(station.snoop.next_wake(), Time::NEVER);
        }
    }
}

#[test]
fn the_end_of_a_stream_is_retransmitted_like_data() {
    let mut station = station();
    station.forwards([0]).lets_pass(ack(1), &[]);
    station.queue(segment(true, Flags::FIN | Flags::ACK, 1100, 1, 0));
    assert_eq!(station.wakes(), [1]);
    station.lets_pass(segment(false, Flags::ACK, 1, 1101, 0), &[]);
    station.forgets_all();
}

#[test]
fn sequence_numbers_go_on_where_their_field_ends() {
    let mut station = station();
    let at = |number: u32| SeqNumber(u32::MAX - 150) + 100 * number;
    for number in 0..4 {
        station.queue(segment(true, Flags::ACK, at(number).0, 1, 100));
    }
    let ack = |number| segment(false, Flags::ACK, 1, at(number).0, 0);
    let verdict = |station: &mut Station, number| station.passes(FROM_HOP, &mut ack(number)).0;
    assert_eq!(verdict(&mut station, 1), Verdict::Forward);
    assert_eq!(verdict(&mut station, 1), Verdict::Forward);
    assert_eq!(verdict(&mut station, 1), Verdict::Consume);
    assert_eq!(station.snoop.cached(), 3);
    assert_eq!(verdict(&mut station, 4), Verdict::Forward);
    assert_eq!(station.snoop.cached(), 0);
}

#[test]
fn connections_are_bounded_and_expire() {
    let mut station = station();
    for number in 0..5000_u32 {
        let mut packet = data(0);
        packet.ip.source = IpAddr::V4(Ipv4Addr::from_bits(number));
        station.queue(packet);
    }
    assert_eq!(station.snoop.watched(), 4096);
    assert_eq!(station.count("segments not cached: too many connections"), 5000 - 4096);
    station.forgets_all();
    // Their places are used again.
    station.forwards(0..3);
    assert_eq!((station.snoop.watched(), station.snoop.connections.len()), (1, 4096));
}
