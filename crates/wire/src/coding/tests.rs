use super::*;
use crate::{Causes, CopyId, CorruptedCopy, Ip, PathFields, Probability, SeqNumber};
use proptest::prelude::*;

fn packet(v6: bool) -> Packet {
    let ends = |host: u16| match v6 {
        false => IpAddr::from([10, 0, 0, host as u8]),
        true => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, host]),
    };
    let mut packet = Packet { ip: Ip::new(ends(1), ends(2)), ..Packet::BLANK };
    packet.make_tcp();
    packet
}

#[test]
fn a_tag_survives_the_wire_behind_whatever_options_there_are() {
    for v6 in [false, true] {
        for occupied in [false, true] {
            let mut packet = packet(v6);
            match (occupied, v6) {
                (false, _) => {}
                // A router alert with the end of options behind it.
                (true, false) => packet.unparsed.set_ipv4_options(&[7, 3, 4, 0]).unwrap(),
                (true, true) => {
                    let chain = [6, 0, 1, 4, 0, 0, 0, 0];
                    packet.unparsed.set_ipv6_extensions(0, &chain).unwrap();
                }
            }
            let before = packet.len();
            let place = Place { sequence: Place::MODULUS - 1, index: 17 };
            place.tag(&mut packet).unwrap();
            assert_eq!(packet.len(), before + Place::LEN);
            let mut bytes = Vec::new();
            packet.emit(&[], &mut bytes).unwrap();
            let (read, _) = Packet::parse(&bytes).unwrap();
            assert_eq!(Place::of(&read), Some(place), "IPv6: {v6}, others: {occupied}");
        }
    }
}

#[test]
fn what_has_no_tag_has_no_place() {
    let mut plain = packet(false);
    assert_eq!(Place::of(&plain), None);
    for options in [
        [222, 5, 0, 0, 0, 0, 0, 0],
        // The first bit, and one more option behind it.
        [222, 6, 128, 0, 0, 0, 0, 0],
        [222, 6, 0, 0, 0, 0, 1, 0],
    ] {
        plain.unparsed.set_ipv4_options(&options).unwrap();
        assert_eq!(Place::of(&plain), None);
    }
    let mut plain = packet(true);
    for (kind, chain) in [
        (60, [6, 0, 0x1e, 4, 1, 2, 3, 4]),
        (60, [6, 0, 0x3e, 4, 129, 2, 3, 4]),
        (0, [6, 0, 0x1e, 4, 129, 2, 3, 4]),
    ] {
        plain.unparsed.set_ipv6_extensions(kind, &chain).unwrap();
        assert_eq!(Place::of(&plain), None);
    }
}

/// A packet as it comes out of the network.
fn sent(packet: &Packet) -> Packet {
    let mut bytes = Vec::new();
    packet.emit(&[], &mut bytes).unwrap();
    assert_eq!(bytes.len(), packet.len() as usize);
    Packet::parse(&bytes).unwrap().0
}

fn place() -> impl Strategy<Value = Place> {
    (0..Place::MODULUS, any::<u8>()).prop_map(|(sequence, index)| Place { sequence, index })
}

fn copies(most: usize) -> impl Strategy<Value = Vec<CorruptedCopy>> {
    let copy = any::<(u32, u32, u16)>().prop_map(|(seq, copy, len)| CorruptedCopy {
        seq: SeqNumber(seq),
        copy: CopyId(copy),
        len,
    });
    prop::collection::vec(copy, 1..=most)
}

proptest! {
    #[test]
    fn a_place_and_word_of_corruption_share_a_packet(
        place in place(),
        // There is room for two reports beside a tag.
        copies in copies(2),
        v6: bool,
    ) {
        let mut packet = packet(v6);
        for copy in &copies {
            prop_assert!(packet.unparsed.add_corrupted_copy(v6, *copy));
        }
        place.tag(&mut packet).unwrap();
        for packet in [packet, sent(&packet)] {
            prop_assert_eq!(packet.unparsed.corrupted_copies().collect::<Vec<_>>(), copies.clone());
            prop_assert!(!packet.unparsed.is_marked_corrupted());
            prop_assert_eq!(Place::of(&packet), Some(place));
        }
    }

    #[test]
    fn a_place_is_no_word_of_corruption_and_is_not_overwritten_by_it(place in place(), v6: bool) {
        let mut packet = packet(v6);
        place.tag(&mut packet).unwrap();
        // On the way, the header that follows is TCP's.
        let mut packet = sent(&packet);
        prop_assert!(!packet.unparsed.is_marked_corrupted());
        prop_assert_eq!(packet.unparsed.corrupted_copies().count(), 0);
        let before = packet;
        let copy = CorruptedCopy::default();
        prop_assert!(!packet.unparsed.add_corrupted_copy(v6, copy) && !packet.unparsed.mark_corrupted(v6));
        prop_assert_eq!(packet, before);
    }

    /// Whatever numbers it brings: those of copies may be anything.
    #[test]
    fn word_of_corruption_is_no_place(copies in copies(3), v6: bool) {
        let mut packet = packet(v6);
        for copy in copies {
            prop_assert!(packet.unparsed.add_corrupted_copy(v6, copy));
        }
        prop_assert_eq!(Place::of(&packet), None);
    }

    #[test]
    fn fields_of_the_path_are_no_place(words: [u32; 4], v6: bool) {
        let mut packet = packet(v6);
        fields(words).put(v6, &mut packet.unparsed);
        prop_assert_eq!(Place::of(&packet), None);
    }

    #[test]
    fn a_tag_behind_fields_that_weigh_nothing_has_its_weight(
        words: [u32; 4],
        place in place(),
        v6: bool,
    ) {
        let (mut packet, fields) = (packet(v6), fields(words));
        let bare = packet.len();
        fields.put(v6, &mut packet.unparsed);
        packet.unparsed.set_zero_size(true);
        place.tag(&mut packet).unwrap();
        prop_assert_eq!(packet.len(), bare + Place::LEN);
        prop_assert_eq!((PathFields::of(&packet), Place::of(&packet)), (Some(fields), Some(place)));
        // What is on the wire is a packet of its own.
        let read = sent(&packet);
        prop_assert_eq!((PathFields::of(&read), Place::of(&read)), (None, Some(place)));
    }
}

fn fields(words: [u32; 4]) -> PathFields {
    let [a, b, c, d] = words.map(Probability);
    let causes = |corruption, congestion| Causes { corruption, congestion };
    PathFields::Exact { forward: causes(a, b), echoed: causes(c, d) }
}

#[test]
fn a_copy_whose_number_spells_a_tag_is_no_place() {
    let mut packet = packet(false);
    let (seq, copy) = (SeqNumber(1), CopyId(u32::from_be_bytes([9, 222, 6, 1])));
    let copy = CorruptedCopy { seq, copy, len: 1000 };
    assert!(packet.unparsed.add_corrupted_copy(false, copy));
    assert_eq!(packet.unparsed.ip()[8..], [222, 6, 1, 3, 232, 0, 0, 0]);
    assert_eq!(Place::of(&packet), None);
}

#[test]
fn a_packet_full_of_options_stays_as_it_is() {
    let mut full = packet(false);
    full.unparsed.set_ipv4_options(&[1; 36]).unwrap();
    let before = full;
    assert!(Place::default().tag(&mut full).is_err());
    assert_eq!(full, before);
}
