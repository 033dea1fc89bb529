//! How many things the users of a box have.

use core::net::{IpAddr, Ipv6Addr};
use rustc_hash::FxHashMap;

/// Counts by user: an address in IPv4, a network of 64 bits in IPv6, all of whose addresses one host may take.
#[derive(Debug, Default)]
pub struct ByUser {
    counts: FxHashMap<IpAddr, usize>,
    total: usize,
}

impl ByUser {
    /// What the user with an address has.
    #[must_use]
    pub fn of(&self, address: IpAddr) -> usize {
        self.counts.get(&user_of(address)).copied().unwrap_or(0)
    }

    /// What all have.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }

    /// The user with an address has one more.
    pub fn add(&mut self, address: IpAddr) {
        *self.counts.entry(user_of(address)).or_default() += 1;
        self.total += 1;
    }

    /// The user with an address has one less.
    pub fn remove(&mut self, address: IpAddr) {
        let user = user_of(address);
        let Some(count) = self.counts.get_mut(&user) else { return };
        *count -= 1;
        self.total -= 1;
        if *count == 0 {
            self.counts.remove(&user);
        }
    }
}

/// The address that stands for all of a user's.
pub(crate) fn user_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_of_a_network_of_64_bits_are_one_user_and_users_without_anything_take_nothing()
    {
        let mut users = ByUser::default();
        let addresses = ["2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:1::1", "192.0.2.1"]
            .map(|address| address.parse::<IpAddr>().unwrap());
        addresses.iter().for_each(|address| users.add(*address));
        assert_eq!(addresses.map(|address| users.of(address)), [2, 2, 1, 1]);
        assert_eq!((users.total(), users.counts.len()), (4, 3));
        addresses.iter().chain(&addresses).for_each(|address| users.remove(*address));
        assert_eq!((users.total(), users.counts.len()), (0, 0));
    }
}
