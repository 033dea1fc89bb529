//! What etherparse reads. It leaves checksums to its caller, who here verifies them with its own
//! functions.

use super::{Fields, Options, Quoted, Tcp, Transport, echo, quotes};
use etherparse::checksum::Sum16BitWords;
use etherparse::{
    IpNumber, Ipv4HeaderSlice, Ipv6ExtensionsSlice, Ipv6HeaderSlice, NetSlice, SlicedPacket,
    TcpOptionElement, TcpOptionReadError, TcpOptionsIterator, TcpSlice, TransportSlice, UdpSlice,
};
use std::net::IpAddr;

pub(crate) fn read(bytes: &[u8]) -> Result<Fields, String> {
    let packet = SlicedPacket::from_ip(bytes).map_err(text)?;
    let (mut fields, fragmented) = match packet.net.ok_or("no network header")? {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            if header.to_header().calc_header_checksum() != header.header_checksum() {
                return Err("checksum".to_owned());
            }
            let fields = Fields {
                source: IpAddr::from(header.source()),
                destination: IpAddr::from(header.destination()),
                hop_limit: header.ttl(),
                traffic_class: header.dcp().value() << 2 | header.ecn().value(),
                dont_fragment: header.dont_fragment(),
                identification: header.identification(),
                flow_label: 0,
                kept: header.options().to_vec(),
                transport: Transport::Udp { ports: [0; 2] },
                payload: Vec::new(),
            };
            (fields, ip.is_payload_fragmented())
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header();
            let fields = Fields {
                source: IpAddr::from(header.source()),
                destination: IpAddr::from(header.destination()),
                hop_limit: header.hop_limit(),
                traffic_class: header.traffic_class(),
                dont_fragment: false,
                identification: 0,
                flow_label: header.flow_label().value(),
                kept: ip.extensions().slice().to_vec(),
                transport: Transport::Udp { ports: [0; 2] },
                payload: Vec::new(),
            };
            (fields, ip.is_payload_fragmented())
        }
        NetSlice::Arp(_) => return Err("ARP".to_owned()),
    };
    if fragmented {
        return Err("a fragment".to_owned());
    }
    let ends = (fields.source, fields.destination);
    let v6 = fields.source.is_ipv6();
    (fields.transport, fields.payload) = match packet.transport.ok_or("no transport")? {
        TransportSlice::Tcp(tcp) => (tcp_of(&tcp, ends)?, tcp.payload().to_vec()),
        TransportSlice::Udp(udp) => {
            udp_checksum(&udp, ends)?;
            let ports = [udp.source_port(), udp.destination_port()];
            (Transport::Udp { ports }, udp.payload().to_vec())
        }
        TransportSlice::Icmpv4(icmp) => {
            if Sum16BitWords::new().add_slice(icmp.slice()).ones_complement() != 0 {
                return Err("checksum".to_owned());
            }
            icmp_of(v6, icmp.slice())?
        }
        TransportSlice::Icmpv6(icmp) => {
            let (IpAddr::V6(source), IpAddr::V6(destination)) = ends else {
                return Err("ICMPv6 over IPv4".to_owned());
            };
            if !icmp.is_checksum_valid(source.octets(), destination.octets()) {
                return Err("checksum".to_owned());
            }
            icmp_of(v6, icmp.slice())?
        }
        TransportSlice::Igmp(_) => return Err("IGMP".to_owned()),
    };
    Ok(fields)
}

fn text(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}

fn tcp_of(tcp: &TcpSlice<'_>, ends: (IpAddr, IpAddr)) -> Result<Transport, String> {
    let checksum = match ends {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            tcp.calc_checksum_ipv4(source.octets(), destination.octets()).map_err(text)?
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            tcp.calc_checksum_ipv6(source.octets(), destination.octets()).map_err(text)?
        }
        _ => return Err("both IP versions".to_owned()),
    };
    if checksum != tcp.checksum() {
        return Err("checksum".to_owned());
    }
    let bits = [
        tcp.fin(),
        tcp.syn(),
        tcp.rst(),
        tcp.psh(),
        tcp.ack(),
        tcp.urg(),
        tcp.ece(),
        tcp.cwr(),
        tcp.ns(),
    ];
    let flags = bits.iter().enumerate().map(|(bit, set)| u16::from(*set) << bit).sum();
    Ok(Transport::Tcp(Box::new(Tcp {
        ports: [tcp.source_port(), tcp.destination_port()],
        seq: tcp.sequence_number(),
        ack: tcp.acknowledgment_number(),
        flags,
        window: tcp.window_size(),
        urgent: tcp.urgent_pointer(),
        options: options(tcp.options())?,
    })))
}

