//! The sending half: the pipeline from an acknowledgment to the next transmission.
//!
//! ```text
//! acknowledgment -> scoreboard -> detector names losses -> each gets a verdict
//!     -> at most one response per episode
//!     -> transmit: forced, retransmissions, new data while pipe < cwnd, limited transmit
//! ```

mod acks;
mod flight;
mod frto;
mod losses;
mod mtu_probing;
mod notices;
mod pacing;
mod path_mtu;
mod probe;
mod reprobe;
mod timer;
mod transmit;

pub(crate) use acks::{Ack, Window};
pub(crate) use transmit::Transmission;

use crate::config::{Config, InitialWindow, Pipe, Reduction, SsthreshOnBackoff, Validation};
use crate::congestion::{Controller, Growth, HyStartRules, Prr};
use crate::event::{Event, EventLog};
use crate::mechanism::View;
use crate::recovery::{Detector, Phase};
use crate::rtt::{RoundTrips, Rtt};
use crate::scoreboard::{Delivered, Record, Scoreboard, State as RecordState};
use crate::state::{OutstandingSegments, RecoveryState, Side};
use crate::stream::Stream;
use base::{Duration, Time};
use frto::Frto;
use losses::UndoState;
use mtu_probing::Search;
use notices::Notices;
use pacing::Pacer;
use path_mtu::TooBig;
use probe::LossProbe;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use timer::Timer;
use wire::CopyId;

/// The counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Statistics {
    /// Segments sent, retransmissions included.
    pub segments: u64,
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Tail loss probes sent (RFC 8985 §7).
    pub loss_probes: u64,
    /// Window reductions other than by timeouts.
    pub reductions: u64,
    /// Reprobes of a changed path.
    pub reprobes: u64,
    /// Reductions undone as spurious.
    pub undone: u64,
    /// DSACK blocks received (RFC 2883).
    pub dsacks: u64,
    /// Notices of corruption that led to a retransmission.
    pub notices: u64,
    /// Notices that proved false, counted if a mechanism has the outcome hook.
    pub refuted: u64,
    /// Acceptable segments received with URG, whose urgent pointer was ignored (RFC 6093).
    pub urgent: u64,
}

impl core::ops::AddAssign for Statistics {
    fn add_assign(&mut self, other: Statistics) {
        self.segments += other.segments;
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
        self.loss_probes += other.loss_probes;
        self.reductions += other.reductions;
        self.reprobes += other.reprobes;
        self.undone += other.undone;
        self.dsacks += other.dsacks;
        self.notices += other.notices;
        self.refuted += other.refuted;
        self.urgent += other.urgent;
    }
}

/// An entry of the forced queue that stands for a segment of new data.
const NEW_DATA: u64 = u64::MAX;

/// The sending half of a connection.
//
// A segment on the fast path touches each field of the first part, and few of the second: with
// thousands of connections, the time goes into fetching them from memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct Sender {
    board: Scoreboard,
    /// SND.UNA + SND.WND: the octet after the last that the peer's window allows.
    window_end: u64,
    /// SND.WL1 and SND.WL2: the segment of the last window update (RFC 9293 §3.10.7.4).
    wl1: u64,
    wl2: u64,
    /// MAX.SND.WND: the largest window announced by the peer.
    max_window: u64,
    /// Bytes of data in a full-sized segment.
    mss: u32,
    copies: u32,
    phase: Phase,
    timer: Timer,
    /// Whether the congestion window stopped the last transmission.
    window_limited: bool,
    /// The peer's window allows nothing: it is being probed.
    probing: bool,
    /// A window probe is due.
    probe_due: bool,
    /// The timer runs for data that is held back until more is written; nothing is outstanding.
    held_back: bool,
    /// CWR is due on the next new segment (RFC 3168 §6.1.2).
    cwr_pending: bool,
    timed_out: bool,
    /// When the timer expires.
    deadline: Time,
    /// When data was last acknowledged, or first became outstanding.
    progress_at: Time,
    /// When a segment was last sent.
    sent_at: Time,
    pacer: Pacer,
    delivered: Delivered,
    /// C.app_limited (draft-ietf-ccwg-bbr §4.1.2.1): more than this has to be delivered until the
    /// flight is no longer limited by the application; 0 if it is not.
    app_limited: u64,
    pub(crate) stream: Stream,
    rtt: Rtt,
    /// Abort if nothing is acknowledged for this long ([`Config::user_timeout`]).
    user_timeout: Option<Duration>,
    detector: Detector,
    /// Recording is off in a snapshot.
    #[serde(skip)]
    pub(crate) log: EventLog,
    /// The use of the congestion window, if [`Validation::Half`] needs it.
    max_flight: Option<Box<MaxFlight>>,
    /// The round-trip samples, if they are measured.
    pub(crate) round_trips: Option<Box<RoundTrips>>,
    /// A loss probe that is not accounted for.
    probe: Option<Box<LossProbe>>,
    /// The forced-retransmit queue: starts of records to be sent at once, beyond the congestion
    /// window, or [`NEW_DATA`].
    forced_queue: VecDeque<u64>,
    /// Notices acted on that may still prove false.
    pending_notices: Notices,
    pub(crate) statistics: Statistics,
    controller: Controller,

    config: Box<SenderConfig>,
    /// The proportional rate reduction in progress.
    prr: Option<PrrState>,
    /// SND.NXT when the current or last episode began: the episode ends when that is acknowledged.
    recover: u64,
    /// No further reduction until this is acknowledged (RFC 3168 §6.1.2).
    reduced_until: u64,
    undo: UndoState,
    frto: Frto,
    /// SND.UNA at the last timeout, and the consecutive timeouts at it.
    timeout_una: u64,
    consecutive_timeouts: u32,
    /// A report that a segment was too big, until the timer confirms it.
    too_big: Option<TooBig>,
    /// The last such `mss`; `u32::MAX` if there was none.
    pub(crate) reported_mss: u32,
    /// The search for the path MTU, if it is found without ICMP.
    search: Option<Box<Search>>,
    /// Octets of limited transmit since SND.UNA last advanced; RFC 5681 §3.2 does not count them.
    limited_transmit_octets: u64,
    /// The shortest time from a copy to a notice that was unambiguously about it.
    min_notice_delay: Duration,
    /// When the retransmission timer expires, while that of reordering runs.
    retransmission_at: Time,
    /// Octets delivered when RACK last learned of a delivery: later ones were whole records that
    /// were sent once.
    rack_delivered: u64,
}

