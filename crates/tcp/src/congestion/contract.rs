//! The contract that every controller keeps that reacts to single losses, with every increase
//! function, whatever happens.

use super::*;
use crate::{Config, RoundEnd};
use proptest::prelude::*;

/// Something that happens to a controller.
#[derive(Clone, Debug)]
enum Op {
    Ack {
        acked: u64,
        rtt: Duration,
        window_limited: bool,
        after_timeout: bool,
    },
    /// An acknowledgment by which no window grows.
    OtherAck {
        acked: u64,
        rtt: Duration,
    },
    Congestion(Cut),
    Timeout(Cut),
    Undo,
    Idle {
        segments: u64,
    },
    Reset {
        segments: u64,
        ssthresh: Option<u64>,
    },
    /// Segments are of another size, bytes.
    Segments(u32),
    Wait(Duration),
    /// It is stored and restored.
    Restore,
}

/// What is known of congestion.
#[derive(Clone, Debug)]
struct Cut {
    /// How much of the window was in flight.
    used: f64,
    decrease: Option<f64>,
    keep_ssthresh: bool,
    marked: bool,
}

/// Numbers of any size up to 2^`bits`, small ones as often as large ones.
fn up_to(bits: u32) -> impl Strategy<Value = u64> {
    (0..=bits, any::<u64>()).prop_map(|(bits, n)| n & ((1 << bits) - 1))
}

fn cut() -> impl Strategy<Value = Cut> {
    let decrease = prop_oneof![3 => Just(None), 1 => (0.0..=1.0).prop_map(Some)];
    (0.0..=1.0, decrease, any::<bool>(), any::<bool>()).prop_map(
        |(used, decrease, keep_ssthresh, marked)| Cut { used, decrease, keep_ssthresh, marked },
    )
}

fn mss() -> impl Strategy<Value = u32> {
    1_u32..65_496
}

fn op() -> impl Strategy<Value = Op> {
    // 1 us to 100 s.
    let rtt = || {
        (1_000.0_f64..1e11, 0..9).prop_map(|(nanos, tens)| {
            let nanos = (0..tens).fold(nanos, |nanos, _| nanos / 10.0);
            Duration::from_nanos(nanos.max(1000.0) as u64)
        })
    };
    prop_oneof![
        12 => (up_to(42), rtt(), prop::bool::weighted(0.9), any::<bool>()).prop_map(
            |(acked, rtt, window_limited, after_timeout)| {
                Op::Ack { acked: acked + 1, rtt, window_limited, after_timeout }
            }
        ),
        4 => (up_to(42), rtt()).prop_map(|(acked, rtt)| Op::OtherAck { acked, rtt }),
        2 => cut().prop_map(Op::Congestion),
        2 => cut().prop_map(Op::Timeout),
        2 => Just(Op::Undo),
        1 => (1_u64..100).prop_map(|segments| Op::Idle { segments }),
        1 => (1_u64..100, prop::option::of(up_to(40)))
            .prop_map(|(segments, ssthresh)| Op::Reset { segments, ssthresh }),
        1 => mss().prop_map(Op::Segments),
        4 => up_to(50).prop_map(|nanos| Op::Wait(Duration::from_nanos(nanos))),
        1 => Just(Op::Restore),
    ]
}

/// A controller, and what it has to keep.
struct Contract {
    controller: Controller,
    now: Time,
    una: u64,
    mss: u32,
    /// HyStart++ may end slow start.
    hystart: bool,
    /// What congestion leaves comes from measurement, and may be more than there was.
    measures: bool,
    /// Window and ssthresh before the last reduction.
    before: Option<(u64, u64)>,
}

