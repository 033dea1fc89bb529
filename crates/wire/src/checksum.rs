//! The Internet checksum (RFC 1071) and the pseudo headers that it covers.

use crate::{Header, ParseError, ip};
use core::net::IpAddr;

/// The place in a packet where a checksum is still to be completed: Linux's `CHECKSUM_PARTIAL`.
///
/// The field holds the sum over the pseudo header. The network card or kernel that completes it
/// sums everything from `start` on, the field included, and writes the complement there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartialChecksum {
    /// Bytes of the packet before the first that is summed.
    pub start: u16,
    /// Where the field is, bytes from there on.
    pub offset: u16,
}

/// The bytes after the header of a transport.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tail<'a> {
    /// These bytes; the checksum is complete.
    Bytes(&'a [u8]),
    /// This number of bytes, which are elsewhere; the checksum is partial.
    Elsewhere(usize),
}

impl Tail<'_> {
    /// Its length, bytes.
    pub(crate) fn len(self) -> usize {
        match self {
            Tail::Bytes(bytes) => bytes.len(),
            Tail::Elsewhere(len) => len,
        }
    }

    /// Finishes a transport whose header lies in `out` from `start` on, with a checksum of 0:
    /// appends the bytes and writes the checksum at `offset`. `sum` is that of the pseudo header.
    /// Returns the checksum.
    pub(crate) fn finish(self, sum: Sum, start: usize, offset: usize, out: &mut Vec<u8>) -> u16 {
        let field = match self {
            Tail::Bytes(bytes) => {
                out.extend_from_slice(bytes);
                let mut sum = sum;
                sum.add(&out[start..]);
                sum.checksum()
            }
            Tail::Elsewhere(_) => sum.fold(),
        };
        ip::put_u16(&mut out[start..], offset, field);
        field
    }
}

/// An unfinished one's complement sum.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum(u64);

impl Sum {
    /// The pseudo header of a transport over IPv4 (RFC 9293 §3.1) or IPv6 (RFC 8200 §8.1).
    pub(crate) fn pseudo(source: IpAddr, destination: IpAddr, protocol: u8, len: usize) -> Sum {
        let mut sum = Sum::default();
        for address in [source, destination] {
            match address {
                IpAddr::V4(address) => sum.add(&address.octets()),
                IpAddr::V6(address) => sum.add(&address.octets()),
            }
        }
        // A length of 32 bits, split at will: what is summed is words of 16.
        sum.0 += u64::from(protocol) + len as u64;
        sum
    }

    /// Adds bytes; only the last addition may have an odd number of them.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for &word in words {
            self.0 += u64::from(u32::from_be_bytes(word));
        }
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        self.0 += u64::from(u32::from_be_bytes(last));
    }

    /// The sum in 16 bits.
    fn fold(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// The value of the checksum field, if the rest was added with that field 0.
    pub(crate) fn checksum(self) -> u16 {
        !self.fold()
    }

    /// Verifies the sum over everything, the checksum `found` included.
    pub(crate) fn verify(self, header: Header, found: u16) -> Result<(), ParseError> {
        if self.fold() == 0xffff {
            return Ok(());
        }
        // Taking `found` away is adding its complement.
        let expected = Sum(self.0 + u64::from(!found)).checksum();
        Err(ParseError::Checksum { header, found, expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071_section_3() {
        let mut sum = Sum::default();
        sum.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.fold(), 0xddf2);
        assert_eq!(sum.checksum(), 0x220d);
    }

    #[test]
    fn an_odd_byte_is_the_upper_half_of_a_word() {
        for bytes in [&[0xab][..], &[0xab, 0], &[0xab, 0, 0]] {
            let mut sum = Sum::default();
            sum.add(bytes);
            assert_eq!(sum.fold(), 0xab00);
        }
    }

    #[test]
    fn a_wrong_checksum_is_reported_with_the_right_one() {
        let mut sum = Sum::default();
        sum.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7, 0x12, 0x34]);
        let wrong = sum.verify(Header::Tcp, 0x1234);
        let expected = 0x220d;
        assert_eq!(
            wrong,
            Err(ParseError::Checksum { header: Header::Tcp, found: 0x1234, expected })
        );
    }
}
