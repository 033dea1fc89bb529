//! What smoltcp reads.

use super::{Fields, Options, Quoted, Tcp, Transport, echo, quotes};
use smoltcp::wire::{
    Icmpv4Packet, Icmpv6Packet, IpProtocol, Ipv4Packet, Ipv6ExtHeader, Ipv6Packet, TcpOption,
    TcpPacket, UdpPacket,
};
use std::net::IpAddr;

type Result<T> = std::result::Result<T, String>;

pub(crate) fn read(bytes: &[u8]) -> Result<Fields> {
    let (mut fields, protocol, transport) = match bytes.first().map(|first| first >> 4) {
        Some(4) => {
            let ip = Ipv4Packet::new_checked(bytes).map_err(|_| "an IPv4 header")?;
            if !ip.verify_checksum() {
                return Err("checksum".to_owned());
            }
            if ip.more_frags() || ip.frag_offset() != 0 {
                return Err("a fragment".to_owned());
            }
            let fields = Fields {
                source: ip.src_addr().into(),
                destination: ip.dst_addr().into(),
                hop_limit: ip.hop_limit(),
                traffic_class: ip.dscp() << 2 | ip.ecn(),
                dont_fragment: ip.dont_frag(),
                identification: ip.ident(),
                flow_label: 0,
                // It looks over options.
                kept: bytes.get(20..ip.header_len().into()).ok_or("a short header")?.to_vec(),
                transport: Transport::Udp { ports: [0; 2] },
                payload: Vec::new(),
            };
            (fields, ip.next_header(), ip.payload())
        }
        Some(6) => {
            let ip = Ipv6Packet::new_checked(bytes).map_err(|_| "an IPv6 header")?;
            let (protocol, rest) = behind_extensions(ip.next_header(), ip.payload())?;
            let extensions = ip.payload().len() - rest.len();
            let fields = Fields {
                source: ip.src_addr().into(),
                destination: ip.dst_addr().into(),
                hop_limit: ip.hop_limit(),
                traffic_class: ip.traffic_class(),
                dont_fragment: false,
                identification: 0,
                flow_label: ip.flow_label(),
                kept: ip.payload()[..extensions].to_vec(),
                transport: Transport::Udp { ports: [0; 2] },
                payload: Vec::new(),
            };
            (fields, protocol, rest)
        }
        _ => return Err("a version".to_owned()),
    };
    let ends = (fields.source, fields.destination);
    (fields.transport, fields.payload) = match (protocol, ends) {
        (IpProtocol::Tcp, _) => tcp_of(transport, ends)?,
        (IpProtocol::Udp, _) => {
            let udp = UdpPacket::new_checked(transport).map_err(|_| "a UDP header")?;
            if !udp.verify_checksum(&ends.0.into(), &ends.1.into()) {
                return Err("checksum".to_owned());
            }
            let ports = [udp.src_port(), udp.dst_port()];
            (Transport::Udp { ports }, udp.payload().to_vec())
        }
        (IpProtocol::Icmp, (IpAddr::V4(_), _)) => {
            let icmp = Icmpv4Packet::new_checked(transport).map_err(|_| "an ICMP header")?;
            if !icmp.verify_checksum() {
                return Err("checksum".to_owned());
            }
            icmp_of(false, (icmp.msg_type().into(), icmp.msg_code()), transport)?
        }
        (IpProtocol::Icmpv6, (IpAddr::V6(source), IpAddr::V6(destination))) => {
            let icmp = Icmpv6Packet::new_checked(transport).map_err(|_| "an ICMPv6 header")?;
            if !icmp.verify_checksum(&source, &destination) {
                return Err("checksum".to_owned());
            }
            icmp_of(true, (icmp.msg_type().into(), icmp.msg_code()), transport)?
        }
        (other, _) => return Err(format!("protocol {other}")),
    };
    Ok(fields)
}

