//! The published examples, packets to the bit, and whatever is wrong with a packet.

use super::*;
use crate::{Flags, FlowKey, Ip, Payload, ReplayWindow, SeqNumber, Spep, Timestamps};
use core::net::IpAddr;
use proptest::prelude::*;

fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Key and salt, SPI, number, initialization vector, what is encrypted with its trailer, and what it
/// becomes, with the integrity check value.
struct Example {
    algorithm: EspAlgorithm,
    material: &'static str,
    spi: u32,
    /// The upper half of an extended number.
    high: Option<u32>,
    low: u32,
    iv: &'static str,
    plain: &'static str,
    sealed: &'static str,
}

const EXAMPLES: [Example; 6] = [
    // draft-mcgrew-gcm-test-01 §4: with extended numbers,
    Example {
        algorithm: EspAlgorithm::Aes128Gcm,
        material: "4c80cdefbb5d10da906ac73c3613a634 2e443b68",
        spi: 0x4321,
        high: Some(0x8765_4321),
        low: 0,
        iv: "4956ed7e3b244cfe",
        plain: "45000048699a000080114db7c0a80102c0a801010a9bf15638d3010000010000
                00000000045f736970045f756470037369700963796265726369747902646b00
                0021000101020201",
        sealed: "fecf537e729d5b07dc30df528dd22b768d1b98736696a6fd348509fa13ceac34
                 cfa2436f14a3f3cf65925bf1f4a13c5d15b21e1884f5ff6247aeabb786b93bce
                 61bc17d768fd9732 459018148f6cbe722fd04796562dfdb4",
    },
    // without,
    Example {
        algorithm: EspAlgorithm::Aes128Gcm,
        material: "feffe9928665731c6d6a8f9467308308 cafebabe",
        spi: 0xa5f8,
        high: None,
        low: 10,
        iv: "facedbaddecaf888",
        plain: "4500003e698f000080114dccc0a80102c0a801010a980035002a2343b2d00100
                0001000000000000037369700963796265726369747902646b00000100010001",
        sealed: "deb22cd9b07c72c16e3a65beeb8df304a5a5897d33ae530f1ba76d5d114d2a5c
                 3de81827c10e9a4f51330d0eec416642cfbb85a5b47e48a4ec3b9ba95d918bd1
                 83b70d3aa8bc6ee4c309e9d85a41ad4a",
    },
    // and the shortest there is;
    Example {
        algorithm: EspAlgorithm::Aes128Gcm,
        material: "7d773d00c144c525ac619d18c84a3f47 d9664267",
        spi: 0x3354_67ae,
        high: None,
        low: u32::MAX,
        iv: "43457e9182443bc6",
        plain: "01020201",
        sealed: "437f866b cb3f699fe9b0822bac961c4504bef270",
    },
    // with the longer key,
    Example {
        algorithm: EspAlgorithm::Aes256Gcm,
        material: "abbccddef00112233445566778899aababbccddef00112233445566778899aab 11223344",
        spi: 0x4a2c_bfe3,
        high: None,
        low: 2,
        iv: "0102030405060708",
        plain: "4500003069a6400080062690c0a801029389155e0a9e008b2dc57ee000000000
                7002400020bf0000020405b40101040201020201",
        sealed: "ff425c9b724599df7a3bcd510194e00d6a78107f1b0b1cbf06efae9d65a5d763
                 748a637985771d347f0545659f14e99def842d8e b335f4eecfdbf831824b4c4915956c96",
    },
    // and extended numbers.
    Example {
        algorithm: EspAlgorithm::Aes256Gcm,
        material: "6c6567616c697a656d6172696a75616e61616e64646f69746265666f72656961 7475726e",
        spi: 0x796b_6963,
        high: Some(u32::MAX),
        low: u32::MAX,
        iv: "333021696765746d",
        plain: "45000030da3a00008001df3bc0a80005c0a800010800c6cd0200070061626364
                65666768696a6b6c6d6e6f707172737401020201",
        sealed: "f97ab2aa356d8edce17644ac8c78e25dd24dedbb29ebf1b64a274b39b49c3a86
                 4cd3d78ca4ae68a32b42458fb57dbe821dcc63b9 d0937ba2945f669368661a329fb4c053",
    },
    // RFC 7634 appendix A
    Example {
        algorithm: EspAlgorithm::ChaCha20Poly1305,
        material: "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f a0a1a2a3",
        spi: 0x0102_0304,
        high: None,
        low: 5,
        iv: "1011121314151617",
        plain: "45000054a6f200004001e778c6336405c000020508005b7a3a080000553bec10
                0007362708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223
                2425262728292a2b2c2d2e2f303132333435363701020204",
        sealed: "24039428b97f417e3c13753a4f05087b67c352e6a7fab1b982d466ef407ae5c6
                 14ee8099d52844eb61aa95dfab4c02f72aa71e7c4c4f64c9befe2facc638e8f3
                 cbec163fac469b502773f6fb94e664da9165b82829f641e0
                 76aaa8266b7fb0f7b11b369907e1ad43",
    },
];

