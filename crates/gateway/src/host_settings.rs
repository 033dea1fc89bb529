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

    /// Sets them in the network namespace of the calling thread.
    pub(crate) fn set(wan: &str, file: Option<&Path>) -> Result<HostSettings, Error> {
        let device = DEVICES[Side::Wan as usize];
        let wanted = [
            // A packet that was given to its socket already is not forwarded to the agent.
            ("net.ipv4.tcp_early_demux".to_owned(), "0"),
            (format!("net.ipv4.conf.{wan}.forwarding"), "1"),
            (format!("net.ipv4.conf.{wan}.rp_filter"), "0"),
        ];
        // Those of the device are gone with it. Packets from the host's own address come back by it.
        netlink::set_sysctl(&format!("net.ipv4.conf.{device}.accept_local"), "1")?;
        netlink::set_sysctl(&format!("net.ipv4.conf.{device}.forwarding"), "1")?;
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
        Netlink::open()?.move_local_rule(Family::V4, [0, HostSettings::LOCAL])?;
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
        let moved = Netlink::open()
            .and_then(|netlink| netlink.move_local_rule(Family::V4, [HostSettings::LOCAL, 0]));
        let restored = self.before.iter().map(|(name, value)| netlink::set_sysctl(name, value));
        let failed = [moved].into_iter().chain(restored).filter_map(Result::err);
        if failed.inspect(|error| warn!(%error, "a setting is left behind")).count() == 0
            && let Some(file) = &self.file
        {
            let _ = std::fs::remove_file(file);
        }
    }
}
