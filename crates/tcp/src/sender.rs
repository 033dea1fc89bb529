//! The sending half: the pipeline from an acknowledgment to the next transmission.
//!
//! ```text
//! acknowledgment -> scoreboard -> detector names losses -> each gets a verdict
//!     -> at most one response per episode
//!     -> transmit: forced, retransmissions, new data while pipe < cwnd, limited transmit
//! ```

mod acks;
mod losses;
mod notices;
mod reprobe;
mod timer;
mod transmit;

pub(crate) use acks::{Ack, Window};
pub(crate) use transmit::Transmission;

use crate::config::{Config, InitialWindow, Pipe, Reduction, SsthreshOnBackoff, Validation};
use crate::congestion::{Controller, Growth, Prr};
use crate::connection::Side;
use crate::event::Log;
use crate::mechanism::View;
use crate::recovery::{Detector, Phase};
use crate::rtt::Rtt;
use crate::scoreboard::{Delivered, Scoreboard};
use crate::state::Standing;
use crate::stream::Stream;
use base::{Duration, Time};
use losses::Doubt;
use notices::Notices;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Counts of what a sender did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Statistics {
    /// Segments sent, retransmissions included.
    pub segments: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Reductions of the window, those by timeouts not counted.
    pub reductions: u64,
    /// Times that the path was probed anew because it had changed.
    pub reprobes: u64,
    /// Reductions that turned out to be needless and were taken back.
    pub undone: u64,
    /// Ranges that the peer reported to have received twice (RFC 2883).
    pub twice: u64,
    /// Notices of corruption that led to a retransmission.
    pub notices: u64,
    /// Those among them that turned out to be false, if a mechanism wants to know.
    pub refuted: u64,
}

impl core::ops::AddAssign for Statistics {
    fn add_assign(&mut self, other: Statistics) {
        self.segments += other.segments;
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
        self.reductions += other.reductions;
        self.reprobes += other.reprobes;
        self.undone += other.undone;
        self.twice += other.twice;
        self.notices += other.notices;
        self.refuted += other.refuted;
    }
}

/// A segment of what was not sent before, among what is sent whatever the window says.
const NEW_DATA: u64 = u64::MAX;

/// The sending half of a connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sender {
    pub(crate) stream: Stream,
    pub(crate) statistics: Statistics,
    /// A snapshot has no listeners.
    #[serde(skip)]
    pub(crate) log: Log,
    config: SenderConfig,
    board: Scoreboard,
    detector: Detector,
    controller: Controller,
    /// How the window comes down, while it does so step by step.
    gradual: Option<Gradual>,
    rtt: Rtt,
    phase: Phase,
    /// SND.NXT when the present or last episode began: it ends when that is acknowledged.
    recover: u64,
    /// No second reduction until this is acknowledged (RFC 3168 §6.1.2).
    reduced_until: u64,
    /// The peer has yet to be told that the window was reduced (RFC 3168 §6.1.2, CWR).
    tell_reduction: bool,
    doubt: Doubt,
    /// SND.UNA at the last timeout, and how many in a row have struck there.
    timed_out_at: u64,
    series: u32,
    /// The octet after the last that the peer's window allows.
    right_edge: u64,
    /// The segment that said so (RFC 9293 §3.10.7.4).
    wl1: u64,
    wl2: u64,
    /// The largest window ever offered.
    max_window: u64,
    /// The peer's window keeps the sender from sending anything.
    probing: bool,
    /// The next segment goes whatever the peer's window says.
    probe_due: bool,
    /// Nothing is outstanding, and the timer runs for data that is held back until more is written.
    holding: bool,
    /// Bytes of data in a full-sized segment.
    mss: u32,
    /// Starts of records to be sent at once, whatever the window says, or [`NEW_DATA`].
    forced: VecDeque<u64>,
    /// Octets of limited transmit since the last advance (RFC 5681 §3.2 does not count them).
    limited: u64,
    /// Whether the congestion window was what stopped the last transmission.
    window_limited: bool,
    /// How much of it is used, if that matters.
    used: Option<Box<Used>>,
    delivered: Delivered,
    copies: u32,
    /// The shortest time from a copy to a notice that was surely of that.
    soonest_notice: Duration,
    /// Those that were believed and may yet prove false.
    believed: Notices,
    /// When the timer expires.
    deadline: Time,
    /// When something was last acknowledged, or first outstanding.
    progress_at: Time,
    /// When something was last sent.
    sent_at: Time,
    given_up: bool,
}

