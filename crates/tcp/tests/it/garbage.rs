//! Arbitrary segments, most of which no TCP would send.

use base::{Duration, Time};
use proptest::prelude::*;
use tcp::mechanism::{Eten, ForwardEten, Freeze, Mechanism, NoticeAuthentication, Rlci};
use tcp::{
    Config, Connection, Connectivity, EcnMode, FastOpen, Identity, Indication, KeepAlive,
    ReceiveWindow, Recovery, Reduction, Side, State,
};
use wire::{
    ConnectivityChange, CopyId, CorruptionEcho, Ecn, EcnCounters, EcnFields, EcnOrder, Encoding,
    FastOpenCookie, Flags, LocalStatus, Packet, Payload, SackBlock, SackBlocks, Segment, SeqNumber,
    Timestamps,
};

const OURS: SeqNumber = SeqNumber(u32::MAX - 1000);
const THEIRS: SeqNumber = SeqNumber(u32::MAX - 3000);

/// Something that happens to a connection.
#[derive(Clone, Debug)]
enum Op {
    /// Its numbers count from what the connection has last said, if it is `informed`.
    Segment {
        segment: Box<Segment>,
        len: u32,
        ecn: EcnFields,
        informed: bool,
    },
    Write(u64),
    Read(u32),
    Close,
    Abort,
    Wait(u64),
    /// The clock moves on to the next deadline.
    Expire,
    Indication(Indication),
    Poll(u16),
}

/// Numbers near what is in use, and sometimes anywhere.
fn near(base: SeqNumber) -> impl Strategy<Value = SeqNumber> {
    prop_oneof![
        4 => (0_u32..4).prop_map(|n| n),
        8 => 0_u32..12_000,
        1 => (0_u32..10_000).prop_map(u32::wrapping_neg),
        1 => any::<u32>(),
    ]
    .prop_map(move |offset| base + offset)
}

fn connectivity() -> impl Strategy<Value = ConnectivityChange> {
    let status =
        prop::sample::select(&[LocalStatus::Idle, LocalStatus::New, LocalStatus::EchoAck][..]);
    (any::<[bool; 3]>(), status).prop_map(|([c, ec, ecs], cs)| ConnectivityChange {
        c,
        ec,
        cs,
        ecs,
        encoding: Encoding::default(),
    })
}

fn options() -> impl Strategy<Value = wire::Options> {
    let block = (near(OURS), near(OURS)).prop_map(|(start, end)| SackBlock { start, end });
    let stamps = (0_u32..100_000, any::<u32>(), any::<bool>()).prop_map(|(value, echo, near)| {
        Timestamps { value, echo: if near { echo % 100_000 } else { echo } }
    });
    let echo = (near(OURS), 0_u32..30, any::<u16>(), any::<bool>())
        .prop_map(|(seq, copy, len, alone)| CorruptionEcho { seq, copy: CopyId(copy), len, alone });
    (
        prop::option::weighted(0.3, any::<u16>()),
        prop::option::weighted(0.3, any::<u8>()),
        any::<bool>(),
        prop::option::of(stamps),
        prop::collection::vec(block, 0..4),
        prop::option::weighted(0.3, echo),
        prop::option::weighted(0.3, connectivity()),
    )
        .prop_map(
            |(mss, window_scale, sack_permitted, timestamps, sack, corrupted, connectivity)| {
                wire::Options {
                    mss,
                    window_scale,
                    sack_permitted,
                    timestamps,
                    sack: SackBlocks::from(sack),
                    connectivity: connectivity.into(),
                    corrupted,
                }
            },
        )
}

