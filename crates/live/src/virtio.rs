//! The `virtio_net_hdr` in front of every packet of a TUN with offload (virtio 1.2 §5.1.6).

use crate::tun::VIRTIO_HEADER_LEN;
use wire::PartialChecksum;

/// The checksum is to be completed; when reading, it is partial, and needs no verification.
const NEEDS_CHECKSUM: u8 = 1;
/// The checksum has been verified.
const DATA_VALID: u8 = 2;

const GSO_NONE: u8 = 0;
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
/// Together with another: the flag CWR is of the first segment alone.
const GSO_ECN: u8 = 0x80;

/// How a unit is to be cut up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) segment_size: u16,
    pub(crate) v6: bool,
    /// Whether the flag CWR is set.
    pub(crate) cwr: bool,
}

/// The header of a packet whose checksum is partial, if it has one, with `headers` bytes of headers.
pub(crate) fn header(
    checksum: Option<PartialChecksum>,
    headers: u16,
    cut: Option<Cut>,
) -> [u8; VIRTIO_HEADER_LEN] {
    let kind = match cut {
        None => GSO_NONE,
        Some(cut) => (if cut.v6 { GSO_TCP6 } else { GSO_TCP4 }) | if cut.cwr { GSO_ECN } else { 0 },
    };
    let [h0, h1] = headers.to_ne_bytes();
    let [g0, g1] = cut.map_or(0, |cut| cut.segment_size).to_ne_bytes();
    let Some(checksum) = checksum else { return [0; VIRTIO_HEADER_LEN] };
    let [s0, s1] = checksum.start.to_ne_bytes();
    let [o0, o1] = checksum.offset.to_ne_bytes();
    [NEEDS_CHECKSUM, kind, h0, h1, g0, g1, s0, s1, o0, o1]
}

/// Whether the kernel answers for the transport's checksum.
pub(crate) fn is_verified(header: &[u8]) -> bool {
    header[0] & (NEEDS_CHECKSUM | DATA_VALID) != 0
}

/// The length of the segments of a unit of several.
pub(crate) fn segment_size(header: &[u8]) -> Option<u32> {
    is_unit(header).then(|| u16::from_ne_bytes([header[4], header[5]]).into())
}

/// Whether the packet is a unit of several segments.
pub(crate) fn is_unit(header: &[u8]) -> bool {
    header[1] & !GSO_ECN != GSO_NONE
}