fn options(mut bytes: &[u8]) -> Result<Options, String> {
    let mut options = Options::default();
    loop {
        let mut iterator = TcpOptionsIterator::from_slice(bytes);
        let Some(option) = iterator.next() else { return Ok(options) };
        let rest = iterator.rest();
        bytes = match option {
            Ok(TcpOptionElement::Noop) => rest,
            Ok(TcpOptionElement::MaximumSegmentSize(mss)) => {
                options.mss = Some(mss);
                rest
            }
            Ok(TcpOptionElement::WindowScale(shift)) => {
                options.window_scale = Some(shift);
                rest
            }
            Ok(TcpOptionElement::SelectiveAcknowledgementPermitted) => {
                options.sack_permitted = true;
                rest
            }
            Ok(TcpOptionElement::SelectiveAcknowledgement(first, others)) => {
                options.sack = [Some(first)].into_iter().chain(others).flatten().collect();
                rest
            }
            Ok(TcpOptionElement::Timestamp(value, echo)) => {
                options.timestamps = Some((value, echo));
                rest
            }
            // The reader stops here; skip the option.
            Err(TcpOptionReadError::UnknownId(_)) => {
                let len = usize::from(*bytes.get(1).ok_or("no length")?);
                if len < 2 || len > bytes.len() {
                    return Err("the length of an unknown option".to_owned());
                }
                options.unknown.extend_from_slice(&bytes[..len]);
                &bytes[len..]
            }
            Err(error) => return Err(text(error)),
        };
    }
}

fn udp_checksum(udp: &UdpSlice<'_>, ends: (IpAddr, IpAddr)) -> Result<(), String> {
    let (header, payload) = (udp.to_header(), udp.payload());
    let checksum = match ends {
        (IpAddr::V4(_), _) if header.checksum == 0 => return Ok(()),
        (IpAddr::V4(source), IpAddr::V4(destination)) => header
            .calc_checksum_ipv4_raw(source.octets(), destination.octets(), payload)
            .map_err(text)?,
        (IpAddr::V6(source), IpAddr::V6(destination)) => header
            .calc_checksum_ipv6_raw(source.octets(), destination.octets(), payload)
            .map_err(text)?,
        _ => return Err("both IP versions".to_owned()),
    };
    if checksum == header.checksum { Ok(()) } else { Err("checksum".to_owned()) }
}

/// The message and its payload. Of ICMP it knows what the types mean, but not what is quoted: the
/// quote is given to its parsers of IP headers.
fn icmp_of(v6: bool, message: &[u8]) -> Result<(Transport, Vec<u8>), String> {
    let (kind, code) = (message[0], message[1]);
    let known = quotes(v6, kind) || echo(v6, kind);
    let word = known.then(|| u32::from_be_bytes([message[4], message[5], message[6], message[7]]));
    let (quote, payload) = if quotes(v6, kind) {
        let (quote, rest) = quoted(v6, &message[8..])?;
        (Some(quote), rest)
    } else {
        (None, &message[if known { 8 } else { 4 }..])
    };
    Ok((Transport::Icmp { kind, code, word, quote }, payload.to_vec()))
}

fn quoted(v6: bool, bytes: &[u8]) -> Result<(Quoted, &[u8]), String> {
    let (source, destination, protocol, rest) = if v6 {
        let header = Ipv6HeaderSlice::from_slice(bytes).map_err(text)?;
        let behind = &bytes[header.slice().len()..];
        let (_, protocol, rest) =
            Ipv6ExtensionsSlice::from_slice(header.next_header(), behind).map_err(text)?;
        (IpAddr::from(header.source()), IpAddr::from(header.destination()), protocol, rest)
    } else {
        let header = Ipv4HeaderSlice::from_slice(bytes).map_err(text)?;
        if header.fragments_offset().value() != 0 {
            return Err("a fragment is quoted".to_owned());
        }
        let rest = &bytes[header.slice().len()..];
        (IpAddr::from(header.source()), IpAddr::from(header.destination()), header.protocol(), rest)
    };
    let IpNumber(protocol) = protocol;
    let (transport, rest) = rest.split_first_chunk().ok_or("a short quote")?;
    Ok((Quoted { source, destination, protocol, transport: *transport }, rest))
}
