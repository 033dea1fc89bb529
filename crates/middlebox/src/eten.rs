//! Backward ETEN: the node at the end of a link notifies the sources of corrupted packets
//! (`bbn8333` §2.1.2).

use crate::detection::{Detector, Found, Headers, Reading};
use crate::table::{Settings, Site};
use crate::tunnel::{Association, Ends};
use base::settings::Kind;
use base::{Duration, Time};
use core::net::IpAddr;
use host::{Context, LinkEvent, Middlebox, Port};
use serde::{Deserialize, Serialize};
use wire::{Body, EspNotice, Icmp, Ip, Packet};

/// Sends the source of every corrupted segment a notice.
///
/// The notice is a packet like any other: it queues, and congestion and corruption can lose it. Only
/// registered flows are notified.
#[derive(Clone, Debug)]
pub struct Reporter {
    addresses: Vec<IpAddr>,
    size: u16,
    detector: Detector,
    /// Associations whose ingress resolves notices about ESP packets.
    resolved: Vec<Ends>,
    /// Associations without encryption.
    readable: Vec<Association>,
    limit: Option<Limit>,
    sent: u64,
    withheld: u64,
}

/// The most notices in a second.
#[derive(Clone, Copy, Debug)]
struct Limit {
    most: u32,
    /// The end of the present second.
    until: Time,
    /// The notices in it.
    sent: u32,
}

impl Limit {
    /// Whether one more notice may be sent, which it is then.
    fn admits(&mut self, now: Time) -> bool {
        if self.until <= now {
            (self.until, self.sent) = (now + Duration::from_secs(1), 0);
        }
        let admits = self.sent < self.most;
        self.sent += u32::from(admits);
        admits
    }
}

impl Reporter {
    /// ns-2's message agent sent packets of this size, bytes.
    pub const SIZE_NS2: u16 = 180;
    /// A real ICMP message: two IPv4 headers, 8 bytes of ICMP and 8 of the segment.
    pub const SIZE_ICMP: u16 = 56;
    /// The same in IPv6.
    pub const SIZE_ICMPV6: u16 = 96;

    /// A reporter at `address` whose notices have `size` bytes.
    #[must_use]
    pub fn new(address: IpAddr, size: u16, reading: Reading) -> Reporter {
        Reporter {
            addresses: vec![address],
            size,
            detector: Detector::new(reading),
            resolved: Vec::new(),
            readable: Vec::new(),
            limit: None,
            sent: 0,
            withheld: 0,
        }
    }

    /// Sends notices from these addresses alone.
    pub fn set_addresses(&mut self, addresses: Vec<IpAddr>) {
        self.addresses = addresses;
    }

    /// Sends at most so many notices in a second.
    pub fn set_limit(&mut self, most: u32) {
        self.limit = Some(Limit { most, until: Time::ZERO, sent: 0 });
    }

    /// Registers all flows: whatever carries data is reported.
    pub fn register_all(&mut self) {
        self.detector.register_all();
    }

    /// Adds an address for notices of the other IP version.
    pub fn add_address(&mut self, address: IpAddr) {
        self.addresses.push(address);
    }

    /// Registers the flow from `source` to `destination` and its port.
    pub fn register(&mut self, source: IpAddr, destination: IpAddr, destination_port: u16) {
        self.detector.register(source, destination, destination_port);
    }

    /// Notifies the ingress of a tunnel of corrupted packets of the tunnel (`bbn8333` §7.2).
    pub fn register_tunnel(&mut self, ends: Ends) {
        self.resolved.push(ends);
    }

    /// Reads the inner packets of an association that is authenticated but not encrypted (RFC 4543).
    pub fn read(&mut self, association: Association) {
        self.readable.push(association);
    }

    /// The notice about a corrupted packet, and its receiver.
    fn notice(&mut self, packet: &Packet) -> Option<(IpAddr, Icmp)> {
        let size = self.size;
        if let Body::Esp(esp) = packet.body {
            if let Some(ends) = self.resolved.iter().find(|ends| ends.header(packet).is_some()) {
                let Ends { source, destination, .. } = *ends;
                let notice = EspNotice { source, destination, esp };
                return Some((source, Icmp::EspCorruption { notice, size }));
            }
            let inside = self.readable.iter().find_map(|tunnel| tunnel.inside(packet))?;
            let Found { notice, .. } = self.detector.examine(&inside)?;
            return Some((notice.source, Icmp::Corruption { notice, size }));
        }
        let Found { notice, .. } = self.detector.examine(packet)?;
        Some((notice.source, Icmp::Corruption { notice, size }))
    }
}

impl Middlebox for Reporter {
    fn inspects_packets(&self) -> bool {
        false
    }

    fn shares_state(&self) -> bool {
        // The gateways of a tunnel use its association, too.
        !self.readable.is_empty()
    }

