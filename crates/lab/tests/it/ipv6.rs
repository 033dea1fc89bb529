//! Flows over either version of IP.

use crate::common::{error, run, run_with, scenario, with};
use lab::{Capture, Watch};
use pcap_file::pcapng::{Block, PcapNgReader};
use scenario::IpVersion;
use std::fs::File;
use std::path::Path;
use wire::{Body, Packet};

/// A long link with a flow in IPv6 of which corruption is reported by packets.
fn over_ipv6(changes: &[(&str, &str)]) -> String {
    let changes = [&[("to      =", "ip = 6\nto ="), ("none", "backward")], changes].concat();
    with(&changes)
}

/// Every packet of a run.
fn packets(text: &str, name: &str) -> Vec<Packet> {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let capture = Some(Capture { file: file.clone(), at: Vec::new() });
    run_with(text, 1, &Watch { capture, ..Watch::default() });
    let mut reader = PcapNgReader::new(File::open(file).expect("a file")).expect("pcapng");
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(block) = block.expect("a block") {
            packets.push(Packet::parse(&block.data).expect("a packet").0);
        }
    }
    packets
}

#[test]
fn every_packet_of_a_flow_is_of_its_version_and_as_large() {
    let packets = packets(&over_ipv6(&[]), "ipv6.pcapng");
    assert!(packets.iter().all(|packet| packet.ip.source.is_ipv6()));
    assert!(packets.iter().any(|packet| matches!(packet.body, Body::Icmp(_))), "notices too");
    assert_eq!(packets.iter().map(Packet::len).max(), Some(576));
    let [sender, receiver] = [packets[0].ip.source, packets[0].ip.destination];
    assert_eq!((sender.to_string(), receiver.to_string()), ("fd00::1".into(), "fd00::2".into()));
}

#[test]
fn byte_mode_changes_nothing() {
    for traffic in [
        "\"bulk\"",
        "{ requests = { request = 300, response = 5000 } }",
        "{ paced = { chunk = 2000, interval = \"20 ms\" } }",
    ] {
        let text = over_ipv6(&[("from    =", &format!("traffic = {traffic}\nfrom ="))]);
        let watch = Watch { digest: true, bytes: true, ..Watch::default() };
        assert_eq!(run_with(&text, 1, &watch), run(&text), "{traffic}");
    }
}

#[test]
fn notices_of_corruption_find_their_flow() {
    for report in ["oracle", "backward"] {
        let row = &run(&over_ipv6(&[("backward", report)])).rows[0];
        assert!(row.sender.notices > Some(10), "{report}: {row:?}");
    }
}

#[test]
fn the_headers_of_its_version_count_as_goodput() {
    let row = &run(&over_ipv6(&[])).rows[0];
    assert!((row.goodput_bps / row.payload_bps - 576.0 / 516.0).abs() < 1e-12);
}

#[test]
fn flows_of_both_versions_share_a_link() {
    let second = "\n[[flows]]\nname = \"old\"\nfrom = \"a\"\nto = \"b\"\n";
    let text = over_ipv6(&[("1e-5", "0")]) + second;
    assert_eq!(
        scenario(&text).flows.iter().map(|flow| flow.ip).collect::<Vec<_>>(),
        [IpVersion::V6, IpVersion::V4,]
    );
    let rows = run(&text).rows;
    assert!(rows.iter().all(|row| row.payload_bytes > 1_000_000), "{rows:?}");
}

#[test]
fn other_versions_are_refused() {
    for wrong in ["5", "\"ipv6\"", "true"] {
        let message = error(&with(&[("to      =", &format!("ip = {wrong}\nto ="))])).to_string();
        assert!(message.starts_with(&format!("`flows.0.ip = {wrong}`: ")), "{message}");
        assert!(message.ends_with("expected 4 or 6"), "{message}");
    }
}

#[test]
fn a_notice_holds_two_addresses_of_its_version() {
    let sized = |size| over_ipv6(&[("\"backward\"", size)]);
    let message = error(&sized("{ report = \"backward\", notice_size = 91 }")).to_string();
    assert!(message.ends_with("expected 92 to 65535 bytes"), "{message}");
    let smallest = sized("{ report = \"backward\", notice_size = 92 }");
    let watch = Watch { bytes: true, ..Watch::default() };
    assert!(run_with(&smallest, 1, &watch).rows[0].sender.notices > Some(10));
}
