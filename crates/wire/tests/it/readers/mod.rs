//! What a packet says, as read by lasthop and by two other parsers.

pub(crate) mod by_etherparse;
pub(crate) mod by_smoltcp;

use std::net::IpAddr;
use wire::{Body, Icmp, Packet};

/// What all parsers are asked for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fields {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub hop_limit: u8,
    pub traffic_class: u8,
    pub dont_fragment: bool,
    pub identification: u16,
    pub flow_label: u32,
    /// IPv4 options or IPv6 extension headers.
    pub kept: Vec<u8>,
    pub transport: Transport,
    pub payload: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Transport {
    Tcp(Box<Tcp>),
    Udp { ports: [u16; 2] },
    Icmp { kind: u8, code: u8, word: Option<u32>, quote: Option<Quoted> },
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tcp {
    pub ports: [u16; 2],
    pub seq: u32,
    pub ack: u32,
    /// From FIN (1) to what was NS (256).
    pub flags: u16,
    pub window: u16,
    pub urgent: u16,
    pub options: Options,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Options {
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    pub timestamps: Option<(u32, u32)>,
    pub sack: Vec<(u32, u32)>,
    /// Kind, length and data of each.
    pub unknown: Vec<u8>,
}

/// The packet that an ICMP error is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quoted {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub protocol: u8,
    /// The first octets of its transport.
    pub transport: [u8; 8],
}

/// The kinds of ICMP that quote, by IP version.
pub(crate) fn quotes(v6: bool, kind: u8) -> bool {
    if v6 { (1..=4).contains(&kind) } else { [3, 11, 12].contains(&kind) }
}

/// Whether an echo has this type.
pub(crate) fn echo(v6: bool, kind: u8) -> bool {
    if v6 { [128, 129].contains(&kind) } else { [0, 8].contains(&kind) }
}

/// What lasthop reads.
pub(crate) fn by_lasthop(bytes: &[u8]) -> Result<Fields, String> {
    let (packet, place) = Packet::parse(bytes).map_err(|error| error.to_string())?;
    let ip = &packet.ip;
    let place = match packet.body {
        // Others know nothing of notices: to them all behind the checksum is payload.
        Body::Icmp(Icmp::Corruption { .. } | Icmp::EspCorruption { .. } | Icmp::Survival(_)) => {
            ip.len() + packet.unparsed.ip().len() + 4..packet.len() as usize
        }
        // And nothing of SRP or TFRC: to them all behind the header of UDP is payload.
        Body::Srp(srp) => place.start - srp.len()..place.end,
        Body::Tfrc(tfrc) => place.start - tfrc.len()..place.end,
        _ => place,
    };
    let transport = match &packet.body {
        Body::Tcp(tcp) => {
            let options = &tcp.options;
            let blocks = options.sack.as_slice().iter();
            Transport::Tcp(Box::new(Tcp {
                ports: [tcp.source_port, tcp.destination_port],
                seq: tcp.seq.0,
                ack: tcp.ack.0,
                flags: tcp.flags.bits() & 0x1ff,
                window: tcp.window,
                urgent: tcp.urgent,
                options: Options {
                    mss: options.mss,
                    window_scale: options.window_scale,
                    sack_permitted: options.sack_permitted,
                    timestamps: options.timestamps.map(|clock| (clock.value, clock.echo)),
                    sack: blocks.map(|block| (block.start.0, block.end.0)).collect(),
                    unknown: [
                        &change_of(options)[..],
                        &echo_of(options),
                        packet.unparsed.tcp_options(),
                    ]
                    .concat(),
                },
            }))
        }
        Body::Udp(udp) => Transport::Udp { ports: [udp.source_port, udp.destination_port] },
        Body::Srp(srp) => Transport::Udp { ports: [srp.source_port, srp.destination_port] },
        Body::Tfrc(tfrc) => Transport::Udp { ports: [tfrc.source_port, tfrc.destination_port] },
        Body::Icmp(icmp) => icmp_of(icmp, ip.source.is_ipv6()),
        Body::Repair(_) => return Err("other readers do not know repair packets".to_owned()),
        // Other readers see a datagram, whose payload they do not know.
        Body::Mobility(_) => return Err("others see a datagram with a payload".to_owned()),
        Body::Esp(_) | Body::EspTransport(_) => {
            return Err("others see no header behind ESP".to_owned());
        }
    };
    Ok(Fields {
        source: ip.source,
        destination: ip.destination,
        hop_limit: ip.hop_limit,
        traffic_class: ip.dscp << 2 | ip.ecn as u8,
        dont_fragment: ip.dont_fragment,
        identification: ip.identification,
        flow_label: ip.flow_label,
        kept: packet.unparsed.ip().to_vec(),
        transport,
        payload: bytes[place].to_vec(),
    })
}

/// The connectivity option as other readers see it: an option of a kind for experiments, or of an
/// unassigned kind.
fn change_of(options: &wire::Options) -> Vec<u8> {
    let Some(change) = options.connectivity.get() else { return Vec::new() };
    let head: &[u8] = match change.encoding {
        wire::Encoding::Experimental => &[253, 5, 0xcc, 0x1d],
        wire::Encoding::Draft => &[200, 3],
    };
    let cs = match change.cs {
        wire::LocalStatus::Idle => 0,
        wire::LocalStatus::New => 2,
        wire::LocalStatus::EchoAck => 4,
    };
    let bits = [(change.c, 16), (change.ec, 8), (change.ecs, 1)];
    let bits = bits.iter().filter(|(set, _)| *set).map(|(_, bit)| bit).sum::<u8>();
    [head, &[bits + cs]].concat()
}

/// Others know nothing of echoes: an option of a kind for experiments.
fn echo_of(options: &wire::Options) -> Vec<u8> {
    let Some(echo) = options.corrupted else { return Vec::new() };
    let (seq, copy, len) = (echo.seq.0, echo.copy.0, echo.len);
    let head = [253, 15, 0xfe, 0x7e];
    [
        &head[..],
        &seq.to_be_bytes(),
        &copy.to_be_bytes(),
        &len.to_be_bytes(),
        &[u8::from(echo.alone)],
    ]
    .concat()
}

fn icmp_of(icmp: &Icmp, v6: bool) -> Transport {
    let pick = |kinds: [u8; 2]| kinds[usize::from(v6)];
    let (kind, code, word) = match *icmp {
        Icmp::Unreachable { code, .. } => (pick([3, 1]), code, Some(0)),
        Icmp::TooBig { mtu, .. } => (pick([3, 2]), pick([4, 0]), Some(mtu)),
        Icmp::TimeExceeded { code, .. } => (pick([11, 3]), code, Some(0)),
        Icmp::ParameterProblem { code, pointer, .. } => {
            (pick([12, 4]), code, Some(if v6 { pointer } else { pointer << 24 }))
        }
        Icmp::EchoRequest { id, seq } => {
            (pick([8, 128]), 0, Some(u32::from(id) << 16 | u32::from(seq)))
        }
        Icmp::EchoReply { id, seq } => {
            (pick([0, 129]), 0, Some(u32::from(id) << 16 | u32::from(seq)))
        }
        Icmp::Corruption { notice, .. } => {
            (pick([253, 100]), if notice.timestamp.is_some() { 3 } else { 0 }, None)
        }
        Icmp::Survival(_) => (pick([253, 100]), 1, None),
        Icmp::EspCorruption { .. } => (pick([253, 100]), 2, None),
        Icmp::Other { kind, code } => (kind, code, None),
    };
    let quote = icmp.quote().map(|quote| {
        let mut transport = [0; 8];
        transport[..2].copy_from_slice(&quote.source_port.to_be_bytes());
        transport[2..4].copy_from_slice(&quote.destination_port.to_be_bytes());
        transport[4..].copy_from_slice(&quote.seq.0.to_be_bytes());
        let (source, destination, protocol) = (quote.source, quote.destination, quote.protocol);
        Quoted { source, destination, protocol, transport }
    });
    Transport::Icmp { kind, code, word, quote }
}
