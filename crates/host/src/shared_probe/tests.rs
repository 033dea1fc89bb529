//! Connections that probe a new path together: when each starts, and which leave slow start at the
//! limit.

use super::*;
use proptest::prelude::*;

const CHANGED: Connectivity = Connectivity::Changed { window: None };
const ONE: Connectivity = Connectivity::Changed { window: Some(1) };
const FULL: Connectivity = Connectivity::Full;
/// The initial window of those that start with it; one segment is 1.
const INITIAL: u64 = 4;

fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A connection in slow start whose retransmission timer takes a second.
fn fresh(window: u64) -> CongestionState {
    CongestionState {
        window,
        ssthresh: u64::MAX,
        srtt: None,
        rto: ms(1000),
        losses: 0,
        outstanding: true,
        closed: false,
    }
}

/// A probe, and the states of its connections.
struct Lab {
    probe: SharedProbe<u32>,
    states: BTreeMap<u32, CongestionState>,
}

impl Lab {
    /// Connections 0, 1, 2, ... of a path that changes at time zero.
    fn new(connections: u32) -> Lab {
        Lab {
            probe: SharedProbe::new(Time::ZERO, (0..connections).collect()),
            states: BTreeMap::new(),
        }
    }

    /// The indications that are due now; each connection follows its own.
    fn indications(&mut self, now: Time) -> Vec<(u32, Connectivity)> {
        let mut indications = Vec::new();
        while let Some((key, connectivity)) = self.probe.poll(now) {
            if let Connectivity::Changed { window } = connectivity {
                let state = fresh(window.map_or(INITIAL, u64::from));
                self.states.insert(key, state);
                self.probe.started(now, key, Some(state));
            }
            indications.push((key, connectivity));
        }
        indications
    }

    /// The indications up to `end`, with their times in milliseconds.
    fn indications_until(&mut self, end: u64) -> Vec<(u64, u32, Connectivity)> {
        let mut indications = Vec::new();
        let mut now = at(0);
        while now <= at(end) {
            let millis = now.since(Time::ZERO).as_nanos() / 1_000_000;
            indications
                .extend(self.indications(now).into_iter().map(|(key, what)| (millis, key, what)));
            let wake = self.probe.wake();
            if wake <= now {
                break;
            }
            now = wake;
        }
        indications
    }

    /// Something happens to a connection.
    fn change(&mut self, millis: u64, key: u32, change: impl FnOnce(&mut CongestionState)) {
        let Some(state) = self.states.get_mut(&key) else { return };
        change(state);
        self.probe.observe(at(millis), key, state);
    }

    /// A round trip is measured, after which the mean is `mean`.
    fn mean(&mut self, millis: u64, key: u32, mean: u64) {
        self.change(millis, key, |state| state.srtt = Some(ms(mean)));
    }

    fn window(&mut self, millis: u64, key: u32, window: u64) {
        self.change(millis, key, |state| state.window = window);
    }

    fn loss(&mut self, millis: u64, key: u32) {
        self.change(millis, key, |state| state.losses += 1);
    }
}

#[test]
fn the_longest_stalled_probes_alone_until_its_first_round_trip() {
    let mut lab = Lab::new(4);
    assert_eq!(lab.indications_until(99), [(0, 0, CHANGED)]);
}

#[test]
fn then_the_others_start_from_a_segment_each_spread_over_a_round_trip() {
    let mut lab = Lab::new(4);
    assert_eq!(lab.indications(at(0)), [(0, CHANGED)]);
    lab.mean(100, 0, 100);
    assert_eq!(lab.indications_until(900), [(125, 1, ONE), (150, 2, ONE), (175, 3, ONE)]);
}

#[test]
fn a_leader_without_an_answer_is_succeeded_when_its_timer_strikes() {
    let mut lab = Lab::new(3);
    assert_eq!(lab.indications_until(2500), [(0, 0, CHANGED), (1000, 1, ONE), (2000, 2, ONE)]);
    let mut lab = Lab::new(3);
    lab.indications(at(0));
    lab.loss(400, 0);
    assert_eq!(lab.indications(at(400)), [(1, ONE)]);
    assert!(!lab.probe.is_over(at(400)));
    lab.mean(500, 0, 60);
    assert_eq!(lab.indications(at(520)), [(2, ONE)], "any connection's round trip counts");
}