    fn counts(&self, count: &mut dyn FnMut(&'static str, u64)) {
        count("notices sent", self.sent);
        count("notices withheld by their limit", self.withheld);
    }

    fn link(&mut self, now: Time, _: Port, event: LinkEvent<'_>, cx: &mut Context<'_>) {
        let LinkEvent::Corrupted(packet) = event else {
            return;
        };
        if let Some((target, message)) = self.notice(packet) {
            let own = self.addresses.iter().find(|own| own.is_ipv6() == target.is_ipv6());
            let Some(&own) = own else { return };
            if self.limit.as_mut().is_some_and(|limit| !limit.admits(now)) {
                self.withheld += 1;
                return;
            }
            self.sent += 1;
            let (ip, body) = (Ip::new(own, target), Body::Icmp(message));
            cx.send(Packet { ip, body, ..Packet::BLANK });
        }
    }
}

base::settings! {
    /// The settings of a [`Reporter`] that stands in a node.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct CorruptionReporter {
        /// The names of the flows that it is for; all if the list is empty.
        pub flows: Vec<String>,
        /// The size of a notice, bytes of the whole packet.
        pub notice_size: u16 as Kind::at_least(Reporter::SIZE_ICMP),
        /// What it can read of a corrupted packet.
        pub headers: Headers,
    }
}

impl Default for CorruptionReporter {
    /// Real ICMP messages to the senders of all flows.
    fn default() -> CorruptionReporter {
        let headers = Headers::default();
        CorruptionReporter { flows: Vec::new(), notice_size: Reporter::SIZE_ICMP, headers }
    }
}

impl Settings for CorruptionReporter {
    fn flows(&self) -> &[String] {
        &self.flows
    }

    fn needs_damage_reports(&self) -> bool {
        true
    }

    fn build(&self, site: &Site<'_>) -> Box<dyn Middlebox + Send> {
        let [v4, v6] = site.own;
        let mut reporter = Reporter::new(v4, self.notice_size, self.headers.reading(site.random));
        reporter.add_address(v6);
        site.readable.iter().for_each(|tunnel| reporter.read(tunnel.clone()));
        for flow in site.flows(&self.flows) {
            reporter.register(flow.source, flow.destination, flow.port);
        }
        Box::new(reporter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::Outbox;
    use wire::{CopyId, Segment, SeqNumber};

    /// The notices of a reporter about so many damaged segments with `len` bytes at a time, milliseconds.
    fn notices(reporter: &mut Reporter, at: u64, count: usize, len: u32) -> usize {
        let ip = Ip::new(IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let mut packet = Packet { ip, body: Body::Tcp(Segment::default()), ..Packet::BLANK };
        packet.payload.len = len;
        let mut outbox = Outbox::default();
        let now = Time::ZERO + Duration::from_millis(at);
        for _ in 0..count {
            let mut cx = outbox.context();
            reporter.link(now, Port(0), LinkEvent::Corrupted(&packet), &mut cx);
        }
        outbox.into_packets().len()
    }

    #[test]
    fn no_more_notices_are_sent_in_a_second_than_there_may_be() {
        let mut reporter =
            Reporter::new(IpAddr::from([10, 0, 0, 3]), Reporter::SIZE_ICMP, Reading::Whole);
        assert_eq!(notices(&mut reporter, 0, 10, 100), 0, "no flow is registered");
        reporter.register_all();
        reporter.set_limit(5);
        assert_eq!(notices(&mut reporter, 0, 3, 100), 3);
        assert_eq!(notices(&mut reporter, 999, 3, 100), 2);
        assert_eq!(notices(&mut reporter, 1000, 7, 100), 5);
        let mut counts = Vec::new();
        reporter.counts(&mut |name, count| counts.push((name, count)));
        assert_eq!(counts, [("notices sent", 10), ("notices withheld by their limit", 3)]);
    }

    #[test]
    fn a_segment_without_data_is_not_worth_a_notice_where_all_flows_are_registered() {
        let mut reporter =
            Reporter::new(IpAddr::from([10, 0, 0, 3]), Reporter::SIZE_ICMP, Reading::Whole);
        reporter.register_all();
        assert_eq!(notices(&mut reporter, 0, 3, 0), 0);
    }

    #[test]
    fn only_registered_flows_are_notified_and_of_which_copy() {
        let [sender, receiver, router] = [1, 2, 3].map(|n| IpAddr::from([10, 0, 0, n]));
        let mut reporter = Reporter::new(router, Reporter::SIZE_NS2, Reading::Whole);
        reporter.register(sender, receiver, 5001);
        let mut packet = Packet::BLANK;
        packet.ip = Ip { source: sender, destination: receiver, ..packet.ip };
        let mut segment = Segment { seq: SeqNumber(77), copy: CopyId(9), ..Segment::default() };
        packet.payload.len = 536;

        let mut outbox = Outbox::default();
        for port in [5000, 5001] {
            segment.destination_port = port;
            packet.body = Body::Tcp(segment);
            let mut cx = outbox.context();
            reporter.link(Time::ZERO, Port(0), LinkEvent::Corrupted(&packet), &mut cx);
        }

        let [notified] = outbox.clone().into_packets()[..] else {
            panic!("not one notice: {outbox:?}")
        };
        assert_eq!(
            (notified.ip.source, notified.ip.destination, notified.len()),
            (router, sender, 180)
        );
        let Body::Icmp(Icmp::Corruption { notice, .. }) = notified.body else {
            panic!("not a notice")
        };
        assert_eq!((notice.seq, notice.len, notice.copy), (SeqNumber(77), 536, CopyId(9)));
    }
}
