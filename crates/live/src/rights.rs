//! The privileges that real packets need.

use std::fs;
use std::path::Path;

/// A capability: its name and its number of linux/capability.h.
pub type Capability = (&'static str, u32);

/// To make devices, addresses and routes.
pub const NET_ADMIN: Capability = ("CAP_NET_ADMIN", 12);
/// To make and enter namespaces.
pub const SYS_ADMIN: Capability = ("CAP_SYS_ADMIN", 21);

/// The device by which TUN devices are made.
const TUN: &str = "/dev/net/tun";

/// The names of those of the capabilities that this process lacks, and of the device for TUN devices
/// if it is missing.
#[must_use]
pub fn missing(needed: &[Capability]) -> Vec<&'static str> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    lacking(needed, effective(&status), Path::new(TUN).exists())
}

/// The capabilities in effect, of proc_pid_status(5).
fn effective(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

fn lacking(needed: &[Capability], effective: u64, tun: bool) -> Vec<&'static str> {
    let lacks = |&(name, bit): &Capability| (effective >> bit & 1 == 0).then_some(name);
    needed.iter().filter_map(lacks).chain((!tun).then_some(TUN)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let both = [NET_ADMIN, SYS_ADMIN];
        let status = "Name:\tx\nCapEff:\t0000000000201000\n";
        assert!(lacking(&both, effective(status), true).is_empty());
        let one = effective("CapEff:\t0000000000001000\n");
        assert_eq!(lacking(&both, one, true), ["CAP_SYS_ADMIN"]);
        assert!(lacking(&[NET_ADMIN], one, true).is_empty());
        assert_eq!(lacking(&both, effective(""), false), ["CAP_NET_ADMIN", "CAP_SYS_ADMIN", TUN]);
    }
}
