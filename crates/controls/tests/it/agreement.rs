//! The controls in the kernel and the lab's increase functions, driven by the same acknowledgments: those of downloads
//! over lossy links, as the programs have recorded them.

use crate::permitted;
use base::settings::Span;
use base::{Duration, Time};
use controls::{Call, Control, Loaded};
use libbpf_rs::RingBufferBuilder;
use scenario::{Experiment, Source, Style};
use std::cell::RefCell;
use std::sync::atomic::AtomicBool;
use tcp::congestion::{
    AckSample, Auto, Canit, Cap, CeMarks, ConstantRate, Fast, FlightSample, IncreaseByK,
    IncreaseFunction, RateSample, RoundTrip, Standard, WestwoodPlusPath,
};

/// Multiples of this are the increases of the programs, which round down twice.
const UNIT: f64 = 1.0 / (1_u64 << 24) as f64;

/// A control for each link. Their constants let windows grow by several segments in a round trip.
const CANIT: Canit =
    Canit { nit: Span(Duration::from_millis(7)), rtt: RoundTrip::Smoothed, cap: Cap(Some(0.75)) };
const CONTROLS: [(Control, bool); 5] = [
    (Control::IncreaseByK(IncreaseByK { k: 3.3 }), false),
    (
        Control::ConstantRate(ConstantRate { c: 777.0, rtt: RoundTrip::Smoothed, cap: Cap(None) }),
        true,
    ),
    (Control::Canit(CANIT), true),
    (Control::Auto(Auto::new(Fast::Canit(CANIT))), false),
    (Control::WestwoodPlus, false),
];

/// Each flow has a link and a control of its own.
fn scenario() -> String {
    let mut text = "title = \"controls\"\nduration = \"3 s\"\n[nodes]\nserver = {}\n".to_owned();
    let mut others = "[testbed]\nlate = \"1 s\"\n".to_owned();
    for (control, _) in CONTROLS {
        let name = control.kernel_name();
        text += &format!("{name} = {{}}\n");
        others += &format!(
            "[[links]]\nbetween = [\"server\", \"{name}\"]\nrate = \"12 Mbit/s\"\ndelay = \"15 ms\"\n\
             queue = \"30 packets\"\nforward = {{ errors = {{ packet = 0.005 }} }}\n\
             [[flows]]\nfrom = \"server\"\nto = \"{name}\"\ntraffic = \"bulk\"\n\
             stack = {{ from = \"linux\", to = \"linux\", congestion = \"{name}\" }}\n"
        );
    }
    text + &others
}

/// The calls of each control.
fn recorded() -> Vec<Vec<Call>> {
    let load = |(control, per_ack): (Control, bool)| Loaded::new(&control, per_ack, true).unwrap();
    let loaded = CONTROLS.map(load);
    let source = Source::new(scenario(), "controls.toml");
    let scenario = Experiment::read(&source).and_then(|experiment| experiment.testbed_scenario());
    let scenario = scenario.unwrap_or_else(|error| panic!("{}", error.render(Style::Plain)));
    testbed::run_beside(&scenario, 1, "controls", &AtomicBool::new(false)).unwrap();
    loaded.iter().map(calls).collect()
}

fn calls(loaded: &Loaded) -> Vec<Call> {
    let calls = RefCell::new(Vec::new());
    let mut buffers = RingBufferBuilder::new();
    let take = |bytes: &[u8]| {
        calls.borrow_mut().push(Call::from_bytes(bytes).unwrap());
        0
    };
    buffers.add(loaded.calls().unwrap(), take).unwrap();
    buffers.build().unwrap().consume().unwrap();
    calls.into_inner()
}

fn sample(call: &Call) -> AckSample {
    AckSample {
        now: call.now,
        acked: call.acked_octets,
        limited_transmit: 0,
        delivered: call.acked_octets,
        rate: RateSample::default(),
        flight: FlightSample::default(),
        rtt: call.rtt,
        srtt: call.rtt,
        window_limited: true,
        after_timeout: call.after_timeout,
        mss: call.mss,
        marks: CeMarks::default(),
    }
}

/// Replays calls by the lab's function; the window is the lab's own from one reduction to the next. Returns how often
/// the function grew faster than the standard, and how often as it.
fn replay(mut function: impl IncreaseFunction, per_ack: bool, calls: &[Call]) -> [usize; 2] {
    let (mut window, mut last, mut steps, mut growth) = (0.0, 0.0, 0, [0, 0]);
    for call in calls {
        if call.before != last {
            assert_eq!(call.before.fract(), 0.0, "what others set is whole segments: {call:?}");
            (window, steps) = (call.before, 0);
        }
        let increase = function.per_ack(window, &sample(call));
        let standard = { Standard }.per_ack(window, &sample(call));
        growth[usize::from(increase == standard)] += 1;
        assert!((increase - call.increase).abs() < 3.0 * UNIT, "{increase} at {window}: {call:?}");
        window += increase * if per_ack { 1.0 } else { call.acked_segments as f64 };
        steps += if per_ack { 1 } else { call.acked_segments };
        let bound = 3.0 * UNIT * steps as f64;
        assert!((window - call.after).abs() < bound, "{window} after {steps} steps: {call:?}");
        last = call.after;
    }
    growth
}

/// Replays calls by the lab's Westwood+. Returns the largest number of octets that the path was found to hold.
fn replay_westwood(calls: &[Call]) -> u64 {
    let mut path = WestwoodPlusPath::default();
    for call in calls {
        path.on_ack(&sample(call));
        let capacity = path.capacity().unwrap_or(0) as f64;
        assert!((capacity - call.after).abs() <= 1.0, "{capacity}: {call:?}");
    }
    path.capacity().unwrap()
}

#[test]
fn the_kernels_windows_grow_as_the_labs() {
    let Some(_alone) = permitted() else { return };
    let recorded = recorded();
    for ((control, per_ack), calls) in CONTROLS.into_iter().zip(&recorded) {
        let growth = match control {
            Control::IncreaseByK(f) => replay(f, per_ack, calls),
            Control::ConstantRate(f) => replay(f, per_ack, calls),
            Control::Canit(f) => replay(f, per_ack, calls),
            Control::Auto(f) => replay(f, per_ack, calls),
            Control::WestwoodPlus => {
                let capacity = replay_westwood(calls);
                // 12 Mbit/s for 30 ms are 45,000 octets.
                assert!((10_000..90_000).contains(&capacity), "{capacity}");
                continue;
            }
        };
        let reductions = calls.windows(2).filter(|pair| pair[1].before < pair[0].after).count();
        eprintln!("{control}: {} calls, {reductions} reductions, {growth:?}", calls.len());
        assert!(calls.len() > 200 && reductions > 2, "{control}: {} {reductions}", calls.len());
        assert!(growth[0] > 50, "{control}: {growth:?}");
        assert_eq!(matches!(control, Control::Auto(_)), growth[1] > 50, "{control}: {growth:?}");
    }
    assert!(recorded[0].iter().all(|call| call.now > Time::ZERO));
}
