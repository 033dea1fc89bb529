//! Forward ETEN: the node at the end of a link notifies the destinations of corrupted packets
//! (`bbn8333` §2.1.3).

use crate::detection::{Detector, Found, Headers, Reading};
use crate::eten::Reporter;
use crate::table::{Settings, Site};
use base::Time;
use base::settings::Kind;
use core::net::IpAddr;
use host::{Context, LinkEvent, Middlebox, Port, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use wire::{Body, CorruptedCopy, Icmp, Ip, Packet};

/// Notifies the destination of every corrupted segment with data. Only registered flows are notified.
#[derive(Clone, Debug)]
pub struct Forwarder {
    detector: Detector,
    state: State,
}

/// How a node that detects a corruption notifies the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// By a packet of its own.
    #[default]
    Message,
    /// With the flow's next intact packet.
    Piggyback,
    /// By a mark on the corrupted packet, which it forwards.
    Marked,
}

base::words!(Transport);

/// The state of each transport.
#[derive(Clone, Debug)]
enum State {
    /// By a packet of `size` bytes from `address`.
    Message { addresses: Vec<IpAddr>, size: u16 },
    /// With the flow's next packet through this node.
    Piggyback(VecDeque<Waiting>),
    /// By the corrupted packet.
    Marked,
}

/// A report that waits for a packet of its flow.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    flow: Flow,
    copy: CorruptedCopy,
}

/// Source and destination, addresses and ports.
type Flow = (IpAddr, IpAddr, u16, u16);

fn flow(packet: &Packet) -> Option<Flow> {
    let Body::Tcp(segment) = &packet.body else { return None };
    let ports = (segment.source_port, segment.destination_port);
    Some((packet.ip.source, packet.ip.destination, ports.0, ports.1))
}

impl Forwarder {
    /// The most reports that wait at a node; beyond, the oldest is dropped.
    const MOST: usize = 256;

    /// A forwarder at `address` that sends notices of `size` bytes.
    #[must_use]
    pub fn by_message(address: IpAddr, size: u16, reading: Reading) -> Forwarder {
        Forwarder::new(State::Message { addresses: vec![address], size }, reading)
    }

    /// A forwarder that writes its reports into the flow's next packets, up to three in each. A report
    /// that no packet follows is never delivered.
    #[must_use]
    pub fn by_next_packet(reading: Reading) -> Forwarder {
        Forwarder::new(State::Piggyback(VecDeque::new()), reading)
    }

    /// A forwarder that marks corrupted packets and forwards them.
    #[must_use]
    pub fn by_mark(reading: Reading) -> Forwarder {
        Forwarder::new(State::Marked, reading)
    }

    fn new(state: State, reading: Reading) -> Forwarder {
        Forwarder { detector: Detector::new(reading), state }
    }

    /// Adds an address for messages of the other IP version.
    pub fn add_address(&mut self, address: IpAddr) {
        if let State::Message { addresses, .. } = &mut self.state {
            addresses.push(address);
        }
    }

    /// Registers the flow from `source` to `destination` and its port.
    pub fn register(&mut self, source: IpAddr, destination: IpAddr, destination_port: u16) {
        self.detector.register(source, destination, destination_port);
    }
}

impl Middlebox for Forwarder {
    fn inspects_packets(&self) -> bool {
        matches!(self.state, State::Piggyback(_))
    }

    fn shares_state(&self) -> bool {
        false
    }

    fn packet(
        &mut self,
        _: Time,
        _: Option<Port>,
        packet: &mut Packet,
        _: &mut Context<'_>,
    ) -> Verdict {
        if let State::Piggyback(waiting) = &mut self.state
            && !waiting.is_empty()
            && let Some(flow) = flow(packet)
        {
            let v6 = packet.ip.source.is_ipv6();
            waiting.retain(|report| {
                report.flow != flow || !packet.unparsed.add_corrupted_copy(v6, report.copy)
            });
        }
        Verdict::Forward
    }