#[test]
fn a_leader_that_is_closed_is_succeeded_at_once() {
    let mut lab = Lab::new(2);
    lab.indications(at(0));
    lab.change(10, 0, |state| state.closed = true);
    assert_eq!(lab.indications(at(10)), [(1, ONE)]);
}

#[test]
fn a_leader_that_has_nothing_left_to_ask_with_leaves_its_initial_window_to_the_next() {
    let mut lab = Lab::new(3);
    lab.indications(at(0));
    lab.change(80, 0, |state| state.outstanding = false);
    assert_eq!(lab.indications(at(80)), [(1, CHANGED)]);
    lab.mean(180, 1, 100);
    assert_eq!(lab.indications_until(900), [(213, 2, ONE)]);
}

#[test]
fn a_connection_that_makes_nothing_of_it_does_not_lead() {
    let mut probe = SharedProbe::new(at(0), (0..3).collect());
    assert_eq!(probe.poll(at(0)), Some((0, CHANGED)));
    probe.started(at(0), 0, None);
    assert_eq!(probe.poll(at(0)), Some((1, CHANGED)));
    probe.started(at(0), 1, Some(fresh(INITIAL)));
    assert_eq!(probe.poll(at(0)), None);
    let mean = CongestionState { srtt: Some(ms(100)), ..fresh(INITIAL) };
    probe.observe(at(100), 1, &mean);
    assert_eq!(probe.wake(), at(150), "a half of the round trip, for there are two");
}

/// Four connections that have started, with windows of 16, 4, 2 and 1.
fn started() -> Lab {
    let mut lab = Lab::new(4);
    lab.indications(at(0));
    lab.mean(100, 0, 100);
    lab.indications_until(900);
    for (key, window) in [(0, 16), (1, 4), (2, 2)] {
        lab.window(900, key, window);
    }
    assert_eq!(lab.indications(at(900)), []);
    lab
}

#[test]
fn a_withdrawn_connection_is_not_started() {
    let mut lab = Lab::new(4);
    lab.indications(at(0));
    lab.probe.withdraw(&[1, 2]);
    lab.mean(100, 0, 100);
    assert_eq!(lab.indications_until(900), [(150, 3, ONE)]);
}

#[test]
fn the_first_loss_ends_slow_start_for_connections_with_their_share() {
    let mut lab = started();
    // The four have 23, less what the third had.
    lab.loss(901, 2);
    assert_eq!(lab.indications(at(901)), [(0, FULL)], "its share is 7");
    lab.loss(902, 0);
    lab.window(903, 1, 6);
    assert_eq!(lab.indications(at(903)), []);
    lab.window(904, 1, 7);
    assert_eq!(lab.indications(at(904)), [(1, FULL)]);
    lab.window(904, 3, 7);
    assert_eq!(lab.indications(at(904)), [(3, FULL)]);
    assert!(lab.probe.is_over(at(904)));
}

#[test]
fn a_rise_of_the_delay_ends_slow_start_as_a_loss_does() {
    // A mean that rises by 2 ms shows a round trip 16 ms above it.
    let risen = |rise: u64| {
        let mut lab = started();
        lab.mean(700, 3, 100);
        for sample in 0..8 {
            assert_eq!(lab.indications(at(901 + sample)), []);
            lab.mean(901 + sample, (sample % 2) as u32 * 3, 100 + rise * (1 + sample / 2));
        }
        lab.indications(at(909))
    };
    assert_eq!(risen(2), [(0, FULL)]);
    assert_eq!(risen(1), []);
}

#[test]
fn a_connection_that_starts_later_ends_slow_start_at_its_share() {
    let mut lab = Lab::new(4);
    lab.indications(at(0));
    lab.mean(100, 0, 100);
    lab.window(100, 0, 8);
    assert_eq!(lab.indications(at(125)), [(1, ONE)]);
    lab.loss(130, 1);
    assert_eq!(lab.indications_until(300), [(0, 0, FULL), (150, 2, ONE), (175, 3, ONE)]);
    lab.window(310, 3, 2);
    assert_eq!(lab.indications(at(310)), [(3, FULL)], "8 for the three that are left");
}

