//! The MTU of a link: what a router does with a packet that is larger.

use base::Time;
use core::net::IpAddr;
use host::{Context, DropReason, Middlebox, Port};
use link::Intervals;
use wire::{Body, Icmp, Ip, Packet, Quote};

/// The router where a link begins. All packets here must not be fragmented, so it drops those that are
/// larger than the link's MTU, and tells their senders (RFC 1191 §4, RFC 4443 §3.2).
#[derive(Clone, Debug)]
pub struct LinkMtu {
    /// The link.
    pub link: Port,
    /// Its MTU, bytes.
    pub mtu: u32,
    /// When that is another one.
    pub changes: Intervals<u32>,
    /// The node's addresses in IPv4 and in IPv6, from which it sends ICMP messages; `None` if it
    /// sends none: a black hole.
    pub own: Option<[IpAddr; 2]>,
}

impl Middlebox for LinkMtu {
    fn shares_state(&self) -> bool {
        false
    }

    fn leaving(
        &mut self,
        now: Time,
        to: Port,
        packet: &Packet,
        cx: &mut Context<'_>,
    ) -> Result<(), DropReason> {
        if to != self.link {
            return Ok(());
        }
        let mtu = self.changes.at(now).0.copied().unwrap_or(self.mtu);
        if packet.len() <= mtu {
            return Ok(());
        }
        if let (Some(own), Some(quote)) = (self.own, Quote::of(packet)) {
            let mut error = Packet::BLANK;
            let source = own[usize::from(packet.ip.source.is_ipv6())];
            error.ip = Ip::new(source, packet.ip.source);
            error.body = Body::Icmp(Icmp::TooBig { mtu, quote });
            cx.send(error);
        }
        Err(DropReason::TooBig)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Duration;
    use host::Outbox;
    use link::Interval;

    const OWN: [&str; 2] = ["10.0.0.9", "fd00::9"];

    fn router(icmp: bool) -> LinkMtu {
        let smaller =
            Interval { start: Duration::from_secs(5), end: Duration::from_secs(6), value: 700 };
        LinkMtu {
            link: Port(4),
            mtu: 1300,
            changes: Intervals::new([smaller], None).unwrap(),
            own: icmp.then(|| OWN.map(|address| address.parse().unwrap())),
        }
    }

    /// A segment between hosts with these addresses, of so many bytes in all.
    fn segment(source: &str, destination: &str, len: u32) -> Packet {
        let mut packet = Packet::BLANK;
        packet.ip = Ip::new(source.parse().unwrap(), destination.parse().unwrap());
        packet.make_tcp();
        packet.payload.len = len - packet.len();
        packet
    }

    /// Whether it passes at this second by a link, and the answer.
    fn leave(
        router: &mut LinkMtu,
        second: u64,
        link: u32,
        packet: &Packet,
    ) -> (bool, Option<Packet>) {
        let mut outbox = Outbox::default();
        let now = Time::ZERO + Duration::from_secs(second);
        let passed = router.leaving(now, Port(link), packet, &mut outbox.context());
        assert!(passed.is_ok() || passed == Err(DropReason::TooBig));
        (passed.is_ok(), outbox.into_packets().pop())
    }

    #[test]
    fn a_larger_packet_is_dropped_and_its_sender_told() {
        let ends = [("10.0.0.1", "10.0.0.2", OWN[0]), ("fd00::1", "fd00::2", OWN[1])];
        for (source, destination, own) in ends {
            let packet = segment(source, destination, 1301);
            let (passed, answer) = leave(&mut router(true), 0, 4, &packet);
            let answer = answer.unwrap();
            assert!(!passed);
            assert_eq!(answer.ip, Ip::new(own.parse().unwrap(), source.parse().unwrap()));
            let quote = Quote::of(&packet).unwrap();
            assert_eq!(answer.body, Body::Icmp(Icmp::TooBig { mtu: 1300, quote }));
            // No error is sent about an error (RFC 1122 §3.2.2).
            let mut large = answer;
            large.payload.len = 2000;
            assert_eq!(leave(&mut router(true), 0, 4, &large), (false, None));
        }
    }

    #[test]
    fn what_fits_passes_and_the_mtu_has_its_times() {
        let packet = |len| segment("10.0.0.1", "10.0.0.2", len);
        let mut router = router(false);
        let mut passes = |second, link, len| leave(&mut router, second, link, &packet(len));
        assert_eq!(passes(0, 4, 1300), (true, None));
        assert_eq!(passes(0, 5, 9000), (true, None)); // Another link.
        assert_eq!(passes(0, 4, 1301), (false, None)); // A black hole.
        assert_eq!(
            [(4, 701), (5, 701), (5, 700), (6, 701)].map(|(at, len)| passes(at, 4, len).0),
            [true, false, true, true]
        );
    }
}
