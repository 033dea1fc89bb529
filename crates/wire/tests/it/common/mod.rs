//! Any packet that can be written.

pub(crate) mod corpus;

use proptest::prelude::*;
use std::net::IpAddr;
use wire::srp::{self, Chunk, Continue, Ends, Limits, Pdu, Reason, Sack};
use wire::{
    Body, Causes, ConnectivityChange, CopyId, CorruptionEcho, CorruptionNotice, Ecn, Encoding, Esp,
    EspNotice, Flags, Icmp, Ip, LocalStatus, Mobility, MobilityMessage, Options, Outcome, Packet,
    Payload, Place, Probability, Quote, Repair, SackBlock, SackBlocks, Segment, SeqNumber, Srp,
    SurvivalNotice, Tfrc, TfrcMessage, Timestamps, Udp, UnparsedOptions,
};

/// A packet and its payload.
pub(crate) fn packet() -> impl Strategy<Value = (Packet, Vec<u8>)> {
    any::<bool>().prop_flat_map(|v6| {
        let parts = (ip(v6), body(v6), rare_ip(v6), unknown_options());
        let payload = prop::collection::vec(any::<u8>(), 0..100);
        (parts, payload).prop_map(|((ip, body, network, unknown), payload)| {
            let mut packet = Packet { ip, body, ..Packet::BLANK };
            set_network(&mut packet, &network);
            let mut payload = payload;
            match &mut packet.body {
                Body::Tcp(segment) => fit(&mut packet.unparsed, segment, &unknown),
                Body::Icmp(Icmp::Corruption { .. } | Icmp::EspCorruption { .. })
                | Body::Mobility(_) => payload.clear(),
                Body::Srp(srp) if !srp.pdu.carries_data() => payload.clear(),
                Body::Tfrc(tfrc) if !tfrc.carries_data() => payload.clear(),
                Body::Udp(_)
                | Body::Srp(_)
                | Body::Tfrc(_)
                | Body::Icmp(_)
                | Body::Repair(_)
                | Body::Esp(_) => {}
                Body::EspTransport(_) => unreachable!("it cannot be written without keys"),
            }
            // A notice says how long it is; one that is too short is longer.
            let len = packet.len();
            if let Body::Icmp(Icmp::Corruption { size, .. } | Icmp::EspCorruption { size, .. }) =
                &mut packet.body
            {
                *size = len as u16;
            }
            packet.payload = Payload { len: payload.len() as u32, ..Payload::default() };
            (packet, payload)
        })
    })
}

/// Unknown options as far as there is room for them.
fn fit(unparsed: &mut UnparsedOptions, segment: &mut Segment, unknown: &[u8]) {
    if segment.options.len() > 40 {
        segment.options.sack.clear();
    }
    if segment.options.len() + unknown.len().next_multiple_of(4) <= 40 {
        unparsed.set_tcp_options(unknown).expect("they are unknown");
    }
}

fn address(v6: bool) -> BoxedStrategy<IpAddr> {
    match v6 {
        false => any::<[u8; 4]>().prop_map(IpAddr::from).boxed(),
        true => any::<[u8; 16]>().prop_map(IpAddr::from).boxed(),
    }
}

fn ip(v6: bool) -> impl Strategy<Value = Ip> {
    let ecn =
        prop::sample::select(&[Ecn::NotCapable, Ecn::Capable1, Ecn::Capable, Ecn::Congested][..]);
    let rest = (any::<u8>(), ecn, 0u8..64, any::<bool>(), any::<u16>(), 0u32..1 << 20);
    (address(v6), address(v6), rest).prop_map(move |(source, destination, rest)| {
        let (hop_limit, ecn, dscp, df, identification, flow_label) = rest;
        let ip = Ip { hop_limit, ecn, dscp, ..Ip::new(source, destination) };
        match v6 {
            false => Ip { dont_fragment: df, identification, ..ip },
            true => Ip { flow_label, ..ip },
        }
    })
}

