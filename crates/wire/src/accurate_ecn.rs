//! The two AccECN options: what a receiver has counted by the ECN field of IP headers (RFC 9768
//! §3.2.3).
//!
//! Only connections with accurate ECN send them, so they stay among the unparsed options, and cost
//! the headers of other segments nothing.

use crate::{Ecn, Packet, UnparsedOptions};
use serde::{Deserialize, Serialize};

/// The kind of the option that begins with ECT(0).
const ACCECN0: u8 = 172;
/// The kind of the option that begins with ECT(1).
const ACCECN1: u8 = 174;
/// Bytes of kind and length, and of a counter.
const BASE: usize = 2;
const COUNTER: usize = 3;

/// The order of the counters in an AccECN option (RFC 9768, figure 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EcnOrder {
    /// ECT(0), CE, ECT(1): kind 172.
    Ect0First,
    /// ECT(1), CE, ECT(0): kind 174.
    Ect1First,
}

impl EcnOrder {
    const fn kind(self) -> u8 {
        match self {
            EcnOrder::Ect0First => ACCECN0,
            EcnOrder::Ect1First => ACCECN1,
        }
    }

    /// The codepoints that are counted, in this order.
    #[must_use]
    pub const fn codepoints(self) -> [Ecn; 3] {
        match self {
            EcnOrder::Ect0First => [Ecn::Capable, Ecn::Congested, Ecn::Capable1],
            EcnOrder::Ect1First => [Ecn::Capable1, Ecn::Congested, Ecn::Capable],
        }
    }
}

/// An AccECN option: up to three counters of received payload bytes, modulo 2^24.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EcnCounters {
    order: EcnOrder,
    counters: [u32; 3],
    len: u8,
}

impl EcnCounters {
    /// What a counter is less than.
    pub const MODULUS: u32 = 1 << 24;

    /// The option with these counters, at most three, in this order, each taken modulo 2^24.
    #[must_use]
    pub fn new(order: EcnOrder, counters: &[u32]) -> EcnCounters {
        let mut option = EcnCounters { order, counters: [0; 3], len: 0 };
        for (slot, counter) in option.counters.iter_mut().zip(counters) {
            *slot = counter % EcnCounters::MODULUS;
            option.len += 1;
        }
        option
    }

    /// The order of its counters.
    #[must_use]
    pub fn order(&self) -> EcnOrder {
        self.order
    }

    /// The counters that it has, with the codepoint that each counts.
    pub fn iter(&self) -> impl Iterator<Item = (Ecn, u32)> + use<> {
        let EcnCounters { order, counters, len } = *self;
        order.codepoints().into_iter().zip(counters).take(usize::from(len))
    }

    /// The counter of a codepoint, if the option has it.
    #[must_use]
    pub fn get(&self, codepoint: Ecn) -> Option<u32> {
        self.iter().find(|(counted, _)| *counted == codepoint).map(|(_, counter)| counter)
    }

    /// Bytes of the option.
    #[must_use]
    pub fn size(&self) -> usize {
        BASE + COUNTER * usize::from(self.len)
    }

    /// Reads an option of one of the two kinds: the whole counters in it, whatever its length (RFC
    /// 9768 §3.2.3).
    fn parse(option: &[u8]) -> Option<EcnCounters> {
        let order = match *option.first()? {
            ACCECN0 => EcnOrder::Ect0First,
            ACCECN1 => EcnOrder::Ect1First,
            _ => return None,
        };
        let mut counters = [0; 3];
        let mut len = 0;
        let (whole, _) = option[BASE..].as_chunks::<COUNTER>();
        for (slot, &[high, middle, low]) in counters.iter_mut().zip(whole) {
            *slot = u32::from_be_bytes([0, high, middle, low]);
            len += 1;
        }
        Some(EcnCounters { order, counters, len })
    }
}

impl UnparsedOptions {
    /// The AccECN option; the last, if there are several.
    #[must_use]
    #[inline]
    pub fn ecn_counters(&self) -> Option<EcnCounters> {
        if self.tcp_options().is_empty() { None } else { self.find_ecn_counters() }
    }

    /// The AccECN option, if nothing else is unparsed.
    #[must_use]
    #[inline]
    pub fn only_ecn_counters(&self) -> Option<EcnCounters> {
        let options = self.tcp_options();
        let whole = options.get(1).is_some_and(|&len| usize::from(len) == options.len());
        if !whole || self.has_ip() || self.corrects() > 0 || self.esp().is_some() {
            return None;
        }
        EcnCounters::parse(options)
    }

    #[cold]
    fn find_ecn_counters(&self) -> Option<EcnCounters> {
        let mut rest = self.tcp_options();
        let mut found = None;
        while let [_, len, ..] = *rest {
            // What was parsed has lengths of two or more, within the options.
            let (option, behind) = rest.split_at_checked(usize::from(len).max(BASE))?;
            found = EcnCounters::parse(option).or(found);
            rest = behind;
        }
        found
    }

