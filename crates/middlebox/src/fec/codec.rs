//! The erasure code, on the bytes of packets.
//!
//! The symbol of a source packet is its length in two bytes, its canonical bytes, and zeros. The
//! canonical bytes leave out what routers may change: IP options and extension headers, hop limit, ECN.

use reed_solomon_simd::{ReedSolomonDecoder, ReedSolomonEncoder};
use wire::{Ecn, Ip, Packet};

/// A block cannot be rebuilt from its bytes, or not to the packets that were sent: a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault;

/// The canonical form of a packet: without the fields that routers may change.
pub(super) fn canonical(packet: &Packet) -> Packet {
    let mut packet = *packet;
    let cleared = packet.unparsed.set_ipv4_options(&[]);
    debug_assert!(cleared.is_ok(), "no options are well-formed");
    packet.unparsed.set_corrects(0);
    packet.ip.hop_limit = Ip::HOP_LIMIT;
    if packet.ip.ecn == Ecn::Congested {
        packet.ip.ecn = Ecn::Capable;
    }
    packet
}

/// The size of a block's symbols: room for its longest packet; even, as the code requires.
pub(super) fn symbol_size(sources: &[Packet]) -> u32 {
    let longest = sources.iter().map(Packet::len).max().unwrap_or(0);
    (longest + 2).next_multiple_of(2)
}

/// The symbol of a canonical packet.
fn symbol(packet: &Packet, size: usize) -> Result<Vec<u8>, Fault> {
    let mut payload = vec![0; packet.payload.len as usize];
    packet.payload.render(&mut payload);
    let mut symbol = Vec::with_capacity(size);
    let len = u16::try_from(packet.len()).map_err(|_| Fault)?;
    symbol.extend_from_slice(&len.to_be_bytes());
    packet.emit(&payload, &mut symbol).map_err(|_| Fault)?;
    symbol.resize(size, 0);
    Ok(symbol)
}

/// The symbols of the repair packets of a block of canonical packets.
pub(super) fn encode(sources: &[Packet], repairs: u8) -> Result<Vec<Vec<u8>>, Fault> {
    let size = symbol_size(sources) as usize;
    let mut encoder =
        ReedSolomonEncoder::new(sources.len(), usize::from(repairs), size).map_err(|_| Fault)?;
    for packet in sources {
        encoder.add_original_shard(symbol(packet, size)?).map_err(|_| Fault)?;
    }
    let encoded = encoder.encode().map_err(|_| Fault)?;
    Ok(encoded.recovery_iter().map(<[u8]>::to_vec).collect())
}

/// Rebuilds packets of a block from the canonical packets and the repair symbols that arrived, each
/// with its index. `expected` describes the `missing` packets; only fields without bytes are taken from
/// it.
pub(super) fn decode(
    (sources, repairs): (usize, usize),
    come: &[(u8, Packet)],
    symbols: &[(u8, &[u8])],
    missing: &[(u8, Packet)],
) -> Result<Vec<Packet>, Fault> {
    let size = symbols.first().ok_or(Fault)?.1.len();
    let mut decoder = ReedSolomonDecoder::new(sources, repairs, size).map_err(|_| Fault)?;
    for (index, packet) in come {
        let symbol = symbol(packet, size)?;
        decoder.add_original_shard(usize::from(*index), symbol).map_err(|_| Fault)?;
    }
    // The decoder wants no more than it needs.
    for (index, symbol) in symbols.iter().take(missing.len()) {
        decoder.add_recovery_shard(usize::from(*index), symbol).map_err(|_| Fault)?;
    }
    let decoded = decoder.decode().map_err(|_| Fault)?;
    let rebuilt = missing.iter().map(|(index, expected)| {
        let symbol = decoded.restored_original(usize::from(*index)).ok_or(Fault)?;
        let (len, bytes) = symbol.split_first_chunk::<2>().ok_or(Fault)?;
        let bytes = bytes.get(..usize::from(u16::from_be_bytes(*len))).ok_or(Fault)?;
        let (mut packet, place) = Packet::parse(bytes).map_err(|_| Fault)?;
        if packet.payload.len != expected.payload.len
            || expected.payload.count_wrong(&bytes[place]) > 0
        {
            return Err(Fault);
        }
        packet.payload = expected.payload;
        if let (Some(read), wire::Body::Tcp(sent)) = (packet.tcp_mut(), &expected.body) {
            read.copy = sent.copy;
        }
        if packet == *expected { Ok(packet) } else { Err(Fault) }
    });
    rebuilt.collect()
}