/// IPv4 options, or IPv6 extension headers as kinds and the words of eight bytes behind the first.
#[derive(Clone, Debug)]
pub(crate) enum Network {
    V4(Vec<u8>),
    V6(Vec<(u8, Vec<u8>)>),
}

fn rare_ip(v6: bool) -> BoxedStrategy<Network> {
    if v6 {
        let kind = prop::sample::select(&[0u8, 43, 60][..]);
        let words = prop::sample::select(&[6usize, 14][..]);
        let header = (kind, words).prop_flat_map(|(kind, len)| {
            prop::collection::vec(any::<u8>(), len).prop_map(move |data| (kind, data))
        });
        prop::collection::vec(header, 0..4).prop_map(Network::V6).boxed()
    } else {
        let option = (prop::sample::select(&[7u8, 68, 130, 148][..]), 2u8..9);
        prop::collection::vec(option, 0..4)
            .prop_map(|options| {
                let mut bytes = Vec::new();
                for (kind, len) in options {
                    bytes.extend_from_slice(&[kind, len]);
                    bytes.resize(bytes.len() + usize::from(len) - 2, 0xaa);
                }
                bytes.resize(bytes.len().next_multiple_of(4), 1);
                Network::V4(bytes)
            })
            .boxed()
    }
}

fn set_network(packet: &mut Packet, network: &Network) {
    match network {
        Network::V4(options) => {
            packet.unparsed.set_ipv4_options(options).expect("they are options")
        }
        Network::V6(headers) => {
            let transport = match packet.body {
                Body::Tcp(_) => 6,
                Body::Udp(_) | Body::Srp(_) | Body::Tfrc(_) | Body::Mobility(_) => 17,
                Body::Icmp(_) => 58,
                Body::Repair(_) => 253,
                Body::Esp(_) | Body::EspTransport(_) => 50,
            };
            let nexts = headers.iter().skip(1).map(|header| header.0).chain([transport]);
            let mut chain = Vec::new();
            for ((kind, data), next) in headers.iter().zip(nexts) {
                let start = chain.len();
                chain.extend_from_slice(&[next, (data.len() / 8) as u8]);
                chain.extend_from_slice(data);
                if *kind == 43 {
                    // A route at its end.
                    chain[start + 3] = 0;
                }
            }
            let first = headers.first().map_or(0, |header| header.0);
            packet.unparsed.set_ipv6_extensions(first, &chain).expect("it is a chain");
        }
    }
}

fn unknown_options() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop::sample::select(&[6u8, 19, 30, 34, 253, 254, 255][..]);
    let option = (kind, prop::collection::vec(any::<u8>(), 0..16));
    prop::collection::vec(option, 0..3).prop_map(|options| {
        let mut bytes = Vec::new();
        for (kind, data) in options {
            bytes.extend_from_slice(&[kind, 2 + data.len() as u8]);
            bytes.extend_from_slice(&data);
        }
        bytes
    })
}

fn seq() -> impl Strategy<Value = SeqNumber> {
    any::<u32>().prop_map(SeqNumber)
}

fn connectivity() -> impl Strategy<Value = ConnectivityChange> {
    let status =
        prop::sample::select(&[LocalStatus::Idle, LocalStatus::New, LocalStatus::EchoAck][..]);
    let encoding = prop::sample::select(&[Encoding::Experimental, Encoding::Draft][..]);
    (any::<[bool; 3]>(), status, encoding)
        .prop_map(|([c, ec, ecs], cs, encoding)| ConnectivityChange { c, ec, cs, ecs, encoding })
}

