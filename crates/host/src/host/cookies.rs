//! SYN cookies (RFC 4987 §3.6): a listener whose backlog is full answers a SYN without keeping
//! state. The answer's sequence number and timestamp encode the state, and the peer's ACK returns
//! them.

use super::resets::Rejection;
use super::{FourTuple, Host};
use crate::Application;
use base::{Duration, Time};
use tcp::{Config, Side};
use wire::{Ecn, Flags, Ip, Options, Packet, Payload, Segment, SeqNumber, Timestamps};

/// How long a cookie names the same period; it is good in this period and in the next.
const PERIOD: Duration = Duration::from_secs(64);
/// How long a listener takes cookies after its backlog was full.
const LIFETIME: Duration = Duration::from_secs(128);

/// Bits of a cookie, the highest first: the period modulo 4, the segment size, the keyed hash.
const SIZE_SHIFT: u32 = 27;
const PERIOD_SHIFT: u32 = 30;
const HASH: u32 = (1 << SIZE_SHIFT) - 1;

/// The segment sizes that a cookie can name: the largest that is no larger than the peer's. Those of
/// tunnels and of the usual links are among them.
const SIZES: [u16; 8] = [48, 216, 536, 1000, 1220, 1440, 1460, 8940];

/// The lowest bits of the answer's timestamp (as in Linux): the shift of the peer's window, or
/// [`NO_SHIFT`], and two flags.
const LOW_BITS: u32 = 6;
const NO_SHIFT: u8 = 15;
const SACK: u8 = 1 << 4;
const ECN: u8 = 1 << 5;

/// The parts of a SYN that the cookie encodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SynOptions {
    /// Of [`SIZES`].
    size: u8,
    /// The lowest bits of the timestamp; without timestamps, no option but the MSS is negotiated.
    bits: Option<u8>,
}

impl SynOptions {
    fn of(syn: &Segment, timestamps: bool, is_ipv6: bool) -> SynOptions {
        let mss = syn.options.mss.unwrap_or(if is_ipv6 { 1220 } else { 536 });
        let size = SIZES.partition_point(|&size| size <= mss).saturating_sub(1) as u8;
        let bits = syn.options.timestamps.filter(|_| timestamps).map(|_| {
            let shift = syn.options.window_scale.map_or(NO_SHIFT, |shift| shift.min(14));
            let sack = if syn.options.sack_permitted { SACK } else { 0 };
            let asks = syn.flags.contains(Flags::ECE | Flags::CWR);
            shift | sack | if asks { ECN } else { 0 }
        });
        SynOptions { size, bits }
    }

    /// The SYN, rebuilt from the ports of `of`, a sequence number and a timestamp.
    fn syn(self, of: &Segment, seq: SeqNumber, stamp: Option<Timestamps>) -> Segment {
        let bits = self.bits.unwrap_or(NO_SHIFT);
        let shift = bits & NO_SHIFT;
        let asks = bits & ECN > 0;
        Segment {
            source_port: of.source_port,
            destination_port: of.destination_port,
            seq,
            flags: if asks { Flags::SYN | Flags::ECE | Flags::CWR } else { Flags::SYN },
            window: of.window,
            options: Options {
                mss: Some(SIZES[usize::from(self.size)]),
                window_scale: (shift < NO_SHIFT).then_some(shift),
                sack_permitted: bits & SACK > 0,
                timestamps: stamp.filter(|_| self.bits.is_some()),
                ..Options::default()
            },
            ..Segment::default()
        }
    }
}

/// The latest timestamp, no later than `value`, that ends in `bits`.
fn with_low_bits(value: u32, bits: u8) -> u32 {
    let mask = (1 << LOW_BITS) - 1;
    let ahead = u32::from(bits) > value & mask;
    (value & !mask | u32::from(bits)).wrapping_sub(u32::from(ahead) << LOW_BITS)
}

impl<A: Application> Host<A> {
    fn period(&self, now: Time) -> u64 {
        self.numbering.local(now).as_nanos() / PERIOD.as_nanos()
    }

    /// The sequence number of the answer to a SYN.
    fn cookie(&self, period: u64, tuple: &FourTuple, irs: SeqNumber, options: SynOptions) -> u32 {
        let hash = self.numbering.cookie(tuple, irs, period, options.size, options.bits) as u32;
        (period as u32) << PERIOD_SHIFT | u32::from(options.size) << SIZE_SHIFT | hash & HASH
    }

