//! A corpus of packets, which two other parsers read as lasthop does.

use crate::common::corpus::{Case, cases};
use crate::readers::{Fields, by_etherparse, by_lasthop, by_smoltcp};
use proptest::prelude::*;
use std::collections::BTreeSet;
use wire::{Body, Icmp, Packet};

/// Packets and why they are special.
type Differences = &'static [(&'static str, &'static str)];

/// What is written otherwise than Linux did.
const LINUX: Differences = &[
    ("SYN that asks for a fast open cookie", UNKNOWN_LAST),
    ("SYN with an MD5 signature", UNKNOWN_LAST),
    ("UDP without a checksum", "it gets one"),
    ("parameter problem", QUOTED_ANEW),
    ("time exceeded", QUOTED_ANEW),
    ("time exceeded over IPv6", QUOTED_ANEW),
];

const UNKNOWN_LAST: &str = "options of unknown kinds come last, padded at their end";
const QUOTED_ANEW: &str = "the header of the quoted packet is written anew";

/// Where etherparse differs.
const ETHERPARSE: Differences = &[
    ("IPv4 option of length 1", IPV4_OPTIONS),
    ("IPv4 option that leaves the header", IPV4_OPTIONS),
    ("authentication header", "to it an extension header, here an unknown protocol"),
    ("destination options of 64 bytes", ROOM),
    ("fragment that is all there is", "to it no fragment (RFC 6946)"),
    ("loose source route", SOURCE_ROUTE),
    ("segment routing with one segment left", SOURCE_ROUTE),
];

/// Where smoltcp differs.
const SMOLTCP: Differences = &[
    ("IPv4 option of length 1", IPV4_OPTIONS),
    ("IPv4 option that leaves the header", IPV4_OPTIONS),
    ("UDP over IPv6 without a checksum", "it lets that pass (RFC 8200 §8.1 forbids it)"),
    ("destination options of 64 bytes", ROOM),
    ("four SACK blocks", "it knows three"),
    ("loose source route", SOURCE_ROUTE),
    ("notice of corruption over IPv6", "it refuses unknown types of ICMPv6"),
    ("segment routing with one segment left", SOURCE_ROUTE),
    ("timestamps of length 8", "to it an unknown option"),
];

const IPV4_OPTIONS: &str = "it does not look at IPv4 options";
const ROOM: &str = "here there is no room to keep them";
const SOURCE_ROUTE: &str = "it does not look for routes that are not at their end";

#[test]
fn every_packet_is_read_or_refused_as_the_corpus_says() {
    for Case { name, error, bytes, .. } in cases() {
        let found = Packet::parse(&bytes).err().map(|error| error.to_string());
        assert_eq!(found, error, "{name}");
    }
}

#[test]
fn every_packet_that_is_read_can_be_written_and_says_the_same() {
    let mut read = 0;
    for Case { name, bytes, .. } in cases() {
        let Ok((packet, place)) = Packet::parse(&bytes) else { continue };
        read += 1;
        let mut written = Vec::new();
        packet.emit(&bytes[place], &mut written).unwrap();
        assert_eq!(by_lasthop(&written), by_lasthop(&bytes), "{name}");
        assert_eq!(Packet::parse(&written).unwrap().0, packet, "{name}");
    }
    assert!(read > 50, "{read}");
}

#[test]
fn packets_of_linux_are_written_as_by_linux() {
    let mut differ = BTreeSet::new();
    for Case { name, bytes, .. } in cases().into_iter().filter(|case| !case.made) {
        let Ok((packet, place)) = Packet::parse(&bytes) else { continue };
        let mut written = Vec::new();
        packet.emit(&bytes[place], &mut written).unwrap();
        if written != bytes {
            differ.insert(name);
        }
    }
    assert_eq!(differ, known(LINUX));
}

#[test]
fn etherparse_agrees() {
    agrees(by_etherparse::read, ETHERPARSE);
}

#[test]
fn smoltcp_agrees() {
    agrees(by_smoltcp::read, SMOLTCP);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::common::cases(), ..ProptestConfig::default() })]

    #[test]
    fn the_others_read_any_packet_that_is_written((packet, payload) in crate::common::packet()) {
        let mut bytes = Vec::new();
        packet.emit(&payload, &mut bytes).unwrap();
        prop_assume!(!matches!(packet.body, Body::Repair(_) | Body::Esp(_) | Body::Mobility(_)));
        let ours = by_lasthop(&bytes);
        // Both want eight bytes of any ICMP, etherparse even twenty of a timestamp request.
        let short = matches!(packet.body, Body::Icmp(Icmp::Other { .. })) && payload.len() < 4;
        let timestamp = matches!(packet.body, Body::Icmp(Icmp::Other { kind: 13, .. }));
        if !short && !timestamp && !hops_in_the_middle(&packet) {
            prop_assert_eq!(&by_etherparse::read(&bytes), &ours);
        }
        // It has room for three SACK blocks, and knows what types of ICMPv6 there are.
        let known = !short && match packet.body {
            Body::Tcp(segment) => segment.options.sack.as_slice().len() < 4,
            Body::Icmp(
                Icmp::Other { .. }
                | Icmp::Corruption { .. }
                | Icmp::EspCorruption { .. }
                | Icmp::Survival(_),
            ) => packet.ip.source.is_ipv4(),
            _ => true,
        };
        if known {
            prop_assert_eq!(&by_smoltcp::read(&bytes), &ours);
        }
    }
}

/// Whether hop-by-hop options are not the first extension header: etherparse insists on that
/// (RFC 8200 §4.1 recommends it to senders).
fn hops_in_the_middle(packet: &Packet) -> bool {
    let chain = packet.unparsed.ip();
    let mut at = 0;
    while packet.ip.source.is_ipv6() && at < chain.len() {
        if chain[at] == 0 {
            return true;
        }
        at += 8 + 8 * usize::from(chain[at + 1]);
    }
    false
}

/// A parser accepts and refuses the same packets, and reads the same from them, but for
/// `differences`; each of those is one indeed.
fn agrees(read: fn(&[u8]) -> Result<Fields, String>, differences: Differences) {
    let mut differ = BTreeSet::new();
    for Case { name, bytes, .. } in cases() {
        let (ours, theirs) = (by_lasthop(&bytes), read(&bytes));
        // The texts of errors differ.
        if ours != theirs && (ours.is_ok() || theirs.is_ok()) {
            println!("{name}\nhere:  {ours:?}\nthere: {theirs:?}");
            differ.insert(name);
        }
    }
    assert_eq!(differ, known(differences));
}

fn known(differences: Differences) -> BTreeSet<String> {
    differences.iter().map(|(name, _)| (*name).to_owned()).collect()
}
