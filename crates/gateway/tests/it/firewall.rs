//! What the doctor says about rules of nftables and iptables, and that it helps.

use crate::common::{CLEAN, GATEWAY, World, alone, exchange};
use crate::doctor::{found, refused};
use gateway::doctor::Severity;
use scenario::IpVersion;
use std::process::{Command, Stdio};

#[test]
fn what_the_doctor_advises_about_translated_addresses_can_be_done() {
    alone(|| {
        let Some(world) = World::new(CLEAN, "nat") else { return };
        let shell = |command: &str| {
            let status = world.at(GATEWAY, || Command::new("sh").args(["-c", command]).status());
            assert!(status.unwrap().success(), "{command}");
        };
        if Command::new("nft").arg("--version").output().is_err() {
            return;
        }
        assert_eq!(found(&world, "", false), []);
        shell(
            "nft add table ip nat && \
             nft add chain ip nat post '{ type nat hook postrouting priority srcnat; }' && \
             nft add rule ip nat post oifname link1 masquerade",
        );
        let findings = found(&world, "", false);
        assert_eq!(findings.len(), 1, "{findings:?}");
        refused(&world, "", "connection tracking", findings[0].mend.as_deref().unwrap());
        shell(findings[0].mend.as_deref().unwrap());
        assert_eq!(found(&world, "", false), []);
        let daemon = world.gateway("");
        exchange(&world, IpVersion::V4, [1_000_000, 1_000_000]);
        assert_eq!(daemon.boxes().unwrap().get("split connections"), Some(&1));
        daemon.stop();
    });
}

#[test]
fn a_firewall_that_drops_what_it_does_not_know_lets_connections_pass_once_the_doctor_was_heard() {
    alone(|| {
        let Some(world) = World::new(CLEAN, "firewall") else { return };
        if Command::new("nft").arg("--version").output().is_err() {
            return;
        }
        let shell = |command: &str| {
            let status = world.at(GATEWAY, || Command::new("sh").args(["-c", command]).status());
            assert!(status.unwrap().success(), "{command}");
        };
        // As routers of homes have it.
        shell(
            "nft add table inet filter && \
             nft add chain inet filter forward '{ type filter hook forward priority filter; policy drop; }' && \
             nft add rule inet filter forward ct state vmap '{ established : accept, related : accept, invalid : drop }' && \
             nft add rule inet filter forward iifname link0 oifname link1 accept",
        );
        exchange(&world, IpVersion::V4, [1000, 1000]);
        for (about, severity) in
            [("connection tracking", Severity::Advice), ("firewall", Severity::Error)]
        {
            let findings = found(&world, "", false);
            let finding = findings.iter().find(|finding| finding.about == about).unwrap();
            assert_eq!(finding.severity, severity);
            shell(finding.mend.as_deref().unwrap());
        }
        assert_eq!(found(&world, "", false), []);
        for keys in ["", "mode = \"split\""] {
            let daemon = world.gateway(keys);
            for ip in [IpVersion::V4, IpVersion::V6] {
                exchange(&world, ip, [1_000_000, 1_000_000]);
            }
            assert_eq!(daemon.boxes().unwrap().get("split connections"), Some(&2));
            daemon.stop();
        }
    });
}

#[test]
fn rules_of_iptables_legacy_are_read_and_mended_like_those_of_nft() {
    alone(|| {
        let Some(world) = World::new(CLEAN, "legacy") else { return };
        let works = |command: &str| {
            let mut shell = Command::new("sh");
            shell.args(["-c", command]).stdout(Stdio::null()).stderr(Stdio::null());
            shell.status().map(|status| status.success())
        };
        if !world.at(GATEWAY, || works("iptables-legacy -L && ip6tables-legacy -L")).unwrap() {
            eprintln!("SKIPPED: there is no iptables-legacy");
            return;
        }
        let shell = |command: &str| {
            let status = world.at(GATEWAY, || Command::new("sh").args(["-c", command]).status());
            assert!(status.unwrap().success(), "{command}");
        };
        // As routers of homes have it.
        for (program, policy) in
            [("iptables-legacy", "-P FORWARD DROP"), ("ip6tables-legacy", "-A FORWARD -j REJECT")]
        {
            shell(&format!(
                "{program} -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT && \
                 {program} -A FORWARD -m conntrack --ctstate INVALID -j DROP && \
                 {program} -A FORWARD -i link0 -o link1 -m comment --comment 'the users' -j ACCEPT && \
                 {program} {policy} && \
                 {program} -t nat -A POSTROUTING -o link1 -j MASQUERADE"
            ));
        }
        exchange(&world, IpVersion::V4, [1000, 1000]);
        exchange(&world, IpVersion::V6, [1000, 1000]);
        let findings = found(&world, "", false);
        let about: Vec<_> = findings.iter().map(|finding| finding.about.as_str()).collect();
        assert_eq!(about, ["connection tracking", "firewall", "firewall"]);
        for finding in &findings {
            assert_eq!(finding.severity, Severity::Error);
            shell(finding.mend.as_deref().unwrap());
        }
        assert_eq!(found(&world, "", false), []);
        for keys in ["", "mode = \"split\""] {
            let daemon = world.gateway(keys);
            for ip in [IpVersion::V4, IpVersion::V6] {
                exchange(&world, ip, [1_000_000, 1_000_000]);
            }
            assert_eq!(daemon.boxes().unwrap().get("split connections"), Some(&2));
            daemon.stop();
        }
    });
}
