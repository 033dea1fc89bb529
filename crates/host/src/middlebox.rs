//! Boxes on the path.

use crate::Ordered;
use base::Time;
use core::net::IpAddr;
use tcp::{Connectivity, PeerLosses};
use wire::{CorruptionNotice, Packet, Payload};

/// The number of one direction of a link that begins or ends at a node; the simulator or emulator
/// assigns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u32);

impl Port {
    /// The other direction of the same link: the two have adjacent numbers, the lower one even.
    #[must_use]
    pub const fn opposite(self) -> Port {
        Port(self.0 ^ 1)
    }
}

/// The decision of a box about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet goes on, as the box left it.
    Forward,
    /// The box has consumed the packet: it stores it, has sent it itself, or was its destination.
    Consume,
    /// The box drops the packet.
    Drop(DropReason),
}

/// Why a box dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// Its hop limit is used up (RFC 4301 §5.1.2.1).
    HopLimit,
    /// The security association has no sequence number left (RFC 4303 §3.3.3).
    SequenceExhausted,
    /// It is a duplicate, or too late for the anti-replay window (RFC 4303 §3.4.3).
    Replay,
    /// It experienced congestion inside a tunnel and cannot carry the mark (RFC 6040 §4.2).
    Congestion,
    /// The box models a device that loses packets.
    Loss,
    /// It is larger than the MTU of the link that it is to take.
    TooBig,
    /// It is to be protected by ESP, and cannot be, or is not (RFC 4301 §5).
    Unprotected,
    /// It has a security association, and its integrity check value is wrong, or what it hides cannot be
    /// read (RFC 4303 §3.4.4.1).
    Unauthentic,
}

impl DropReason {
    /// Every reason.
    pub const ALL: [DropReason; 8] = [
        DropReason::HopLimit,
        DropReason::SequenceExhausted,
        DropReason::Replay,
        DropReason::Congestion,
        DropReason::Loss,
        DropReason::TooBig,
        DropReason::Unprotected,
        DropReason::Unauthentic,
    ];

    /// The reason's name, as in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DropReason::HopLimit => "hop-limit",
            DropReason::SequenceExhausted => "sequence-exhausted",
            DropReason::Replay => "replay",
            DropReason::Congestion => "congestion",
            DropReason::Loss => "loss",
            DropReason::TooBig => "too-big",
            DropReason::Unprotected => "unprotected",
            DropReason::Unauthentic => "unauthentic",
        }
    }
}

/// An event of a link that begins or ends at a box's node.
#[derive(Clone, Copy, Debug)]
pub enum LinkEvent<'a> {
    /// A packet arrived damaged at the link's end. It was transmitted, and is dropped.
    Corrupted(&'a Packet),
    /// A packet arrived with wrong bytes, and its own code has corrected them. It is passed to
    /// [`Middlebox::packet`] next, as any other.
    Corrected(&'a Packet),
    /// The link's queue dropped an outgoing packet: it was full, or dropped the packet at the head.
    /// Indicated to boxes that inspect packets.
    Dropped(&'a Packet),
    /// The link to this node is up again.
    Up {
        /// The address of the node at its other end.
        peer: IpAddr,
    },
    /// The link to this node is down.
    Down {
        /// The address of the node at its other end.
        peer: IpAddr,
    },
    /// The longest packets that reach this node have another length than before.
    Mtu {
        /// The address of the node at its other end.
        peer: IpAddr,
        /// Their length, bytes of IP packets.
        bytes: u32,
    },
}

/// An indication of a box to the host of its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostIndication {
    /// A packet of one of the host's connections was corrupted.
    Corruption(CorruptionNotice),
    /// Packets are missing before one that is for the host and arrives next.
    PeerLosses {
        /// The packet that arrives next.
        before: Ordered,
        /// The causes of the packets.
        losses: PeerLosses,
    },
    /// The connectivity of the host changes.
    Connectivity {
        /// How.
        change: Connectivity,
        /// Only connections with these addresses are concerned; all if there is none.
        peers: Vec<IpAddr>,
    },
}

/// The actions of a box besides its decision about a packet.
pub struct Context<'a> {
    outbox: &'a mut Outbox,
}

impl Context<'_> {
    /// Sends a packet from the node, as routed; to the node's own host, if that is its destination.
    /// It is sent before the packet that the box is processing.
    pub fn send(&mut self, packet: Packet) {
        self.outbox.packets.push(Outgoing { packet, segment_size: packet.payload.len });
    }

    /// Sends a packet like [`Context::send`] whose payload is at most [`Context::segments`] segments of
    /// `segment_size` bytes, of which only the last may be shorter.
    pub fn send_unit(&mut self, packet: Packet, segment_size: u32) {
        self.outbox.packets.push(Outgoing { packet, segment_size });
    }

    /// The packets that boxes have sent since the last ones left.
    pub fn sent(&self) -> impl Iterator<Item = Packet> {
        self.outbox.packets.iter().map(|sent| sent.packet)
    }

    /// The most segments in a packet.
    #[must_use]
    pub fn segments(&self) -> u16 {
        self.outbox.segments
    }

    /// The payload that consists of these, where payload has the identity of bytes in memory. It is to be sent
    /// at once.
    pub fn gather(&mut self, payloads: &mut dyn Iterator<Item = Payload>) -> Payload {
        let offset = self.outbox.gathered.len() as u64;
        self.outbox.gathered.extend(payloads);
        let len = self.outbox.gathered[offset as usize..].iter().map(|payload| payload.len).sum();
        Payload { stream: Payload::GATHERED, offset, len }
    }

    /// Passes on a packet that the box has kept, or a copy of one, to the boxes behind it in the node;
    /// if they forward it, it is sent as by [`Context::send`]. `from` is the link by which it arrived.
    pub fn pass_on(&mut self, from: Option<Port>, packet: Packet) {
        self.outbox.passed.push((from, packet));
    }

    /// Passes an indication to the node's host, before the box's packets are sent.
    pub fn indicate(&mut self, indication: HostIndication) {
        self.outbox.indications.push(indication);
    }
}

