//! What the doctor says about rules of nftables and iptables, and that it helps.

use crate::common::{CLEAN, GATEWAY, USER, World, beside_few, exchange};
use crate::datagrams::{refuse, talk};
use crate::doctor::{found, refused};
use gateway::Daemon;
use gateway::doctor::Severity;
use scenario::IpVersion;
use std::process::{Command, Stdio};

/// The commands of the documentation for the interfaces of the gateway: those after which packets from the LAN are
/// not tracked where they go to it.
fn documented() -> String {
    let page = include_str!("../../../../docs/gateway.md");
    let begin = page.find("nft add table inet lasthop").unwrap();
    let commands = page[begin..].split("```").next().unwrap();
    commands.replace("eth0", "link0").replace("sat0", "link1")
}

/// TCP, UDP and what ICMP says, each with addresses that the gateway's kernel translates.
fn pass_translated(world: &World, daemon: &Daemon) {
    let split = daemon.boxes().unwrap().get("split connections").copied().unwrap_or(0);
    for ip in [IpVersion::V4, IpVersion::V6] {
        exchange(world, ip, [1_000_000, 1_000_000]);
        assert_ne!(talk(world, ip), world.address(USER, ip));
        refuse(world, ip);
    }
    assert_eq!(daemon.boxes().unwrap()["split connections"], split + 2);
}

#[test]
fn what_the_doctor_and_the_documentation_advise_about_translated_addresses_can_be_done() {
    beside_few(|| {
        if Command::new("nft").arg("--version").output().is_err() {
            return;
        }
        for is_documented in [false, true] {
            let Some(world) = World::new(CLEAN, "nat") else { return };
            let shell = |command: &str| {
                let mut shell = Command::new("sh");
                let status = world.at(GATEWAY, || shell.args(["-ec", command]).status());
                assert!(status.unwrap().success(), "{command}");
            };
            assert_eq!(found(&world, "", false), []);
            shell(
                "nft add table inet nat && \
                 nft add chain inet nat post '{ type nat hook postrouting priority srcnat; }' && \
                 nft add rule inet nat post oifname link1 masquerade",
            );
            let findings = found(&world, "", false);
            assert_eq!(findings.len(), 1, "{findings:?}");
            let mend = findings[0].mend.clone().unwrap();
            refused(&world, "", "connection tracking", &mend);
            shell(&if is_documented { documented() } else { mend });
            assert_eq!(found(&world, "", false), []);
            let daemon = world.gateway("");
            pass_translated(&world, &daemon);
            daemon.stop();
        }
    });
}

#[test]
fn a_rule_by_which_no_packets_at_all_are_tracked_is_an_error_where_addresses_are_translated() {
    beside_few(|| {
        let Some(world) = World::new(CLEAN, "untracked") else { return };
        if Command::new("nft").arg("--version").output().is_err() {
            return;
        }
        let shell = |command: &str| {
            let status = world.at(GATEWAY, || Command::new("sh").args(["-c", command]).status());
            assert!(status.unwrap().success(), "{command}");
        };
        shell(
            "nft add table inet nat && \
             nft add chain inet nat post '{ type nat hook postrouting priority srcnat; }' && \
             nft add rule inet nat post oifname link1 masquerade && \
             nft add table inet lasthop && \
             nft add chain inet lasthop raw '{ type filter hook prerouting priority raw; }' && \
             nft add rule inet lasthop raw iifname '{ link0, lh-lan }' fib daddr type unicast notrack",
        );
        let findings = found(&world, "", false);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].message.contains("such as UDP"), "{}", findings[0]);
        // That is so.
        assert_eq!(talk(&world, IpVersion::V4), world.address(USER, IpVersion::V4));
        let mend = findings[0].mend.as_deref().unwrap();
        refused(&world, "", "connection tracking", mend);
        shell(mend);
        assert_eq!(found(&world, "", false), []);
        let daemon = world.gateway("mode = \"split\"");
        pass_translated(&world, &daemon);
        daemon.stop();
    });
}

#[test]
fn a_firewall_that_drops_what_it_does_not_know_lets_connections_pass_once_the_doctor_was_heard() {
    beside_few(|| {
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
                talk(&world, ip);
                refuse(&world, ip);
            }
            assert_eq!(daemon.boxes().unwrap().get("split connections"), Some(&2));
            daemon.stop();
        }
    });
}

#[test]
fn rules_of_iptables_legacy_are_read_and_mended_like_those_of_nft() {
    beside_few(|| {
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
        // What keeps UDP from being tracked, too, is found.
        shell(
            "ip6tables-legacy -t raw -I PREROUTING -i link0 -m addrtype --dst-type UNICAST -j CT --notrack",
        );
        let findings = found(&world, "", false);
        let mend = findings[0].mend.as_deref().unwrap();
        refused(&world, "", "connection tracking", mend);
        shell(mend);
        assert_eq!(found(&world, "", false), []);
        for keys in ["", "mode = \"split\""] {
            let daemon = world.gateway(keys);
            pass_translated(&world, &daemon);
            daemon.stop();
        }
    });
}