#[test]
fn published_packets_are_encrypted_and_decrypted() {
    for Example { algorithm, material, spi, high, low, iv, plain, sealed } in EXAMPLES {
        let keys = EspKeys::new(algorithm, &hex(material)).unwrap();
        let keys = if high.is_some() { keys.extended() } else { keys };
        let esp = Esp { spi, sequence: low, iv: hex(iv).try_into().unwrap() };
        let (plain, sealed, high) = (hex(plain), hex(sealed), high.unwrap_or(7));
        let mut text = plain.clone();
        let icv = keys.encrypt(&esp, high, &mut text).unwrap();
        assert_eq!([&text[..], &icv].concat(), sealed);
        assert_eq!(keys.decrypt(&esp, high, &mut text, &icv), Ok(()));
        assert_eq!(text, plain);
        // Its padding is what the standard asks for: what it hides is no transport of ours.
        let (next, inner) = without_trailer(&text).unwrap();
        assert_eq!(next, *plain.last().unwrap());
        assert_eq!(inner + 2 + usize::from(plain[plain.len() - 2]), plain.len());
    }
}

fn keys(algorithm: EspAlgorithm) -> EspKeys {
    let material: Vec<u8> = (0..algorithm.material() as u8).collect();
    EspKeys::new(algorithm, &material).unwrap()
}

fn address(v6: bool, n: u8) -> IpAddr {
    match v6 {
        false => IpAddr::from([10, 0, 0, n]),
        true => IpAddr::from([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n]),
    }
}

/// A packet in transport mode, with an option of SPEP over IPv6.
fn protected(v6: bool, is_tcp: bool, len: u32) -> Packet {
    let mut packet = Packet { ip: Ip::new(address(v6, 1), address(v6, 2)), ..Packet::BLANK };
    if is_tcp {
        let mut segment = Segment {
            source_port: 5000,
            destination_port: 80,
            seq: SeqNumber(77),
            flags: Flags::ACK | Flags::from_bits_retain(1 << 10),
            ..Segment::default()
        };
        segment.options.timestamps = Some(Timestamps { value: 1, echo: 2 });
        packet.body = Body::Tcp(segment);
        packet.unparsed.set_tcp_options(&[99, 3, 7]).unwrap();
    } else {
        packet.body = Body::Udp(Udp { source_port: 1, destination_port: 2 });
    }
    if v6 {
        packet.ip.flow_label = 0x12345;
        assert!(Spep::put(&mut packet));
        Spep { blocks: [(1, 2), (4, 5), (0, 0)] }.renew(&mut packet);
    }
    packet.payload = Payload { len, ..Payload::default() };
    assert!(packet.protect(Esp::numbered(0x1000, 0x1_0000_0007)));
    packet
}

/// The bytes of a packet that a receiver has parsed, and of what is sealed in it.
fn received(bytes: &[u8]) -> (Packet, Vec<u8>) {
    let (packet, place) = Packet::parse(bytes).unwrap();
    (packet, bytes[place].to_vec())
}

#[test]
fn what_is_sealed_is_opened_as_it_was_and_has_the_announced_length() {
    for algorithm in EspAlgorithm::ALL {
        for (v6, is_tcp) in [(false, false), (false, true), (true, false), (true, true)] {
            for len in 0..9 {
                let packet = protected(v6, is_tcp, len);
                let payload: Vec<u8> = (0..len as u8).collect();
                let mut bytes = vec![1, 2, 3];
                keys(algorithm).seal(&packet, 0, &payload, &mut bytes).unwrap();
                let bytes = &bytes[3..];
                assert_eq!(bytes.len(), packet.len() as usize);
                // On the path, it is like any ESP packet.
                assert_eq!(FlowKey::read(bytes), packet.flow_key());
                let (read, mut sealed) = received(bytes);
                assert_eq!((read.esp(), Spep::of(&read)), (packet.esp(), Spep::of(&packet)));
                let (opened, place) = keys(algorithm).open(&read, 0, &mut sealed).unwrap();
                assert_eq!((opened, &sealed[place]), (packet, &payload[..]));
            }
        }
    }
}

