//! Outages of the hop.

use super::network::{MOBILE, Members, Network, V4, V6, count, ip, set, wait_for_attachments};
use crate::common::alone;
use base::Time;
use live::Clock;
use live::netlink::Family;
use std::io::{Read as _, Write as _};
use std::thread;
use std::time::Duration;

#[test]
fn data_goes_on_at_once_when_the_carrier_of_the_hop_is_back() {
    go_on_after_an_outage(Members::MOBILE, Outage::Carrier);
}

#[test]
fn over_srp_data_goes_on_at_once_when_the_carrier_of_the_hop_is_back() {
    go_on_after_an_outage(Members::OVER_SRP, Outage::Carrier);
}

#[test]
fn data_goes_on_at_once_when_the_host_has_its_address_again() {
    go_on_after_an_outage(Members::MOBILE, Outage::Address);
}

#[test]
fn over_srp_data_goes_on_at_once_when_the_host_has_its_address_again() {
    go_on_after_an_outage(Members::OVER_SRP, Outage::Address);
}

#[test]
fn data_of_each_version_of_ip_goes_on_when_its_router_is_known_again() {
    go_on_after_an_outage(Members::MOBILE, Outage::CarrierAndRouter);
}

/// What the hop lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outage {
    Carrier,
    /// The carrier, and for a while after it is back, the router of IPv6.
    CarrierAndRouter,
    Address,
}

/// A hop that lacks something for so long that timers have backed off; then it is there again, with the same router. Data
/// of both versions of IP and of both directions goes on.
fn go_on_after_an_outage(agent: &str, outage: Outage) {
    alone(|| {
        let Some(network) = Network::of(1, &Family::ALL) else { return };
        let members = Members::new("outage");
        network.roam(0);
        // The kernel does not wait with the next solicitation for the router's link address when the hop is there again.
        for version in ["ipv4", "ipv6"] {
            let name = format!("net.{version}.neigh.air.retrans_time_ms");
            network.mobile.run(|| set(&name, "20")).unwrap();
        }
        let station = members.start(&network.stations[0], Members::STATION);
        let mobile = members.start(&network.mobile, agent);
        wait_for_attachments(&mobile, 1);
        let listener = network.listen();
        let mut ends = Vec::new();
        for family in Family::ALL {
            let mut user = network.connect_by(family);
            let (mut server, _) = listener.accept().unwrap();
            server.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            user.write_all(b"a").unwrap();
            server.read_exact(&mut [0]).unwrap();
            ends.extend([user, server]);
        }
        let before = count(&mobile, "attachments");
        let take = || match outage {
            Outage::Carrier | Outage::CarrierAndRouter => {
                network.radio.run(|| ip("link set dev m down")).unwrap();
            }
            Outage::Address => {
                let remove = || {
                    V4.ip(&format!("address del {MOBILE}/24 dev air"));
                    V6.ip(&format!("address del {}/128 dev air", V6.mobile));
                    V6.ip("route del default");
                };
                network.mobile.run(remove).unwrap();
            }
        };
        let give = || match outage {
            Outage::Carrier => network.radio.run(|| ip("link set dev m up")).unwrap(),
            Outage::CarrierAndRouter => {
                network.mobile.run(|| V6.ip("route del default")).unwrap();
                network.radio.run(|| ip("link set dev m up")).unwrap();
                thread::sleep(Duration::from_millis(300));
                network.roam(0);
            }
            Outage::Address => {
                let add = || {
                    V4.add(&format!("{MOBILE}/24"), "air");
                    V6.add(&format!("{}/128", V6.mobile), "air");
                };
                network.mobile.run(add).unwrap();
                network.roam(0);
            }
        };
        // Nothing is in flight any more: no acknowledgment will come that lets the host's TCP send what it could not.
        thread::sleep(Duration::from_millis(300));
        take();
        thread::sleep(Duration::from_millis(100));
        ends.iter_mut().for_each(|end| end.write_all(b"b").unwrap());
        // The last retransmission was after 3 s, the next one is after 6 s.
        thread::sleep(Duration::from_millis(3500));
        give();
        let clock = Clock::start();
        ends.iter_mut().for_each(|end| end.read_exact(&mut [0]).unwrap());
        let took = clock.now().since(Time::ZERO);
        // A busy machine takes some time, too.
        eprintln!("data went on after {took:?}");
        assert!(took < base::Duration::from_secs(2), "{took:?}");
        assert!(count(&mobile, "attachments") > before);
        assert_eq!(count(&mobile, "attachments whose state was lost"), 0);
        network.mobile.run(|| mobile.stop()).unwrap();
        station.stop();
        network.assert_nothing_is_left();
    });
}