/// A proportional rate reduction in progress (RFC 9937).
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PrrState {
    prr: Prr,
    /// The window that the last acknowledgment allows, bytes.
    window: u64,
}

/// The largest flight since `until` was SND.NXT ([`Validation::Half`]).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct MaxFlight {
    octets: u64,
    until: u64,
}

/// The sender's part of the configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SenderConfig {
    pipe: Pipe,
    limited_transmit: bool,
    nagle: bool,
    restart_after_idle: bool,
    undo: bool,
    frto: bool,
    reduction: Reduction,
    retries: u32,
    /// The limit for the SYN.
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
            hystart: config.hystart.then(|| HyStartRules::new(config)),
            loss_threshold: config.loss_threshold,
            renew_min_rtt: config.renew_min_rtt,
            tolerate_random_loss: config.tolerate_random_loss,
        };
        let controller = Controller::new(growth, u64::from(mss));
        let pacer = Pacer::new(config.pacing || controller.models_path(), config.prompt_start);
        Sender {
            stream: Stream::new(),
            statistics: Statistics::default(),
            log: EventLog::default(),
            config: Box::new(SenderConfig {
                pipe: config.pipe,
                limited_transmit: config.limited_transmit,
                nagle: config.nagle,
                restart_after_idle: config.restart_after_idle,
                undo: config.undo,
                frto: config.frto,
                reduction: config.reduction,
                retries: config.retries,
                syn_retries: config.retries.min(match side {
                    Side::Active => config.syn_retries,
                    Side::Passive => config.syn_ack_retries,
                }),
                ssthresh_on_backoff: config.ssthresh_on_backoff,
                initial_window: config.initial_window,
                initial_ssthresh: config.initial_ssthresh,
                growth,
            }),
            user_timeout: config.user_timeout,
            board: Scoreboard::default(),
            detector: Detector::new(config.recovery),
            controller,
            prr: None,
            rtt: Rtt::new(config.rto),
            phase: Phase::Open,
            recover: 0,
            reduced_until: 0,
            cwr_pending: false,
            undo: UndoState::default(),
            frto: Frto::Idle,
            timeout_una: 0,
            consecutive_timeouts: 0,
            window_end: 1, // Only the SYN, until the peer has spoken.
            wl1: 0,
            wl2: 0,
            max_window: 0,
            probing: false,
            probe_due: false,
            held_back: false,
            mss,
            too_big: None,
            reported_mss: u32::MAX,
            search: Search::new(config.mtu_probing),
            forced_queue: VecDeque::new(),
            limited_transmit_octets: 0,
            window_limited: false,
            max_flight: (config.validation == Validation::Half).then(Box::default),
            delivered: Delivered::default(),
            app_limited: 0,
            copies: 0,
            min_notice_delay: Duration::MAX,
            pending_notices: Notices::default(),
            deadline: Time::NEVER,
            timer: Timer::Retransmission,
            pacer,
            retransmission_at: Time::NEVER,
            probe: None,
            rack_delivered: 0,
            progress_at: Time::ZERO,
            sent_at: Time::ZERO,
            timed_out: false,
            round_trips: None,
        }
    }

    /// Sets the negotiated options: segments of `mss` bytes, and whether both ends permit selective
    /// acknowledgments; without, NewReno replaces SACK recovery.
    pub(crate) fn on_negotiated(&mut self, mss: u32, sack: bool) {
        self.mss = mss;
        self.begin_search();
        if self.detector.uses_sack() && !sack {
            self.detector = Detector::new(crate::Recovery::NewReno);
        }
    }

    /// Starts data transfer: the peer has acknowledged our SYN, which may have been `marked` as having
    /// experienced congestion.
    pub(crate) fn start(&mut self, marked: bool) {
        // RFC 5681 §3.1: after a lost SYN, the initial window is one segment. So it is after a marked
        // one (RFC 5562 §3).
        let window = if self.consecutive_timeouts > 0 {
            self.rtt.after_lost_syn();
            u64::from(self.mss)
        } else if marked {
            u64::from(self.mss)
        } else {
            self.config.initial_window.bytes(self.mss)
        };
        self.detector.reset();
        self.undo = UndoState::default();
        self.reduced_until = 0;
        self.cwr_pending = false;
        self.controller = Controller::new(self.config.growth, window);
        self.controller.reset(window, self.config.initial_ssthresh);
        if let Some(rtt) = self.rtt.smoothed() {
            self.controller.on_handshake(rtt, self.mss);
        }
    }

    /// Raises the initial window, unless data was sent, or the handshake has made it smaller.
    pub(crate) fn raise_initial_window(&mut self, window: InitialWindow) {
        let configured = self.config.initial_window.bytes(self.mss);
        if window.bytes(self.mss) > configured && self.nxt() == 1 && self.window() == configured {
            self.config.initial_window = window;
            self.start(false);
        }
    }

    /// Appends to the stream.
    pub(crate) fn write(&mut self, stream: u32, offset: u64, len: u64, pushed: bool) {
        self.check_app_limited();
        self.stream.write(stream, offset, len, pushed);
    }

    pub(crate) fn set_nagle(&mut self, nagle: bool) {
        self.config.nagle = nagle;
    }

    pub(crate) fn set_syn_retries(&mut self, retries: u32) {
        self.config.syn_retries = retries.min(self.config.retries);
    }

    pub(crate) fn set_user_timeout(&mut self, timeout: Option<Duration>) {
        self.user_timeout = timeout;
    }

    /// Timeouts since the last progress.
    pub(crate) fn consecutive_timeouts(&self) -> u32 {
        self.consecutive_timeouts
    }

    /// Retransmits our SYN at once.
    pub(crate) fn retransmit_syn(&mut self) {
        self.forced_queue.push_back(self.board.una());
    }

    /// Sends data with the SYN that has just been sent, at most `most` bytes (RFC 7413 §4.2.1);
    /// returns the number of bytes. The peer's window is not known yet.
    pub(crate) fn send_with_syn(&mut self, now: Time, most: u32) -> u32 {
        let len = self.stream.available(1).min(u64::from(most)) as u32;
        if len > 0 {
            let copy = CopyId(self.copies);
            let sent = self.delivered.sent(now, self.flight(u64::from(len)));
            self.board.push(Record { start: 1, len, copy, sent, state: RecordState::empty() });
            self.log.push(|| Event::Sent { start: 1, len, copy, again: false });
        }
        len
    }

    /// Retransmits what the peer has not accepted of the data that went with the SYN, which is not
    /// lost by congestion (RFC 7413 §4.2.1).
    pub(crate) fn retransmit_data_of_syn(&mut self) {
        if self.board.outstanding() > 0 {
            self.board.mark_latest_copy_lost(self.board.head(), false);
        }
    }

    /// Allows data before our SYN is acknowledged, within the window of the peer's SYN, bytes (RFC
    /// 7413 §4.2.2).
    pub(crate) fn start_early(&mut self, window: u16) {
        self.update_window(&Window { seq: 0, ack: 1, window_end: 1 + u64::from(window) });
        self.start(false);
    }

    /// Excludes outstanding segments from round-trip samples: their send times are not known.
    pub(crate) fn disable_rtt_samples(&mut self) {
        self.board.mark_all_ambiguous();
    }

    /// Stops the timer: the connection is closed.
    pub(crate) fn stop(&mut self) {
        self.deadline = Time::NEVER;
        self.pacer.stop();
    }

    // --- what others may know ---

    pub(crate) fn una(&self) -> u64 {
        self.board.una()
    }

    pub(crate) fn nxt(&self) -> u64 {
        self.board.nxt()
    }

    /// The sequence number of a segment without data: SND.NXT, but not after a window probe. A peer
    /// that has refused the probe's octet drops segments beyond it, acknowledgments included (RFC
    /// 9293 §3.10.7.4, first).
    #[inline]
    pub(crate) fn pure_ack_seq(&self) -> u64 {
        let nxt = self.board.nxt();
        if nxt == self.window_end + 1 { self.window_end } else { nxt }
    }

    /// Bytes of data in a full-sized segment.
    pub(crate) fn mss(&self) -> u32 {
        self.mss
    }

    /// When data was last acknowledged, or first became outstanding.
    pub(crate) fn progress_at(&self) -> Time {
        self.progress_at
    }

    /// Bytes of memory for the records of what is outstanding.
    pub(crate) fn memory(&self) -> u64 {
        self.board.memory()
    }

    /// Octets delivered so far (draft-cheng-iccrg-delivery-rate-estimation §3.1.2, C.delivered).
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered.bytes
    }

    /// The time from the transmission of the copy that was delivered last to its acknowledgment.
    pub(crate) fn latest_rtt(&self) -> Option<Duration> {
        let rtt = self.delivered.at.since(self.delivered.first_sent_at);
        (rtt > Duration::ZERO).then_some(rtt)
    }

    pub(crate) fn outstanding(&self) -> u64 {
        self.board.outstanding()
    }

    pub(crate) fn outstanding_segments(&self) -> OutstandingSegments {
        let mut count = OutstandingSegments::default();
        for record in self.board.iter() {
            let segments = u64::from(record.len.div_ceil(self.mss.max(1)));
            let when = |state| if record.state.contains(state) { segments } else { 0 };
            count.all += segments;
            count.sacked += when(RecordState::SACKED);
            if !record.state.contains(RecordState::SACKED) {
                count.lost += when(RecordState::LOST);
                count.retransmitted += when(RecordState::RESENT);
            }
        }
        count
    }

    /// The congestion window, bytes; during a proportional rate reduction, its current value.
    pub(crate) fn window(&self) -> u64 {
        self.prr.as_ref().map_or_else(|| self.controller.window(), |state| state.window)
    }

    pub(crate) fn ssthresh(&self) -> u64 {
        self.controller.ssthresh()
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    pub(crate) fn min_rtt(&self) -> Option<Duration> {
        self.rtt.shortest()
    }

    pub(crate) fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    pub(crate) fn dupack_credit(&self) -> u64 {
        self.detector.dupack_credit(&self.board, self.phase, self.mss)
    }

    /// Octets estimated to be in the network (RFC 6675 §4), less the duplicate-ACK credit.
    pub(crate) fn pipe(&self) -> u64 {
        let ignored = self.config.pipe == Pipe::Unreported && self.phase == Phase::Recovery;
        let lost = if ignored && self.detector.uses_sack() { self.board.lost() } else { 0 };
        self.board.in_network() + lost - self.dupack_credit()
    }

    /// Whether CWR is due (RFC 3168 §6.1.2); resets the flag.
    #[inline]
    pub(crate) fn take_cwr(&mut self) -> bool {
        core::mem::take(&mut self.cwr_pending)
    }

    /// MAX.SND.WND: the largest window that the peer has announced (RFC 5961 §5).
    pub(crate) fn max_window(&self) -> u64 {
        self.max_window
    }

    /// SND.WND: the peer's window from SND.UNA on, bytes.
    pub(crate) fn peer_window(&self) -> u64 {
        self.window_end.saturating_sub(self.board.una())
    }

    pub(crate) fn recovery_state(&self) -> RecoveryState {
        match self.phase {
            Phase::Loss => RecoveryState::Loss,
            Phase::Recovery => RecoveryState::Recovery,
            Phase::Open if !self.is_clean() => RecoveryState::Disorder,
            Phase::Open if self.board.una() < self.reduced_until => RecoveryState::Reduced,
            Phase::Open => RecoveryState::Open,
        }
    }

    pub(crate) fn view(&self, now: Time) -> View {
        View {
            now,
            una: self.una(),
            nxt: self.nxt(),
            srtt: self.srtt(),
            rto: self.rto(),
            in_rto_recovery: self.is_in_rto_recovery(),
            window: self.window(),
            initial_window: self.config.initial_window.bytes(self.mss),
            mss: self.mss(),
            statistics: self.statistics,
        }
    }
}