/// A reduction that is under way (RFC 6937).
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Gradual {
    prr: Prr,
    /// What the last acknowledgment allows, bytes.
    window: u64,
}

/// How much was outstanding at once, at most, since `until` was SND.NXT ([`Validation::Half`]).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Used {
    most: u64,
    until: u64,
}

/// The settings that the sender keeps after start-up.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SenderConfig {
    pipe: Pipe,
    limited_transmit: bool,
    nagle: bool,
    restart_after_idle: bool,
    undo: bool,
    reduction: Reduction,
    user_timeout: Option<Duration>,
    retries: u32,
    /// The same for the SYN.
    syn_retries: u32,
    ssthresh_on_backoff: SsthreshOnBackoff,
    initial_window: InitialWindow,
    initial_ssthresh: Option<u64>,
    growth: Growth,
}

impl Sender {
    pub(crate) fn new(config: &Config, side: Side) -> Sender {
        let mss = u32::from(config.mss);
        let growth = Growth {
            congestion: config.congestion,
            increase: config.increase,
            byte_counting: config.byte_counting,
        };
        Sender {
            stream: Stream::new(),
            statistics: Statistics::default(),
            log: Log::default(),
            config: SenderConfig {
                pipe: config.pipe,
                limited_transmit: config.limited_transmit,
                nagle: config.nagle,
                restart_after_idle: config.restart_after_idle,
                undo: config.undo,
                reduction: config.reduction,
                user_timeout: config.user_timeout,
                retries: config.retries,
                syn_retries: config.retries.min(match side {
                    Side::Active => config.syn_retries,
                    Side::Passive => config.syn_ack_retries,
                }),
                ssthresh_on_backoff: config.ssthresh_on_backoff,
                initial_window: config.initial_window,
                initial_ssthresh: config.initial_ssthresh,
                growth,
            },
            board: Scoreboard::default(),
            detector: Detector::new(config.recovery),
            controller: Controller::new(growth, u64::from(mss)),
            gradual: None,
            rtt: Rtt::new(config.rto),
            phase: Phase::Open,
            recover: 0,
            reduced_until: 0,
            tell_reduction: false,
            doubt: Doubt::default(),
            timed_out_at: 0,
            series: 0,
            right_edge: 1, // Only the SYN, until the peer has spoken.
            wl1: 0,
            wl2: 0,
            max_window: 0,
            probing: false,
            probe_due: false,
            holding: false,
            mss,
            forced: VecDeque::new(),
            limited: 0,
            window_limited: false,
            used: (config.validation == Validation::Half).then(Box::default),
            delivered: Delivered::default(),
            copies: 0,
            soonest_notice: Duration::MAX,
            believed: Notices::default(),
            deadline: Time::NEVER,
            progress_at: Time::ZERO,
            sent_at: Time::ZERO,
            given_up: false,
        }
    }

    /// The peer has agreed to segments of `mss` bytes. `sack` is whether both ends permit selective
    /// acknowledgments; without, NewReno recovers in their stead.
    pub(crate) fn negotiated(&mut self, mss: u32, sack: bool) {
        self.mss = mss;
        if self.detector.uses_sack() && !sack {
            self.detector = Detector::new(crate::Recovery::NewReno);
        }
    }

    /// The peer has acknowledged our SYN: data may flow.
    pub(crate) fn start(&mut self) {
        // RFC 5681 §3.1: a lost SYN leaves one segment.
        let window = if self.series > 0 {
            self.rtt.after_lost_syn();
            u64::from(self.mss)
        } else {
            self.config.initial_window.bytes(self.mss)
        };
        self.detector.forget();
        self.doubt = Doubt::default();
        self.reduced_until = 0;
        self.tell_reduction = false;
        self.controller = Controller::new(self.config.growth, window);
        self.controller.reset(window, self.config.initial_ssthresh);
    }

