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
    /// The sides of destinations; none, if there was no route.
    known: FxHashMap<IpAddr, Option<Side>>,
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
        let Routes { netlink, lan, known, .. } = self;
        *known.entry(destination).or_insert_with(|| {
            let interface = netlink.interface_to(destination).ok()?;
            Some(if lan.contains(&interface) { Side::Lan } else { Side::Wan })
        })
    }
}
