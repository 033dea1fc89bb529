//! What leaves by one end and comes in at another.

use super::*;
use core::net::Ipv6Addr;
use wire::{Icmp, Ip, Payload, Quote, SeqNumber, Spep};

const FIXED: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const MOBILE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);
const NOW: Time = Time::ZERO;

/// A key that is another one for each number.
fn key(number: u8) -> PresharedKey {
    PresharedKey::generate(&mut move || Some([number; 32])).unwrap()
}

/// An end with this key, started with these random numbers, before the network of a host.
fn end(shared: PresharedKey, run: u32, other: Ipv6Addr) -> EspEnd {
    EspEnd {
        networks: vec![Prefix::new(other.into(), 48)],
        end: Esp::settings(scenario::EspHost::Fixed).of_all_packets(Seed(run.into()).stream("esp")),
        keys: Keys::new(shared),
        run: run.to_be_bytes(),
        mss: 1374,
        reports: [0; 2],
        refused: BTreeMap::new(),
        logged: None,
    }
}

/// A segment of the fixed host's with this payload.
fn segment(len: usize) -> Packet {
    let mut packet = Packet { ip: Ip::new(FIXED.into(), MOBILE.into()), ..Packet::BLANK };
    packet.make_tcp();
    packet.payload = Payload { len: len as u32, ..Payload::default() };
    packet
}

/// The bytes of a segment as they leave.
fn sent(end: &mut EspEnd, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(end.protect(NOW, &segment(payload.len()), payload, &mut bytes));
    bytes
}

/// What arrives of these bytes: the packet and its payload.
fn arrived(end: &mut EspEnd, mut bytes: Vec<u8>) -> Result<(Packet, Vec<u8>), Opened> {
    let (mut packet, place) = Packet::parse(&bytes).unwrap();
    let payload = &mut bytes[place];
    match end.open(NOW, &mut packet, payload, &mut Outbox::default().context()) {
        Opened::Opened(place) => Ok((packet, payload[place].to_vec())),
        other => Err(other),
    }
}

#[test]
fn a_segment_arrives_as_it_was_and_shows_nothing_on_its_way() {
    let [mut fixed, mut mobile] = [(3, MOBILE), (4, FIXED)].map(|(run, to)| end(key(1), run, to));
    let payload = *b"what nobody is to read on its way";
    let bytes = sent(&mut fixed, &payload);
    assert!(!bytes.windows(8).any(|some| some == &payload[..8]));
    assert!(Spep::of(&Packet::parse(&bytes).unwrap().0).is_some());
    let (packet, arrived) = arrived(&mut mobile, bytes).unwrap();
    assert!(matches!(packet.body, Body::Tcp(_)));
    assert_eq!(arrived, payload);
}

#[test]
fn a_packet_is_accepted_once() {
    let [mut fixed, mut mobile] = [(3, MOBILE), (4, FIXED)].map(|(run, to)| end(key(1), run, to));
    let bytes = sent(&mut fixed, b"once");
    arrived(&mut mobile, bytes.clone()).unwrap();
    assert_eq!(arrived(&mut mobile, bytes), Err(Opened::Dropped));
    assert_eq!(mobile.refused, BTreeMap::from([(Refusal::Replay, 1)]));
}

#[test]
fn with_another_key_or_one_bit_changed_nothing_arrives_and_no_name_is_remembered() {
    let mut fixed = end(key(1), 3, MOBILE);
    let mut stranger = end(key(2), 4, FIXED);
    assert_eq!(arrived(&mut stranger, sent(&mut fixed, b"secret")), Err(Opened::Dropped));
    let mut mobile = end(key(1), 4, FIXED);
    let bytes = sent(&mut fixed, b"secret");
    // The first of the SPI, the last of the initialization vector, and the last of the integrity check value.
    let esp = 40 + Spep::LEN as usize;
    for place in [esp, esp + 15, bytes.len() - 1] {
        let mut changed = bytes.clone();
        changed[place] ^= 1;
        assert_eq!(arrived(&mut mobile, changed), Err(Opened::Dropped), "{place}");
    }
    for end in [stranger, mobile] {
        assert_eq!(end.refused.keys().collect::<Vec<_>>(), [&Refusal::Unauthentic]);
        assert!(end.keys.known.is_empty());
    }
}

