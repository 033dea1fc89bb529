//! A link that takes smaller packets than the others, on real packets.

use crate::common::{NOISY_HOP, at_once, complete, run};
use host::DropReason;

/// 1 MB over the path whose second link has this MTU, between these stacks.
fn transfer(mtu: &str, stack: &str, more: &str) -> Option<testbed::Outcome> {
    let hop = "forward = { errors = { bit = 2e-6 } }";
    assert!(NOISY_HOP.contains(hop));
    let path = NOISY_HOP.replace(hop, mtu);
    run(&format!(
        "{path}[[flows]]\nfrom = \"server\"\nto = \"mobile\"\nstack = {stack}\ntraffic = {{ size = \"1 MB\" }}\n{more}\n"
    ))
}

#[test]
fn both_stacks_find_a_small_link_by_icmp_in_both_versions_of_ip() {
    let senders = ["\"lasthop\"", "{ from = \"linux\", to = \"lasthop\" }"];
    at_once(senders, |stack| {
        at_once(["ip = 4", "ip = 6"], |ip| {
            let tcp = format!("{ip}\ntcp = {{ mss = 1400 }}");
            let Some(outcome) = transfer("mtu = \"1280 B\"", stack, &tcp) else { return };
            let row = &outcome.run.rows[0];
            complete(row, 1_000_000);
            eprintln!("{stack} {ip}: {:?} {:?}", row.completed_s, row.sender);
            let drops = &outcome.run.box_drops;
            assert!(drops.iter().any(|drop| drop.reason == DropReason::TooBig), "{drops:?}");
            // At most 1208 or 1228 bytes each, and not the 1388 of the MSS.
            let sent = row.sender.segments.unwrap() - row.sender.retransmissions.unwrap();
            assert!(sent >= 770, "{stack} {ip}: {row:?}");
        });
    });
}

#[test]
fn an_mtu_that_shrinks_in_mid_transfer_stops_neither_a_sender_that_is_told_nor_one_that_probes() {
    let changes = "changes = { at = [{ start = \"600 ms\", size = \"800 B\" }] }";
    let told = format!("mtu = {{ size = \"1500 B\", {changes} }}");
    let blind = format!("mtu = {{ size = \"1500 B\", icmp = false, {changes} }}");
    let probing = "tcp = { mss = 1400, mtu_probing = \"black-hole\" }";
    at_once([(told, "tcp = { mss = 1400 }"), (blind, probing)], |(mtu, tcp)| {
        let Some(outcome) = transfer(&mtu, "\"lasthop\"", tcp) else { return };
        let row = &outcome.run.rows[0];
        eprintln!("{tcp}: {:?} {:?}", row.completed_s, row.sender);
        complete(row, 1_000_000);
    });
}
