//! The radio channel: what it loses, and what arrives over it.

use super::network::Network;
use std::process::Command;

impl Network {
    /// From now on, counts these packets that arrive at the mobile host by the radio channel.
    pub(super) fn count_arriving(&self, what: &str) {
        let rules = format!(
            "table netdev counts {{ counter segments {{ }}\n chain arriving {{ type filter hook ingress \
             device \"air\" priority -1; {what} counter name segments\n}}\n}}"
        );
        let nft = || Command::new("nft").arg(&rules).status().unwrap();
        assert!(self.mobile.run(nft).unwrap().success());
    }

    /// From now on, counts the segments of TCP that arrive at the mobile host by the radio channel.
    pub(super) fn count_segments(&self) {
        self.count_arriving("ip protocol tcp");
    }

    /// How many there were.
    pub(super) fn segments(&self) -> u64 {
        let list = || Command::new("nft").args(["list", "counters"]).output().unwrap();
        let listed = String::from_utf8(self.mobile.run(list).unwrap().stdout).unwrap();
        let words = listed.split_whitespace();
        words.skip_while(|word| *word != "packets").nth(1).unwrap().parse().unwrap()
    }

    /// Loses a share of the packets that arrive by the radio channel, of all kinds.
    pub(super) fn lose(&self, per_cent: u32) {
        let rules = format!(
            "table netdev radio {{ chain loss {{ type filter hook ingress device \"air\" priority 0; \
             meta protocol {{ ip, ip6 }} numgen random mod 100 < {per_cent} drop\n}}\n}}"
        );
        for node in self.stations.iter().chain([&self.mobile]) {
            let nft = || Command::new("nft").arg(&rules).status().unwrap();
            assert!(node.run(nft).unwrap().success());
        }
    }

    /// Loses a share of the packets of connections between base stations.
    pub(super) fn lose_requests(&self, per_cent: u32) {
        for port in ["dport", "sport"] {
            let what = format!("tcp {port} {}", wire::Mobility::PORT);
            let rules = Network::losing("lan", &what, per_cent);
            for node in &self.stations {
                let nft = || Command::new("nft").arg(&rules).status().unwrap();
                assert!(node.run(nft).unwrap().success());
            }
        }
    }

    /// Loses a share of the messages between mobile hosts and base stations, and of the handshakes of their tunnels, but no
    /// data of SRP.
    pub(super) fn lose_messages(&self, per_cent: u32) {
        // The second byte of a datagram is its type: 4 and 8 are data.
        let what = format!("udp dport {} @th,72,8 != {{ 4, 8 }}", wire::Mobility::PORT);
        let rules = Network::losing("air", &what, per_cent);
        for node in self.stations.iter().chain([&self.mobile]) {
            let nft = || Command::new("nft").arg(&rules).status().unwrap();
            assert!(node.run(nft).unwrap().success());
        }
    }

    /// Rules that lose a share of these packets that arrive by a device.
    fn losing(device: &str, what: &str, per_cent: u32) -> String {
        let random = format!("numgen random mod 100 < {per_cent} drop");
        format!(
            "table netdev losing {{ chain {device} {{ type filter hook ingress device \"{device}\" priority 1; \
             {what} {random}\n}}\n}}"
        )
    }
}
