//! The fast path of connections with accurate ECN (RFC 9768), for segments that neither are marked nor
//! report marks.

use super::{FastPath, FastPathOutcome, Prediction, Reader};
use crate::connection::Connection;
use crate::connection::accurate_ecn::ACE;
use base::Time;
use wire::{Body, Ecn, Flags, Packet, Segment};

impl Connection {
    /// Whether accurate ECN, if it is negotiated, has nothing to say or to hear but counters.
    #[inline]
    pub(super) fn has_plain_ecn(&self) -> bool {
        self.accurate_ecn.as_ref().is_none_or(|accurate| accurate.is_on_fast_path())
    }

    /// Notes that a full-sized segment of new data is sent, which has no room for the option, and
    /// returns its ACE field.
    #[inline(never)]
    pub(super) fn ace_of_full_segment(&mut self) -> Flags {
        let accurate = self.accurate_ecn.as_mut();
        accurate.map_or(Flags::empty(), |accurate| accurate.write_full_segment())
    }
}

impl FastPath<'_> {
    /// [`FastPath::exchange`] with accurate ECN.
    #[inline(never)]
    pub(super) fn exchange_accurate(
        &mut self,
        now: Time,
        packet: &mut Packet,
        reader: &mut impl Reader,
    ) -> FastPathOutcome {
        let (codepoint, counters) = (packet.ip.ecn, packet.unparsed.only_ecn_counters());
        let known = packet.unparsed.is_empty() || counters.is_some();
        let Body::Tcp(segment) = &mut packet.body else { return FastPathOutcome::Refused };
        let flags = segment.flags;
        if codepoint == Ecn::Congested || !known || flags - ACE - Flags::PSH != Flags::ACK {
            return FastPathOutcome::Refused;
        }
        let now = self.connection.clock.local(now);
        let connection = &*self.connection;
        if !self.passes_paws(now, segment.options.timestamps)
            || !connection.is_next_expected(segment)
            || !segment.options.has_only_timestamps()
        {
            return FastPathOutcome::Refused;
        }
        let len = packet.payload.len;
        let (una, nxt) = (connection.sender.una(), connection.sender.nxt());
        let ack = una + u64::from(segment.ack - (connection.iss + una as u32));
        let expected = if len > 0 { Prediction::RECEIVES_IN_ORDER } else { Prediction::SENDS };
        if !self.is(expected) || ack > nxt {
            return FastPathOutcome::Refused;
        }
        let delivered = connection.sender.newly_delivered(ack, &[]);
        let (mss, start) = (connection.sender.mss(), connection.receiver.nxt());
        let Some(accurate) = &connection.accurate_ecn else { return FastPathOutcome::Refused };
        let feedback = accurate.feedback(segment, (start, ack), (counters, len), delivered, mss);
        if !accurate.is_plain(&feedback, len) {
            return FastPathOutcome::Refused;
        }
        let outcome = if len > 0 {
            self.receive_in_order(now, segment, &mut packet.payload, reader)
        } else {
            let acknowledged = self.acknowledge_whole(now, segment, &mut packet.payload);
            acknowledged.unwrap_or(FastPathOutcome::Refused)
        };
        if outcome == FastPathOutcome::Refused {
            return outcome;
        }
        let Connection { accurate_ecn: Some(accurate), receiver, .. } = &mut *self.connection
        else {
            return outcome;
        };
        accurate.on_plain_segment(&feedback, nxt, codepoint, len, receiver.mss());
        let FastPathOutcome::Answered { ecn, .. } = outcome else { return outcome };
        packet.unparsed.clear();
        if packet.payload.len == 0 {
            accurate.write_acknowledgment(packet);
        }
        let headers = (packet.ip.len() + Segment::HEADER) as u32;
        FastPathOutcome::Answered { len: packet.len() - headers, ecn }
    }
}
