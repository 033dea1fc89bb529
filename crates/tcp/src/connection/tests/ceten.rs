//! Cumulative notification (`bbn8333` §4; MECHANISMS.md section 3).

use super::*;
use crate::mechanism::{CumulativeEten, Fields, Mechanism, Strategy};
use wire::{Causes, PathFields, Probability};

/// A window of ten segments, in congestion avoidance.
fn with(strategy: Strategy, bound: f64, fields: Fields) -> Config {
    Config {
        initial_ssthresh: Some(segments(10)),
        mechanisms: vec![Mechanism::CumulativeEten(CumulativeEten::new(strategy, bound, fields))],
        ..config()
    }
}

fn path(corruption: f64, congestion: f64) -> Causes<Probability> {
    Causes { corruption, congestion }.map(Probability::of)
}

/// Indicates the path fields of the peer's next segment.
fn indicate(t: &mut Diagram, forward: Causes<Probability>, echoed: Causes<Probability>) {
    let indication = Indication::Path(PathFields::Exact { forward, echoed });
    t.connection.indicate(t.now, &indication);
}

/// What the last segment that the connection sent echoes.
#[track_caller]
fn echo(t: &Diagram) -> Causes<Probability> {
    match PathFields::of(t.sent.last().unwrap()) {
        Some(PathFields::Exact { forward: Causes::SURVIVES, echoed }) => echoed,
        other => panic!("{other:?}"),
    }
}

/// Segment 3 is lost, which three duplicate ACKs show; the peer echoes these path fields.
fn lose_one(t: &mut Diagram, echoed: Causes<Probability>) {
    t.time(200);
    for n in 4..=6 {
        indicate(t, Causes::SURVIVES, echoed);
        t.send(ack(3).sack(4..=n));
    }
    t.unseen.clear();
}

#[test]
fn every_segment_starts_afresh_and_echoes_what_the_last_from_the_peer_had() {
    let mut t = sending(with(Strategy::LossRatio, 1.0, Fields::Free));
    assert_eq!(echo(&t), Causes::SURVIVES);
    t.time(200);
    indicate(&mut t, path(0.5, 0.25), Causes::SURVIVES);
    t.send(ack(2));
    t.recv([data(11)]);
    assert_eq!(echo(&t), path(0.5, 0.25));
}

#[test]
fn what_an_unacceptable_segment_had_is_not_believed() {
    let mut t = sending(with(Strategy::LossRatio, 1.0, Fields::Free));
    t.time(200);
    indicate(&mut t, path(0.5, 0.25), Causes::SURVIVES);
    t.send(ack(2).seq(1 << 30));
    assert_eq!(echo(&t), Causes::SURVIVES);
}

#[test]
fn a_loss_on_a_path_that_only_corrupts_is_repaired_and_nothing_else() {
    let mut t = sending(with(Strategy::LossRatio, 1.0, Fields::Free));
    lose_one(&mut t, path(0.9, 1.0));
    assert_eq!(t.sent.iter().filter(|p| p.payload.offset == 2 * u64::from(MSS)).count(), 2);
    assert_eq!((t.statistics().reductions, t.windows().1), (0, segments(10)));
}

#[test]
fn a_loss_on_a_path_that_is_only_congested_halves_the_window() {
    for path in [path(1.0, 0.9), Causes::SURVIVES] {
        let mut t = sending(with(Strategy::LossRatio, 1.0, Fields::Free));
        lose_one(&mut t, path);
        assert_eq!(t.statistics().reductions, 1);
        assert_eq!(t.windows(), (segments(5), segments(5)));
    }
}

#[test]
fn a_bound_keeps_an_excuse_from_being_free() {
    let mut t = sending(with(Strategy::LossRatio, 0.75, Fields::Free));
    lose_one(&mut t, path(0.9, 1.0));
    assert_eq!((t.statistics().reductions, t.windows().1), (1, 7500));
}

#[test]
fn fields_that_weigh_nothing_leave_segments_as_they_are_and_real_ones_take_room() {
    let t = sending(with(Strategy::LossRatio, 1.0, Fields::Free));
    let plain = sending(config());
    let lengths = |t: &Diagram| t.sent.iter().map(Packet::len).collect::<Vec<_>>();
    assert_eq!(lengths(&t), lengths(&plain));

    let mut t = established(with(Strategy::LossRatio, 1.0, Fields::Real));
    t.write(1 << 20);
    t.unseen.clear();
    let full = t.sent.last().unwrap();
    // 20 bytes of IP options.
    assert_eq!((full.payload.len, full.len()), (MSS - 20, MSS + 40));
    assert_eq!(echo(&t), Causes::SURVIVES);
}
