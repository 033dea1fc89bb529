//! The side to which a packet goes.

use super::Side;
use crate::{Error, Netlink};
use base::{Duration, Time};
use rustc_hash::FxHashMap;
use std::net::IpAddr;

/// The kernel's routes, as far as they were asked for.
pub(super) struct Routes {
    netlink: Netlink,
    /// The indices of the interfaces of the LAN.
    lan: Vec<u32>,
    /// The sides of destinations.
    known: FxHashMap<IpAddr, Side>,
    /// When they are asked for anew.
    expires: Time,
}

impl Routes {
    /// Routes may change: an answer is used for so long.
    const LIFETIME: Duration = Duration::from_secs(1);
    /// The most answers.
    const MOST: usize = 1 << 16;

    pub(super) fn new(netlink: Netlink, lan: &[String]) -> Result<Routes, Error> {
        let lan = lan.iter().map(|name| netlink.index(name)).collect::<Result<_, _>>()?;
        Ok(Routes { netlink, lan, known: FxHashMap::default(), expires: Time::ZERO })
    }

    /// The side of a destination; `None` without a route.
    pub(super) fn side(&mut self, now: Time, destination: IpAddr) -> Option<Side> {
        if self.expires <= now || self.known.len() >= Routes::MOST {
            self.known.clear();
            self.expires = now + Routes::LIFETIME;
        }
        if let Some(side) = self.known.get(&destination) {
            return Some(*side);
        }
        // A route that is missing may be there the next moment: what is lost until then waits for timers.
        let interface = self.netlink.interface_to(destination).ok()?;
        let side = if self.lan.contains(&interface) { Side::Lan } else { Side::Wan };
        self.known.insert(destination, side);
        Some(side)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Namespace;
    use std::process::Command;

    #[test]
    fn a_route_is_found_as_soon_as_it_is_there() {
        let Ok(namespace) = Namespace::create("routes") else {
            eprintln!("SKIPPED: real packets are not permitted");
            return;
        };
        let check = || {
            let ip = |words: &str| {
                assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success());
            };
            ip("link add dev lan type veth peer name wan");
            ip("link set dev lan up");
            ip("link set dev wan up");
            let netlink = Netlink::open().unwrap();
            let mut routes = Routes::new(netlink, &["lan".to_owned()]).unwrap();
            let destination = IpAddr::from([198, 18, 0, 1]);
            assert_eq!(routes.side(Time::ZERO, destination), None);
            ip("route add 198.18.0.0/24 dev wan");
            assert_eq!(routes.side(Time::ZERO, destination), Some(Side::Wan));
        };
        namespace.run(check).unwrap();
    }
}
