//! A fingerprint of a run.

use base::Time;
use link::Fate;
use wire::srp::{Pdu, Srp};
use wire::{Body, Icmp, Packet, Protected, Segment, Tfrc, TfrcMessage, Udp};

/// A fingerprint of every packet that arrived at the end of a link, and when: two runs that differ
/// in any of them have different digests.
///
/// Each direction of a link has a digest of its own, so that the digest does not depend on the
/// order in which the simulator processes nodes that do not affect each other. The digest of a run
/// combines them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Digest(pub u64);

/// Digits of pi.
const KEYS: [u64; 8] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7344,
    0xa409_3822_299f_31d0,
    0x082e_fa98_ec4e_6c89,
    0x4528_21e6_38d0_1377,
    0xbe54_66cf_34e9_0c6c,
    0xc0ac_29b7_c97c_50dd,
    0x3f84_d5b5_b547_0917,
];

/// Both halves of a product, as in wyhash: the result depends on every bit of either factor. It
/// distinguishes runs; it does not protect against forgery.
#[inline(always)]
const fn mix(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// The place of a payload at the start of a stream, as that of a segment without data.
const START: u64 = mix(KEYS[4], KEYS[5]);

/// Two numbers of 32 bits in one of 64.
#[inline(always)]
fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

impl Digest {
    /// Adds an arriving packet, in any state.
    #[inline(always)]
    pub(crate) fn add(&mut self, now: Time, packet: &Packet, fate: Fate) {
        let fate: u32 = match fate {
            Fate::Intact => 0,
            Fate::Corrupted => 1,
            Fate::Lost => 2,
            Fate::Marked => 3,
            Fate::Corrected { marked: false } => 4,
            Fate::Corrected { marked: true } => 5,
        };
        // One look at the options serves the length and the body.
        let (len, body) = match (packet.plain_len(), &packet.body) {
            (Some(len), Body::Tcp(segment)) => (len, of_plain(segment)),
            _ => (packet.len(), of_any(packet)),
        };
        let when = mix(now.as_nanos() ^ KEYS[0], pair(len, fate) ^ KEYS[1]);
        let body = mix(body ^ KEYS[2], pair(packet.payload.len, 0) ^ KEYS[3]);
        let place = match packet.payload.offset {
            0 => START,
            offset => mix(offset ^ KEYS[4], KEYS[5]),
        };
        self.0 = mix(self.0 ^ when ^ body ^ place, KEYS[6]);
    }

    /// The digest of a run from those of its link directions. Idle directions do not change it.
    pub(crate) fn of(directions: impl Iterator<Item = Digest>) -> Digest {
        let used = directions.filter(|&digest| digest != Digest::default());
        used.fold(Digest::default(), |all, one| Digest(mix(all.0 ^ one.0, KEYS[7])))
    }
}

/// A segment without options but timestamps.
#[inline(always)]
fn of_plain(segment: &Segment) -> u64 {
    let flags = pair(u32::from(segment.flags.bits()), u32::from(segment.window));
    let mut all = mix(pair(segment.seq.0, segment.ack.0) ^ KEYS[6], flags ^ KEYS[7]);
    if let Some(stamp) = segment.options.timestamps {
        all ^= mix(pair(stamp.value, stamp.echo) ^ KEYS[0], KEYS[6]);
    }
    all
}

/// A segment with any options.
fn of_segment(segment: &Segment) -> u64 {
    let blocks = segment.options.sack.as_slice().iter();
    blocks
        .fold(of_plain(segment), |all, block| mix(all ^ pair(block.start.0, block.end.0), KEYS[1]))
}

fn of_udp(udp: &Udp) -> u64 {
    pair(udp.source_port.into(), udp.destination_port.into())
}

/// The fields that say which PDU it is.
fn of_srp(srp: &Srp) -> u64 {
    let (number, rest) = match &srp.pdu {
        Pdu::Data(segment) => (segment.number, segment.stream.into()),
        Pdu::Sack(sack) => {
            let words = sack.bitmap.iter().copied();
            (sack.cumulative, words.fold(sack.latest, |all, word| all.rotate_left(5) ^ word))
        }
        Pdu::Probe { number } => ((*number).into(), 1),
        Pdu::Open(_) => (0, 2),
        Pdu::Opened(_) => (0, 3),
        Pdu::Reset { reason } => (*reason as u32, 4),
        Pdu::Renew { first, .. } => (*first, 5),
    };
    mix(pair(srp.token, rest), KEYS[4]) ^ pair(number, srp.source_port.into())
}

fn of_tfrc(tfrc: &Tfrc) -> u64 {
    let ports = pair(tfrc.source_port.into(), tfrc.destination_port.into());
    let message = match tfrc.message {
        TfrcMessage::Data { sequence, timestamp, round_trip } => {
            mix(pair(sequence, timestamp), KEYS[4]) ^ u64::from(round_trip)
        }
        TfrcMessage::Feedback { timestamp, delay, receive_rate, loss_event_rate } => {
            mix(pair(timestamp, delay), KEYS[2]) ^ pair(receive_rate, loss_event_rate.0)
        }
    };
    mix(ports ^ message, KEYS[1])
}

#[inline(never)]
fn of_any(packet: &Packet) -> u64 {
    let word = match &packet.body {
        Body::Tcp(segment) => return of_segment(segment),
        Body::Icmp(Icmp::Corruption { notice, .. }) => pair(notice.seq.0, notice.copy.0),
        Body::Icmp(Icmp::EspCorruption { notice, .. }) => pair(notice.esp.sequence, notice.esp.spi),
        Body::Icmp(icmp) => {
            icmp.quote().map_or(0, |quote| pair(quote.seq.0, quote.source_port.into()))
        }
        Body::Udp(udp) => of_udp(udp),
        Body::Srp(srp) => of_srp(srp),
        Body::Tfrc(tfrc) => of_tfrc(tfrc),
        Body::Repair(repair) => pair(repair.place.sequence, repair.place.index.into()),
        Body::Esp(esp) => pair(esp.sequence, esp.spi),
        Body::EspTransport(protected) => {
            let esp = packet.esp().map_or(0, |esp| pair(esp.sequence, esp.spi));
            let inner = match protected {
                Protected::Tcp(segment) => of_segment(segment),
                Protected::Udp(udp) => of_udp(udp),
                Protected::Tfrc(tfrc) => of_tfrc(tfrc),
            };
            mix(inner ^ esp, KEYS[1])
        }
        Body::Mobility(message) => pair(message.attachment as u32, message.tag[0].into()),
    };
    mix(word ^ KEYS[2], KEYS[3])
}
