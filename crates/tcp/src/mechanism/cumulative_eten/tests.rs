use super::*;
use crate::Statistics;
use base::{Duration, Time};
use core::net::IpAddr;
use wire::{CopyId, Probability};

/// A mechanism to which one segment's path fields were indicated.
fn with_path(strategy: Strategy, corruption: f64, congestion: f64) -> CumulativeEten {
    let mut ceten = CumulativeEten::new(strategy, 1.0, Fields::Free);
    ceten.begin(&Identity { secret: 7, ..Identity::default() });
    observe(&mut ceten, corruption, congestion);
    ceten
}

fn observe(ceten: &mut CumulativeEten, corruption: f64, congestion: f64) {
    let echoed = Causes { corruption, congestion }.map(Probability::of);
    let fields = PathFields::Exact { forward: Causes::SURVIVES, echoed };
    indicate(ceten, Time::ZERO, Indication::Path(fields));
    ceten.incoming(&view(0, 0), &Segment::default());
}

fn indicate(ceten: &mut CumulativeEten, now: Time, indication: Indication) {
    assert_eq!(ceten.indication(&View { now, ..view(0, 0) }, &indication), None);
}

fn view(una: u64, nxt: u64) -> View {
    View { una, nxt, mss: 536, ..View::default() }
}

/// What it says of `count` losses, each in a window of its own.
fn verdicts(ceten: &mut CumulativeEten, signal: Signal, count: u64) -> Vec<Verdict> {
    let first = ceten.state.decided_until;
    let verdict = |n| ceten.loss(&view(n, n + 1), &loss(n, signal)).expect("it has an opinion");
    (first..first + count).map(verdict).collect()
}

fn loss(start: u64, signal: Signal) -> Loss {
    Loss { start, end: start + 1, copy: CopyId(0), sent_at: Time::ZERO, signal }
}

/// The share of losses that it takes for congestion.
fn congestion(ceten: &mut CumulativeEten) -> f64 {
    let verdicts = verdicts(ceten, Signal::Sack, 10_000);
    verdicts.iter().filter(|verdict| **verdict == Verdict::STANDARD).count() as f64 / 10_000.0
}

#[test]
fn the_coin_falls_as_the_strategy_says() {
    use Strategy::{LossRatio, Published};
    for (strategy, corruption, congested, expected) in [
        // As literally written: the more congestion, the less it is held for that.
        (Published, 1.0, 0.5, 1.0 / 3.0),
        (Published, 0.5, 1.0, 2.0 / 3.0),
        (Published, 0.999, 0.999, 0.5),
        (Published, 0.0, 0.0, 1.0),
        (LossRatio, 1.0, 0.5, 1.0),
        (LossRatio, 0.5, 1.0, 0.0),
        (LossRatio, 0.97, 0.99, 0.25),
        (LossRatio, 1.0, 1.0, 1.0),
    ] {
        let found = congestion(&mut with_path(strategy, corruption, congested));
        // More than three standard deviations of 10000 coins.
        assert!((found - expected).abs() < 0.016, "{strategy:?}: {found}, not {expected}");
    }
}

#[test]
fn losses_of_one_window_share_a_decision_and_windows_do_not() {
    let mut ceten = with_path(Strategy::Published, 0.99, 0.99);
    let mut windows = Vec::new();
    for n in 0..50 {
        let view = view(100 * n, 100 * (n + 1));
        let mut verdict = |start| ceten.loss(&view, &loss(start, Signal::Sack));
        let first = verdict(100 * n);
        assert!((1..100).all(|start| verdict(100 * n + start) == first), "window {n}");
        windows.push(first);
    }
    assert!(windows.contains(&Some(Verdict::STANDARD)));
    assert!(windows.contains(&Some(Verdict::Corruption)));
}

#[test]
fn a_timeout_is_decided_by_itself() {
    let mut ceten = with_path(Strategy::LossRatio, 0.9, 1.0);
    assert_eq!(ceten.loss(&view(0, 10), &loss(0, Signal::Sack)), Some(Verdict::Corruption));
    observe(&mut ceten, 1.0, 0.9);
    assert_eq!(ceten.loss(&view(0, 10), &loss(1, Signal::Sack)), Some(Verdict::Corruption));
    assert_eq!(ceten.loss(&view(0, 10), &loss(0, Signal::Rto)), Some(Verdict::STANDARD));
}

#[test]
fn of_the_timeouts_of_a_window_the_first_alone_is_excused_but_as_published_every_one() {
    use Verdict::Corruption;
    // The third is of data that was sent after the first.
    let timeouts = [(0, 10), (5, 10), (10, 20), (11, 20)];
    let verdicts = |strategy, corruption, congestion| {
        let mut ceten = with_path(strategy, corruption, congestion);
        timeouts.map(|(start, nxt)| ceten.loss(&view(start, nxt), &loss(start, Signal::Rto)))
    };
    let found = verdicts(Strategy::LossRatio, 0.9, 1.0);
    assert_eq!(found, [Some(Corruption), None, Some(Corruption), None]);
    assert_eq!(verdicts(Strategy::Published, 1.0, 0.0), [Some(Corruption); 4]);
}

#[test]
fn marks_and_notices_are_not_for_it() {
    let mut ceten = with_path(Strategy::LossRatio, 0.9, 1.0);
    assert_eq!(ceten.loss(&view(0, 10), &loss(0, Signal::Ecn)), None);
    assert_eq!(ceten.loss(&view(0, 10), &loss(0, Signal::Notice)), None);
}

