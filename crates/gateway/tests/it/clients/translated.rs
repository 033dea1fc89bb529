//! The programs, where a gateway's kernel translates the users' addresses.

use super::servers::program;
use super::{programs_work, start};
use crate::common::{FAR, GATEWAY, World, alone};
use crate::pair::{Pair, wait_for_association};
use gateway::doctor::{Severity, examine};
use scenario::{Gateway, IpVersion};
use std::process::Command;

fn shell(world: &World, node: usize, command: &str) {
    let status = world.at(node, || Command::new("sh").args(["-c", command]).status());
    assert!(status.unwrap().success(), "{command}");
}

/// Translates what leaves a node by a device, does what the doctor says about it, and lets the kernel translate also
/// the addresses in the commands of FTP, which come to this device from another.
fn translate(world: &World, node: usize, gateway: &Gateway, by: &str, from: &str) {
    shell(
        world,
        node,
        &format!(
            "nft add table inet nat && \
             nft add chain inet nat post '{{ type nat hook postrouting priority srcnat; }}' && \
             nft add rule inet nat post oifname {by} masquerade"
        ),
    );
    let findings = world.at(node, || examine(gateway, false));
    let finding = findings.iter().find(|finding| finding.about == "connection tracking").unwrap();
    assert_eq!(finding.severity, Severity::Error);
    shell(world, node, finding.mend.as_deref().unwrap());
    let findings = world.at(node, || examine(gateway, false));
    let finding = findings.iter().find(|finding| finding.about == "connection tracking").unwrap();
    assert_eq!(finding.severity, Severity::Fine);
    shell(
        world,
        node,
        &format!(
            "nft 'add ct helper inet lasthop ftp {{ type \"ftp\" protocol tcp; }}' && \
             nft add chain inet lasthop helpers '{{ type filter hook prerouting priority filter; }}' && \
             nft add rule inet lasthop helpers iifname {from} tcp dport 21 ct helper set '\"ftp\"'"
        ),
    );
}

fn has_nft() -> bool {
    let found = program("nft").is_some();
    if !found {
        eprintln!("SKIPPED: there is no nft");
    }
    found
}

#[test]
fn programs_work_through_a_gateway_that_translates_addresses() {
    alone(|| {
        if !has_nft() {
            return;
        }
        for keys in ["", "mode = \"split\"", "mode = \"split\"\nconnect = \"at-once\""] {
            let Some((world, servers)) = start("translated", World::new) else { return };
            let gateway = crate::common::configuration(keys);
            translate(&world, GATEWAY, &gateway, "link1", "lh-wan");
            let daemon = world.gateway(keys);
            programs_work(&world, &servers, &daemon, true);
            daemon.stop();
        }
    });
}

/// In a pair, TCP connections come out at the other gateway with their users' addresses, whatever the first one
/// translates, and the other one can translate them.
#[test]
fn programs_work_through_a_pair_of_gateways_of_which_either_translates_addresses() {
    alone(|| {
        if !has_nft() {
            return;
        }
        for is_far in [false, true] {
            let Some((world, servers)) = start("pair-translated", World::pair) else { return };
            let pair = Pair::new("translated", "rate = \"50 Mbit/s\"");
            match is_far {
                false => {
                    let gateway = pair.near_configuration(&world, IpVersion::V4);
                    translate(&world, GATEWAY, &gateway, "link1", "lh-wan");
                }
                true => translate(&world, FAR, &pair.far_configuration(), "link2", "lh-lan"),
            }
            let (near, far) = (pair.near(&world, IpVersion::V4), pair.far(&world));
            wait_for_association(&world, &near);
            programs_work(&world, &servers, &near, is_far);
            near.stop();
            far.stop();
        }
    });
}
