//! Detection of corrupted packets at the end of a link: the flow and the segment.

use base::Random;
use core::net::IpAddr;
use wire::{Body, CorruptionNotice, Packet, Payload, Vouched};

/// What a node can read of a corrupted packet's headers (`bbn8333` §6).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Headers {
    /// All of its headers, wherever the bit errors are.
    #[default]
    Readable,
    /// What the checksums confirm after one bit of the packet is flipped.
    Checked,
}

base::words!(Headers);

impl Headers {
    /// How a node reads them; `random` draws the bits that are damaged.
    pub(crate) fn reading(self, random: &dyn Fn() -> Random) -> Reading {
        match self {
            Headers::Readable => Reading::Whole,
            Headers::Checked => Reading::Checked(random()),
        }
    }
}

/// What a node can read of a corrupted packet (`bbn8333` §6).
#[derive(Clone, Debug)]
pub enum Reading {
    /// All of its headers, as if they were undamaged or corrected by a code.
    Whole,
    /// The headers that checksums confirm, with one bit of the packet flipped, each equally likely.
    Checked(Random),
}

/// A corrupted packet of a registered flow.
pub(crate) struct Found {
    /// The packet, as far as it can be read.
    pub(crate) packet: Packet,
    pub(crate) notice: CorruptionNotice,
}

/// Detects corrupted packets of registered flows.
#[derive(Clone, Debug)]
pub(crate) struct Detector {
    reading: Reading,
    /// Source, destination, and port of the data.
    flows: Vec<(IpAddr, IpAddr, u16)>,
    /// Whatever carries data is of a registered flow.
    registers_all: bool,
}

impl Detector {
    pub(crate) fn new(reading: Reading) -> Detector {
        Detector { reading, flows: Vec::new(), registers_all: false }
    }

    pub(crate) fn register(&mut self, source: IpAddr, destination: IpAddr, destination_port: u16) {
        self.flows.push((source, destination, destination_port));
    }

    /// Registers all flows, in the directions in which they carry data.
    pub(crate) fn register_all(&mut self) {
        self.registers_all = true;
    }

    /// Examines a corrupted packet; `None` if it is of no registered flow.
    pub(crate) fn examine(&mut self, packet: &Packet) -> Option<Found> {
        let (packet, vouched) = match &mut self.reading {
            Reading::Whole => (*packet, Vouched::Transport),
            Reading::Checked(random) => read_damaged(packet, random)?,
        };
        let Body::Tcp(segment) = &packet.body else { return None };
        let (source, destination) = (packet.ip.source, packet.ip.destination);
        let port = segment.destination_port;
        // A port that may be wrong may be that of any of their flows.
        let any_port = vouched == Vouched::Addresses;
        let notice = CorruptionNotice::about(source, destination, segment, packet.payload.len);
        if self.registers_all && notice.len > 0 {
            // There is no number of the copy.
            return Some(Found { packet, notice: notice.by_timestamp(segment) });
        }
        let is_registered = self
            .flows
            .iter()
            .any(|flow| (flow.0, flow.1) == (source, destination) && (any_port || flow.2 == port));
        is_registered.then_some(Found { packet, notice })
    }
}

/// Flips a random bit of a packet and parses the rest.
fn read_damaged(packet: &Packet, random: &mut Random) -> Option<(Packet, Vouched)> {
    let mut payload = vec![0; packet.payload.len as usize];
    packet.payload.render(&mut payload);
    let mut bytes = Vec::new();
    packet.emit(&payload, &mut bytes).ok()?;
    // The bias of the remainder is below 2^-44 for the longest packet.
    let bit = (random.bits() % (8 * bytes.len() as u64)) as usize;
    bytes[bit / 8] ^= 0x80 >> (bit % 8);
    let (mut read, vouched) = Packet::parse_damaged(&mut bytes)?;
    // Fields that are not on the wire are kept.
    read.payload = Payload { len: read.payload.len, ..packet.payload };
    if let (Body::Tcp(read), Body::Tcp(sent)) = (&mut read.body, &packet.body) {
        read.copy = sent.copy;
    }
    Some((read, vouched))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;
    use wire::{Ip, Segment};

    /// Of 10,000 corrupted packets of 1040 bytes (1060 over IPv6): the number of those detected,
    /// and of these the number with the right port.
    fn detected(v6: bool) -> (u32, u32) {
        let address = |n: u8| match v6 {
            false => IpAddr::from([10, 0, 0, n]),
            true => IpAddr::from([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n]),
        };
        let mut detector = Detector::new(Reading::Checked(Seed(1).stream("damage")));
        detector.register(address(1), address(2), 5001);
        let segment = Segment { source_port: 9, destination_port: 5001, ..Segment::default() };
        let ip = Ip::new(address(1), address(2));
        let mut packet = Packet { ip, body: Body::Tcp(segment), ..Packet::BLANK };
        packet.payload.len = 1000;
        let (mut all, mut right) = (0, 0);
        for _ in 0..10_000 {
            let Some(found) = detector.examine(&packet) else { continue };
            assert_eq!((found.notice.source, found.notice.destination), (address(1), address(2)));
            all += 1;
            right += u32::from(found.notice.destination_port == 5001);
        }
        (all, right)
    }

    #[test]
    fn of_ipv4_nearly_all_is_left_and_of_ipv6_nearly_nothing() {
        // Of 8320 bits, those of both addresses, of the lengths, the version, the fragment field
        // and the protocol (8 bytes, 2, 2 and 1 and a half) leave nothing, nor does the data offset.
        let (all, right) = detected(false);
        assert!((9820..9900).contains(&all), "{all}");
        // 16 bits are those of the port.
        assert!((5..40).contains(&(all - right)), "{right} of {all}");
        // Traffic class, flow label and hop limit, 36 bits of 8480.
        let (all, right) = detected(true);
        assert!((20..70).contains(&all), "{all}");
        assert_eq!(all, right);
    }
}