#[test]
fn it_is_over_when_all_have_left_slow_start() {
    let mut lab = started();
    lab.change(910, 0, |state| state.ssthresh = 16);
    lab.change(910, 1, |state| state.outstanding = false);
    lab.change(910, 2, |state| state.closed = true);
    assert!(!lab.probe.is_over(at(910)));
    lab.change(910, 3, |state| state.ssthresh = 1);
    assert!(lab.probe.is_over(at(910)));
}

#[test]
fn it_is_over_in_the_end_even_if_a_connection_never_leaves_slow_start() {
    let lab = started();
    // 64 round trips after the last start.
    assert_eq!(lab.probe.wake(), at(175 + 6400));
    assert!(!lab.probe.is_over(at(6574)) && lab.probe.is_over(at(6575)));
}

/// Something that happens to one of the connections.
#[derive(Clone, Debug)]
enum Op {
    Mean(u64),
    Grow,
    Loss,
    Idle,
    Close,
    Inert,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1..3000_u64).prop_map(Op::Mean),
        4 => Just(Op::Grow),
        2 => Just(Op::Loss),
        1 => Just(Op::Idle),
        1 => Just(Op::Close),
        1 => Just(Op::Inert),
    ]
}

#[test]
fn the_connection_that_notices_the_limit_is_full_once() {
    let mut lab = Lab::new(1);
    assert_eq!(lab.indications(at(0)), [(0, CHANGED)]);
    let mut state = lab.states[&0];
    let mut mean = |now: u64, nanos: u64| {
        state.srtt = Some(Duration::from_nanos(nanos));
        lab.probe.observe(at(now), 0, &state);
    };
    // A round of 100 ms, then eight samples of 120 ms and more.
    mean(100, 100_000_000);
    (0..9).for_each(|n| mean(250, 120_000_000 + n));
    assert_eq!(lab.indications(at(250)), [(0, FULL)]);
}

proptest! {
    #[test]
    fn each_connection_starts_once_and_at_first_at_most_one_initial_window_is_outstanding(
        connections in 1..20_u32,
        ops in proptest::collection::vec((0..20_u32, 0..400_u64, op()), 0..200),
    ) {
        let mut probe = SharedProbe::new(at(0), (0..connections).collect());
        let mut states: BTreeMap<u32, CongestionState> = BTreeMap::new();
        let (mut starts, mut fulls) = (Vec::new(), Vec::new());
        let mut inert = Vec::new();
        let (mut now, mut sampled) = (at(0), false);
        let out = |states: &BTreeMap<u32, CongestionState>| states.values().any(|state| state.outstanding && !state.closed);
        let mut ops = ops.into_iter();
        // Every start moves the next one by at most a timeout, and the last ends by itself.
        for _ in 0..2000 {
            while let Some((key, what)) = probe.poll(now) {
                let Connectivity::Changed { window } = what else {
                    prop_assert!(states.contains_key(&key));
                    fulls.push(key);
                    continue;
                };
                prop_assert!(window.is_some() || !(sampled || out(&states)));
                starts.push(key);
                let probes = !inert.contains(&key);
                let state = probes.then(|| fresh(window.map_or(INITIAL, u64::from)));
                if let Some(state) = state {
                    states.insert(key, state);
                }
                probe.started(now, key, state);
            }
            if probe.is_over(now) {
                break;
            }
            let Some((key, pause, op)) = ops.next() else {
                now = probe.wake();
                continue;
            };
            let then = (now + ms(pause)).min(probe.wake());
            now = then.max(now);
            if matches!(op, Op::Inert) {
                inert.push(key);
            }
            let Some(state) = states.get_mut(&key) else { continue };
            match op {
                Op::Mean(mean) => (state.srtt, sampled) = (Some(ms(mean)), true),
                Op::Grow => state.window *= 2,
                Op::Loss => state.losses += 1,
                Op::Idle => state.outstanding = false,
                Op::Close => state.closed = true,
                Op::Inert => {}
            }
            state.window = state.window.min(1 << 40);
            probe.observe(now, key, state);
        }
        prop_assert!(probe.is_over(now));
        prop_assert_eq!(starts, (0..connections).collect::<Vec<_>>(), "the longest-stalled first");
        let indicated = fulls.len();
        fulls.sort_unstable();
        fulls.dedup();
        prop_assert_eq!(fulls.len(), indicated, "each connection at most once");
    }
}
