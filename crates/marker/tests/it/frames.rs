//! Frames of Ethernet with packets of ESP and others, right and wrong ones.

use proptest::prelude::*;

/// Bytes of the link-layer header.
pub(crate) const ETHERNET: usize = 14;
const IPV6: [u8; 2] = [0x86, 0xdd];
const IPV4: [u8; 2] = [0x08, 0x00];

const HOP_BY_HOP: u8 = 0;
const TCP: u8 = 6;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const ESP: u8 = 50;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;

/// An extension header: its type, the words behind the first, and bytes that are cut or filled with zeros to that.
#[derive(Clone, Debug)]
pub(crate) struct Extension {
    pub(crate) kind: u8,
    pub(crate) words: u8,
    pub(crate) content: Vec<u8>,
}

/// The option of SPEP in a header of its own, with this content.
pub(crate) fn option(blocks: [u8; 24]) -> Extension {
    let content = [&[0x3e, 24][..], &blocks, &[1, 2, 0, 0]].concat();
    Extension { kind: DESTINATION_OPTIONS, words: 3, content }
}

/// A packet, as it comes to the base station.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) is_ipv6: bool,
    pub(crate) source: u8,
    pub(crate) label: u32,
    pub(crate) extensions: Vec<Extension>,
    /// The protocol behind the last of them.
    pub(crate) protocol: u8,
    pub(crate) sequence: u32,
    /// Bytes behind the sequence number.
    pub(crate) rest: usize,
    /// So many more bytes than the header says, or fewer.
    pub(crate) excess: i8,
}

impl Frame {
    /// One with the option.
    pub(crate) fn of(source: u8, label: u32, sequence: u32) -> Frame {
        Frame {
            is_ipv6: true,
            source,
            label,
            extensions: vec![option([0; 24])],
            protocol: ESP,
            sequence,
            rest: 100,
            excess: 0,
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        let following = self.extensions.iter().skip(1).map(|extension| extension.kind);
        for (extension, next) in self.extensions.iter().zip(following.chain([self.protocol])) {
            let mut content = extension.content.clone();
            content.resize(8 * (1 + usize::from(extension.words)) - 2, 0);
            payload.extend([next, extension.words]);
            payload.extend(content);
        }
        // The SPI and the number.
        payload.extend([0, 0, 1, self.source]);
        payload.extend(self.sequence.to_be_bytes());
        payload.extend((0..self.rest).map(|place| place as u8));
        let mut frame = vec![2; 12];
        if self.is_ipv6 {
            let first = self.extensions.first().map_or(self.protocol, |extension| extension.kind);
            frame.extend(IPV6);
            frame.extend((6 << 28 | 0x0ab << 20 | self.label).to_be_bytes());
            frame.extend((payload.len() as u16).to_be_bytes());
            frame.extend([first, 64]);
            for end in [self.source, 200] {
                frame.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, end]);
            }
        } else {
            frame.extend(IPV4);
            frame.extend([0x45, 0]);
            frame.extend((20 + payload.len() as u16).to_be_bytes());
            frame.extend([
                0,
                0,
                0,
                0,
                64,
                self.protocol,
                0,
                0,
                10,
                0,
                0,
                self.source,
                10,
                0,
                0,
                200,
            ]);
            let words = frame[ETHERNET..]
                .chunks(2)
                .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
            let sum: u32 = words.sum();
            let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
            frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&checksum.to_be_bytes());
        }
        frame.extend(payload);
        // The kernel runs no program on frames that end within the IP header.
        let least = ETHERNET + if self.is_ipv6 { 40 } else { 20 };
        let len = frame.len().saturating_add_signed(self.excess.into()).max(least);
        frame.resize(len, 0xee);
        frame
    }
}

/// How the number of a packet follows from that of the packet of the flow before it.
fn steps() -> impl Strategy<Value = i32> {
    prop_oneof![
        10 => Just(1),
        2 => 2..6,
        1 => -4..1,
        1 => Just(1 << 20),
    ]
}

fn extensions() -> impl Strategy<Value = Vec<Extension>> {
    // Small numbers, and those that mean something.
    let few = prop::sample::select(vec![0_u8, 1, 2, 3, 5, 23, 24, 25, 0x3e]);
    let kinds = vec![HOP_BY_HOP, ROUTING, FRAGMENT, DESTINATION_OPTIONS, MOBILITY];
    let anything = (prop::sample::select(kinds), 0..6_u8, prop::collection::vec(few, 0..40))
        .prop_map(|(kind, words, content)| Extension { kind, words, content });
    // Options for hops, the routing header of a packet that has arrived there, and options.
    let usual = (prop::sample::select(vec![HOP_BY_HOP, ROUTING, DESTINATION_OPTIONS]), 0..3_u8)
        .prop_map(|(kind, words)| Extension { kind, words, content: Vec::new() });
    let with_option = || any::<[u8; 24]>().prop_map(option);
    // One that is cut off, or whose length is another.
    let wrong = (0..5_u8, 20..28_u8).prop_map(|(words, len)| Extension {
        kind: DESTINATION_OPTIONS,
        words,
        content: vec![0x3e, len],
    });
    prop_oneof![
        20 => with_option().prop_map(|one| vec![one]),
        3 => (usual.clone(), with_option()).prop_map(|(first, one)| vec![first, one]),
        3 => (with_option(), usual.clone()).prop_map(|(one, last)| vec![one, last]),
        2 => (usual.clone(), with_option(), usual).prop_map(|(first, one, last)| vec![first, one, last]),
        2 => (anything.clone(), wrong).prop_map(|(one, wrong)| vec![wrong, one]),
        3 => prop::collection::vec(anything, 0..8),
    ]
}

/// Packets of some flows, of which a few are not for the base station.
pub(crate) fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let one = (
        (0..4_u8, prop::sample::select(vec![0, 1, 0x1_0001]), steps()),
        extensions(),
        prop_oneof![20 => Just(ESP), 1 => Just(TCP), 1 => Just(MOBILITY)],
        prop_oneof![10 => Just(100_usize), 1 => 0..20_usize, 1 => Just(1300)],
        prop_oneof![20 => Just(0_i8), 1 => -120..20_i8],
        prop_oneof![20 => Just(true), 1 => Just(false)],
    );
    let firsts = prop::collection::vec(prop_oneof![Just(1), Just(u32::MAX - 3), any::<u32>()], 12);
    (firsts, prop::collection::vec(one, 1..80)).prop_map(|(mut numbers, parts)| {
        let frame = |((source, label, step), extensions, protocol, rest, excess, is_ipv6)| {
            let flow = usize::from(source) * 3 + u32::count_ones(label) as usize;
            let number: &mut u32 = &mut numbers[flow];
            *number = number.wrapping_add_signed(step);
            Frame { is_ipv6, source, label, extensions, protocol, sequence: *number, rest, excess }
        };
        parts.into_iter().map(frame).collect()
    })
}