fn segment() -> impl Strategy<Value = Segment> {
    let block = (seq(), seq()).prop_map(|(start, end)| SackBlock { start, end });
    let options = (
        any::<Option<u16>>(),
        any::<Option<u8>>(),
        any::<bool>(),
        any::<Option<(u32, u32)>>(),
        prop::collection::vec(block, 0..=4),
        any::<Option<(u32, u32, u16, bool)>>(),
        prop::option::of(connectivity()),
    );
    let header = (any::<[u16; 4]>(), seq(), seq(), 0u16..1 << 12);
    (header, options).prop_map(|((words, seq, ack, flags), options)| {
        let [source_port, destination_port, window, urgent] = words;
        let (mss, window_scale, sack_permitted, timestamps, blocks, echo, connectivity) = options;
        let timestamps = timestamps.map(|(value, echo)| Timestamps { value, echo });
        let sack = SackBlocks::from(blocks);
        let corrupted = echo.map(|(seq, copy, len, alone)| CorruptionEcho {
            seq: SeqNumber(seq),
            copy: CopyId(copy),
            len,
            alone,
        });
        Segment {
            source_port,
            destination_port,
            seq,
            ack,
            flags: Flags::from_bits_retain(flags),
            window,
            urgent,
            options: Options {
                mss,
                window_scale,
                sack_permitted,
                timestamps,
                sack,
                connectivity: connectivity.into(),
                corrupted,
            },
            copy: CopyId(0),
        }
    })
}

fn quote(v6: bool) -> impl Strategy<Value = Quote> {
    // No extension header, which would be looked behind.
    let protocol = prop::sample::select(&[1u8, 6, 17, 50, 255][..]);
    let header = (address(v6), address(v6), 40u16.., protocol);
    (header, any::<[u16; 2]>(), seq()).prop_map(|(header, ports, seq)| {
        let (source, destination, len, protocol) = header;
        let [source_port, destination_port] = ports;
        Quote { source, destination, len, protocol, source_port, destination_port, seq }
    })
}

fn esp() -> impl Strategy<Value = Esp> {
    let fields = (any::<[u32; 2]>(), any::<[u8; 8]>());
    fields.prop_map(|([spi, sequence], iv)| Esp { spi, sequence, iv })
}

fn esp_notice(v6: bool) -> impl Strategy<Value = EspNotice> {
    (address(v6), address(v6), esp()).prop_map(|(source, destination, esp)| EspNotice {
        source,
        destination,
        esp,
    })
}

fn icmp(v6: bool) -> impl Strategy<Value = Icmp> {
    let notice =
        (address(v6), address(v6), any::<[u16; 2]>(), any::<[u32; 3]>(), any::<Option<u32>>());
    let notice = notice.prop_map(|(source, destination, ports, [seq, len, copy], timestamp)| {
        CorruptionNotice {
            timestamp,
            source,
            destination,
            source_port: ports[0],
            destination_port: ports[1],
            seq: SeqNumber(seq),
            len,
            // It has one name.
            copy: if timestamp.is_some() { CopyId::NONE } else { CopyId(copy) },
        }
    });
    let survival = (address(v6), any::<[u16; 2]>(), any::<[u32; 3]>());
    let survival = survival.prop_map(|(destination, ports, [link, corruption, congestion])| {
        let survival = Causes { corruption, congestion }.map(Probability);
        let [source_port, destination_port] = ports;
        SurvivalNotice { destination, source_port, destination_port, link, survival }
    });
    let (most_mtu, most_pointer) = if v6 { (u32::MAX, u32::MAX) } else { (0xffff, 0xff) };
    // Code 4 is another message in IPv4.
    let code = (0u8..16).prop_filter("too big", |code| *code != 4);
    let others = prop::sample::select(&[5u8, 9, 13, 133, 134, 200, 254][..]);
    prop_oneof![
        (code, quote(v6)).prop_map(|(code, quote)| Icmp::Unreachable { code, quote }),
        (0..=most_mtu, quote(v6)).prop_map(|(mtu, quote)| Icmp::TooBig { mtu, quote }),
        (any::<u8>(), quote(v6)).prop_map(|(code, quote)| Icmp::TimeExceeded { code, quote }),
        (any::<u8>(), 0..=most_pointer, quote(v6))
            .prop_map(|(code, pointer, quote)| Icmp::ParameterProblem { code, pointer, quote }),
        any::<(u16, u16)>().prop_map(|(id, seq)| Icmp::EchoRequest { id, seq }),
        any::<(u16, u16)>().prop_map(|(id, seq)| Icmp::EchoReply { id, seq }),
        (notice, 0u16..200).prop_map(|(notice, size)| Icmp::Corruption { notice, size }),
        survival.prop_map(Icmp::Survival),
        (esp_notice(v6), 0u16..200).prop_map(|(notice, size)| Icmp::EspCorruption { notice, size }),
        (others, any::<u8>()).prop_map(|(kind, code)| Icmp::Other { kind, code }),
    ]
}

