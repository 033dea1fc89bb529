//! What may be met: settings, networks and applications, at random.

use base::Duration;
use proptest::collection::vec;
use proptest::prelude::*;
use tcp::congestion::{Congestion, Increase};
use tcp::mechanism::{
    CumulativeEten, DelayedDupacks, Eln, Eten, Fields, ForwardEten, Freeze, Mechanism,
    NoticeAuthentication, Rlci, Strategy as Response, Suppression, Transport,
};
use tcp::{
    Config, Connectivity, EcnMode, Estimator, InitialWindow, KeepAlive, MtuProbing, Pipe,
    ReceiveWindow, Recovery, Reduction, Restart, RoundEnd, Rto, SsthreshOnBackoff, Validation,
};
use wire::{Encoding, PathForm};

/// All of it.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) ends: [End; 2],
    pub(crate) luck: Luck,
    /// The links to the first end and to the second are FIFO queues of this kind, and nothing else
    /// happens on the path.
    pub(crate) queues: Option<[Queue; 2]>,
    /// Both open at once; else the second listens.
    pub(crate) both_open: bool,
    pub(crate) seed: u64,
}

/// One end: how it is set up, and what its application does.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) config: Config,
    /// Segments per unit.
    pub(crate) unit: u16,
    pub(crate) script: Vec<Step>,
    /// It reads whenever it can; else only where its script says so, until that is over.
    pub(crate) eager: bool,
    /// It reads so many bytes at a time, unless it reads whenever it can.
    pub(crate) piece: u32,
    /// It aborts instead of closing.
    pub(crate) aborts: bool,
    /// How it receives, as long as things go wrong.
    pub(crate) habits: Habits,
}

impl End {
    pub(crate) fn ask_silent_peers(&mut self) {
        self.config.keep_alive = self.config.keep_alive.or(Some(KeepAlive::default()));
    }

    /// How long it waits at most before it acknowledges a segment.
    fn ack_delay(&self) -> Duration {
        let dupacks = self.config.mechanisms.iter().map(|mechanism| match mechanism {
            Mechanism::DelayedDupacks(dupacks) => u64::from(dupacks.delay_ms),
            _ => 0,
        });
        let dupacks = Duration::from_millis(dupacks.sum());
        let stretch = Duration::from_millis(self.habits.stretch.map_or(0, |(_, delay)| delay));
        self.config.delayed_ack.unwrap_or(Duration::ZERO).max(dupacks) + stretch
    }
}

/// What an application does after so many milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) after: u64,
    pub(crate) act: Act,
}

#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Writes so many thousandths of what it may write at most in one go.
    Write {
        share: u64,
        another_stream: bool,
        /// It says that more will follow.
        more: bool,
    },
    Cork(bool),
    /// What was written is to go although more will follow.
    Flush,
    Nagle(bool),
    /// Not the application: lower layers indicate a change of connectivity. Once the script is
    /// over, there is connectivity.
    Connectivity(Connectivity),
    Read,
    Close,
}

/// What a receiver does that a sender must survive: probabilities per segment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habits {
    /// It reports an out-of-order segment by SACK and discards it (RFC 2018 §8).
    pub(crate) reneges: f64,
    /// It announces less than it did before and accepts no more (RFC 9293 §3.8.6, SHLD-14).
    pub(crate) shrinks: f64,
    /// It accepts the first part of a segment, and acknowledges that.
    pub(crate) truncates: f64,
    /// It sends one pure ACK for so many, or after a delay in milliseconds. That never ends.
    pub(crate) stretch: Option<(u32, u64)>,
}

/// A link without losses that keeps the order. Only payload takes time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub(crate) nanos_per_byte: u64,
    /// The delay varies by up to so many milliseconds.
    pub(crate) jitter: u64,
}

/// How often things go wrong, each packet on its own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Luck {
    /// After so many milliseconds nothing goes wrong any more.
    pub(crate) until: u64,
    pub(crate) lost: f64,
    pub(crate) corrupted: f64,
    /// The share of corruptions that the network reports.
    pub(crate) reported: f64,
    pub(crate) doubled: f64,
    pub(crate) late: f64,
    pub(crate) marked: f64,
    /// Milliseconds there; jitter comes on top.
    pub(crate) delay: u64,
    pub(crate) jitter: u64,
}

