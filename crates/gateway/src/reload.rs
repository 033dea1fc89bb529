//! What of a configuration can change while its gateway runs.

use relay::HopRate;
use scenario::{Esp, Gateway, Peer, Source, Style, Work};
use std::path::Path;

/// The configuration in a file.
///
/// # Errors
/// A report of what is wrong, with lines.
pub fn read(path: &Path, style: Style) -> Result<Gateway, String> {
    Gateway::read(&source(path)?).map_err(|error| error.render(style))
}

/// A configuration file, unread.
///
/// # Errors
/// Why the file cannot be read.
pub fn source(path: &Path) -> Result<Source, String> {
    let shown = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("reading {shown}: {error}"))?;
    Ok(Source::new(text, shown.to_string()))
}

/// Refuses what differs and cannot change.
///
/// # Errors
/// The keys.
pub(crate) fn admit(running: &Gateway, new: &Gateway) -> Result<(), String> {
    let fixed = fixed(running, new);
    if fixed.is_empty() {
        return Ok(());
    }
    let keys: Vec<String> = fixed.iter().map(|key| format!("`{key}`")).collect();
    Err(format!("only a restart can change {}; nothing was changed", keys.join(", ")))
}

fn fixed(running: &Gateway, new: &Gateway) -> Vec<&'static str> {
    let (running_tcp, new_tcp) = (&running.tcp, &new.tcp);
    let mut keys = vec![
        ("lan", running.lan != new.lan),
        ("wan", running.wan != new.wan),
        ("mode", running.mode() != new.mode()),
        ("workers", running.workers != new.workers),
        ("esp", running.esp.is_some() != new.esp.is_some()),
    ];
    if let (Some(Esp { host, key, networks, mtu }), Some(new)) = (&running.esp, &new.esp) {
        keys.extend([
            ("esp", *host != new.host),
            ("esp_key", *key != new.key),
            ("esp_networks", *networks != new.networks),
            ("esp_mtu", *mtu != new.mtu),
        ]);
    }
    match (&running.work, &new.work) {
        (Work::Spoof(old), Work::Spoof(new)) => {
            // What is measured starts with the first connection, and a hop without a rate has no queue.
            let is_given = matches!(new.rate, Some(HopRate::Given(_)));
            keys.push(("rate", old.rate != new.rate && !is_given));
        }
        (Work::Pair(_, old_peer), Work::Pair(_, new_peer)) => {
            let Peer { address, peer_key, key, listen, mtu } = old_peer;
            keys.extend([
                ("peer", *address != new_peer.address),
                ("peer_key", *peer_key != new_peer.peer_key),
                ("key", *key != new_peer.key),
                ("listen", *listen != new_peer.listen),
                ("mtu", *mtu != new_peer.mtu),
            ]);
        }
        (Work::Station(old, old_key), Work::Station(new, new_key)) => keys.extend([
            ("cache", old.cache != new.cache),
            ("teardown", old.semantics != new.semantics),
            ("connections", old.connections != new.connections),
            ("rate", old.rate != new.rate),
            ("share", old.share != new.share),
            ("network_key", old_key != new_key),
            ("tcp", running_tcp != new_tcp),
        ]),
        (Work::Mobile(old, old_key), Work::Mobile(new, new_key)) => keys.extend([
            ("hop", old.hop != new.hop),
            ("rate", old.rate != new.rate),
            ("share", old.share != new.share),
            ("cache", old.cache != new.cache),
            ("teardown", old.semantics != new.semantics),
            ("network_key", old_key != new_key),
            ("tcp", running_tcp != new_tcp),
        ]),
        (Work::Spep(old, old_path), Work::Spep(new, new_path)) => keys.extend([
            ("data_path", old_path != new_path),
            ("flows", old.flows != new.flows),
            ("idle", old.idle != new.idle),
        ]),
        (Work::Notify(old), Work::Notify(new)) => {
            keys.push(("link_socket", old.link_socket != new.link_socket));
        }
        // The mode differs.
        _ => {}
    }
    keys.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateway(text: &str) -> Gateway {
        Gateway::read(&Source::new(text.to_owned(), "lasthopd.toml")).unwrap()
    }

    #[test]
    fn nothing_of_esp_changes_without_a_restart() {
        let split = "lan = \"a\"\nwan = \"b\"\nmode = \"split\"\n";
        let esp = format!("{split}esp = \"fixed\"\n");
        let running = gateway(&esp);
        for (key, text) in [
            ("esp", split.to_owned()),
            ("esp", esp.replace("fixed", "mobile")),
            ("esp_key", format!("{esp}esp_key = \"k\"")),
            ("esp_networks", format!("{esp}esp_networks = [\"::1\"]")),
            ("esp_mtu", format!("{esp}esp_mtu = 1400")),
        ] {
            let refused = admit(&running, &gateway(&text)).unwrap_err();
            assert_eq!(refused, format!("only a restart can change `{key}`; nothing was changed"));
        }
        assert_eq!(admit(&running, &gateway(&format!("{esp}connections = 7"))), Ok(()));
    }

    #[test]
    fn nothing_of_base_stations_and_mobile_hosts_changes_without_a_restart() {
        let spep = "lan = \"a\"\nwan = \"b\"\nmode = \"spep\"\n";
        let station = "lan = \"a\"\nwan = \"b\"\nmode = \"station\"\n";
        let mobile = "wan = \"b\"\nmode = \"mobile\"\n";
        let over_srp = "wan = \"b\"\nmode = \"mobile\"\nhop = \"srp\"\n";
        let of_both = [("network_key", "network_key = \"k\""), ("tcp", "tcp = { mss = 900 }")];
        let of_srp = [
            ("cache", "cache = \"1 MB\""),
            ("teardown", "teardown = \"end-to-end\""),
            ("rate", "rate = \"1 Mbit/s\""),
            ("share", "share = true"),
        ];
        let of_spep = [
            ("data_path", "data_path = \"kernel\""),
            ("flows", "flows = 5"),
            ("idle", "idle = \"5 s\""),
        ];
        let of_mobile = of_both.into_iter().chain([("hop", "hop = \"srp\"")]);
        let of_station =
            of_both.into_iter().chain(of_srp).chain([("connections", "connections = 5")]);
        let all = of_mobile.map(|key| (mobile, key)).chain(of_spep.map(|key| (spep, key)));
        let all = all.chain(of_srp.map(|key| (over_srp, key)));
        for (mode, (key, line)) in all.chain(of_station.map(|key| (station, key))) {
            let running = gateway(mode);
            let refused = admit(&running, &gateway(&format!("{mode}{line}"))).unwrap_err();
            assert_eq!(refused, format!("only a restart can change `{key}`; nothing was changed"));
            assert_eq!(admit(&running, &gateway(&format!("{mode}metrics = \"[::1]:1\""))), Ok(()));
        }
    }
}