fn srp() -> impl Strategy<Value = Srp> {
    let limits = any::<(u16, u32, u16)>();
    let limits =
        limits.prop_map(|(segments, window, streams)| Limits { segments, window, streams });
    let reason = prop::sample::select(
        &[
            Reason::Aborted,
            Reason::Refused,
            Reason::Unreachable,
            Reason::TimedOut,
            Reason::Unknown,
            Reason::Full,
        ][..],
    );
    let ends = any::<bool>().prop_flat_map(|v6| {
        (address(v6), address(v6), any::<[u16; 2]>()).prop_map(
            |(client, server, [client_port, server_port])| Ends {
                client,
                server,
                client_port,
                server_port,
            },
        )
    });
    let has = (any::<(u32, u32, bool)>(), prop::option::of(ends.clone()));
    let has = has.prop_map(|((received, limit, is_whole), ends)| {
        Chunk::Continue(Continue { received, limit, is_whole, ends })
    });
    let chunk = prop_oneof![
        any::<(u32, bool)>().prop_map(|(offset, end)| Chunk::Data { offset, end }),
        ends.prop_map(Chunk::Open),
        Just(Chunk::Accept),
        any::<u32>().prop_map(|limit| Chunk::Credit { limit }),
        reason.clone().prop_map(|reason| Chunk::Reset { reason }),
        Just(Chunk::Finished),
        has,
    ];
    let data = (any::<(u32, u16)>(), 1..=srp::Segment::MOST_COPIES, chunk).prop_map(
        |((number, stream), copy, chunk)| Pdu::Data(srp::Segment { number, copy, stream, chunk }),
    );
    let bitmap = prop::collection::vec(any::<u8>(), 0..=Sack::MOST_BYTES);
    let sack = (any::<[u32; 3]>(), any::<[u16; 4]>(), 0u8..16, any::<[bool; 2]>(), bitmap);
    let sack = sack.prop_map(|(words, halves, copy, prompt, bytes)| {
        let mut bitmap = [0; Sack::MOST_BYTES / 4];
        for (index, byte) in bytes.iter().enumerate() {
            bitmap[index / 4] |= u32::from(*byte) << (8 * (index % 4));
        }
        let [cumulative, latest, limit] = words;
        let [span, start, probe, stream] = halves;
        let [is_prompt, is_probe_prompt] = prompt;
        let length = bytes.len() as u8;
        Pdu::Sack(Sack {
            cumulative,
            latest,
            limit,
            span,
            start,
            probe,
            stream,
            copy,
            length,
            is_prompt,
            is_probe_prompt,
            bitmap,
        })
    });
    let pdu = prop_oneof![
        1 => limits.clone().prop_map(Pdu::Open),
        1 => limits.clone().prop_map(Pdu::Opened),
        1 => (any::<u32>(), limits).prop_map(|(first, limits)| Pdu::Renew { first, limits }),
        3 => data,
        2 => sack,
        1 => (1..=u16::MAX).prop_map(|number| Pdu::Probe { number }),
        1 => reason.prop_map(|reason| Pdu::Reset { reason }),
    ];
    let own = prop_oneof![Just(Srp::PORT), Just(Srp::CHANNEL_PORT)];
    (any::<(u32, u16, bool)>(), own, pdu).prop_map(|((token, port, is_source), own, pdu)| {
        let (source_port, destination_port) = if is_source { (own, port) } else { (port, own) };
        Srp { source_port, destination_port, token, pdu }
    })
}