    /// Answers a SYN for which the backlog has no place.
    pub(super) fn send_cookie(&mut self, now: Time, tuple: &FourTuple, syn: &Segment) -> Rejection {
        if let Some(listener) = self.listeners.get_mut(tuple) {
            listener.cookies_until = self.numbering.local(now) + LIFETIME;
        }
        let Some(config) = self.template(*tuple).filter(|_| !self.by_tuple.contains_key(tuple))
        else {
            return Rejection::BacklogFull;
        };
        let options = SynOptions::of(syn, config.timestamps, tuple.remote.is_ipv6());
        let iss = self.cookie(self.period(now), tuple, syn.seq, options);
        let mut connection =
            self.make_connection(now, tuple, &config, Side::Passive, SeqNumber(iss));
        let syn = options.syn(syn, syn.seq, syn.options.timestamps);
        connection.handle_segment(now, &syn, Payload::default(), Ecn::NotCapable);
        let mut packet = Packet::BLANK;
        if connection.poll_transmit(now, 1, &mut packet).is_some() {
            packet.ip = Ip::new(tuple.local, tuple.remote);
            let timestamps = packet.tcp_mut().and_then(|answer| answer.options.timestamps.as_mut());
            if let (Some(timestamps), Some(bits)) = (timestamps, options.bits) {
                timestamps.value = with_low_bits(timestamps.value, bits);
            }
            self.resets.waiting.push(packet);
        }
        Rejection::CookieSent
    }

    /// Opens a connection for a segment that acknowledges a cookie; `None` if the cookie is not ours.
    pub(super) fn accept_cookie(
        &mut self,
        now: Time,
        tuple: FourTuple,
        segment: &Segment,
    ) -> Option<u32> {
        let listener = self.listeners.get_mut(&tuple)?;
        if self.memory.is_used_up() || self.numbering.local(now) >= listener.cookies_until {
            return None;
        }
        let config = self.template(tuple)?;
        let timestamps = segment.options.timestamps.filter(|_| config.timestamps);
        let bits = timestamps.map(|timestamps| timestamps.echo as u8 & ((1 << LOW_BITS) - 1));
        let (irs, iss) = (SeqNumber(segment.seq.0.wrapping_sub(1)), segment.ack.0.wrapping_sub(1));
        let options = SynOptions { size: (iss >> SIZE_SHIFT & 7) as u8, bits };
        let period = self.period(now);
        let mut good = [Some(period), period.checked_sub(1)].into_iter().flatten();
        good.find(|&period| self.cookie(period, &tuple, irs, options) == iss)?;
        let listener = self.listeners.get_mut(&tuple)?;
        listener.half_open += 1;
        let (_, application) = (listener.accept)(tuple);
        let id = self.add(now, tuple, &config, Side::Passive, SeqNumber(iss), application);
        // Its TS.Recent is what the peer says now (RFC 7323 §3.2).
        let syn = options.syn(segment, irs, timestamps.map(|it| Timestamps { echo: 0, ..it }));
        self.slots[id as usize].connection.assume_syn_answered(now, &syn);
        self.statistics.cookies_accepted += 1;
        Some(id)
    }

    /// The settings of a listener's connections.
    fn template(&mut self, tuple: FourTuple) -> Option<Config> {
        let listener = self.listeners.get_mut(&tuple)?;
        Some(
            listener
                .template
                .get_or_insert_with(|| Box::new((listener.accept)(tuple).0))
                .as_ref()
                .clone(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_never_later_than_the_clock() {
        for value in [0, 5, 63, 64, 1000, u32::MAX] {
            for options in 0..64 {
                let stamp = with_low_bits(value, options);
                assert_eq!(stamp & 63, u32::from(options));
                assert!(value.wrapping_sub(stamp) < 64);
            }
        }
    }

    #[test]
    fn a_segment_size_is_rounded_down() {
        for (mss, size) in [(None, 536), (Some(1), 48), (Some(1459), 1440), (Some(1460), 1460)] {
            let mut syn = Segment::default();
            syn.options.mss = mss;
            assert_eq!(SIZES[usize::from(SynOptions::of(&syn, true, false).size)], size);
        }
    }
}