pub(crate) fn luck() -> impl Strategy<Value = Luck> {
    let until = prop_oneof![1 => Just(u64::MAX), 1 => 0_u64..3000, 1 => 0_u64..60_000];
    let often = (p(0.25), p(0.2), p(1.0), p(0.1), p(0.3), p(0.2));
    (until, often, delay(), 0_u64..600).prop_map(|(until, often, delay, jitter)| {
        let (lost, corrupted, reported, doubled, late, marked) = often;
        Luck { until, lost, corrupted, reported, doubled, late, marked, delay, jitter }
    })
}

/// A probability: often none.
fn p(most: f64) -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..most]
}

/// Milliseconds.
fn delay() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..10, 0_u64..400]
}

fn habits() -> impl Strategy<Value = Habits> {
    let some =
        (p(0.5), p(0.3), p(0.3), stretch()).prop_map(|(reneges, shrinks, truncates, stretch)| {
            Habits { reneges, shrinks, truncates, stretch }
        });
    prop_oneof![Just(Habits::default()), some]
}

fn stretch() -> impl Strategy<Value = Option<(u32, u64)>> {
    prop::option::weighted(0.3, (2_u32..20, 1_u64..300))
}

fn step() -> impl Strategy<Value = Step> {
    let after = prop_oneof![4 => 0_u64..100, 2 => 0_u64..3000, 1 => 0_u64..60_000];
    let share = prop_oneof![Just(0_u64), 0_u64..20, 0_u64..1000];
    let act = prop_oneof![
        6 => (share, any::<bool>(), any::<bool>()).prop_map(|(share, another_stream, more)| {
            Act::Write { share, another_stream, more }
        }),
        1 => any::<bool>().prop_map(Act::Cork),
        1 => Just(Act::Flush),
        1 => any::<bool>().prop_map(Act::Nagle),
        3 => connectivity().prop_map(Act::Connectivity),
        3 => Just(Act::Read),
        1 => Just(Act::Close),
    ];
    (after, act).prop_map(|(after, act)| Step { after, act })
}

fn connectivity() -> impl Strategy<Value = Connectivity> {
    let window = prop::option::weighted(0.2, 0_u32..20);
    prop_oneof![
        1 => Just(Connectivity::Ending),
        4 => window.prop_map(|window| Connectivity::Changed { window }),
        1 => Just(Connectivity::Full),
    ]
}

pub(crate) fn end() -> impl Strategy<Value = End> {
    let unit = prop_oneof![Just(1_u16), 2_u16..50];
    let piece = prop_oneof![1_u32..2000, Just(u32::MAX)];
    let aborts = prop::bool::weighted(0.1);
    (config(), unit, vec(step(), 0..20), any::<bool>(), piece, aborts, habits()).prop_map(
        |(config, unit, script, eager, piece, aborts, habits)| End {
            config,
            unit,
            script,
            eager,
            piece,
            aborts,
            habits,
        },
    )
}

/// What takes two to agree on should meet its like.
fn likely() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.7)
}

