use super::*;
use crate::{Body, Ip, Segment};
use core::net::IpAddr;
use proptest::prelude::*;

fn packet(v6: bool) -> Packet {
    let [source, destination] = [1, 2].map(|n| match v6 {
        false => IpAddr::from([10, 0, 0, n]),
        true => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(n)]),
    });
    let body = Body::Tcp(Segment::default());
    Packet { ip: Ip::new(source, destination), body, ..Packet::BLANK }
}

fn exact() -> impl Strategy<Value = PathFields> {
    any::<[u32; 4]>().prop_map(|words| {
        let [a, b, c, d] = words.map(Probability);
        PathFields::Exact {
            forward: Causes { corruption: a, congestion: b },
            echoed: Causes { corruption: c, congestion: d },
        }
    })
}

fn coded() -> impl Strategy<Value = PathFields> {
    any::<[u8; 4]>().prop_map(|levels| {
        let [a, b, c, d] = levels.map(Code::level);
        PathFields::Coded {
            forward: Causes { corruption: a, congestion: b },
            echoed: Causes { corruption: c, congestion: d },
        }
    })
}

proptest! {
    #[test]
    fn fields_survive_the_wire_and_have_their_size_there(
        fields in prop_oneof![exact(), coded()],
        v6 in any::<bool>(),
    ) {
        let mut sent = packet(v6);
        let bare = sent.len();
        fields.put(v6, &mut sent.unparsed);
        prop_assert_eq!(sent.len(), bare + fields.size(v6));
        let mut bytes = Vec::new();
        sent.emit(&[], &mut bytes).unwrap();
        let (read, _) = Packet::parse(&bytes).unwrap();
        prop_assert_eq!(PathFields::of(&read), Some(fields));
    }

    #[test]
    fn a_node_changes_them_in_place(
        (before, after) in prop_oneof![(exact(), exact()), (coded(), coded())],
        v6 in any::<bool>(),
    ) {
        let mut packet = packet(v6);
        before.put(v6, &mut packet.unparsed);
        let size = packet.len();
        after.renew(&mut packet);
        prop_assert_eq!((PathFields::of(&packet), packet.len()), (Some(after), size));
    }

    #[test]
    fn any_options_are_read_or_let_alone(options in prop::collection::vec(any::<u8>(), 0..40)) {
        for v6 in [false, true] {
            let mut packet = packet(v6);
            let kept = if v6 {
                packet.unparsed.set_ipv6_extensions(protocol::HOP_BY_HOP, &options)
            } else {
                packet.unparsed.set_ipv4_options(&options)
            };
            if kept.is_ok() && let Some(fields) = PathFields::of(&packet) {
                let before = packet;
                fields.renew(&mut packet);
                prop_assert_eq!(packet, before);
            }
        }
    }

    #[test]
    fn probabilities_multiply(p in 0.0..=1.0, q in 0.0..=1.0) {
        let product = Probability::of(p).and(q).get();
        prop_assert!((product - p * q).abs() < 5e-10, "{product}");
    }
}

#[test]
fn certainty_and_a_loss_in_a_million_are_kept() {
    assert_eq!([Probability::of(0.0).get(), Probability::of(1.0).get()], [0.0, 1.0]);
    assert_eq!(Probability::ONE.and(1.0), Probability::ONE);
    let ten = (0..10).fold(Probability::ONE, |p, _| p.and(1.0 - 1e-6));
    assert!((1.0 - ten.get() - 1e-5).abs() < 1e-9, "{}", ten.get());
    assert_eq!([f64::NAN, -1.0, 2.0].map(|p| Probability::of(p).get()), [0.0, 0.0, 1.0]);
}

#[test]
fn what_weighs_nothing_has_no_bytes() {
    let mut packet = packet(false);
    let bare = packet.len();
    let forward = Causes::SURVIVES;
    PathFields::Exact { forward, echoed: forward }.put(false, &mut packet.unparsed);
    packet.unparsed.set_zero_size(true);
    assert_eq!(packet.len(), bare);
    assert!(PathFields::of(&packet).is_some());
}

#[test]
fn steps_and_levels_stay_within_their_bits() {
    assert_eq!([-7, -1, 0, 1, 7].map(|step| Code::step(step).as_step()), [-1, -1, 0, 1, 1]);
    assert_eq!([0, 1, 3, 9].map(|level| Code::level(level).as_level()), [0, 1, 3, 3]);
}

#[test]
fn other_options_are_not_displaced() {
    let mut packet = packet(false);
    packet.unparsed.set_ipv4_options(&[1, 1, 1, 1]).unwrap();
    let before = packet;
    let forward = Causes::SURVIVES;
    PathFields::Exact { forward, echoed: forward }.put(false, &mut packet.unparsed);
    assert_eq!((packet, PathFields::of(&packet)), (before, None));
}
