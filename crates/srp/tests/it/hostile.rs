//! Forged, garbled and contradictory PDUs: none breaks an association that does not carry its token, and none makes
//! an end fail or hold more than it accepts.

use crate::hop::{Hop, Loss};
use crate::world::{TOKEN, User, World};
use base::{Duration, Events, Seed, Time};
use proptest::prelude::*;
use srp::{Association, Config, Ends, Reason};
use wire::srp::{Chunk, Continue, Limits, Pdu, Sack, Segment};
use wire::{Payload, Srp};

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![3 => 0u32..200, 1 => 32_600u32..33_000, 1 => any::<u32>()]
}

fn chunk() -> impl Strategy<Value = Chunk> {
    let reason = prop_oneof![
        Just(Reason::Aborted),
        Just(Reason::Refused),
        Just(Reason::Unreachable),
        Just(Reason::TimedOut)
    ];
    let address = std::net::IpAddr::from([10, 0, 0, 1]);
    let ends = Ends { client: address, server: address, client_port: 1, server_port: 2 };
    let has = (number(), number(), any::<bool>(), prop::option::of(Just(ends)));
    let has = has.prop_map(|(received, limit, is_whole, ends)| {
        Chunk::Continue(Continue { received, limit, is_whole, ends })
    });
    prop_oneof![
        4 => (number(), any::<bool>()).prop_map(|(offset, end)| Chunk::Data { offset, end }),
        2 => Just(Chunk::Open(ends)),
        1 => Just(Chunk::Accept),
        1 => number().prop_map(|limit| Chunk::Credit { limit }),
        1 => reason.prop_map(|reason| Chunk::Reset { reason }),
        1 => Just(Chunk::Finished),
        1 => has,
    ]
}

fn pdu() -> impl Strategy<Value = (Pdu, u32)> {
    let segment = (number(), 1u8..16, 0u16..40, chunk(), 0u32..3000);
    let segment = segment.prop_map(|(number, copy, stream, chunk, len)| {
        let len = if matches!(chunk, Chunk::Data { .. }) { len } else { 0 };
        (Pdu::Data(Segment { number, copy, stream, chunk }), len)
    });
    let small = || prop_oneof![3 => 0u16..200, 1 => any::<u16>()];
    let words = [number(), number(), number()];
    let sack = (words, [small(), small(), small(), small()], 0u8..16, 0u8..61, any::<[u32; 15]>());
    let sack = sack.prop_map(|(words, halves, copy, length, bits)| {
        let mut bitmap = bits;
        for bit in usize::from(length) * 8..480 {
            bitmap[bit / 32] &= !(1 << (bit % 32));
        }
        let [cumulative, latest, limit] = words;
        let [span, start, probe, stream] = halves;
        let (is_prompt, is_probe_prompt) = (copy & 1 == 1, copy & 2 == 2);
        let sack = Sack {
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
        };
        (Pdu::Sack(sack), 0)
    });
    let limits = (any::<u16>(), any::<u32>(), any::<u16>())
        .prop_map(|(segments, window, streams)| Limits { segments, window, streams });
    prop_oneof![
        8 => segment,
        8 => sack,
        1 => limits.clone().prop_map(|limits| (Pdu::Open(limits), 0)),
        1 => limits.prop_map(|limits| (Pdu::Opened(limits), 0)),
        1 => (1u16..).prop_map(|number| (Pdu::Probe { number }, 0)),
    ]
}

fn world(config: &Config) -> World {
    let hop = |name| {
        let random = Seed(1).stream(name);
        Hop::new(None, Duration::from_millis(20), Loss::Uniform(0.0), random)
    };
    World::new([config.clone(), config.clone()], [hop("there"), hop("back")])
}