/// Milliseconds.
fn millis(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

fn config() -> impl Strategy<Value = Config> {
    let probing =
        prop::sample::select(&[MtuProbing::Off, MtuProbing::BlackHole, MtuProbing::On][..]);
    let parts = (sizes(), congestion(), repair(), manners(), probing);
    parts.prop_map(|(sizes, congestion, repair, manners, mtu_probing)| {
        let (mss, receive_window) = sizes;
        let (controllers, byte_counting, initial_window, initial_ssthresh) = congestion;
        let (controller, increase, loss_threshold, [renew_min_rtt, tolerate_random_loss]) =
            controllers;
        let (lost, reduction, undo, frto, dsack, limited_transmit, ssthresh_on_backoff) = repair;
        let (recovery, pipe) = lost;
        let (flags, delayed_ack, rto, keep_alive, challenges, mechanisms) = manners;
        let [
            restart_after_idle,
            timestamps,
            require_timestamps,
            classic_ecn,
            accurate_ecn,
            nagle,
            pacing,
            half,
            hystart,
            fast_open,
            prompt_start,
            passed,
        ] = flags;
        let standard = Config::default();
        Config {
            mss,
            minimum_mss: standard.minimum_mss,
            receive_window,
            recovery,
            pipe,
            congestion: controller,
            increase,
            loss_threshold,
            renew_min_rtt,
            tolerate_random_loss,
            byte_counting,
            initial_window,
            initial_ssthresh,
            hystart,
            hystart_round_end: if passed { RoundEnd::Passed } else { RoundEnd::Reached },
            validation: if half { Validation::Half } else { Validation::Full },
            restart_after_idle,
            limited_transmit,
            delayed_ack,
            rto,
            retries: u32::MAX, // However bad the luck.
            syn_retries: u32::MAX,
            syn_ack_retries: u32::MAX,
            ssthresh_on_backoff,
            reduction,
            undo,
            frto,
            dsack,
            timestamps,
            require_timestamps,
            ecn: match (classic_ecn, accurate_ecn) {
                (false, _) => EcnMode::Off,
                (true, false) => EcnMode::Classic,
                (true, true) => EcnMode::Accurate,
            },
            fast_open,
            nagle,
            pacing,
            prompt_start,
            mtu_probing,
            keep_alive,
            user_timeout: None,
            challenges,
            out_of_window_acks: standard.out_of_window_acks,
            // Longer than the longest run of lost acknowledgments of a FIN.
            time_wait: Duration::from_secs(3600),
            fin_wait_2: standard.fin_wait_2,
            mechanisms,
        }
    })
}

fn sizes() -> impl Strategy<Value = (u16, ReceiveWindow)> {
    let mss = prop_oneof![1 => 60_u16..200, 4 => 200_u16..1500, 1 => 1500_u16..9000];
    // From a part of a segment to more than 64 KB, which takes a shift.
    let window = prop_oneof![
        1 => 1_u32..400,
        2 => 400_u32..5000,
        2 => 5000_u32..65_536,
        1 => 65_536_u32..1 << 21,
    ];
    let window = (window, prop::sample::select(&[1, 1, 3, 50][..]));
    let window =
        window.prop_map(|(initial, growth)| ReceiveWindow { initial, maximum: initial * growth });
    (mss, window)
}

type Controllers = (Congestion, Increase, Option<f64>, [bool; 2]);

fn congestion() -> impl Strategy<Value = (Controllers, Option<u32>, InitialWindow, Option<u64>)> {
    let initial = prop_oneof![
        (1_u32..12).prop_map(InitialWindow::Segments),
        Just(InitialWindow::Rfc3390),
        Just(InitialWindow::Rfc6928),
    ];
    let controllers = (
        prop::sample::select(Congestion::ALL).prop_map(|(_, congestion)| congestion),
        prop::sample::select(Increase::ALL).prop_map(|(_, increase)| increase),
        prop::option::of(prop::sample::select(vec![0.0, 0.2, 0.9])),
        any::<[bool; 2]>(),
    );
    (
        controllers,
        prop::option::of(prop_oneof![1_u32..=2, Just(u32::MAX)]),
        initial,
        prop::option::of(2000_u64..50_000),
    )
}

type Repair = ((Recovery, Pipe), Reduction, bool, bool, bool, bool, SsthreshOnBackoff);

fn repair() -> impl Strategy<Value = Repair> {
    let any_recovery = prop::sample::select(Recovery::ALL).prop_map(|(_, recovery)| recovery);
    let pipe = prop_oneof![3 => Just(Pipe::IsLost), 1 => Just(Pipe::Unreported)];
    (
        (prop_oneof![Just(Recovery::Sack), Just(Recovery::Rack), any_recovery], pipe),
        prop::sample::select(vec![
            Reduction::Immediate,
            Reduction::Prr,
            Reduction::PrrSsrb,
            Reduction::PrrCrb,
        ]),
        likely(),
        likely(),
        likely(),
        likely(),
        prop::sample::select(vec![SsthreshOnBackoff::Hold, SsthreshOnBackoff::Halve]),
    )
}

type Manners = ([bool; 12], Option<Duration>, Rto, Option<KeepAlive>, u32, Vec<Mechanism>);

/// The maximum is above every round trip that [`luck`] can give.
fn rto() -> impl Strategy<Value = Rto> {
    let maximum = prop_oneof![Just(Duration::from_secs(60)), millis(3000..60_000)];
    let estimator = prop_oneof![
        3 => Just(Estimator::Exact),
        1 => Just(Estimator::Ticks),
        1 => Just(Estimator::Tahoe),
    ];
    let restart = prop_oneof![
        3 => Just(Restart::Retransmission),
        2 => Just(Restart::Sack),
        1 => Just(Restart::Advance),
    ];
    let times = (millis(100..3000), millis(0..1000), maximum, millis(1..500), millis(0..500));
    (times, estimator, restart).prop_map(|(times, estimator, restart)| {
        let (initial, minimum, maximum, granularity, minimum_variance) = times;
        Rto { initial, minimum, maximum, granularity, minimum_variance, estimator, restart }
    })
}

fn manners() -> impl Strategy<Value = Manners> {
    let keep_alive = (millis(2000..20_000), millis(500..3000)).prop_map(|(idle, interval)| {
        KeepAlive { idle, interval, probes: u32::MAX } // However bad the luck.
    });
    let suppression = prop::sample::select(&Suppression::EVERY[..]);
    let eten = (likely(), suppression).prop_map(|(forward, suppress_dupacks)| match forward {
        true => Mechanism::ForwardEten(ForwardEten::new(suppress_dupacks)),
        false => Mechanism::Eten(Eten::new(suppress_dupacks)),
    });
    let guard = (any::<bool>(), any::<bool>(), 0_u32..5).prop_map(|(nonce, trust, limit)| {
        Mechanism::NoticeAuthentication(NoticeAuthentication::new(nonce, trust, limit))
    });
    let held =
        (1_u32..100).prop_map(|delay_ms| Mechanism::DelayedDupacks(DelayedDupacks { delay_ms }));
    (
        [(); 12].map(|()| likely()),
        prop::option::of(millis(1..500)),
        rto(),
        prop::option::weighted(0.2, keep_alive),
        1_u32..11,
        (
            prop::option::weighted(0.5, eten),
            prop::option::weighted(0.3, ceten()),
            prop::option::weighted(0.2, held),
            prop::option::weighted(0.3, guard),
            prop::option::weighted(0.6, rlci()),
            prop::option::weighted(0.3, Just(Mechanism::Freeze(Freeze::default()))),
            prop::option::weighted(0.3, any::<bool>().prop_map(Eln::new)),
        )
            .prop_map(|(eten, ceten, held, guard, rlci, freeze, eln)| {
                let moves = freeze.into_iter().chain(rlci);
                let losses = eten.into_iter().chain(ceten).chain(eln.map(Mechanism::Eln));
                moves.chain(guard).chain(losses).chain(held).collect()
            }),
    )
}

fn ceten() -> impl Strategy<Value = Mechanism> {
    use PathForm::{Binary, Levels, Probability, Relative};
    let strategies = vec![Response::Published, Response::LossRatio, Response::Adaptive];
    (
        prop::sample::select(strategies),
        0.5..=1.0,
        prop::sample::select(vec![Fields::Free, Fields::Real]),
        prop::sample::select(vec![Probability, Levels, Binary, Relative]),
        prop::sample::select(vec![Transport::Header, Transport::Traceback]),
        0.001..=1.0,
    )
        .prop_map(|(strategy, bound, fields, form, transport, a)| {
            let mut ceten = CumulativeEten::new(strategy, bound, fields);
            (ceten.a, ceten.form, ceten.transport) = (a, form, transport);
            Mechanism::CumulativeEten(ceten)
        })
}

fn rlci() -> impl Strategy<Value = Mechanism> {
    let encoding = prop_oneof![Just(Encoding::Experimental), Just(Encoding::Draft)];
    let suggested = any::<[Option<bool>; 3]>();
    (encoding, any::<[bool; 3]>(), suggested).prop_map(|(encoding, settings, suggested)| {
        let mut rlci = Rlci::default();
        rlci.encoding = encoding;
        [rlci.strict, rlci.limited_transmit, rlci.keep_ssthresh] = settings;
        [rlci.resend, rlci.suppress, rlci.rate_limit] = suggested;
        Mechanism::Rlci(rlci)
    })
}

/// Two connections over two FIFO links without losses, with retransmission timeouts just above the
/// longest time that an acknowledgment can take: so no timer of RFC 6298 may ever expire.
pub(crate) fn undisturbed() -> impl Strategy<Value = Case> {
    let queue = (0_u64..2000, 0_u64..100);
    let slack = || millis(1..500);
    ([end(), end()], [queue.clone(), queue], delay(), [slack(), slack()], any::<u64>()).prop_map(
        |(mut ends, queues, delay, slack, seed)| {
            let windows = [0, 1].map(|i| u64::from(ends[i].config.receive_window.maximum));
            // A full window takes so long to leave the queue.
            let queues = [0, 1].map(|i| {
                let (millis, jitter) = queues[i];
                Queue { nanos_per_byte: millis * 1_000_000 / (windows[i] + 1), jitter }
            });
            for end in &mut ends {
                end.aborts = false;
                // Loss probes are sent where acknowledgments are late (RFC 8985 §7.2).
                if end.config.recovery == Recovery::Rack {
                    end.config.recovery = Recovery::Sack;
                }
                // Answers that are late would be duplicate ACKs of what was sent since.
                end.config.keep_alive = None;
                end.habits = Habits { stretch: end.habits.stretch, ..Habits::default() };
                // Where the path changes, windows shrink and what is outstanding goes again.
                end.script.retain(|step| !matches!(step.act, Act::Connectivity(_)));
                end.config.mechanisms.retain(|mechanism| !matches!(mechanism, Mechanism::Rlci(_)));
            }
            // Data of a SYN that is not accepted, or not all, is sent twice.
            let first = ends[1].config.receive_window.initial;
            let fits = first >= u32::from(ends[0].config.mss);
            let fast_open = fits && ends.iter().all(|end| end.config.fast_open);
            ends.iter_mut().for_each(|end| end.config.fast_open = fast_open);
            let luck = Luck { delay, ..Luck::default() };
            let mut case = Case { ends, luck, queues: Some(queues), both_open: false, seed };
            let longest = case.longest_round_trip();
            for (end, slack) in case.ends.iter_mut().zip(slack) {
                let rto = &mut end.config.rto;
                rto.minimum = longest + slack;
                if rto.estimator == Estimator::Tahoe {
                    // Its timeout may be so much shorter.
                    rto.minimum = rto.minimum + rto.granularity;
                }
                rto.initial = rto.minimum;
                rto.maximum = rto.maximum.max(rto.minimum);
            }
            case
        },
    )
}

impl Case {
    /// From the transmission of a segment to the arrival of an ACK for it, at most, unless
    /// something goes wrong.
    pub(crate) fn longest_round_trip(&self) -> Duration {
        let mut longest = Duration::from_millis(2 * self.luck.delay);
        for (i, end) in self.ends.iter().enumerate() {
            if let Some(queues) = &self.queues {
                // The window, and an octet that probes it.
                let octets = u64::from(end.config.receive_window.maximum) + 1;
                let Queue { nanos_per_byte, jitter } = queues[i];
                longest = longest
                    + Duration::from_nanos(octets * nanos_per_byte)
                    + Duration::from_millis(jitter);
            }
        }
        let ack_delay = self.ends.iter().map(End::ack_delay).fold(Duration::ZERO, Duration::max);
        longest + ack_delay
    }
}