    /// Adds an AccECN option; false, without effect, if there is no room for it among the unparsed
    /// options.
    pub fn add_ecn_counters(&mut self, counters: &EcnCounters) -> bool {
        let size = counters.size();
        let mut option = [0; BASE + 3 * COUNTER];
        option[..BASE].copy_from_slice(&[counters.order.kind(), size as u8]);
        let (slots, _) = option[BASE..].as_chunks_mut::<COUNTER>();
        for (slot, (_, counter)) in slots.iter_mut().zip(counters.iter()) {
            slot.copy_from_slice(&counter.to_be_bytes()[1..]);
        }
        self.keep_tcp(&option[..size]).is_ok()
    }
}

/// What a packet says of ECN beside the flags of its TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnFields {
    /// The codepoint of the IP header.
    pub codepoint: Ecn,
    /// The AccECN option.
    pub counters: Option<EcnCounters>,
}

impl From<Ecn> for EcnFields {
    #[inline]
    fn from(codepoint: Ecn) -> EcnFields {
        EcnFields { codepoint, counters: None }
    }
}

impl Packet {
    /// What the packet says of ECN beside the flags of its TCP header.
    #[must_use]
    #[inline]
    pub fn ecn_fields(&self) -> EcnFields {
        EcnFields { codepoint: self.ip.ecn, counters: self.unparsed.ecn_counters() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(options: &[u8]) -> Option<EcnCounters> {
        let mut unparsed = UnparsedOptions::NONE;
        unparsed.set_tcp_options(options).unwrap();
        unparsed.ecn_counters()
    }

    #[test]
    fn both_orders_are_written_and_read_at_each_length() {
        // RFC 9768 §3.2.3, figure 4 and table 5.
        for (order, kind) in [(EcnOrder::Ect0First, 172), (EcnOrder::Ect1First, 174)] {
            for len in 0..=3 {
                let counters = EcnCounters::new(order, &[0x0102_0304, 5, 0x00ff_ffff][..len]);
                let mut unparsed = UnparsedOptions::NONE;
                assert!(unparsed.add_ecn_counters(&counters));
                let bytes = [kind, 2 + 3 * len as u8, 2, 3, 4, 0, 0, 5, 255, 255, 255];
                assert_eq!(unparsed.tcp_options(), &bytes[..2 + 3 * len]);
                assert_eq!(unparsed.ecn_counters(), Some(counters));
            }
        }
        let counters = EcnCounters::new(EcnOrder::Ect1First, &[1, 2]);
        assert_eq!(counters.get(Ecn::Capable1), Some(1));
        assert_eq!(counters.get(Ecn::Congested), Some(2));
        assert_eq!(counters.get(Ecn::Capable), None);
    }

    #[test]
    fn of_another_length_the_whole_counters_count() {
        // RFC 9768 §3.2.3: the remainder is padding.
        let options = |len: u8| [&[172, len][..], &[1; 20][..usize::from(len) - 2]].concat();
        for (len, counters) in [(3, 0), (4, 0), (6, 1), (7, 1), (9, 2), (10, 2), (12, 3), (20, 3)] {
            let found = read(&options(len)).unwrap();
            assert_eq!(found.iter().count(), counters, "a length of {len}");
        }
    }

    #[test]
    fn an_option_alone_is_told_from_one_beside_others() {
        let mut unparsed = UnparsedOptions::NONE;
        assert_eq!(unparsed.only_ecn_counters(), None);
        let counters = EcnCounters::new(EcnOrder::Ect0First, &[7]);
        assert!(unparsed.add_ecn_counters(&counters));
        assert_eq!(unparsed.only_ecn_counters(), Some(counters));
        let mut coded = unparsed;
        coded.set_corrects(1);
        assert_eq!(coded.only_ecn_counters(), None);
        assert!(unparsed.add_ecn_counters(&counters));
        assert_eq!(unparsed.only_ecn_counters(), None, "two");
        unparsed.set_tcp_options(&[99, 5, 0, 0, 7]).unwrap();
        assert_eq!(unparsed.only_ecn_counters(), None, "another");
    }

    #[test]
    fn other_options_beside_it_are_skipped_and_the_last_counts() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[99, 4, 172, 2]), None, "inside of another option");
        let found = read(&[99, 3, 0, 172, 5, 0, 0, 7, 174, 5, 0, 0, 9]).unwrap();
        assert_eq!(found, EcnCounters::new(EcnOrder::Ect1First, &[9]));
        let mut full = UnparsedOptions::NONE;
        full.set_tcp_options(&[[99, 15].as_slice(), &[0; 13]].concat().repeat(2)).unwrap();
        assert!(!full.add_ecn_counters(&EcnCounters::new(EcnOrder::Ect0First, &[1, 2, 3])));
    }
}
