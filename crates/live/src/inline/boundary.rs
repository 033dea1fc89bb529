//! What protects packets on the network behind the WAN.

use base::Time;
use core::ops::Range;
use host::Context;
#[cfg(doc)]
use host::Middlebox;
use wire::Packet;

/// What a [`Boundary`] has made of a packet from the WAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// It needs no protection, and is as it was.
    AsItIs,
    /// It was protected, and is no longer; this range of its bytes is the payload now.
    Opened(Range<usize>),
    /// It is not accepted.
    Dropped,
}

/// The boundary of IPsec (RFC 4301 §3.1) between a middlebox and the WAN: a bump in the wire, which protects what leaves
/// for the WAN, and opens what comes from there. What it indicates reaches the middlebox before the packet does
/// ([`Middlebox::indicate`]). Units of several segments it cannot protect: there are none where there is a boundary.
pub trait Boundary: Send {
    /// Processes a packet from the WAN, whose payload has these bytes. It opens the packet and them in place.
    fn open(
        &mut self,
        now: Time,
        packet: &mut Packet,
        payload: &mut [u8],
        cx: &mut Context<'_>,
    ) -> Opened;

    /// Whether a packet may leave for the WAN only by [`Boundary::protect`].
    fn protects(&self, packet: &Packet) -> bool;

    /// Appends the bytes of a packet with this payload, protected, to `out`. Returns false if the packet must not leave.
    fn protect(&mut self, now: Time, packet: &Packet, payload: &[u8], out: &mut Vec<u8>) -> bool;

    /// Whether a packet that cannot be read passes, in either direction.
    fn passes_unread(&mut self, now: Time, bytes: &[u8]) -> bool;
}