/// A packet that a box sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The packet.
    pub packet: Packet,
    /// The bytes of payload in each of its segments but the last, which may have fewer.
    pub segment_size: u32,
}

/// The actions that boxes have requested, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outbox {
    /// Packets that leave the node, as routed.
    pub packets: Vec<Outgoing>,
    /// The payloads of packets whose payload is gathered ([`Payload::GATHERED`]), from the number on that is its
    /// offset.
    pub gathered: Vec<Payload>,
    /// The most segments in a packet: 1, unless packets are real, and their segments are cut by a device.
    pub segments: u16,
    /// Packets for the boxes behind the one that passes them on, each with the link by which it arrived.
    pub passed: Vec<(Option<Port>, Packet)>,
    /// Indications to the node's host.
    pub indications: Vec<HostIndication>,
}

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox {
            packets: Vec::new(),
            gathered: Vec::new(),
            segments: 1,
            passed: Vec::new(),
            indications: Vec::new(),
        }
    }
}

impl Outbox {
    /// The payloads that a payload of these packets consists of: itself, unless it is gathered.
    pub fn payloads(&self, payload: Payload) -> impl Iterator<Item = Payload> {
        let is_gathered = payload.stream == Payload::GATHERED;
        let first = (!is_gathered).then_some(payload);
        let several = match is_gathered {
            true => self.gathered.get(payload.offset as usize..).unwrap_or_default(),
            false => &[],
        };
        let mut left = payload.len;
        let several = several.iter().map_while(move |&part| {
            left = left.checked_sub(part.len).filter(|_| left > 0)?;
            Some(part)
        });
        first.into_iter().chain(several)
    }

    /// The packets, in order; each is one segment.
    #[must_use]
    pub fn into_packets(self) -> Vec<Packet> {
        self.packets.into_iter().map(|sent| sent.packet).collect()
    }

    /// The interface by which a box adds actions.
    pub fn context(&mut self) -> Context<'_> {
        Context { outbox: self }
    }

    /// Whether there are no actions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.indications.is_empty()
    }
}

/// A box in a node: a router's feature, or a bump in a host's own stack.
pub trait Middlebox {
    /// Whether [`Middlebox::packet`] and [`Middlebox::queued`] are to be called. A box that only
    /// observes link events need not slow down packets.
    fn inspects_packets(&self) -> bool {
        true
    }

    /// Whether the box shares state with boxes of other nodes. A simulator processes such nodes in
    /// the order of time; it may process other nodes for a span of time at once.
    fn shares_state(&self) -> bool {
        true
    }

    /// Processes a packet that passes the node, or starts or ends there. The box may edit it in
    /// place. `from` is the link by which it arrived; `None` for a packet from the node itself.
    fn packet(
        &mut self,
        now: Time,
        from: Option<Port>,
        packet: &mut Packet,
        cx: &mut Context<'_>,
    ) -> Verdict {
        let _ = (now, from, packet, cx);
        Verdict::Forward
    }

    /// Decides about a packet that has passed all boxes and is to take this link. The box may not
    /// consume it.
    fn leaving(
        &mut self,
        now: Time,
        to: Port,
        packet: &Packet,
        cx: &mut Context<'_>,
    ) -> Result<(), DropReason> {
        let _ = (now, to, packet, cx);
        Ok(())
    }

    /// Processes a packet that the queue of a link from the node has accepted. The box may edit it
    /// in place, but must keep its length.
    fn queued(&mut self, now: Time, to: Port, packet: &mut Packet, cx: &mut Context<'_>) {
        let _ = (now, to, packet, cx);
    }

    /// When the box is to be woken; [`Time::NEVER`] for no wake. Called after every packet or event
    /// passed to the box, if it inspects packets.
    fn next_wake(&self) -> Time {
        Time::NEVER
    }

    /// Handles the wake at [`Middlebox::next_wake`], which must be later afterwards.
    fn wake(&mut self, now: Time, cx: &mut Context<'_>) {
        let _ = (now, cx);
    }

    /// Calls `held` with the payload of every packet that the box keeps, or may still send after the
    /// original has gone. Where packets are real, the bytes of other payload are freed; a packet
    /// without bytes is not sent, and the run is void.
    fn held_payloads(&self, held: &mut dyn FnMut(Payload)) {
        let _ = held;
    }

    /// Calls `count` with the name and value of each count that the box keeps of what it did, for
    /// results; counts of 0 may be left out.
    fn counts(&self, count: &mut dyn FnMut(&'static str, u64)) {
        let _ = count;
    }

    /// Calls `gauge` with the name and present value of each quantity that the box holds, such as
    /// `held_bytes`, for time series. The names are the same at every call, values of 0 included.
    fn gauges(&self, gauge: &mut dyn FnMut(&'static str, u64)) {
        let _ = gauge;
    }

    /// Handles an indication of another box of the node, for a box in which connections end.
    fn indicate(&mut self, now: Time, indication: &HostIndication) {
        let _ = (now, indication);
    }

    /// Handles an event of a link that begins or ends at the node.
    fn link(&mut self, now: Time, port: Port, event: LinkEvent<'_>, cx: &mut Context<'_>) {
        let _ = (now, port, event, cx);
    }
}