#[test]
fn the_same_segment_has_other_bytes_after_a_restart_although_numbers_begin_anew() {
    let first = |run: u32| {
        let mut end = end(key(1), run, MOBILE);
        // The random SPI is the same, too, as by chance.
        end.end = Esp::settings(scenario::EspHost::Fixed).of_all_packets(Seed(1).stream("esp"));
        let bytes = sent(&mut end, b"the first segment");
        let esp = Packet::parse(&bytes).unwrap().0.esp().unwrap();
        (esp.spi, esp.sequence, bytes)
    };
    let [(spi, sequence, one), (other_spi, other_sequence, other)] = [7, 8].map(first);
    assert_eq!((spi, sequence), (other_spi, other_sequence));
    let behind = 40 + Spep::LEN as usize + wire::Esp::HEADER;
    assert_ne!(one[behind..], other[behind..]);
    // Nor is one xor the other that of the texts, as with the same key and nonce.
    let differs = one[behind..].iter().zip(&other[behind..]).filter(|(one, other)| one != other);
    assert!(differs.count() > 30);
}

#[test]
fn each_direction_and_association_has_a_key_of_its_own() {
    let keys = Keys::new(key(1));
    let [fixed, mobile] = [FIXED, MOBILE].map(IpAddr::from);
    let names = [
        (fixed, mobile, 1, [0; 4]),
        (mobile, fixed, 1, [0; 4]),
        (fixed, mobile, 2, [0; 4]),
        (fixed, mobile, 1, [1; 4]),
    ];
    let mut packet = segment(4);
    assert!(packet.protect(wire::Esp::numbered(1, 1)));
    let sealed = names.map(|name| {
        let mut out = Vec::new();
        keys.derive(&name).seal(&packet, 0, b"text", &mut out).unwrap();
        out
    });
    for (index, one) in sealed.iter().enumerate() {
        assert!(sealed[..index].iter().all(|other| one != other));
    }
}

#[test]
fn what_should_be_under_esp_and_is_not_passes_in_neither_direction() {
    let mut mobile = end(key(1), 4, FIXED);
    let plain = |body| Packet { ip: Ip::new(FIXED.into(), MOBILE.into()), body, ..Packet::BLANK };
    let quote = |protocol| Quote {
        source: MOBILE.into(),
        destination: FIXED.into(),
        len: 100,
        protocol,
        source_port: 1,
        destination_port: 2,
        seq: SeqNumber(3),
    };
    let error = |protocol| Body::Icmp(Icmp::Unreachable { code: 1, quote: quote(protocol) });
    let mut open = |mut packet: Packet| {
        mobile.open(NOW, &mut packet, &mut [], &mut Outbox::default().context())
    };
    assert_eq!(open(segment(0)), Opened::Dropped);
    assert_eq!(open(plain(error(TCP))), Opened::Dropped);
    // A router's error about ESP; and what is not TCP.
    assert_eq!(open(plain(error(50))), Opened::AsItIs);
    assert_eq!(open(plain(Body::Icmp(Icmp::EchoRequest { id: 1, seq: 2 }))), Opened::AsItIs);
    let elsewhere = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 1);
    let ip = Ip::new(elsewhere.into(), MOBILE.into());
    assert_eq!(open(Packet { ip, ..segment(0) }), Opened::AsItIs);
    assert_eq!(mobile.refused, BTreeMap::from([(Refusal::InClear, 2)]));
    let mut bump = Bump(Arc::new(Mutex::new(end(key(1), 3, MOBILE))));
    assert!(bump.protects(&segment(0)) && bump.protects(&plain(error(TCP))));
    assert!(!bump.protect(NOW, &plain(error(TCP)), &[], &mut Vec::new()));
    assert!(!bump.protects(&Packet { ip: Ip::new(MOBILE.into(), FIXED.into()), ..segment(0) }));
    // Fragments of TCP cannot be read: 44 is their header.
    let mut unread = [0; 48];
    unread[NEXT_HEADER] = 44;
    assert!(!bump.passes_unread(NOW, &unread));
    unread[NEXT_HEADER] = ICMPV6;
    assert!(bump.passes_unread(NOW, &unread));
}

#[test]
fn a_syn_announces_segments_that_fit_under_esp_in_either_direction() {
    let [mut fixed, mut mobile] = [(3, MOBILE), (4, FIXED)].map(|(run, to)| end(key(1), run, to));
    mobile.mss = 1300;
    let mut syn = segment(0);
    let Body::Tcp(segment) = &mut syn.body else { panic!("no segment") };
    segment.flags = Flags::SYN;
    segment.options.mss = Some(1440);
    let mut bytes = Vec::new();
    assert!(fixed.protect(NOW, &syn, &[], &mut bytes));
    let opened = |end: &mut EspEnd| {
        let Body::Tcp(segment) = arrived(end, bytes.clone()).unwrap().0.body else {
            panic!("no segment")
        };
        segment.options.mss
    };
    assert_eq!(opened(&mut mobile), Some(1300));
    assert_eq!(opened(&mut end(key(1), 5, FIXED)), Some(1374));
}