#[test]
fn the_headers_are_in_order_and_the_trailer_is_that_of_the_standard() {
    let keys = keys(EspAlgorithm::Aes128Gcm);
    let mut packet = protected(true, false, 1);
    let mut bytes = Vec::new();
    keys.seal(&packet, 0, &[0xaa], &mut bytes).unwrap();
    // IPv6 with its flow label, Destination Options, ESP: SPI, number, initialization vector.
    assert_eq!(bytes[..4], [0x60, 1, 0x23, 0x45]);
    assert_eq!((bytes[6], &bytes[40..44]), (60, &[50, 3, 0x3e, 24][..]));
    assert_eq!(bytes[72..88], [0, 0, 0x10, 0, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 7]);
    let esp = packet.esp().unwrap();
    let (_, mut sealed) = received(&bytes);
    let (text, icv) = sealed.split_last_chunk_mut().unwrap();
    keys.decrypt(&esp, 0, text, icv).unwrap();
    // The datagram, 1 byte of padding, its length, and UDP's number.
    assert_eq!((&text[..6], &text[8..]), (&[0, 1, 0, 2, 0, 9][..], &[0xaa, 1, 1, 17][..]));
    // With 3 bytes there is none to add but the trailer: 8 + 2 + 2 is a multiple of 4.
    packet.payload.len = 2;
    let (mut bytes, mut text) = (Vec::new(), Vec::new());
    keys.seal(&packet, 0, &[1, 2], &mut bytes).unwrap();
    text.extend_from_slice(&received(&bytes).1);
    let (text, icv) = text.split_last_chunk_mut().unwrap();
    keys.decrypt(&esp, 0, text, icv).unwrap();
    assert_eq!(text[8..], [1, 2, 0, 17]);
}

#[test]
fn a_bit_that_flips_behind_the_options_is_noticed() {
    for algorithm in EspAlgorithm::ALL {
        let packet = protected(true, true, 5);
        let mut right = Vec::new();
        keys(algorithm).seal(&packet, 0, b"hello", &mut right).unwrap();
        // From the SPI on.
        for bit in 72 * 8..right.len() * 8 {
            let mut wrong = right.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            let (read, mut sealed) = received(&wrong);
            let opened = keys(algorithm).open(&read, 0, &mut sealed);
            assert_eq!(opened, Err(OpenError::Integrity), "bit {bit}");
        }
    }
}

#[test]
fn nodes_on_the_path_may_change_options_and_hops() {
    let keys = keys(EspAlgorithm::Aes256Gcm);
    let packet = protected(true, true, 5);
    let mut bytes = Vec::new();
    keys.seal(&packet, 0, b"hello", &mut bytes).unwrap();
    let (mut read, mut sealed) = received(&bytes);
    read.ip.hop_limit -= 1;
    let blocks = Spep { blocks: [(1, 1), (3, 9), (11, 12)] };
    blocks.renew(&mut read);
    let (opened, place) = keys.open(&read, 0, &mut sealed).unwrap();
    assert_eq!((Spep::of(&opened), &sealed[place]), (Some(blocks), &b"hello"[..]));
}

#[test]
fn extended_numbers_are_authenticated_as_a_whole() {
    for algorithm in EspAlgorithm::ALL {
        let extended = keys(algorithm).extended();
        let packet = protected(true, true, 5);
        let mut bytes = Vec::new();
        extended.seal(&packet, 1, b"hello", &mut bytes).unwrap();
        let open = |keys: &EspKeys, high| {
            let (read, mut sealed) = received(&bytes);
            keys.open(&read, high, &mut sealed).map(|(packet, _)| packet)
        };
        let mut window = ReplayWindow::default();
        window.update(0xffff_fff0);
        let number = window.extended(packet.esp().unwrap().sequence);
        assert!(window.check(number));
        assert_eq!(open(&extended, (number >> 32) as u32), Ok(packet));
        assert_eq!(open(&extended, 0), Err(OpenError::Integrity));
        assert_eq!(open(&keys(algorithm), 1), Err(OpenError::Integrity));
    }
}

/// What is hidden, encrypted as it is.
fn opened(hidden: &[u8]) -> Result<(Packet, Range<usize>), OpenError> {
    let keys = keys(EspAlgorithm::ChaCha20Poly1305);
    let esp = Esp::numbered(9, 1);
    let mut sealed = hidden.to_vec();
    let icv = keys.encrypt(&esp, 0, &mut sealed).unwrap();
    sealed.extend_from_slice(&icv);
    let mut packet = Packet { ip: Ip::new(address(true, 1), address(true, 2)), ..Packet::BLANK };
    packet.body = Body::Esp(esp);
    packet.payload.len = sealed.len() as u32;
    keys.open(&packet, 0, &mut sealed)
}