impl Contract {
    fn apply(&mut self, op: &Op) -> Result<(), TestCaseError> {
        let (window, ssthresh) = (self.controller.window(), self.controller.ssthresh());
        match op {
            Op::Ack { acked, rtt, window_limited, after_timeout } => {
                let sample = self.sample(*acked, *rtt, *window_limited, *after_timeout);
                self.una += acked;
                self.controller.on_ack(&sample, self.una, self.una.saturating_add(window));
                let grown = self.controller.window();
                prop_assert!(grown >= window && (*window_limited || grown == window));
                let may_end = self.hystart && ssthresh == u64::MAX;
                let ends = may_end && self.controller.ssthresh() == grown;
                prop_assert!(ends || self.controller.ssthresh() == ssthresh);
            }
            Op::OtherAck { acked, rtt } => {
                self.controller.on_other_ack(&self.sample(*acked, *rtt, false, false));
                prop_assert_eq!(self.controller.window(), window);
                prop_assert_eq!(self.controller.ssthresh(), ssthresh);
            }
            Op::Congestion(cut) => {
                self.before = Some((window, ssthresh));
                self.controller.on_congestion(&self.episode(cut));
                self.reduced(cut, window, ssthresh)?;
            }
            Op::Timeout(cut) => {
                // Timeouts in a row are one reduction.
                if self.before.is_none() || window > u64::from(self.mss) {
                    self.before = Some((window, ssthresh));
                }
                self.controller.on_rto(&self.episode(cut));
                prop_assert_eq!(self.controller.window(), u64::from(self.mss));
                self.reduced(cut, window, ssthresh)?;
            }
            Op::Undo => {
                self.controller.on_undo();
                let before = self.before.take().filter(|(before, _)| window <= *before);
                let expected = before.unwrap_or((window, ssthresh));
                prop_assert_eq!((self.controller.window(), self.controller.ssthresh()), expected);
            }
            Op::Idle { segments } => {
                self.before = None;
                let restart = segments * u64::from(self.mss);
                self.controller.on_idle(restart);
                prop_assert_eq!(self.controller.window(), window.min(restart));
                prop_assert_eq!(self.controller.ssthresh(), ssthresh);
            }
            Op::Reset { segments, ssthresh } => {
                self.before = None;
                let initial = segments * u64::from(self.mss);
                self.controller.reset(initial, *ssthresh);
                prop_assert_eq!(self.controller.window(), initial);
                prop_assert_eq!(self.controller.ssthresh(), ssthresh.unwrap_or(u64::MAX));
            }
            Op::Segments(mss) => {
                self.mss = *mss;
                self.controller.on_larger_segments(*mss);
                prop_assert_eq!(self.controller.window(), window.max(u64::from(*mss)));
                prop_assert_eq!(self.controller.ssthresh(), ssthresh);
            }
            Op::Wait(span) => self.now += *span,
            Op::Restore => {
                let saved = serde_json::to_string(&self.controller)?;
                let restored: Controller = serde_json::from_str(&saved)?;
                prop_assert_eq!(&restored, &self.controller);
                self.controller = restored;
                prop_assert_eq!(self.controller.window(), window);
                prop_assert_eq!(self.controller.ssthresh(), ssthresh);
            }
        }
        prop_assert!(self.controller.window() >= u64::from(self.mss));
        prop_assert!(self.controller.window() <= 1 << 40);
        Ok(())
    }

    fn reduced(&self, cut: &Cut, window: u64, ssthresh: u64) -> Result<(), TestCaseError> {
        prop_assert!(self.controller.window() <= window);
        if cut.keep_ssthresh {
            prop_assert_eq!(self.controller.ssthresh(), ssthresh);
        } else {
            let ssthresh = self.controller.ssthresh();
            let two = 2 * u64::from(self.mss);
            let most = if self.measures { 1 << 40 } else { window };
            prop_assert!((two..=most.max(two)).contains(&ssthresh), "{ssthresh}");
        }
        Ok(())
    }

    fn sample(
        &self,
        acked: u64,
        rtt: Duration,
        window_limited: bool,
        after_timeout: bool,
    ) -> AckSample {
        AckSample {
            now: self.now,
            acked,
            limited_transmit: 0,
            delivered: acked,
            rate: RateSample { delivered: acked, interval: rtt },
            flight: FlightSample::default(),
            rtt: Some(rtt),
            srtt: Some(rtt),
            window_limited,
            after_timeout,
            mss: self.mss,
            marks: crate::congestion::CeMarks::default(),
        }
    }

    fn episode(&self, cut: &Cut) -> Episode {
        Episode {
            now: self.now,
            flight: (self.controller.window() as f64 * cut.used) as u64,
            mss: self.mss,
            decrease: cut.decrease,
            keep_ssthresh: cut.keep_ssthresh,
            marked: cut.marked,
        }
    }
}

/// Controllers without a model of the path.
fn reactive() -> Vec<(&'static str, Congestion)> {
    let models_path =
        |congestion| Controller::new(Growth { congestion, ..Growth::default() }, 1).models_path();
    Congestion::ALL.iter().copied().filter(|&(_, congestion)| !models_path(congestion)).collect()
}

fn hystart() -> impl Strategy<Value = HyStartRules> {
    let round_end = prop::sample::select(&[RoundEnd::Reached, RoundEnd::Passed][..]);
    (any::<bool>(), round_end).prop_map(|(pacing, hystart_round_end)| {
        let config = Config { pacing, hystart_round_end, byte_counting: None, ..Config::default() };
        HyStartRules::new(&config)
    })
}

/// Thousands of cases, unless the environment asks for another number.
fn cases() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(4000),
    }
}

proptest! {
    #![proptest_config(cases())]

    /// A window is never zero, never absurd, grows by acknowledgments alone, shrinks by congestion
    /// alone, and an undo restores it.
    #[test]
    fn every_controller_keeps_the_contract(
        congestion in prop::sample::select(reactive()),
        increase in prop::sample::select(Increase::ALL),
        byte_counting in prop::option::of(1_u32..10),
        hystart in prop::option::of(hystart()),
        mss in mss(),
        segments in 1_u64..100,
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let growth = Growth {
            congestion: congestion.1,
            increase: increase.1,
            byte_counting,
            hystart,
            loss_threshold: None,
            renew_min_rtt: false,
            tolerate_random_loss: false,
        };
        let controller = Controller::new(growth, segments * u64::from(mss));
        let measures = congestion.0.starts_with("westwood");
        let mut contract = Contract {
            controller,
            now: Time::ZERO,
            una: 0,
            mss,
            hystart: hystart.is_some(),
            measures,
            before: None,
        };
        for op in &ops {
            contract.apply(op)?;
        }
    }
}