fn segment() -> impl Strategy<Value = Segment> {
    let flags = prop_oneof![
        8 => Just(Flags::ACK),
        2 => Just(Flags::SYN),
        2 => Just(Flags::SYN | Flags::ACK),
        1 => Just(Flags::FIN | Flags::ACK),
        4 => (0_u16..256).prop_map(Flags::from_bits_truncate),
    ];
    // A reset at the right place ends the case early.
    let flags = (flags, prop::bool::weighted(0.1))
        .prop_map(|(flags, resets)| if resets { flags } else { flags - Flags::RST });
    (flags, near(THEIRS), near(OURS), prop_oneof![Just(0), any::<u16>()], options()).prop_map(
        |(flags, seq, ack, window, options)| Segment {
            seq,
            ack,
            flags,
            window,
            options,
            ..Segment::default()
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let len = prop_oneof![Just(0_u32), 0_u32..3000];
    let codepoint = prop::sample::select(vec![Ecn::NotCapable, Ecn::Capable, Ecn::Congested]);
    let order = prop::sample::select(vec![EcnOrder::Ect0First, EcnOrder::Ect1First]);
    let counters = (order, prop::collection::vec(any::<u32>(), 0..=3))
        .prop_map(|(order, counters)| EcnCounters::new(order, &counters));
    let ecn = (codepoint, prop::option::weighted(0.2, counters))
        .prop_map(|(codepoint, counters)| EcnFields { codepoint, counters });
    prop_oneof![
        20 => (segment(), len, ecn, any::<bool>()).prop_map(|(segment, len, ecn, informed)| {
            Op::Segment { segment: Box::new(segment), len, ecn, informed }
        }),
        4 => (0_u64..20_000).prop_map(Op::Write),
        3 => (1_u32..5000).prop_map(Op::Read),
        1 => prop::bool::weighted(0.1).prop_map(|closes| if closes { Op::Close } else { Op::Expire }),
        1 => prop::bool::weighted(0.1).prop_map(|aborts| if aborts { Op::Abort } else { Op::Expire }),
        2 => (0_u64..100_000).prop_map(Op::Wait),
        4 => Just(Op::Expire),
        3 => indication().prop_map(Op::Indication),
        8 => (1_u16..20).prop_map(Op::Poll),
    ]
}

fn indication() -> impl Strategy<Value = Indication> {
    let copy = || (0_u32..30).prop_map(CopyId);
    let changes = prop_oneof![
        Just(Connectivity::Ending),
        Just(Connectivity::Full),
        any::<Option<u32>>().prop_map(|window| Connectivity::Changed { window }),
    ];
    prop_oneof![
        (near(OURS), any::<bool>()).prop_map(|(seq, hard)| Indication::Unreachable { seq, hard }),
        (near(OURS), copy(), any::<Option<u32>>()).prop_map(|(seq, copy, timestamp)| {
            Indication::Corrupted { seq, len: 10, copy, timestamp }
        }),
        (near(THEIRS), any::<u32>(), copy())
            .prop_map(|(seq, len, copy)| Indication::PeerCorrupted { seq, len, copy }),
        changes.prop_map(Indication::Connectivity),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    let keep_alive =
        KeepAlive { idle: Duration::from_secs(5), interval: Duration::from_secs(1), probes: 3 };
    let eten = Mechanism::Eten(Eten::default());
    let forward = Mechanism::ForwardEten(ForwardEten::default());
    let guarded = vec![
        Mechanism::NoticeAuthentication(NoticeAuthentication::new(false, true, 3)),
        eten.clone(),
    ];
    let freeze = Mechanism::Freeze(Freeze::default());
    let moving = |strict: bool, rate_limit: bool| {
        let mut rlci = Rlci::default();
        (rlci.strict, rlci.rate_limit) = (strict, Some(rate_limit));
        Mechanism::Rlci(rlci)
    };
    let both = vec![freeze, moving(false, true), forward.clone()];
    let mechanisms = prop::sample::select(vec![
        vec![],
        vec![eten],
        vec![forward],
        guarded,
        vec![moving(true, false)],
        vec![moving(false, false)],
        both,
    ]);
    (
        prop::sample::select(Recovery::ALL),
        [(); 4].map(|()| any::<bool>()),
        prop::sample::select(vec![EcnMode::Off, EcnMode::Classic, EcnMode::Accurate]),
        mechanisms,
        prop_oneof![1_u32..5000, 5000_u32..1 << 20],
        1_u16..1500,
        prop::sample::select(tcp::congestion::Congestion::ALL),
    )
        .prop_map(
            move |(
                (_, recovery),
                [timestamps, asks, prr, fast_open],
                ecn,
                mechanisms,
                window,
                mss,
                control,
            )| {
                Config {
                    mss,
                    receive_window: ReceiveWindow::fixed(window),
                    recovery,
                    congestion: control.1,
                    timestamps,
                    ecn,
                    fast_open,
                    keep_alive: asks.then_some(keep_alive),
                    reduction: if prr { Reduction::Prr } else { Reduction::Immediate },
                    mechanisms,
                    ..Config::default()
                }
            },
        )
}

/// Some thousand; `PROPTEST_CASES` may say otherwise.
fn count() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(4000),
    }
}

proptest! {
    #![proptest_config(count())]

    /// Nothing panics, and what is sent is finite and belongs to the connection.
    #[test]
    fn whatever_arrives_nothing_breaks(
        config in config(),
        active: bool,
        offer in options(),
        syn_data in prop_oneof![Just(0_u32), 1_u32..600],
        ops in prop::collection::vec(op(), 1..100),
    ) {
        let identity =
            Identity { local_port: 1, remote_port: 2, iss: OURS, timestamp_offset: 7, is_ipv6: false, secret: 3 };
        let side = if active { Side::Active } else { Side::Passive };
        let mut connection = Connection::new(&config, side, identity);
        let (mut now, mut packet, mut written) = (Time::ZERO, Packet::BLANK, 0);
        if config.fast_open {
            let cookie = FastOpenCookie::new(&[1; 4]).unwrap();
            connection.fast_open(match side {
                Side::Active => FastOpen::Offer { cookie, mss: 1460 },
                Side::Passive => FastOpen::Accept(None),
            });
            connection.write(3, 0, 500);
            written = 500;
        }
        // A handshake, mostly; what is not answered is lost.
        let shake = [Flags::SYN | Flags::ACK, Flags::SYN, Flags::ACK];
        for flags in if active { &shake[..1] } else { &shake[1..] } {
            let first = flags.contains(Flags::SYN);
            let seq = THEIRS + u32::from(!first);
            let options = if first { offer } else { wire::Options::default() };
            let segment =
                Segment { seq, ack: OURS + 1, flags: *flags, window: 9000, options, ..Segment::default() };
            if active {
                connection.poll_transmit(now, 1, &mut packet);
            }
            // Of a SYN with data, and of one that acknowledges data, too.
            let payload = Payload { stream: 1, offset: 0, len: if first { syn_data } else { 0 } };
            let segment = Segment { ack: OURS + 1 + syn_data % 2 * syn_data, ..segment };
            connection.handle_segment(now, &segment, payload, Ecn::NotCapable);
            connection.poll_transmit(now, 1, &mut packet);
        }
        let (mut next, mut acked) = (THEIRS + 1, OURS + 1);
        for op in ops {
            match op {
                Op::Segment { mut segment, len, ecn, informed } => {
                    if informed {
                        segment.seq = next + (segment.seq - THEIRS) / 4;
                        segment.ack = acked + (segment.ack - OURS) / 4;
                    }
                    let payload = Payload { stream: 1, offset: u64::from(segment.seq.0), len };
                    connection.handle_segment(now, &segment, payload, ecn);
                }
                Op::Write(len) => {
                    connection.write(3, written, len);
                    written += len;
                }
                Op::Read(bytes) => drop(connection.read_up_to(bytes)),
                Op::Close => connection.close(),
                Op::Abort => connection.abort(),
                Op::Wait(millis) => now += Duration::from_millis(millis),
                Op::Expire => now = now.max(connection.poll_timeout().min(now + Duration::from_secs(1 << 20))),
                Op::Indication(indication) => {
                    connection.indicate(now, &indication);
                }
                Op::Poll(unit) => {
                    let mut sent = 0;
                    while connection.poll_transmit(now, unit, &mut packet).is_some() {
                        sent += 1;
                        if let wire::Body::Tcp(segment) = packet.body {
                            (next, acked) = (segment.ack, segment.seq);
                        }
                        prop_assert!(sent < 30_000, "it sends for ever");
                    }
                }
            }
            if connection.poll_timeout() <= now {
                connection.handle_timeout(now);
            }
            let vitals = connection.vitals();
            prop_assert!(vitals.window > 0);
            if connection.state() == State::Closed {
                prop_assert_eq!(connection.poll_timeout(), Time::NEVER);
            }
        }
    }
}