#[test]
fn whatever_an_authentic_packet_hides_the_receiver_looks_at_it() {
    assert_eq!(opened(&[1, 2, 3, 4, 4, 59]), Err(OpenError::Length { found: 22 }));
    assert_eq!(opened(&[]), Err(OpenError::Length { found: 16 }));
    // A dummy packet, and a packet in a tunnel.
    assert_eq!(opened(&[1, 2, 2, 59]), Err(OpenError::NextHeader { found: 59 }));
    assert_eq!(opened(&[1, 2, 2, 41]), Err(OpenError::NextHeader { found: 41 }));
    // Padding that is too long, or not as it ought to be.
    assert_eq!(opened(&[1, 2, 3, 17]), Err(OpenError::Padding));
    assert_eq!(opened(&[0, 0, 2, 17]), Err(OpenError::Padding));
    // A datagram that ends too early, and one with a wrong checksum.
    assert!(matches!(opened(&[1, 2, 2, 17]), Err(OpenError::Transport(_))));
    let datagram = [0, 1, 0, 2, 0, 8, 1, 1, 1, 2, 2, 17];
    let wrong = matches!(
        opened(&datagram),
        Err(OpenError::Transport(ParseError::Checksum { header: crate::Header::Udp, .. }))
    );
    assert!(wrong);
    // A segment whose unknown options leave no room for the ESP header.
    let mut segment = vec![0; 60];
    (segment[12], segment[20], segment[21]) = (15 << 4, 99, 40);
    let ends = (address(true, 1), address(true, 2));
    let mut sum = crate::checksum::Sum::pseudo(ends.0, ends.1, protocol::TCP, segment.len());
    sum.add(&segment);
    crate::ip::put_u16(&mut segment, Segment::CHECKSUM, sum.checksum());
    segment.extend_from_slice(&[1, 2, 2, 6]);
    assert!(matches!(opened(&segment), Err(OpenError::Transport(ParseError::TooLong { .. }))));
}

#[test]
fn more_padding_than_is_needed_is_accepted() {
    let mut datagram = Packet { ip: Ip::new(address(true, 1), address(true, 2)), ..Packet::BLANK };
    datagram.body = Body::Udp(Udp { source_port: 1, destination_port: 2 });
    let mut bytes = Vec::new();
    datagram.emit(&[], &mut bytes).unwrap();
    let mut hidden = bytes.split_off(40);
    hidden.extend(1..=254);
    hidden.extend_from_slice(&[254, 17]);
    let (packet, place) = opened(&hidden).unwrap();
    assert_eq!((place, packet.payload.len), (8..8, 0));
}

#[test]
fn what_cannot_be_sealed_is_not_written() {
    let keys = keys(EspAlgorithm::Aes128Gcm);
    let error = |packet: &Packet, payload: &[u8]| {
        let mut bytes = vec![7];
        let error = keys.seal(packet, 0, payload, &mut bytes).unwrap_err();
        assert_eq!(bytes, [7]);
        error
    };
    let mut packet = protected(false, true, 3);
    assert_eq!(error(&packet, b"ab"), EmitError::Payload { expected: 3, found: 2 });
    packet.payload.len = 65_500;
    assert!(matches!(error(&packet, &[0; 65_500]), EmitError::TooLong { .. }));
    assert!(packet.unprotect().is_some());
    packet.payload.len = 3;
    assert_eq!(error(&packet, b"abc"), EmitError::NotProtected);
    let short = EspKeys::new(EspAlgorithm::Aes128Gcm, &[0; 19]).unwrap_err();
    assert_eq!(short, MaterialLength { expected: 20, found: 19 });
    assert!(EspKeys::new(EspAlgorithm::Aes256Gcm, &[]).is_err());
    // Nothing of the keys is shown.
    let shown = format!("{keys:?}");
    assert_eq!(shown, "EspKeys { algorithm: Aes128Gcm, is_extended: false, .. }");
}

proptest! {
    #[test]
    fn any_bytes_are_opened_or_refused(
        header in any::<(u32, u32, [u8; 8])>(),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let (spi, sequence, iv) = header;
        for algorithm in EspAlgorithm::ALL {
            let ip = Ip::new(address(true, 1), address(true, 2));
            let mut packet = Packet { ip, body: Body::Esp(Esp { spi, sequence, iv }), ..Packet::BLANK };
            packet.payload.len = bytes.len() as u32;
            prop_assert!(keys(algorithm).open(&packet, 0, &mut bytes.clone()).is_err());
        }
    }

    /// The sender has the keys, and hides anything.
    #[test]
    fn any_authentic_bytes_are_read_or_refused(
        hidden in prop::collection::vec(any::<u8>(), 0..50),
        header in prop::collection::vec(any::<u8>(), 12),
        padding in 0u8..8,
        next in prop::sample::select(&[6u8, 17, 59, 0][..]),
    ) {
        let mut text = header;
        text.extend_from_slice(&hidden);
        text.resize((text.len() + 2 + usize::from(padding)).next_multiple_of(4) - 2, 0);
        let len = text.len();
        for (byte, number) in text[len - usize::from(padding)..].iter_mut().zip(1..) {
            *byte = number;
        }
        text.extend_from_slice(&[padding, next]);
        if let Ok((packet, place)) = opened(&text) {
            prop_assert_eq!(packet.payload.len as usize, place.len());
        }
    }
}
