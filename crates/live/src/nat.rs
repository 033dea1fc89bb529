//! A namespace whose packets reach this machine and what is beyond it, as the machine's own (NAT).
//!
//! Addresses are translated twice: where packets leave the namespace, as its nodes may have addresses that other
//! networks of the machine have, too; and where they leave the machine.

use crate::netlink::Rule;
use crate::transfer::Error;
use crate::transfer::addresses::{DEVICES, Ends};
use crate::transfer::masquerade::{Masquerade, Setting, masquerade_all};
use crate::transfer::uplink::has_ipv6;
use crate::{Namespace, Netlink};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The names of devices of the machine, before their numbers.
const DEVICE: &str = "lasthop-nat";
/// The name of the device in the namespace.
const PEER: &str = "uplink";
/// Addresses far from most machines, those of a root name server: the routes to them are the default routes.
const BEYOND_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 41, 0, 4));
const BEYOND_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0x503, 0xba3e, 0, 0, 0, 2, 0x30));

/// The devices between the namespace of the calling thread, which is the machine's, and another one, and what was
/// changed for packets to be forwarded. Dropping it undoes all of it; after a crash, [`crate::transfer::clean`] does.
pub struct Nat {
    device: String,
    netlink: Netlink,
    addresses: Vec<IpAddr>,
    masquerades: Vec<Masquerade>,
    words: Vec<String>,
}

impl Nat {
    /// Gives a namespace a default route to the machine.
    ///
    /// # Errors
    /// If the process lacks a privilege, or if there is no `nft`.
    pub fn open(inside: &Namespace) -> Result<Nat, Error> {
        let netlink = Netlink::open()?;
        let taken = netlink.networks();
        let (number, device) = pair(&netlink, inside)?;
        let mut nat = Nat {
            device,
            netlink,
            addresses: Vec::new(),
            masquerades: Vec::new(),
            words: Vec::new(),
        };
        let versions: &[bool] = if has_ipv6() { &[false, true] } else { &[false] };
        let ends = versions.iter().map(|&v6| Ends::choose(number, v6, &taken));
        let ends = ends.collect::<Result<Vec<Ends>, Error>>()?;
        nat.set_up(&ends)?;
        inside.run(|| set_up_inside(&ends))??;
        for end in &ends {
            nat.masquerade(*end)?;
        }
        Ok(nat)
    }

    /// The addresses of the machine on the device, of each version of IP.
    #[must_use]
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// What was changed on the machine, and what cannot be reached.
    #[must_use]
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Prepares the machine's device.
    fn set_up(&mut self, ends: &[Ends]) -> Result<(), Error> {
        let of = |v6: bool, key: &str| Setting::of(v6, &self.device, key);
        for v6 in ends.iter().map(|end| end.kernels.is_ipv6()) {
            if v6 {
                // Its link-local address, from which neighbours are asked, is of use at once.
                of(v6, "accept_dad").set(0)?;
            }
            // An error concerns all devices: see `masquerade`.
            if let Ok(Some(forwarding)) = Setting::forwarding(v6, &self.device) {
                forwarding.set(1)?;
            }
        }
        self.netlink.set_up(&self.device)?;
        for end in ends {
            self.netlink.add_address(&self.device, end.kernels, end.prefix())?;
        }
        self.addresses = ends.iter().map(|end| end.kernels).collect();
        Ok(())
    }

    /// Lets packets from the namespace leave the machine, if it has a default route.
    fn masquerade(&mut self, end: Ends) -> Result<(), Error> {
        let (beyond, version) =
            if end.ours.is_ipv6() { (BEYOND_V6, "IPv6") } else { (BEYOND_V4, "IPv4") };
        let route = self.netlink.route_to(beyond).ok();
        let Some(route) = route.filter(|route| route.unicast && !route.local) else {
            let machine = end.kernels;
            self.words.push(format!(
                "this machine has no default route for {version}: its own address {machine} is reached alone"
            ));
            return Ok(());
        };
        match Masquerade::new(end.ours, &self.device, &route.device) {
            Ok((made, words)) => {
                self.masquerades.push(made);
                self.words.extend(words);
                Ok(())
            }
            // IPv4 does without.
            Err(Error::Unusable(why)) => {
                self.words.push(format!("no {version} beyond this machine: {why}"));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for Nat {
    fn drop(&mut self) {
        self.masquerades.clear();
        // A failure cannot be reported here. The device is gone with the namespace at the latest.
        let _ = self.netlink.remove_device(&self.device);
    }
}

/// Makes the devices, the machine's with the first name that is free, and its number.
fn pair(netlink: &Netlink, inside: &Namespace) -> Result<(u32, String), Error> {
    let mut number = 0;
    loop {
        let device = format!("{DEVICE}{number}");
        match netlink.add_pair(&device, PEER, inside) {
            Ok(()) => return Ok((number, device)),
            Err(crate::Error::System { source, .. })
                if source.kind() == ErrorKind::AlreadyExists && number + 1 < DEVICES =>
            {
                number += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Prepares the device of the calling thread's namespace.
fn set_up_inside(ends: &[Ends]) -> Result<(), Error> {
    let netlink = Netlink::open()?;
    if ends.iter().any(|end| end.ours.is_ipv6()) {
        // Other devices of nodes have no link-local address.
        Setting::of(true, PEER, "addr_gen_mode").set(0)?;
    }
    netlink.set_up(PEER)?;
    for end in ends {
        netlink.add_address(PEER, end.ours, end.prefix())?;
        netlink.set_default_router(end.kernels, PEER, Rule::MAIN)?;
    }
    masquerade_all(PEER)
}