#[test]
fn nothing_excuses_more_than_the_bound() {
    for (strategy, corruption) in [(Strategy::LossRatio, 0.5), (Strategy::Adaptive, 0.0)] {
        let mut ceten = CumulativeEten { bound: 0.75, ..with_path(strategy, corruption, 1.0) };
        assert_eq!(verdicts(&mut ceten, Signal::Sack, 3), [Verdict::Decrease(0.75); 3]);
    }
}

/// [`Strategy::Adaptive`] after so many segments, of which so many were lost one after the other.
fn adaptive(corruption: f64, segments: u64, losses: u64) -> f64 {
    let mut ceten = with_path(Strategy::Adaptive, 1.0 - corruption, 1.0);
    ceten.a = 0.001;
    for n in 0..segments {
        let lost = losses * (n + 1) / segments;
        let statistics =
            Statistics { segments: n + 1, retransmissions: lost, ..Statistics::default() };
        ceten.outgoing(&View { statistics, ..view(0, 1) }, &mut Packet::BLANK.clone());
    }
    match ceten.loss(&view(0, 1), &loss(0, Signal::Sack)) {
        Some(Verdict::Decrease(factor)) => factor,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_adaptive_window_comes_down_by_the_share_of_congestion() {
    // No corruption, all corruption, half of it; never beyond either end.
    assert_eq!(adaptive(0.0, 1000, 50), 0.5);
    assert_eq!(adaptive(0.5, 1000, 50), 1.0);
    let half = adaptive(0.025, 10_000, 500);
    assert!((0.7..0.8).contains(&half), "{half}");
    // Before anything was lost, one loss is all there is.
    assert_eq!(adaptive(0.0, 0, 0), 0.5);
    assert_eq!(adaptive(0.01, 0, 0), 1.0);
}

#[test]
fn the_adaptive_sender_leaves_timeouts_alone() {
    let mut ceten = with_path(Strategy::Adaptive, 0.5, 1.0);
    assert_eq!(ceten.loss(&view(0, 1), &loss(0, Signal::Rto)), None);
}

#[test]
fn levels_stand_for_losses_and_steps_add_up_to_levels() {
    let level = |corruption, congestion| {
        let echoed = Causes { corruption, congestion }.map(wire::Code::level);
        Indication::Path(PathFields::Coded { forward: Causes::default(), echoed })
    };
    let mut ceten = with_path(Strategy::LossRatio, 1.0, 1.0);
    ceten.form = PathForm::Levels;
    indicate(&mut ceten, Time::ZERO, level(2, 0));
    ceten.incoming(&view(0, 0), &Segment::default());
    assert_eq!(congestion(&mut ceten), 0.0);
    ceten.form = PathForm::Relative;
    assert_eq!(congestion(&mut ceten), 1.0);
    let steps = |steps: i8| {
        let echoed = Causes { corruption: steps, congestion: 0 }.map(wire::Code::step);
        Indication::Path(PathFields::Coded { forward: Causes::default(), echoed })
    };
    for step in [1, 0, 1, -1] {
        indicate(&mut ceten, Time::ZERO, steps(step));
        ceten.incoming(&view(0, 0), &Segment::default());
    }
    assert_eq!(congestion(&mut ceten), 0.0);
}

#[test]
fn every_step_is_echoed_once() {
    let mut ceten = CumulativeEten { form: PathForm::Relative, ..CumulativeEten::default() };
    let forward = Causes { corruption: 1, congestion: -1 }.map(wire::Code::step);
    let fields = PathFields::Coded { forward, echoed: Causes::default() };
    for _ in 0..2 {
        indicate(&mut ceten, Time::ZERO, Indication::Path(fields));
        ceten.incoming(&view(0, 0), &Segment::default());
    }
    let mut echoed = || {
        let mut packet = Packet::BLANK;
        ceten.outgoing(&view(0, 0), &mut packet);
        match PathFields::of(&packet) {
            Some(PathFields::Coded { echoed, .. }) => echoed.map(wire::Code::as_step),
            other => panic!("{other:?}"),
        }
    };
    let step = Causes { corruption: 1, congestion: -1 };
    assert_eq!([echoed(), echoed(), echoed()], [step, step, Causes::default()]);
}

#[test]
fn messages_about_links_multiply_and_old_ones_are_forgotten() {
    let mut ceten = with_path(Strategy::LossRatio, 1.0, 1.0);
    ceten.transport = Transport::Traceback;
    let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
    let mut link = |seconds, node: u8, corruption: f64| {
        let survival = Causes { corruption, congestion: 1.0 }.map(Probability::of);
        let node = IpAddr::from([10, 0, 0, node]);
        indicate(&mut ceten, at(seconds), Indication::Link { node, link: 0, survival });
        let view = View { now: at(seconds), ..view(0, 0) };
        ceten.survival(&view).corruption
    };
    assert!((link(0, 1, 0.5) - 0.5).abs() < 1e-9);
    assert!((link(1, 2, 0.5) - 0.25).abs() < 1e-9);
    assert!((link(2, 1, 0.9) - 0.45).abs() < 1e-9);
    assert!((link(62, 1, 0.9) - 0.9).abs() < 1e-9);
}

#[test]
fn its_settings_are_checked_and_what_it_remembers_is_kept() {
    let read = |json: &str| serde_json::from_str::<CumulativeEten>(json);
    assert_eq!(read("{}").unwrap(), CumulativeEten::default());
    for wrong in [r#"{"bound": 0.4}"#, r#"{"bound": 2}"#, r#"{"strategy": "none"}"#] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
    let mut ceten = with_path(Strategy::LossRatio, 0.97, 0.99);
    congestion(&mut ceten);
    let stored = serde_json::to_string(&ceten).unwrap();
    assert_eq!(read(&stored).unwrap(), ceten);
}