    fn link(&mut self, _: Time, _: Port, event: LinkEvent<'_>, cx: &mut Context<'_>) {
        let LinkEvent::Corrupted(packet) = event else {
            return;
        };
        let Some(Found { mut packet, notice }) = self.detector.examine(packet) else {
            return;
        };
        // A segment without data is not retransmitted.
        let Ok(len @ 1..) = u16::try_from(notice.len) else {
            return;
        };
        match &mut self.state {
            State::Message { addresses, size } => {
                let target = notice.destination;
                let own = addresses.iter().find(|own| own.is_ipv6() == target.is_ipv6());
                let Some(&own) = own else { return };
                let body = Body::Icmp(Icmp::Corruption { notice, size: *size });
                cx.send(Packet { ip: Ip::new(own, target), body, ..Packet::BLANK });
            }
            State::Piggyback(waiting) => {
                let Some(flow) = flow(&packet) else { return };
                let copy = CorruptedCopy { seq: notice.seq, copy: notice.copy, len };
                // Reports of earlier nodes in it are kept, too.
                for copy in packet.unparsed.corrupted_copies().chain([copy]) {
                    if waiting.len() == Forwarder::MOST {
                        waiting.pop_front();
                    }
                    waiting.push_back(Waiting { flow, copy });
                }
            }
            State::Marked => {
                packet.ip.hop_limit = packet.ip.hop_limit.saturating_sub(1);
                if packet.ip.hop_limit > 0
                    && packet.unparsed.mark_corrupted(packet.ip.source.is_ipv6())
                {
                    cx.send(packet);
                }
            }
        }
    }
}

base::settings! {
    /// The settings of a [`Forwarder`] that stands in a node.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct CorruptionForwarder {
        /// The names of the flows that it is for; all if the list is empty.
        pub flows: Vec<String>,
        /// How receivers are notified.
        pub transport: Transport,
        /// The size of a notice, bytes of the whole packet.
        pub notice_size: u16 as Kind::at_least(Reporter::SIZE_ICMP),
        /// What it can read of a corrupted packet.
        pub headers: Headers,
    }
}

impl Default for CorruptionForwarder {
    /// Real ICMP messages to the receivers of all flows.
    fn default() -> CorruptionForwarder {
        CorruptionForwarder {
            flows: Vec::new(),
            transport: Transport::default(),
            notice_size: Reporter::SIZE_ICMP,
            headers: Headers::default(),
        }
    }
}

impl Settings for CorruptionForwarder {
    fn flows(&self) -> &[String] {
        &self.flows
    }

    fn needs_damage_reports(&self) -> bool {
        true
    }

    fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send> {
        let [v4, v6] = site.own;
        let reading = self.headers.reading(site.random);
        let mut forwarder = match self.transport {
            Transport::Message => Forwarder::by_message(v4, self.notice_size, reading),
            Transport::Piggyback => Forwarder::by_next_packet(reading),
            Transport::Marked => Forwarder::by_mark(reading),
        };
        forwarder.add_address(v6);
        for flow in site.flows(&self.flows) {
            forwarder.register(flow.source, flow.destination, flow.port);
        }
        Box::new(forwarder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::Outbox;
    use wire::{CopyId, Segment, SeqNumber};

    const SENDER: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 1));
    const RECEIVER: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 2));
    const ROUTER: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 3));

    /// Segment `n` of a connection, by its port.
    fn segment(n: u32, source_port: u16) -> Packet {
        let segment = Segment {
            source_port,
            destination_port: 5001,
            seq: SeqNumber(1000 * n),
            copy: CopyId(n),
            ..Segment::default()
        };
        let mut packet =
            Packet { ip: Ip::new(SENDER, RECEIVER), body: Body::Tcp(segment), ..Packet::BLANK };
        packet.payload.len = 1000;
        packet
    }

    fn corrupt(forwarder: &mut Forwarder, packet: &Packet) -> Vec<Packet> {
        let mut outbox = Outbox::default();
        let mut cx = outbox.context();
        forwarder.link(Time::ZERO, Port(0), LinkEvent::Corrupted(packet), &mut cx);
        outbox.into_packets()
    }

    /// The copies that a packet reports after it has passed.
    fn pass(forwarder: &mut Forwarder, mut packet: Packet) -> Vec<u32> {
        let mut outbox = Outbox::default();
        let mut cx = outbox.context();
        let passage = forwarder.packet(Time::ZERO, None, &mut packet, &mut cx);
        assert!(passage == Verdict::Forward && outbox.is_empty());
        packet.unparsed.corrupted_copies().map(|copy| copy.copy.0).collect()
    }

    #[test]
    fn a_message_goes_to_the_destination_of_registered_flows() {
        let mut forwarder = Forwarder::by_message(ROUTER, 180, Reading::Whole);
        assert_eq!(corrupt(&mut forwarder, &segment(1, 9)), []);
        forwarder.register(SENDER, RECEIVER, 5001);
        let [sent] = corrupt(&mut forwarder, &segment(1, 9))[..] else { panic!("not one") };
        assert_eq!((sent.ip.source, sent.ip.destination, sent.len()), (ROUTER, RECEIVER, 180));
        let Body::Icmp(Icmp::Corruption { notice, .. }) = sent.body else { panic!("not a notice") };
        assert_eq!((notice.seq, notice.len, notice.copy), (SeqNumber(1000), 1000, CopyId(1)));
        let mut empty = segment(1, 9);
        empty.payload.len = 0;
        assert_eq!(corrupt(&mut forwarder, &empty), []);
    }

    #[test]
    fn reports_wait_for_packets_of_their_own_connection_three_in_each() {
        let mut forwarder = Forwarder::by_next_packet(Reading::Whole);
        forwarder.register(SENDER, RECEIVER, 5001);
        for n in 1..=4 {
            assert_eq!(corrupt(&mut forwarder, &segment(n, 9)), []);
        }
        assert_eq!(pass(&mut forwarder, segment(5, 8)), []);
        assert_eq!(pass(&mut forwarder, segment(5, 9)), [1, 2, 3]);
        assert_eq!(pass(&mut forwarder, segment(6, 9)), [4]);
        assert_eq!(pass(&mut forwarder, segment(7, 9)), []);
    }

    #[test]
    fn reports_outlive_the_packet_that_carried_them() {
        let [mut first, mut second] = [0, 0].map(|_| Forwarder::by_next_packet(Reading::Whole));
        for forwarder in [&mut first, &mut second] {
            forwarder.register(SENDER, RECEIVER, 5001);
        }
        corrupt(&mut first, &segment(1, 9));
        let mut carrier = segment(2, 9);
        first.packet(Time::ZERO, None, &mut carrier, &mut Outbox::default().context());
        corrupt(&mut second, &carrier);
        assert_eq!(pass(&mut second, segment(3, 9)), [1, 2]);
    }

    #[test]
    fn of_too_many_reports_the_oldest_is_forgotten() {
        let mut forwarder = Forwarder::by_next_packet(Reading::Whole);
        forwarder.register(SENDER, RECEIVER, 5001);
        for n in 1..=258 {
            corrupt(&mut forwarder, &segment(n, 9));
        }
        assert_eq!(pass(&mut forwarder, segment(999, 9)), [3, 4, 5]);
    }

    #[test]
    fn what_is_marked_goes_on_as_long_as_it_was() {
        let mut forwarder = Forwarder::by_mark(Reading::Whole);
        forwarder.register(SENDER, RECEIVER, 5001);
        let [marked] = corrupt(&mut forwarder, &segment(1, 9))[..] else { panic!("not one") };
        assert!(marked.unparsed.is_marked_corrupted());
        assert_eq!((marked.len(), marked.ip.hop_limit), (1044, 63));
        // Corrupted again, it is no more corrupted than it was.
        let [again] = corrupt(&mut forwarder, &marked)[..] else { panic!("not one") };
        assert_eq!((again.unparsed, again.ip.hop_limit), (marked.unparsed, 62));
    }
}