fn tfrc() -> impl Strategy<Value = Tfrc> {
    let message = (any::<(bool, [u32; 3])>(), 0..=Tfrc::LONGEST);
    let message = message.prop_map(|((is_data, [a, b, c]), time)| match is_data {
        true => TfrcMessage::Data { sequence: a, timestamp: b, round_trip: time },
        false => TfrcMessage::Feedback {
            timestamp: a,
            delay: time,
            receive_rate: b,
            loss_event_rate: Probability(c),
        },
    });
    let port = any::<u16>().prop_filter("SRP's", |port| *port != Srp::PORT);
    (port, any::<bool>(), message).prop_map(|(port, is_source, message)| {
        let (source_port, destination_port) =
            if is_source { (Tfrc::PORT, port) } else { (port, Tfrc::PORT) };
        Tfrc { source_port, destination_port, message }
    })
}

fn body(v6: bool) -> impl Strategy<Value = Body> {
    let udp = any::<[u16; 2]>()
        .prop_filter("SRP's or TFRC's", |ports| {
            !ports.contains(&Srp::PORT) && !ports.contains(&Tfrc::PORT)
        })
        .prop_map(|[source_port, destination_port]| Udp { source_port, destination_port });
    let repair = (any::<(u16, u8)>(), 0..Place::MODULUS, 1u8..200, 1u8..50).prop_map(
        |((port, index), sequence, sources, repairs)| {
            let place = Place { sequence, index: sources + index % repairs };
            Repair { port, place, sources, repairs }
        },
    );
    prop_oneof![
        4 => segment().prop_map(Body::Tcp),
        1 => udp.prop_map(Body::Udp),
        2 => srp().prop_map(Body::Srp),
        2 => tfrc().prop_map(Body::Tfrc),
        3 => icmp(v6).prop_map(Body::Icmp),
        1 => repair.prop_map(Body::Repair),
        1 => esp().prop_map(Body::Esp),
        1 => mobility().prop_map(Body::Mobility),
    ]
}

fn mobility() -> impl Strategy<Value = Mobility> {
    let address = || any::<bool>().prop_flat_map(address);
    let end = (address(), any::<u16>());
    let maybe = || prop::option::of(address());
    let attach = (maybe(), address(), maybe(), any::<Option<u32>>());
    let message = prop_oneof![
        attach.prop_map(|(other, station, previous, incarnation)| {
            MobilityMessage::Attach { other, station, previous, incarnation }
        }),
        any::<(bool, u32)>().prop_map(|(is_lost, incarnation)| MobilityMessage::Resume {
            outcome: if is_lost { Outcome::Lost } else { Outcome::Complete },
            incarnation,
        }),
        ([end.clone(), end], any::<bool>()).prop_map(|([mobile, fixed], is_done)| {
            MobilityMessage::Reset { mobile, fixed, is_done }
        }),
        address().prop_map(|mobile| MobilityMessage::Solicit { mobile }),
        address().prop_map(|station| MobilityMessage::Advertise { station }),
    ];
    (any::<u64>(), message, any::<[u8; 16]>()).prop_map(|(attachment, message, tag)| Mobility {
        attachment,
        message,
        tag,
    })
}

/// Many, for they are short; `PROPTEST_CASES` may say otherwise.
pub(crate) fn cases() -> u32 {
    if std::env::var_os("PROPTEST_CASES").is_some() {
        ProptestConfig::default().cases
    } else {
        2000
    }
}