fn inject(world: &mut World, end: usize, token: u32, (pdu, len): (Pdu, u32)) {
    let payload = Payload { stream: 999, offset: 5, len };
    let srp = Srp { source_port: 0, destination_port: 0, token, pdu };
    let now = world.local(end);
    if let Some(association) = world.ends[end].association.as_mut() {
        association.handle(now, &srp, payload);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// A PDU of another token changes nothing.
    #[test]
    fn another_token_is_another_association(
        pdus in prop::collection::vec((pdu(), 0usize..2, 0u64..50), 1..40),
    ) {
        let run = |injects: bool| {
            let mut world = world(&Config { keep_alive: None, ..Config::default() });
            world.settle(0);
            let user = User { connection: 1, to_write: 100_000, reads: u32::MAX, ..User::default() };
            world.open(0, [user.clone(), user]);
            for (pdu, end, pause) in pdus.clone() {
                if injects {
                    inject(&mut world, end, TOKEN + 1, pdu);
                    let reset = Pdu::Reset { reason: Reason::Aborted };
                    inject(&mut world, end, TOKEN + 1, (reset, 0));
                }
                world.run(world.now + Duration::from_millis(pause));
            }
            world.run(world.now + Duration::from_secs(100));
            let ends = world.ends.iter().filter_map(|end| end.association.as_ref());
            ends.map(|a| (a.statistics(), a.held_streams())).collect::<Vec<_>>()
        };
        prop_assert_eq!(run(false), run(true));
    }

    /// A peer that sends anything makes no end fail, and none holds more than it accepts.
    #[test]
    fn an_end_survives_any_peer(
        pdus in prop::collection::vec((pdu(), 0u64..500, prop::option::weighted(0.05, 0u32..9)), 1..300),
    ) {
        let config = Config { window: 5000, streams: 3, segments: 100, ..Config::default() };
        let mut now = Time::ZERO + Duration::from_secs(1);
        let limits = Limits { segments: 50, window: 4000, streams: 5 };
        let open =
            Srp { source_port: 0, destination_port: 0, token: TOKEN, pdu: Pdu::Open(limits) };
        let mut end = Association::accept(now, &config, &open).unwrap();
        let mut id = None;
        for ((pdu, len), pause, renewal) in pdus {
            if let Some(renewal) = renewal {
                let pdu = Pdu::Renew { first: TOKEN, limits };
                let srp = Srp { source_port: 0, destination_port: 0, token: TOKEN + renewal, pdu };
                end.handle(now, &srp, Payload::default());
            }
            if id.is_none() && let Pdu::Data(Segment { chunk: Chunk::Open(ends), .. }) = pdu {
                id = end.open(now, ends);
                if let Some(mut stream) = id.and_then(|id| end.stream(id)) {
                    stream.write(1, 0, 100_000);
                }
            }
            let srp = Srp { source_port: 0, destination_port: 0, token: end.token(), pdu };
            end.handle(now, &srp, Payload { stream: 7, offset: 0, len });
            while let Some((id, _)) = end.poll_incoming() {
                end.accept_stream(id);
            }
            let mut sent = 0;
            while end.poll_transmit(now).is_some() {
                sent += 1;
                prop_assert!(sent < 300, "it sends without end");
            }
            while end.poll_events().is_some() {}
            now += Duration::from_millis(pause);
            if end.poll_timeout() <= now {
                end.handle_timeout(now);
            }
            // 64 streams more may be about to be forgotten.
            prop_assert!(end.held_streams() <= 1 + 3 + 64, "{}", end.held_streams());
            let held: u64 = end.held_payloads().filter(|held| held.stream == 7)
                .map(|held| u64::from(held.len)).sum();
            prop_assert!(held <= 5000 * end.held_streams() as u64, "{held}");
        }
    }
}

#[test]
fn an_unknown_association_is_refused_and_its_streams_learn_it() {
    let config = Config::default();
    let mut world = world(&config);
    world.settle(0);
    let user = User { connection: 1, to_write: 100_000, reads: u32::MAX, ..User::default() };
    let id = world.open(0, [user.clone(), user]).unwrap();
    world.run(world.now + Duration::from_millis(100));
    // The other end has lost its memory.
    let probe =
        Srp { source_port: 1, destination_port: 2, token: TOKEN, pdu: Pdu::Probe { number: 1 } };
    let refusal = Association::refusal(&probe).unwrap();
    assert_eq!(Association::refusal(&refusal), None, "no endless exchange");
    let now = world.local(0);
    world.association(0).handle(now, &refusal, Payload::default());
    world.settle(0);
    assert!(world.association(0).is_closed());
    assert!(world.ends[0].users[&id].events.contains(Events::RESET | Events::CLOSED));
    assert_eq!(world.association(0).poll_timeout(), Time::NEVER);
}

/// A late OPEN brings an end to life again, without what it knew.
#[test]
fn a_peer_that_has_lost_its_memory_is_found_out() {
    let config = Config::default();
    let mut world = world(&config);
    world.settle(0);
    world.run(world.now + Duration::from_millis(100));
    let limits = Limits { segments: 100, window: 100_000, streams: 10 };
    let open = Srp { source_port: 0, destination_port: 0, token: TOKEN, pdu: Pdu::Open(limits) };
    // More data than is sent in this time.
    let user = User { connection: 1, to_write: 1_000_000, reads: u32::MAX, ..User::default() };
    let id = world.open(0, [user.clone(), User { to_write: 0, ..user }]).unwrap();
    world.run(world.now + Duration::from_millis(100));
    assert!(!world.ends[0].users[&id].events.contains(Events::CLOSED));
    world.ends[1].users.clear();
    let now = world.local(1);
    world.ends[1].association = Association::accept(now, &config, &open);
    world.settle(1);
    // A probe finds it out, after a timeout or, at the latest, to keep the association alive.
    world.run(world.now + Duration::from_secs(40));
    assert!(world.association(0).is_closed() && world.association(1).is_closed());
    assert!(world.ends[0].users[&id].events.contains(Events::RESET | Events::CLOSED));
}

#[test]
fn a_silent_peer_is_given_up_and_both_ends_learn_it() {
    let config = Config { give_up: Duration::from_secs(10), ..Config::default() };
    let mut world = world(&config);
    world.settle(0);
    world.run(world.now + Duration::from_secs(1));
    let user = User { connection: 1, reads: u32::MAX, ..User::default() };
    let bulk = User { to_write: 1 << 30, ..user.clone() };
    let id = world.open(0, [bulk, user]).unwrap();
    world.run(world.now + Duration::from_secs(1));
    let server = *world.ends[1].users.keys().next().unwrap();
    world.is_down = true;
    world.run(world.now + Duration::from_secs(9));
    assert!(!world.association(0).is_closed());
    world.run(world.now + Duration::from_secs(30));
    let timed_out = Events::TIMED_OUT | Events::CLOSED;
    assert!(world.ends[0].users[&id].events.contains(timed_out));
    // Nothing is outstanding here: the keep-alive finds out.
    assert!(world.ends[1].users[&server].events.contains(timed_out));
    assert_eq!([0, 1].map(|end| world.association(end).poll_timeout()), [Time::NEVER; 2]);
}
