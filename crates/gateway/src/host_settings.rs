//! Settings of a mobile host that let its own packets pass its agent.

use crate::network::DEVICES;
use live::inline::Side;
use live::netlink::{self, Family};
use live::{Error, Netlink};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tracing::warn;

/// What the settings were before. They are restored when this is dropped.
pub(crate) struct HostSettings {
    before: Before,
    /// Where it is known for the next agent, if this one is killed.
    file: Option<PathBuf>,
}

/// Names and values.
type Before = BTreeMap<String, String>;

impl HostSettings {
    /// The priority of the kernel's rule for the host's own addresses, which is 0 otherwise: rules for packets to the host
    /// come before it.
    pub(crate) const LOCAL: u32 = 10;

    /// Sets those of these versions of IP in the network namespace of the calling thread.
    pub(crate) fn set(
        wan: &str,
        families: &[Family],
        file: Option<&Path>,
    ) -> Result<HostSettings, Error> {
        let device = DEVICES[Side::Wan as usize];
        // A packet that was given to its socket already is not forwarded to the agent. It is so of both versions.
        let mut wanted = vec![("net.ipv4.tcp_early_demux".to_owned(), "0")];
        if families.contains(&Family::V4) {
            wanted.push((format!("net.ipv4.conf.{wan}.forwarding"), "1"));
            wanted.push((format!("net.ipv4.conf.{wan}.rp_filter"), "0"));
            // Those of the device are gone with it. Packets from the host's own address come back by it.
            netlink::set_sysctl(&format!("net.ipv4.conf.{device}.accept_local"), "1")?;
            netlink::set_sysctl(&format!("net.ipv4.conf.{device}.forwarding"), "1")?;
        }
        if families.contains(&Family::V6) {
            let forces = |of: &str| format!("net.ipv6.conf.{of}.force_forwarding");
            if netlink::sysctl(&forces(device)).is_ok() {
                netlink::set_sysctl(&forces(device), "1")?;
                wanted.push((forces(wan), "1"));
            } else {
                wanted.extend(forwarding_of_all());
            }
        }
        let mut settings = HostSettings {
            before: file.map(read).unwrap_or_default(),
            file: file.map(Path::to_owned),
        };
        for (name, _) in &wanted {
            if !settings.before.contains_key(name) {
                settings.before.insert(name.clone(), netlink::sysctl(name)?);
            }
        }
        settings.keep();
        let netlink = Netlink::open()?;
        families
            .iter()
            .try_for_each(|family| netlink.move_local_rule(*family, [0, HostSettings::LOCAL]))?;
        wanted.iter().try_for_each(|(name, value)| netlink::set_sysctl(name, value))?;
        Ok(settings)
    }

    fn keep(&self) {
        let Some(file) = &self.file else { return };
        let text = serde_json::to_vec(&self.before).unwrap_or_default();
        if let Err(error) = std::fs::write(file, text) {
            let file = file.display();
            warn!(%file, %error, "if the agent is killed, settings are left behind");
        }
    }
}

/// Settings, in their order, with which a kernel forwards IPv6 that does so for all interfaces or for none (before Linux
/// 6.17). Then an interface takes router advertisements only with `accept_ra` 2, and without it the kernel would forget at
/// once the routers of which it has learned.
fn forwarding_of_all() -> Vec<(String, &'static str)> {
    let all = "net.ipv6.conf.all.forwarding";
    if netlink::sysctl(all).is_ok_and(|value| value != "0") {
        return Vec::new();
    }
    let interfaces = std::fs::read_dir("/proc/sys/net/ipv6/conf").into_iter().flatten().flatten();
    let names = interfaces.filter_map(|entry| entry.file_name().into_string().ok());
    let accepting = names
        .filter(|name| name != "all")
        .map(|name| format!("net.ipv6.conf.{name}.accept_ra"))
        .filter(|name| netlink::sysctl(name).is_ok_and(|value| value == "1"))
        .map(|name| (name, "2"));
    accepting.chain([(all.to_owned(), "1")]).collect()
}

/// What an agent that was killed has left.
fn read(file: &Path) -> Before {
    let text = std::fs::read(file).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Restores what an agent that was killed has left, if it has left anything.
pub(crate) fn restore_left(file: &Path) {
    if file.exists() {
        drop(HostSettings { before: read(file), file: Some(file.to_owned()) });
    }
}

impl Drop for HostSettings {
    fn drop(&mut self) {
        let moved = Family::available()
            .map(|family| Netlink::open()?.move_local_rule(family, [HostSettings::LOCAL, 0]));
        // Those of an interface are gone with it.
        let there = self.before.iter().filter(|(name, _)| netlink::sysctl(name).is_ok());
        let restored = there.map(|(name, value)| netlink::set_sysctl(name, value));
        let failed = moved.chain(restored).filter_map(Result::err);
        if failed.inspect(|error| warn!(%error, "a setting is left behind")).count() == 0
            && let Some(file) = &self.file
        {
            let _ = std::fs::remove_file(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use live::namespace::Namespace;

    #[test]
    fn a_kernel_that_forwards_ipv6_for_all_interfaces_or_none_still_takes_router_advertisements() {
        let Ok(namespace) = Namespace::create("forwarding") else {
            eprintln!("SKIPPED: real packets are not permitted");
            return;
        };
        let set_and_restore = || {
            let wanted = forwarding_of_all();
            let before = wanted
                .iter()
                .map(|(name, _)| (name.clone(), netlink::sysctl(name).unwrap()))
                .collect();
            let settings = HostSettings { before, file: None };
            wanted.iter().for_each(|(name, value)| netlink::set_sysctl(name, value).unwrap());
            let of = |name: &str| netlink::sysctl(&format!("net.ipv6.conf.{name}")).unwrap();
            let set = ["all.forwarding", "default.accept_ra", "lo.forwarding"].map(of);
            // Where it forwards already, nothing is to be set.
            assert_eq!(forwarding_of_all(), []);
            drop(settings);
            (set, ["all.forwarding", "default.accept_ra", "lo.forwarding"].map(of))
        };
        let (set, restored) = namespace.run(set_and_restore).unwrap();
        assert_eq!(set, ["1", "2", "1"]);
        assert_eq!(restored, ["0", "1", "0"]);
    }
}