/// The transport behind extension headers.
fn behind_extensions(first: IpProtocol, bytes: &[u8]) -> Result<(IpProtocol, &[u8])> {
    let (mut next, mut rest) = (first, bytes);
    loop {
        match next {
            IpProtocol::HopByHop | IpProtocol::Ipv6Route | IpProtocol::Ipv6Opts => {
                let header = Ipv6ExtHeader::new_checked(rest).map_err(|_| "an extension header")?;
                next = header.next_header();
                rest = &rest[8 + 8 * usize::from(header.header_len())..];
            }
            IpProtocol::Ipv6Frag => return Err("a fragment".to_owned()),
            _ => return Ok((next, rest)),
        }
    }
}

fn tcp_of(bytes: &[u8], ends: (IpAddr, IpAddr)) -> Result<(Transport, Vec<u8>)> {
    let tcp = TcpPacket::new_checked(bytes).map_err(|_| "a TCP header")?;
    if !tcp.verify_checksum(&ends.0.into(), &ends.1.into()) {
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
    let mut options = Options::default();
    let mut rest = tcp.options();
    while !rest.is_empty() {
        let (behind, option) = TcpOption::parse(rest).map_err(|_| "a TCP option")?;
        match option {
            TcpOption::EndOfList => break,
            TcpOption::NoOperation => {}
            TcpOption::MaxSegmentSize(mss) => options.mss = Some(mss),
            TcpOption::WindowScale(shift) => options.window_scale = Some(shift),
            TcpOption::SackPermitted => options.sack_permitted = true,
            TcpOption::SackRange(blocks) => options.sack = blocks.into_iter().flatten().collect(),
            TcpOption::TimeStamp { tsval, tsecr } => options.timestamps = Some((tsval, tsecr)),
            TcpOption::Unknown { .. } => {
                options.unknown.extend_from_slice(&rest[..rest.len() - behind.len()]);
            }
        }
        rest = behind;
    }
    let tcp_fields = Tcp {
        ports: [tcp.src_port(), tcp.dst_port()],
        seq: tcp.seq_number().0 as u32,
        ack: tcp.ack_number().0 as u32,
        flags,
        window: tcp.window_len(),
        urgent: tcp.urgent_at(),
        options,
    };
    Ok((Transport::Tcp(Box::new(tcp_fields)), tcp.payload().to_vec()))
}

/// The message and its payload. The quote is given to its parsers of IP headers.
fn icmp_of(v6: bool, (kind, code): (u8, u8), message: &[u8]) -> Result<(Transport, Vec<u8>)> {
    let known = quotes(v6, kind) || echo(v6, kind);
    let header = if known { 8 } else { 4 };
    let rest = message.get(header..).ok_or("an ICMP header")?;
    let word = known.then(|| u32::from_be_bytes([message[4], message[5], message[6], message[7]]));
    let (quote, payload) = if quotes(v6, kind) {
        let (quote, rest) = quoted(v6, rest)?;
        (Some(quote), rest)
    } else {
        (None, rest)
    };
    Ok((Transport::Icmp { kind, code, word, quote }, payload.to_vec()))
}

/// Its parsers want all of a packet; of a quote there is but the start.
fn quoted(v6: bool, bytes: &[u8]) -> Result<(Quoted, &[u8])> {
    let version = bytes.first().map(|first| first >> 4);
    if version != Some(if v6 { 6 } else { 4 }) || bytes.len() < if v6 { 40 } else { 20 } {
        return Err("a quote".to_owned());
    }
    let (source, destination, protocol, rest): (IpAddr, IpAddr, IpProtocol, _) = if v6 {
        let ip = Ipv6Packet::new_unchecked(bytes);
        let (protocol, rest) = behind_extensions(ip.next_header(), &bytes[40..])?;
        (ip.src_addr().into(), ip.dst_addr().into(), protocol, rest)
    } else {
        let ip = Ipv4Packet::new_unchecked(bytes);
        if ip.frag_offset() != 0 {
            return Err("a fragment is quoted".to_owned());
        }
        let rest = bytes.get(usize::from(ip.header_len())..).ok_or("a quote")?;
        (ip.src_addr().into(), ip.dst_addr().into(), ip.next_header(), rest)
    };
    let (transport, rest) = rest.split_first_chunk().ok_or("a short quote")?;
    let protocol = protocol.into();
    Ok((Quoted { source, destination, protocol, transport: *transport }, rest))
}
