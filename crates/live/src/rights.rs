//! The privileges that a run needs.

use crate::Error;
use std::fs;
use std::path::Path;

/// Of linux/capability.h.
const NEEDED: [(&str, u32); 2] = [("CAP_NET_ADMIN", 12), ("CAP_SYS_ADMIN", 21)];

/// The device by which TUN devices are made.
const TUN: &str = "/dev/net/tun";

/// Checks that the process may create namespaces and devices.
pub(crate) fn check() -> Result<(), Error> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let missing = missing(effective(&status), Path::new(TUN).exists());
    if missing.is_empty() { Ok(()) } else { Err(Error::Forbidden(missing.join(", "))) }
}

/// The capabilities in effect, of proc_pid_status(5).
fn effective(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

fn missing(effective: u64, tun: bool) -> Vec<&'static str> {
    let lacks = |(name, bit): (&'static str, u32)| (effective >> bit & 1 == 0).then_some(name);
    let capabilities = NEEDED.into_iter().filter_map(lacks);
    capabilities.chain((!tun).then_some(TUN)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let status = "Name:\tx\nCapEff:\t0000000000201000\n";
        assert!(missing(effective(status), true).is_empty());
        assert_eq!(missing(effective("CapEff:\t0000000000001000\n"), true), ["CAP_SYS_ADMIN"]);
        assert_eq!(missing(effective(""), false), ["CAP_NET_ADMIN", "CAP_SYS_ADMIN", TUN]);
    }
}