    pub(crate) fn set_nagle(&mut self, nagle: bool) {
        self.config.nagle = nagle;
    }

    /// Our SYN goes again, whatever the timer says.
    pub(crate) fn resend_first(&mut self) {
        self.forced.push_back(self.board.una());
    }

    /// What is outstanding was sent some other time than it seems: it makes no round-trip sample.
    pub(crate) fn time_nothing(&mut self) {
        self.board.forget_times();
    }

    /// The connection is over: nothing is due any more.
    pub(crate) fn stop(&mut self) {
        self.deadline = Time::NEVER;
    }

    // --- what others may know ---

    pub(crate) fn una(&self) -> u64 {
        self.board.una()
    }

    pub(crate) fn nxt(&self) -> u64 {
        self.board.nxt()
    }

    /// The sequence number of a segment without data: SND.NXT, but not behind an octet that probes
    /// the peer's window. A peer that has refused that octet drops what comes behind it,
    /// acknowledgments included (RFC 9293 §3.10.7.4, first).
    #[inline]
    pub(crate) fn seq_of_ack(&self) -> u64 {
        let nxt = self.board.nxt();
        if nxt == self.right_edge + 1 { self.right_edge } else { nxt }
    }

    /// Bytes of data in a full-sized segment.
    pub(crate) fn mss(&self) -> u32 {
        self.mss
    }

    /// When something was last acknowledged, or first outstanding.
    pub(crate) fn progress_at(&self) -> Time {
        self.progress_at
    }

    /// Bytes of memory for the records of what is outstanding.
    pub(crate) fn memory(&self) -> u64 {
        self.board.memory()
    }

    pub(crate) fn outstanding(&self) -> u64 {
        self.board.outstanding()
    }

    /// The congestion window, bytes: while it comes down step by step, where it is by now.
    pub(crate) fn window(&self) -> u64 {
        self.gradual.as_ref().map_or_else(|| self.controller.window(), |gradual| gradual.window)
    }

    pub(crate) fn ssthresh(&self) -> u64 {
        self.controller.ssthresh()
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    pub(crate) fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    pub(crate) fn dupacked(&self) -> u64 {
        self.detector.dupacked(&self.board, self.phase, self.mss)
    }

    /// Octets held to be in the network (RFC 6675 §4), less those that duplicates account for.
    pub(crate) fn pipe(&self) -> u64 {
        let ignored = self.config.pipe == Pipe::Unreported && self.phase == Phase::Recovery;
        let lost = if ignored && self.detector.uses_sack() { self.board.lost() } else { 0 };
        self.board.in_network() + lost - self.dupacked()
    }

    /// Takes the news that the window was reduced, for the peer (RFC 3168 §6.1.2, CWR).
    #[inline]
    pub(crate) fn take_reduction(&mut self) -> bool {
        core::mem::take(&mut self.tell_reduction)
    }

    /// The largest window that the peer has ever offered (RFC 5961 §5, MAX.SND.WND).
    pub(crate) fn max_window(&self) -> u64 {
        self.max_window
    }

    /// The window that the peer offers, bytes from SND.UNA on.
    pub(crate) fn peer_window(&self) -> u64 {
        self.right_edge.saturating_sub(self.board.una())
    }

    pub(crate) fn standing(&self) -> Standing {
        match self.phase {
            Phase::Loss => Standing::Loss,
            Phase::Recovery => Standing::Recovery,
            Phase::Open if !self.is_clean() => Standing::Disorder,
            Phase::Open if self.board.una() < self.reduced_until => Standing::Reduced,
            Phase::Open => Standing::Open,
        }
    }

    pub(crate) fn view(&self, now: Time) -> View {
        View {
            now,
            una: self.una(),
            nxt: self.nxt(),
            srtt: self.srtt(),
            rto: self.rto(),
            stalled: self.is_stalled(),
            window: self.window(),
            initial_window: self.config.initial_window.bytes(self.mss),
            mss: self.mss(),
            statistics: self.statistics,
        }
    }
}
